"""How sure a reconstruction by linear equations is of each value: calibrated intervals.

Source     Source document 002, "Solving the equations"; the argument that the intervals hold the
           true value as often as they say is in docs/derivations/confidence.md.
Guarantee  If the noises are independent and of the stated law, the interval of each unknown holds
           its true value with probability `level`, whatever the value is: exactly for Gaussian
           noise, within a point for Laplace noise at 80 % and more. Where no law is stated and the
           equations contradict each other, the noise is taken for Gaussian and its deviation is
           estimated from what they leave. Where they agree, there is none, and what they determine
           has an interval of the width of rounding.
Departure  An interval is around the estimate of weighted least squares (`standard.weights`), which
           errs by a known law; values of a solver that uses a box may be nearer to the truth, and
           are moved into the interval where they are outside it.

How far each unknown is from its estimate because of the noise of the answers.

Source     Source document 002, "Solving the equations": the estimate is M b with M = A^+, so that
           its covariance under independent noises of deviation 1 is M M'.
Method     Small systems: the inverse of A'A where it has one, else the singular values of A, with
           directions below a tolerance left out. Large ones: noises of +1 and -1 are drawn, and
           least squares shows what they do to the estimate.
Accuracy   Small: to rounding. Large: a deviation is estimated from up to `DRAWS` draws, to about
           1/sqrt(2 DRAWS) of itself (12 %), and `freedom` says so: an interval by Student's law
           with that freedom is wider by 3 % and still covers at its level. Huge systems get 4
           draws, and intervals that are wider by 30 %.
Identified An unknown is, if no direction that the equations do not see moves it. Large systems are
           asked to find two random points again; where they do not, within the steps that their
           size allows, they see it too weakly.

How a linear estimate errs: the law of a weighted sum of noises, divided by its deviation.

An estimate's error is a sum of independent noises with known weights. Let p_j be the share of
answer j in its variance. Where one answer decides, p = (1), the error has the law of its noise;
where hundreds do, it is a bell. In between it is taken for the sum of one noise of the law and a
bell, of which the noise has the share sqrt(sum of p_j^2): the sum has then the variance and the
kurtosis of the truth, both ends are exact, and the rest is off by at most 0.5 points of coverage
for Laplace noise and 1.6 for uniform noise at levels from 80 % on (docs/derivations/confidence.md).

Intervals that hold a value with a stated probability, whatever it is, and know its range.

A plain interval, estimate plus or minus so many deviations, cut off at the ends of a known range,
is empty when the estimate is far outside, and covers too often when that is made good: where the
truth is an end, half of the misses are forgiven. Here a value mu is in the interval if

    a s(mu)  <=  F((estimate - mu) / deviation)  <=  1 - a (1 - s(mu)),        a = 1 - level.

F of the true value is uniform, so that exactly the share `level` of all intervals hold it, for any
s. With s = 1/2 this is the plain interval. Here s is 0 at the lower end of the range, 1/2 from the
normal quantile's reach on, and 1 at the upper end: a value at an end can only be missed on the
side where values are. s never falls, so the values that are in form one interval, and it is never
empty.

The normal distribution function, compiled; NumPy has none.

Whole numbers from estimates of them: how likely each is, before which none is preferred.

The estimate of a whole number k errs by a known law, so that, all whole numbers of its range being
alike beforehand, k is as likely as the density of an error of estimate - k. From this come the
probability of the number reported and the fewest numbers that hold the true one with probability
`level`. Averaged over numbers drawn alike from the range both are exact. For yes or no, the average
probability is right at every prevalence, because errors do not know which of the two is true.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.reconstruct.leftover import leftover
from casemate.attack.reconstruct.noise import Kind
from casemate.attack.reconstruct.problem import Flags, Problem, Standard
from casemate.attack.solvers.least_squares import least_squares
from casemate.compiled import compiled
from casemate.exact import Floats, Rows

MOST_EXACT = 4_500
"""Wider systems are drawn, not factorised."""

MOST_WORK = 4e11
"""So are those whose height times their squared width is more."""

MOST_CELLS = 2.5e8
"""And those whose matrix has more cells than this (2 GB)."""

MOST_SHARES = 3e10
"""Above this, shares of single answers are drawn too."""

MOST_SINGULAR = 1_200
"""Larger systems without an inverse go by the eigenvectors of A'A, half as precise."""

CONDITION = 1e10
"""An inverse of A'A with a larger condition number is not trusted."""

WEAK_SINGULAR = 1e-10
WEAK_EIGEN = 1e-11
"""Directions that the equations see less than this, beside the strongest, are not seen."""

UNSEEN = 1e-7
"""The squared share of unseen directions that an identified unknown may have: rounding."""

LEAST_DRAWS, DRAWS = 4, 32
SHARE_DRAWS, ENOUGH_DRAWS = 256, 16
SAME = 1e-4
PROBES = 2
FOUND_AGAIN = 1e-3
TOLERANCE, DRAW_TOLERANCE = 1e-8, 1e-4
LEAST_STEPS, MOST_STEPS = 100, 3_000
MOST_ENTRIES = 3e10
"""Entries that all draws together may read, about a minute; fewer draws are made where they would
read more, down to the least."""

Stage = Callable[[int, int], None]
"""Called with how many draws are done, and of how many."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """For each free unknown its estimate, and how the noises of the answers move it.

    `variance` is in units of the noise of an answer of spread 1; `concentration` is the sum of the
    squared shares that the answers have in it. `rank` is how many independent equations there are,
    and `squares` what they leave: the sum of squared residuals. `freedom` is how many draws stand
    behind each variance: infinite where it was computed.
    """

    estimate: Floats
    variance: Floats
    concentration: Floats
    identified: Flags
    rank: float
    squares: float
    freedom: Floats


def covariance(
    standard: Standard, random: np.random.Generator, progress: Stage | None = None
) -> Covariance:
    """The estimate of least squares and its law, computed or drawn, as the size allows."""
    height, width = standard.height, standard.width
    small = height * width**2 <= MOST_WORK and height * width <= MOST_CELLS
    cheap = isinstance(standard.equations, Rows) or width <= MOST_SINGULAR
    if width <= MOST_EXACT and small and cheap:
        return computed(standard, random)
    return drawn(standard, random, progress)


def computed(standard: Standard, random: np.random.Generator) -> Covariance:
    """The estimate and its law by factorisation."""
    matrix, target = standard.dense(), standard.target
    inverse, identified, rank = _inverse(matrix)
    estimate = inverse @ (matrix.T @ target)
    estimate += inverse @ (matrix.T @ (target - matrix @ estimate))  # once more, for the rounding
    left = target - matrix @ estimate
    variance = np.maximum(np.diag(inverse), 0.0)
    concentration = _concentration(matrix, inverse, random)
    freedom = np.full(standard.width, np.inf)
    squares = float(left @ left)
    return Covariance(estimate, variance, concentration, identified, rank, squares, freedom)


def _inverse(matrix: Floats) -> tuple[Floats, Flags, float]:
    """(A'A)^+ as far as it matters for identified unknowns, which those are, and the rank."""
    height, width = matrix.shape
    if height >= width:
        gram = matrix.T @ matrix
        found = _plain_inverse(gram)
        if found is not None:
            return found, np.ones(width, np.bool_), float(width)
    if min(height, width) <= MOST_SINGULAR:
        return _from_directions(*_singular(matrix))
    return _from_directions(*_eigen(matrix.T @ matrix))


def _plain_inverse(gram: Floats) -> Floats | None:
    """The inverse of A'A, unless it has none or rounding would drown it."""
    size = np.sqrt(np.diag(gram))
    if not len(size) or (size == 0).any():
        return None
    scaled = gram / size / size[:, None]
    try:
        np.linalg.cholesky(scaled)
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return None
    condition = np.linalg.norm(scaled) * np.linalg.norm(inverse)
    return None if condition > CONDITION else inverse / size / size[:, None]


def _singular(matrix: Floats) -> tuple[Floats, Floats]:
    """Squared singular values that count, and their directions as columns."""
    height, width = matrix.shape
    if height > 2 * width:
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"))
    _, sizes, directions = np.linalg.svd(matrix, full_matrices=False)
    kept = sizes > WEAK_SINGULAR * max(sizes.max(initial=0.0), 1e-300)
    return sizes[kept] ** 2, directions[kept].T


def _eigen(gram: Floats) -> tuple[Floats, Floats]:
    sizes, directions = np.linalg.eigh(gram)
    kept = sizes > WEAK_EIGEN * max(sizes.max(initial=0.0), 1e-300)
    return sizes[kept], directions[:, kept]


def _from_directions(sizes: Floats, directions: Floats) -> tuple[Floats, Flags, float]:
    inverse = (directions / sizes) @ directions.T
    unseen = 1 - (directions**2).sum(axis=1)
    return inverse, unseen <= UNSEEN, float(len(sizes))


def _concentration(matrix: Floats, inverse: Floats, random: np.random.Generator) -> Floats:
    """The sum of the squared shares of the answers in each variance."""
    height, width = matrix.shape
    if height * width**2 > MOST_SHARES:
        signs = random.choice([-1.0, 1.0], (height, SHARE_DRAWS))
        moved = inverse @ (matrix.T @ signs)
        return _drawn_concentration((moved**2).sum(1), (moved**4).sum(1), SHARE_DRAWS)
    fourth, block = np.zeros(width), max(1, int(2e7) // max(width, 1))
    for first in range(0, height, block):
        moved = matrix[first : first + block] @ inverse
        fourth += (moved**4).sum(axis=0)
    variance = np.maximum(np.diag(inverse), 1e-150)
    return np.asarray(np.clip(fourth / variance**2, 0.0, 1.0))


def _drawn_concentration(second: Floats, fourth: Floats, draws: int) -> Floats:
    """From sums of squares and of fourth powers: signs give a kurtosis of 3 - 2 concentration.

    Where one answer decides, all squares are the same, which no chance brings about; otherwise a
    few draws say nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(second > 0, draws * fourth / second**2, 1.0)
    found = np.clip((3 - (1 + 2 / draws) * ratio) / 2, 0.0, 1.0)  # the ratio is a little small
    return np.where(ratio < 1 + SAME, 1.0, found if draws >= ENOUGH_DRAWS else 0.0)


def drawn(
    standard: Standard, random: np.random.Generator, progress: Stage | None = None
) -> Covariance:
    """The estimate by least squares, and its law from what drawn noises do to it."""
    steps = int(np.clip(MOST_ENTRIES / standard.entries / 8, LEAST_STEPS, MOST_STEPS))
    solved = least_squares(standard, standard.target, tolerance=TOLERANCE, most=steps)
    left = standard.target - standard.times(solved.values)
    draws = _affordable(standard, solved.iterations)
    identified = _found_again(standard, random, steps)
    second, fourth, rank = np.zeros(standard.width), np.zeros(standard.width), 0.0
    for done in range(draws):
        if progress is not None:
            progress(done, draws)
        signs = random.choice([-1.0, 1.0], standard.height)
        moved = least_squares(standard, signs, tolerance=DRAW_TOLERANCE, most=steps).values
        second += moved**2
        fourth += moved**4
        rank += float(np.sum(standard.times(moved) ** 2)) / draws
    concentration = _drawn_concentration(second, fourth, draws)
    freedom = np.where(concentration < 1, float(draws), np.inf)
    variance, squares = second / draws, float(left @ left)
    return Covariance(solved.values, variance, concentration, identified, rank, squares, freedom)


def _affordable(standard: Standard, steps: int) -> int:
    """How many draws the size allows, if each takes so many steps."""
    cost = 2.0 * standard.entries * max(steps, 1)
    return int(np.clip(MOST_ENTRIES / cost, LEAST_DRAWS, DRAWS))


def _found_again(standard: Standard, random: np.random.Generator, steps: int) -> Flags:
    """Which unknowns of random points the equations find again."""
    identified = np.ones(standard.width, np.bool_)
    for _ in range(PROBES):
        hidden = random.standard_normal(standard.width)
        answers = standard.times(hidden)
        again = least_squares(standard, answers, tolerance=TOLERANCE, most=steps).values
        identified &= np.abs(again - hidden) <= FOUND_AGAIN
    return identified


# Error law --------------------------------------------------------------------------------------


LEAST_SHARE = 0.005
"""Noise of a smaller share than this is taken for a bell."""

LARGEST_POWER = 500.0
"""Exponents of the Laplace tail stay below this, so that nothing overflows."""

FARTHEST = 1e100
"""No point is further out than this: its square is still a number."""

MOST_FREEDOM = 1e12
"""With more degrees of freedom than this a deviation counts as known."""


def normal_cdf(points: Floats) -> Floats:
    """How likely a standard normal number is to be at most each of these."""

    flat = np.ascontiguousarray(points, np.float64).ravel()
    found = np.empty_like(flat)
    normal_cdf_kernel(flat, found)
    return found.reshape(np.shape(points))


@dataclass(frozen=True, eq=False)
class ErrorLaw:
    """The law of errors divided by their deviations, one for each unknown.

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
        plain, _ = self._unstudentised(points)
        if self.kind == "gaussian":
            return normal_cdf(plain)
        noise, bell = self._parts(plain)
        return _laplace_cdf(plain, noise, bell) if self._heavy else _uniform_cdf(plain, noise, bell)

    def log_density(self, points: Floats) -> Floats:
        """The logarithm of the density at each point, up to a constant; finite everywhere."""
        plain, slope = self._unstudentised(points)
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
        share = _beside(share, points)
        return np.sqrt(share), np.sqrt(1 - share)

    def _unstudentised(self, points: Floats) -> tuple[Floats, Floats]:
        """Points of Student's law moved to where the normal law has them, and the slope of that.

        Wallace's transformation: within 0.4 points of coverage from 2 degrees of freedom on,
        and too wide rather than too narrow with 1.
        """
        freedom = _beside(np.minimum(self.freedom, MOST_FREEDOM), points)
        points = np.clip(points, -FARTHEST, FARTHEST)
        shrink = (8 * freedom + 1) / (8 * freedom + 3)
        moved = shrink * np.sign(points) * np.sqrt(freedom * np.log1p(points**2 / freedom))
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = shrink**2 * points / (1 + points**2 / freedom) / moved
        return moved, np.where(np.abs(points) < 1e-9, shrink, slope)


def _beside(each: Floats, points: Floats) -> Floats:
    """One number for each unknown, with as many axes as the points have."""
    return np.asarray(each.reshape(each.shape + (1,) * (points.ndim - each.ndim)))


def _laplace_terms(points: Floats, noise: Floats, bell: Floats) -> tuple[Floats, Floats, Floats]:
    """Points within reach, and the two exponential tails that a bell leaves of Laplace noise."""
    scale = noise / math.sqrt(2)
    reach = np.clip(points, -LARGEST_POWER * scale, LARGEST_POWER * scale)
    ratio = bell / scale
    grown = ratio**2 / 2
    right = np.exp(grown - reach / scale) * normal_cdf(reach / bell - ratio)
    left = np.exp(grown + reach / scale) * normal_cdf(-reach / bell - ratio)
    return reach, left, right


def _laplace_cdf(points: Floats, noise: Floats, bell: Floats) -> Floats:
    reach, left, right = _laplace_terms(points, noise, bell)
    return np.clip(normal_cdf(reach / bell) - (right - left) / 2, 0.0, 1.0)


def _laplace_log_density(points: Floats, noise: Floats, bell: Floats) -> Floats:
    reach, left, right = _laplace_terms(points, noise, bell)
    beyond = (np.abs(points) - np.abs(reach)) * math.sqrt(2) / noise  # the tail goes on
    return np.asarray(_logarithm((left + right) / (noise * math.sqrt(2))) - beyond)


def _uniform_cdf(points: Floats, noise: Floats, bell: Floats) -> Floats:
    half = noise * math.sqrt(3)
    above = _summed_tail(-(points + half) / bell) - _summed_tail(-(points - half) / bell)
    return np.clip(1 + bell * above / (2 * half), 0.0, 1.0)


def _summed_tail(points: Floats) -> Floats:
    """The integral of the normal distribution function up to each point."""
    bell = np.exp(-np.minimum(points**2, 1400.0) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(points * normal_cdf(points) + bell)


def _uniform_log_density(points: Floats, noise: Floats, bell: Floats) -> Floats:
    half, apart = noise * math.sqrt(3), np.abs(points)
    inside = normal_cdf((half - apart) / bell) - normal_cdf((-half - apart) / bell)
    return _logarithm(inside / (2 * half))


def _logarithm(density: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(density, 1e-304)))


# Interval ---------------------------------------------------------------------------------------


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
    >>> low, high = intervals(Estimate(np.array([5.0, -3.0]), np.ones(2), law, *box), 0.9)
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


# Normal kernel ----------------------------------------------------------------------------------


@compiled
def normal_cdf_kernel(flat: Any, found: Any) -> None:
    """How likely a standard normal number is to be at most each of these; exact in both tails."""
    for i in range(flat.shape[0]):
        found[i] = 0.5 * math.erfc(-flat[i] / math.sqrt(2.0))


# Whole numbers ----------------------------------------------------------------------------------


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

    >>> from casemate.attack.reconstruct.confidence import ErrorLaw
    >>> law = ErrorLaw.of("gaussian", np.zeros(2))
    >>> bits = Estimate(np.array([0.9, 0.5]), np.full(2, 0.3), law, np.zeros(2), np.ones(2))
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


# Confidence -------------------------------------------------------------------------------------


AGREE = 1e-7
"""Residuals so much smaller than the answers are rounding."""

ROUNDING = 1e-13
"""The deviation of rounding, beside the answers, where nothing is left to estimate it from."""

SURE = 10.0
"""Deviations of rounding in an interval without noise, or the root of the number of equations if
that is more: residuals of length r move no estimate by more than r times its deviation."""

OUTLIER = 6.0
"""Equations are not trusted that are left so many robust deviations from holding."""


@dataclass(frozen=True, eq=False, repr=False)
class Confidence:
    """For each unknown the value, the interval that holds the true one, and how sure that is.

    `probability` is how likely a whole number is the right one: NaN for numbers that are not whole
    or not identified. `deviation` is that of the estimate: infinite where the equations do not
    identify the unknown, 0 where it was known before. `noise` is the deviation of an answer of
    spread 1, stated or estimated.
    """

    values: Floats
    low: Floats
    high: Floats
    probability: Floats
    deviation: Floats
    identified: Flags
    noise: float


@dataclass(frozen=True)
class _Noise:
    """What is supposed of the noise of an answer of spread 1."""

    kind: Kind
    deviation: float
    freedom: float = np.inf
    rounding: float = 0.0  # deviations to either side, where there is nothing but rounding


def confidence(
    problem: Problem,
    values: Floats | None = None,
    *,
    level: float = 0.9,
    random: np.random.Generator,
    trusted: Flags | None = None,
    progress: Stage | None = None,
) -> Confidence:
    """How sure the equations make anybody of each value.

    `values` are those of any solver, by default the estimates of weighted least squares. They come
    back moved to the nearest number of their interval, and whole where they are whole numbers.
    Equations that are not `trusted` are left out (see `trusted_equations`). `random` is used for
    large systems alone.

    >>> problem = Problem.of([[1, 1, 0], [0, 1, 0]], [5.0, 2.0])
    >>> sure = confidence(problem, random=np.random.default_rng(0))
    >>> sure.values.round(6).tolist(), sure.high.round(6).tolist()
    ([3.0, 2.0, 0.0], [3.0, 2.0, inf])
    """
    standard = Standard.of(problem, trusted)
    found = covariance(standard, random, progress)
    noise = _noise(problem, standard, found)
    estimate = _estimate(problem, standard, found, noise)
    seen = np.isfinite(estimate.deviation)
    within = _hard(problem, noise, seen, trusted)
    low, high = _soft(estimate, noise, level)
    low, high = np.clip(low, *within), np.clip(high, *within)
    chosen = estimate.centre if values is None else values
    chosen = np.clip(chosen, low, high)
    probability = np.full(len(chosen), np.nan)
    if problem.whole.any():
        narrowed = replace(estimate, low=within[0], high=within[1])
        _make_whole(problem.whole, narrowed, level, (chosen, low, high, probability))
    identified = seen | (problem.low == problem.high)
    return Confidence(
        chosen, low, high, probability, estimate.deviation, identified, noise.deviation
    )


def trusted_equations(problem: Problem, values: Floats) -> Flags:
    """Which equations hold at a solution as well as most do: for solutions that outvote junk.

    Pass it to `confidence` together with the values of a robust solver: the answers that it
    outvoted are then left out, and intervals are those of the rest.
    """
    lengths = problem.equations.lengths
    left = np.abs(problem.answers - lengths * problem.equations.times(values))
    left /= np.maximum(np.abs(problem.spread), 1e-300)
    typical = 1.4826 * float(np.median(left)) if len(left) else 0.0
    stated = 0.0 if problem.noise is None else problem.noise.deviation
    rounding = AGREE * float(np.abs(problem.answers).max(initial=0.0))
    return np.asarray(left <= OUTLIER * max(typical, stated) + rounding)


def _noise(problem: Problem, standard: Standard, found: Covariance) -> _Noise:
    """The stated noise; else what the residuals show, if they show more than rounding."""
    if problem.noise is not None:
        return _Noise(problem.noise.kind, problem.noise.deviation)
    size = float(np.sqrt(np.mean(standard.target**2))) if standard.height else 0.0
    freedom = max(standard.used - found.rank, 0.0)
    left = float(np.sqrt(found.squares / max(freedom, 1.0)))
    if freedom < 0.5 or left <= AGREE * size:
        reach = max(SURE, float(np.sqrt(standard.height)))
        return _Noise("gaussian", max(left, ROUNDING * size), rounding=reach)
    return _Noise("gaussian", left, max(freedom, 1.0))


def _estimate(
    problem: Problem, standard: Standard, found: Covariance, noise: _Noise
) -> EstimateWithLaw:
    """The estimate of every unknown: exact for known ones, without end for those not seen."""
    width, free = problem.equations.width, standard.free
    centre = np.where(problem.low == problem.high, problem.low, 0.0)
    deviation, concentration = np.zeros(width), np.ones(width)
    freedom = np.full(width, np.inf)
    centre[free] = found.estimate
    spread = np.maximum(noise.deviation * np.sqrt(found.variance), 1e-300)
    deviation[free] = np.where(found.identified, spread, np.inf)
    concentration[free] = found.concentration
    freedom[free] = 1 / np.maximum(1 / found.freedom + 1 / noise.freedom, 1 / MOST_FREEDOM)
    law = ErrorLaw.of(noise.kind, concentration, freedom)
    return EstimateWithLaw(centre, deviation, law, problem.low, problem.high)


def _soft(estimate: EstimateWithLaw, noise: _Noise, level: float) -> tuple[Floats, Floats]:
    """The interval of each unknown by the law of its estimate; its range where there is none."""
    low, high = estimate.low.copy(), estimate.high.copy()
    seen = np.isfinite(estimate.deviation) & (low < high)
    some = estimate.some(seen)
    if noise.rounding:
        reach = noise.rounding * some.deviation
        low[seen] = np.clip(some.centre - reach, some.low, some.high)
        high[seen] = np.clip(some.centre + reach, some.low, some.high)
    else:
        low[seen], high[seen] = intervals(some, level)
    return low, high


def _hard(
    problem: Problem, noise: _Noise, seen: Flags, trusted: Flags | None
) -> tuple[Floats, Floats]:
    """The ranges outside of which no value can be, where noise is bounded or absent."""
    bound = None if problem.noise is None else problem.noise.bounded
    if noise.rounding:
        bound, asked = noise.rounding * noise.deviation, np.flatnonzero(~seen)
    elif bound is None:
        return problem.low, problem.high
    else:
        asked = np.flatnonzero(problem.low < problem.high)
    if not len(asked):
        return problem.low, problem.high
    slack = bound * np.abs(problem.spread)
    if trusted is not None:
        slack = np.where(trusted, slack, np.inf)
    return leftover(problem, slack, asked)


def _make_whole(
    whole: Flags,
    estimate: EstimateWithLaw,
    level: float,
    found: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Move values and intervals of whole numbers to whole numbers, and say how likely they are."""
    values, low, high, probability = found
    ends = np.ceil(estimate.low - 1e-6), np.floor(estimate.high + 1e-6)
    values[whole] = np.clip(np.round(values), *ends)[whole]
    low[whole], high[whole] = ends[0][whole], ends[1][whole]
    probability[whole & (low == high)] = 1.0
    places = np.flatnonzero(whole & np.isfinite(estimate.deviation) & (low < high))
    some = replace(estimate, low=low, high=high).some(places)
    ends_and_odds = whole_numbers(some, values[places], level)
    low[places], high[places], probability[places] = ends_and_odds
    values[whole] = np.clip(values, low, high)[whole]
