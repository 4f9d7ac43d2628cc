"""When the rounds of the tuned tracker begin, how large their blocks are, and what they cost."""

import math
from functools import lru_cache

from casemate.track.engines.windows import centred_rule
from casemate.track.robust.tuned_design import TunedDesign, best_budget, design, share

_SMALLER = 0.95  # blocks that are tried next where no round is right with these
_SMALLEST_BLOCK = 2  # with blocks of one item every item is reported


def block_size(sites: int, alpha: float, failure: float, count: float, least: float) -> int:
    """How many items a block has in a round that begins at about `count`.

    It is the best for that count, unless no round is right with it where the count is `least`.
    """
    size = max(1, math.floor(alpha * count / best_budget(sites, alpha, failure)))
    while size > 1 and design(sites, alpha, failure, alpha * least / size).failure > failure:
        size = min(size - 1, math.floor(_SMALLER * size))
    return size


def round_at(sites: int, alpha: float, failure: float, count: int, size: int) -> TunedDesign:
    """The design of a round that begins at this very count with blocks of this size."""
    return design(sites, alpha, failure, alpha * count / size)


@lru_cache(maxsize=256)
def start(sites: int, alpha: float, delta: float) -> float:
    """The count at which rounds follow the windows: blocks are whole and windows cost as much."""
    failure = share(delta, 0)
    budget = best_budget(sites, alpha, failure)
    windows = sites / (2 * alpha)  # words for each factor e, and before it every item is one
    cost = design(sites, alpha, failure, budget).rate
    return max(_SMALLEST_BLOCK * budget / alpha, min(cost, windows))


def predicted_words(sites: int, alpha: float, delta: float, horizon: float) -> float:
    """Words until the count is `horizon`, when loads are even."""
    begin = start(sites, alpha, delta)
    words = windows_words(sites, alpha, min(begin, horizon))
    count, number = begin, 0
    if count < horizon:
        words += 2 * sites
    while count < horizon:
        failure = share(delta, number)
        size = block_size(sites, alpha, failure, count, count)
        plan = round_at(sites, alpha, failure, math.floor(count), size)
        growth = math.log1p(size * plan.phases * (plan.lengths.mean - 0.5) / count)
        rounds = min(max(1, number // 2), math.log(horizon / count) / growth)  # all like this one
        words += rounds * plan.words
        count, number = count * math.exp(rounds * growth) * (1 + 1e-12), number + math.ceil(rounds)
    return words


def windows_words(sites: int, alpha: float, count: float) -> float:
    """Words of centred windows up to this count, when loads are even."""
    rule, each = centred_rule(alpha), count / sites
    words, trigger, after = 0, 0, 1
    while after <= each:
        words, trigger, after = words + 1, after, rule.top(after) + 1
    return sites * (words + (each - trigger) / (after - trigger))
