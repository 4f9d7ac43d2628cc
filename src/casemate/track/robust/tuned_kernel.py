"""Items, one after another, until the tuned tracker must decide something or shall pause."""

import math
from typing import Any

from numba import njit

from casemate.track.adversary.kernel import next_site

PAUSE, ITEMS, ROUND, REPORTS = range(4)  # places of `whole`
OUTPUT, CHANGED, WORST, ALPHA, STEP = range(5)  # of `seen`


@njit(cache=True)
def _next(adversary: Any, whole: Any, seen: Any) -> Any:
    """Measure the error after the last item, and the site of the next; -1 to pause."""
    items = whole[ITEMS]
    if items > 0:
        error = abs(seen[OUTPUT] - items) / (seen[ALPHA] * items)
        seen[WORST] = max(seen[WORST], error)
    if items == whole[PAUSE]:
        return -1
    kind, memory, numbers, rng = adversary
    changed = seen[CHANGED] != 0.0
    return next_site(kind, memory, numbers, rng, seen[OUTPUT], changed, whole[ROUND], seen[STEP])


@njit(cache=True)
def windows(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any,
    counts: Any,
    triggers: Any,
    known: Any,
    rule: Any,
    start: Any,
    whole: Any,
    seen: Any,
) -> Any:
    """Windows until a report takes the count to `start`: its site, not yet heard; or -1."""
    numerator, denominator = rule
    weight = denominator / (numerator + denominator)
    low, high = 0, 0
    for count in known:
        low += count
        high += count * numerator // denominator
    while True:
        site = _next(adversary, whole, seen)
        if site < 0:
            return -1
        whole[ITEMS] += 1
        counts[site] += 1
        seen[CHANGED] = 0.0
        count = counts[site]
        if count >= triggers[site]:
            top = count * numerator // denominator
            now_low = low + count - known[site]
            now_high = high + top - known[site] * numerator // denominator
            value = now_low + (now_high - now_low) * weight
            if value >= start:
                return site
            whole[REPORTS] += 1
            low, high, known[site], triggers[site] = now_low, now_high, count, top + 1
            seen[CHANGED] = 1.0 if value != seen[OUTPUT] else 0.0
            seen[OUTPUT] = value


@njit(cache=True)
def blocks(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any,
    counts: Any,
    triggers: Any,
    begun: Any,
    reports: Any,
    size: Any,
    left: Any,
    whole: Any,
    seen: Any,
    rng: Any,
) -> Any:
    """A phase until the report that ends it, the `left`-th: its site, not yet heard; or -1."""
    while True:
        site = _next(adversary, whole, seen)
        if site < 0:
            return -1
        whole[ITEMS] += 1
        counts[site] += 1
        seen[CHANGED] = 0.0
        if counts[site] >= triggers[site]:
            if left == 1:
                return site
            left -= 1
            whole[REPORTS] += 1
            reports[site] += 1
            offset = math.ceil((reports[site] + 1 - rng.random()) * size)
            triggers[site] = begun[site] + int(offset)
