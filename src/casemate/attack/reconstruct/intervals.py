"""Intervals that hold a value with a stated probability, whatever it is, and know its range.

A plain interval, estimate plus or minus so many deviations, cut off at the ends of a known range,
is empty when the estimate is far outside, and covers too often when that is made good: where the
truth is an end, half of the misses are forgiven. Here a value mu is in the interval if

    a s(mu)  <=  F((estimate - mu) / deviation)  <=  1 - a (1 - s(mu)),        a = 1 - level.

F of the true value is uniform, so that exactly the share `level` of all intervals hold it, for any
s. With s = 1/2 this is the plain interval. Here s is 0 at the lower end of the range, 1/2 from the
normal quantile's reach on, and 1 at the upper end: a value at an end can only be missed on the
side where values are. s never falls, so the values that are in form one interval, and it is never
empty.

Whole numbers from estimates of them: how likely each is, before which none is preferred.

The estimate of a whole number k errs by a known law, so that, all whole numbers of its range being
alike beforehand, k is as likely as the density of an error of estimate - k. From this come the
probability of the number reported and the fewest numbers that hold the true one with probability
`level`. Averaged over numbers drawn alike from the range both are exact. For yes or no, the average
probability is right at every prevalence, because errors do not know which of the two is true.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.reconstruct.error_law import ErrorLaw
from casemate.attack.reconstruct.problem import Flags
from casemate.exact import Floats

HALVINGS = 40
"""Ends are found to within the reach divided by 2 to this power."""


@dataclass(frozen=True, eq=False)
class EstimateWithLaw:
    """Estimates, the deviations and the law of their errors, and the ranges known before."""

    centre: Floats
    deviation: Floats
    law: ErrorLaw
    low: Floats
    high: Floats

    def some(self, which: NDArray[Any]) -> "EstimateWithLaw":
        """Those of some of the unknowns."""
        parts = (self.centre, self.deviation, self.low, self.high)
        centre, deviation, low, high = (part[which] for part in parts)
        return EstimateWithLaw(centre, deviation, self.law.some(which), low, high)


def intervals(estimate: EstimateWithLaw, level: float) -> tuple[Floats, Floats]:
    """The ends of intervals that hold the true values with probability `level` each.

    >>> law = ErrorLaw.of("gaussian", np.zeros(2))
    >>> box = np.array([-np.inf, 0.0]), np.array([np.inf, 9.0])
    >>> low, high = intervals(EstimateWithLaw(np.array([5.0, -3.0]), np.ones(2), law, *box), 0.9)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([3.355, 0.0], [6.645, 0.039])
    """
    if not 0.5 <= level < 1:
        raise ValueError("a level of confidence is at least 0.5 and less than 1")
    edge = _Edge(estimate, 1 - level)
    middle = np.clip(estimate.centre, estimate.low, estimate.high)
    reach = edge.reach * estimate.deviation
    low = _halved(np.maximum(estimate.low, middle - reach), middle, edge.is_too_low)
    high = _halved(np.minimum(estimate.high, middle + reach), middle, edge.is_too_high)
    return low, high


class _Edge:
    """Which values are outside the interval, and on which side."""

    def __init__(self, estimate: EstimateWithLaw, miss: float) -> None:
        self._estimate, self._miss = estimate, miss
        span = estimate.high - estimate.low
        quantile = NormalDist().inv_cdf(1 - miss / 2)
        self._turn = np.maximum(np.minimum(quantile * estimate.deviation, span), 1e-300)

    @property
    def reach(self) -> float:
        """So many deviations from the estimate no value is in."""
        law, reach = self._estimate.law, 8.0
        while law.cdf(np.full(len(law.freedom), reach)).min(initial=1.0) < 1 - self._miss / 4:
            reach *= 2
        return reach

    def is_too_low(self, values: Floats) -> Flags:
        """Whether an estimate so high is too rare where this is the true value."""
        return np.asarray(self._chance(values) > 1 - self._miss * (1 - self._side(values)))

    def is_too_high(self, values: Floats) -> Flags:
        """Whether an estimate so low is too rare where this is the true value."""
        return np.asarray(self._chance(values) < self._miss * self._side(values))

    def _chance(self, values: Floats) -> Floats:
        apart = (self._estimate.centre - values) / self._estimate.deviation
        return self._estimate.law.cdf(apart)

    def _side(self, values: Floats) -> Floats:
        """The share of misses that may be on the low side: s in the text above."""
        from_low = np.minimum(1.0, (values - self._estimate.low) / self._turn)
        from_high = np.minimum(1.0, (self._estimate.high - values) / self._turn)
        return np.asarray((1 + from_low - from_high) / 2)


def _halved(outer: Floats, inner: Floats, is_outside: Callable[[Floats], Flags]) -> Floats:
    """The edge between values that are outside and those that are in; `outer` if it is in."""
    is_in = ~is_outside(outer)
    first, outer = outer, outer.copy()
    for _ in range(HALVINGS):
        middle = (outer + inner) / 2
        out = is_outside(middle)
        outer, inner = np.where(out, middle, outer), np.where(out, inner, middle)
    return np.where(is_in, first, inner)


# Whole numbers -----------------------------------------------------------------------------------


FINE = 8.0
"""With larger deviations than this, sums over whole numbers are integrals."""

WINDOW = 64
"""So many whole numbers on either side of the estimate are looked at."""

HOPELESS = -690.0
"""Logarithms of densities below this are not told apart by doubles."""

BLOCK = 4_096


def whole_numbers(
    estimate: EstimateWithLaw, values: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """The ends of the likeliest whole numbers, and the probability of the values given.

    >>> law = ErrorLaw.of("gaussian", np.zeros(2))
    >>> bits = EstimateWithLaw(np.array([0.9, 0.5]), np.full(2, 0.3), law, np.zeros(2), np.ones(2))
    >>> low, high, probability = whole_numbers(bits, np.array([1.0, 0.0]), 0.9)
    >>> low.tolist(), high.tolist(), probability.round(3).tolist()
    ([1.0, 0.0], [1.0, 1.0], [0.988, 0.5])
    """
    low, high, probability = (np.empty(len(values)) for _ in range(3))
    fine = estimate.deviation <= FINE
    for which, work in ((fine, _counted), (~fine, _integrated)):
        places = np.flatnonzero(which)
        for first in range(0, len(places), BLOCK):
            some = places[first : first + BLOCK]
            found = work(estimate.some(some), values[some], level)
            low[some], high[some], probability[some] = found
    return low, high, probability


def _counted(
    estimate: EstimateWithLaw, values: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """Number by number, within a window around the estimate."""
    ends = np.ceil(estimate.low), np.floor(estimate.high)
    middle = np.clip(np.round(estimate.centre), *ends)
    numbers = middle[:, None] + np.arange(-WINDOW, WINDOW + 1)
    apart = (estimate.centre[:, None] - numbers) / np.maximum(estimate.deviation, 1e-300)[:, None]
    possible = (numbers >= ends[0][:, None]) & (numbers <= ends[1][:, None])
    chances = _normalised(estimate.law.log_density(apart), np.abs(apart), possible)
    kept = _fewest(chances, level)
    low = np.where(kept, numbers, np.inf).min(axis=1)
    high = np.where(kept, numbers, -np.inf).max(axis=1)
    return low, high, (chances * (numbers == values[:, None])).sum(axis=1)


def _normalised(logarithms: Floats, apart: Floats, possible: Flags) -> Floats:
    """Probabilities from logarithms; where all of them are hopeless, the nearest has it all."""
    ranked = logarithms - np.where(logarithms < HOPELESS, apart, 0.0)
    masked = np.where(possible, ranked, -np.inf)
    chances = np.exp(masked - masked.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _fewest(chances: Floats, level: float) -> Flags:
    """The fewest numbers that are together as likely as the level."""
    order = np.argsort(-chances, axis=1, kind="stable")
    falling = np.take_along_axis(chances, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    kept = np.zeros(chances.shape, np.bool_)
    np.put_along_axis(kept, order, before < level, axis=1)
    return kept


def _integrated(
    estimate: EstimateWithLaw, values: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """By the distribution function, where a whole number more or less changes little."""
    wide = replace(estimate, low=estimate.low - 0.5, high=estimate.high + 0.5)
    low, high = intervals(wide, level)

    def below(ends: Floats) -> Floats:
        return estimate.law.cdf((ends - estimate.centre) / estimate.deviation)

    all_of_it = np.maximum(below(wide.high) - below(wide.low), 1e-300)
    own = below(values + 0.5) - below(values - 0.5)
    ends = np.ceil(estimate.low), np.floor(estimate.high)
    first, last = (np.clip(end, *ends) for end in (np.ceil(low), np.floor(high)))
    return np.minimum(first, last), last, np.clip(own / all_of_it, 0.0, 1.0)
