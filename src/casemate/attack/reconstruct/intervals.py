"""Intervals of estimates that err by a known law: numbers within a range, and whole numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.reconstruct.problem import Flags, Kind
from casemate.exact import Floats

LEAST_SHARE = 0.005
"""Noise of a smaller share than this is taken for a bell."""

FARTHEST_POINT = 1e100
"""No point is further out than this: its square is still a number."""

MOST_FREEDOM = 1e12
"""With more degrees of freedom than this a deviation counts as known."""


@dataclass(frozen=True, eq=False)
class ErrorLaw:
    """The law of errors divided by their deviations, one for each unknown.

    An estimate's error is a sum of independent noises with known weights. Let p_j be the share of
    answer j in its variance. Where one answer decides, p = (1), the error has the law of its noise;
    where hundreds do, it is a bell. In between it is taken for the sum of one noise of the law and
    a bell, of which the noise has the share sqrt(sum of p_j^2): the sum has then the variance and
    the kurtosis of the truth, both ends are exact, and the rest is off by at most 0.5 points of
    coverage for Laplace noise and 1.6 for uniform noise at levels from 80 % on
    (docs/derivations/confidence.md).

    `concentration` is the sum of the squared shares: 1 where one answer decides, near 0 where many
    do. `freedom` is how many independent numbers the deviation was estimated from; infinite where
    it is known. Points may have further axes behind the first.
    """

    kind: Kind
    concentration: Floats
    freedom: Floats

    @classmethod
    def of(cls, kind: Kind, concentration: Floats, freedom: Floats | float = np.inf) -> "ErrorLaw":
        """The law of each unknown, with one number of degrees of freedom or one for each."""
        shape = concentration.shape
        return cls(kind, concentration, np.broadcast_to(np.asarray(freedom, np.float64), shape))

    def some(self, which: NDArray[Any]) -> "ErrorLaw":
        """The laws of some of the unknowns."""
        return ErrorLaw(self.kind, self.concentration[which], self.freedom[which])

    def cdf(self, points: Floats) -> Floats:
        """How likely an error, divided by its deviation, is to be at most each point."""
        plain, _ = self._to_normal_points(points)
        if self.kind == "gaussian":
            return normal_cdf(plain)
        noise, bell = self._parts(plain)
        return _laplace_cdf(plain, noise, bell) if self._heavy else _uniform_cdf(plain, noise, bell)

    def log_density(self, points: Floats) -> Floats:
        """The logarithm of the density at each point, up to a constant; finite everywhere."""
        plain, slope = self._to_normal_points(points)
        if self.kind == "gaussian":
            return np.asarray(np.log(slope) - plain**2 / 2)
        noise, bell = self._parts(plain)
        density = _laplace_log_density if self._heavy else _uniform_log_density
        return np.asarray(np.log(slope) + density(plain, noise, bell))

    @property
    def _heavy(self) -> bool:
        return self.kind == "laplace"

    def _parts(self, points: Floats) -> tuple[Floats, Floats]:
        """The deviations of the noise and of the bell that make up each error."""
        share = np.clip(np.sqrt(self.concentration), LEAST_SHARE, 1 - 1e-12)
        share = _with_axes(share, points)
        return np.sqrt(share), np.sqrt(1 - share)

    def _to_normal_points(self, points: Floats) -> tuple[Floats, Floats]:
        """Points of Student's law moved to where the normal law has them, and the slope of that.

        Wallace's transformation: within 0.4 points of coverage from 2 degrees of freedom on,
        and too wide rather than too narrow with 1.
        """
        freedom = _with_axes(np.minimum(self.freedom, MOST_FREEDOM), points)
        points = np.clip(points, -FARTHEST_POINT, FARTHEST_POINT)
        shrink = (8 * freedom + 1) / (8 * freedom + 3)
        moved = shrink * np.sign(points) * np.sqrt(freedom * np.log1p(points**2 / freedom))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = shrink**2 * points / (1 + points**2 / freedom) / moved
        return moved, np.where(np.abs(points) < 1e-9, shrink, slope)


def _with_axes(each: Floats, points: Floats) -> Floats:
    """One number for each unknown, with as many axes as the points have."""
    return np.asarray(each.reshape(each.shape + (1,) * (points.ndim - each.ndim)))


def _laplace_tails(points: Floats, noise: Floats, bell: Floats) -> tuple[Floats, Floats]:
    """The logarithms of the two exponential tails that a bell leaves of Laplace noise."""
    from scipy.special import log_ndtr

    scale = noise / math.sqrt(2)
    ratio = bell / scale
    left, right = (
        ratio**2 / 2 - side / scale + log_ndtr(side / bell - ratio) for side in (-points, points)
    )
    return left, right


def _laplace_cdf(points: Floats, noise: Floats, bell: Floats) -> Floats:
    left, right = (np.exp(tail) for tail in _laplace_tails(points, noise, bell))
    return np.clip(normal_cdf(points / bell) - (right - left) / 2, 0.0, 1.0)


def _laplace_log_density(points: Floats, noise: Floats, bell: Floats) -> Floats:
    both = np.logaddexp(*_laplace_tails(points, noise, bell))
    return np.asarray(both - np.log(noise * math.sqrt(2)))


def _uniform_cdf(points: Floats, noise: Floats, bell: Floats) -> Floats:
    half = noise * math.sqrt(3)
    above = _summed_tail(-(points + half) / bell) - _summed_tail(-(points - half) / bell)
    return np.clip(1 + bell * above / (2 * half), 0.0, 1.0)


def _summed_tail(points: Floats) -> Floats:
    """The integral of the normal distribution function up to each point."""
    density = np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(points * normal_cdf(points) + density)


def _uniform_log_density(points: Floats, noise: Floats, bell: Floats) -> Floats:
    half, apart = noise * math.sqrt(3), np.abs(points)
    inside = normal_cdf((half - apart) / bell) - normal_cdf((-half - apart) / bell)
    return np.asarray(np.log(np.maximum(inside / (2 * half), 1e-304)))


def normal_cdf(points: Floats) -> Floats:
    """How likely a standard normal number is to be at most each of these."""
    from scipy.special import ndtr

    return np.asarray(ndtr(points))


# Intervals that hold a value with a stated probability, and know its range ----------------------
#
# A plain interval, estimate plus or minus so many deviations, cut off at the ends of a known range,
# is empty when the estimate is far outside, and covers too often when that is made good: where the
# truth is an end, half of the misses are forgiven. Here a value mu is in the interval if
#
#     a s(mu)  <=  F((estimate - mu) / deviation)  <=  1 - a (1 - s(mu)),        a = 1 - level.
#
# F of the true value is uniform, so that exactly the share `level` of all intervals hold it, for
# any s. With s = 1/2 this is the plain interval. Here s is 0 at the lower end of the range, 1/2
# from the normal quantile's reach on, and 1 at the upper end: a value at an end can only be missed
# on the side where values are. s never falls, so the values that are in form one interval, and it
# is never empty. At levels below 1/2 s stays so far from 0 and 1 that the estimate is in; where it
# is outside of the range, the end next to it is the interval, which then covers more often.


BISECTION_STEPS = 40
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
    if not 0 < level < 1:
        raise ValueError(f"a level of confidence must lie between 0 and 1, got {level}")
    edge = _Edge(estimate, 1 - level)
    middle = np.clip(estimate.centre, estimate.low, estimate.high)
    reach = edge.reach * estimate.deviation
    low = _bisect(np.maximum(estimate.low, middle - reach), middle, edge.is_too_low)
    high = _bisect(np.minimum(estimate.high, middle + reach), middle, edge.is_too_high)
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
        most = 1 / (2 * self._miss)  # else an estimate at an end would not be in its interval
        return np.clip((1 + from_low - from_high) / 2, 1 - most, most)


def _bisect(outer: Floats, inner: Floats, is_outside: Callable[[Floats], Flags]) -> Floats:
    """The edge between values that are outside and those that are in; `outer` if it is in."""
    is_in = ~is_outside(outer)
    first, outer = outer, outer.copy()
    for _ in range(BISECTION_STEPS):
        middle = (outer + inner) / 2
        out = is_outside(middle)
        outer, inner = np.where(out, middle, outer), np.where(out, inner, middle)
    return np.where(is_in, first, inner)


# Whole numbers from estimates of them: how likely each is ---------------------------------------
#
# The estimate of a whole number k errs by a known law, so that, all whole numbers of its range
# being alike beforehand, k is as likely as the density of an error of estimate - k. From this come
# the probability of the number reported and the fewest numbers that hold the true one with
# probability `level`. Averaged over numbers drawn alike from the range both are exact. For yes or
# no, the average probability is right at every prevalence, because errors do not know which of the
# two is true.


MOST_ENUMERATED_DEVIATION = 8.0
"""With larger deviations than this, sums over whole numbers are integrals."""

NUMBERS_EACH_SIDE = 64
"""So many whole numbers on either side of the estimate are looked at."""

LEAST_LOG_DENSITY = -690.0
"""Logarithms of densities below this are not told apart by doubles."""

UNKNOWNS_PER_BLOCK = 4_096


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
    fine = estimate.deviation <= MOST_ENUMERATED_DEVIATION
    for which, work in ((fine, _enumerate_whole), (~fine, _integrate_whole)):
        places = np.flatnonzero(which)
        for first in range(0, len(places), UNKNOWNS_PER_BLOCK):
            some = places[first : first + UNKNOWNS_PER_BLOCK]
            found = work(estimate.some(some), values[some], level)
            low[some], high[some], probability[some] = found
    return low, high, probability


def _enumerate_whole(
    estimate: EstimateWithLaw, values: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """Number by number, within a window around the estimate."""
    ends = np.ceil(estimate.low), np.floor(estimate.high)
    middle = np.clip(np.round(estimate.centre), *ends)
    numbers = middle[:, None] + np.arange(-NUMBERS_EACH_SIDE, NUMBERS_EACH_SIDE + 1)
    apart = (estimate.centre[:, None] - numbers) / np.maximum(estimate.deviation, 1e-300)[:, None]
    possible = (numbers >= ends[0][:, None]) & (numbers <= ends[1][:, None])
    chances = _normalise(estimate.law.log_density(apart), np.abs(apart), possible)
    kept = _smallest_set(chances, level)
    low = np.where(kept, numbers, np.inf).min(axis=1)
    high = np.where(kept, numbers, -np.inf).max(axis=1)
    return low, high, (chances * (numbers == values[:, None])).sum(axis=1)


def _normalise(logarithms: Floats, apart: Floats, possible: Flags) -> Floats:
    """Probabilities from logarithms; where all of them are hopeless, the nearest has it all."""
    ranked = logarithms - np.where(logarithms < LEAST_LOG_DENSITY, apart, 0.0)
    masked = np.where(possible, ranked, -np.inf)
    chances = np.exp(masked - masked.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _smallest_set(chances: Floats, level: float) -> Flags:
    """The fewest numbers that are together as likely as the level."""
    order = np.argsort(-chances, axis=1, kind="stable")
    falling = np.take_along_axis(chances, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    kept = np.zeros(chances.shape, np.bool_)
    np.put_along_axis(kept, order, before < level, axis=1)
    return kept


def _integrate_whole(
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
