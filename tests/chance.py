"""Assertions about random outputs, each with a stated chance of a false alarm.

A correct program may fail a test of chance. Each assertion here takes `alarm`, an upper
bound on the probability of that, and relies only on inequalities that hold at every sample
size, never on a limit theorem. A suite with n such assertions cries wolf with probability
at most n * ALARM.
"""

import math
from collections.abc import Callable, Sequence

from scipy import stats

ALARM = 1e-9


def assert_follows(
    samples: Sequence[int], cdf: Callable[[int], float], alarm: float = ALARM
) -> None:
    """The samples are independent draws from `cdf` (Dvoretzky-Kiefer-Wolfowitz, Massart)."""
    n, ordered, gap, below = len(samples), sorted(samples), 0.0, 0
    for rank, value in enumerate(ordered, start=1):
        if rank == n or ordered[rank] != value:  # last of its ties
            gap = max(gap, abs(rank / n - cdf(value)), abs(below / n - cdf(value - 1)))
            below = rank
    assert gap <= math.sqrt(math.log(2 / alarm) / (2 * n)), f"the distributions are {gap:.4f} apart"


def assert_rate_at_most(hits: int, trials: int, rate: float, alarm: float = ALARM) -> None:
    """An event of probability at most `rate` happened `hits` times (exact binomial tail)."""
    chance = stats.binom.sf(hits - 1, trials, rate)
    assert chance > alarm, f"{hits} of {trials} has probability {chance:.2g} at rate {rate}"


def epsilon_at_least(hits: int, neighbour_hits: int, trials: int, alarm: float = ALARM) -> float:
    """A lower bound on epsilon from one event on two neighbours (Clopper-Pearson, twice)."""
    lower = stats.beta.ppf(alarm / 2, hits, trials - hits + 1) if hits else 0.0
    upper = (
        stats.beta.ppf(1 - alarm / 2, neighbour_hits + 1, trials - neighbour_hits)
        if neighbour_hits < trials
        else 1.0
    )
    return math.log(lower / upper) if lower > 0 else -math.inf
