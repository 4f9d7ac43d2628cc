"""The least error that any learner can have on a stream of one-bit answers, beside two yardsticks.

Source     The local asymptotic minimax theorem (Hajek, Le Cam) for the loss |.|, and van Trees'
           inequality; the quantity they bound is the average error of source document 000,
           Theorem 2.1. Derived in docs/derivations/one_bit_limit.md.
Guarantee  `root_mean_square` is a theorem: over a smooth law of secrets inside the cube, no learner
           with adaptive thresholds has a smaller root of the mean of its squared errors. `mean` is
           a benchmark: no learner is better everywhere as the stream grows, but at a finite length
           ratios down to .9 are seen.
Cost       O(d^2) a query, O(d^2) memory besides the stream.
Departure  None of the source's bounds is used: they are 28 to 140 times larger.

How much one answer says about w . q: a bit at the best threshold, at the median, all of it.

Source     Source document 000 asks for the threshold at the middle of what is still possible. A bit
           at distance x from w . q carries f(x)^2 / (F(x) (1 - F(x))), 4 f(0)^2 at the median.
Guarantee  No threshold, adaptive or not, carries more than the largest of these; no K answers carry
           more than the largest sum of (f(b) - f(a))^2 / (F(b) - F(a)) over K cells from a to b.
Departure  The median is the best threshold for some laws only. The search is numerical: a grid of
           quantiles, then golden sections. At an edge where the density does not fall faster than
           in a straight line, the search is replaced by the exact answer: there is no largest one.

How much one of K answers says about w . q, at the best K - 1 thresholds.

Guarantee  K answers that tell the cells between thresholds apart carry the sum of
           (f(b) - f(a))^2 / (F(b) - F(a)) over the cells from a to b.
Cost       K tables of 400 x 400 cells, then of 21 x 21.
Departure  The source has two answers. The search is exact on a grid of quantiles, one cell after
           the other, and again on finer and finer grids around each threshold found.

Compiled accumulation of information along a stream of queries.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from casemate.attack.one_bit.laws import Floats, Law
from casemate.attack.one_bit.streams import Stream
from casemate.compiled import compiled
from casemate.exact import ANY_ORDER

Kind = Literal["median", "supremum", "none"]

BODY = 2_000  # quantiles at even steps
TAIL = 1e-9  # the chance beyond which nothing is looked for, and the first step of the grid there
SAME = 1e-6  # a threshold that is better by less is not better
NEAR = 1e-6  # how near to an edge its shape is read, in scales
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class BitInformation:
    """What a bit carries, at the median and at the best threshold."""

    kind: Kind
    best: float  # infinite where the kind is none
    median: float  # 4 f(0)^2
    offset: float  # of the best threshold, from w . q plus the median of the noise


def information_at(law: Law, x: float) -> float:
    """What a bit carries whose threshold is x above w . q."""
    below = float(law.cdf(x))
    if not 0 < below < 1:
        return 0.0
    return float(law.density(x)) ** 2 / (below * (1 - below))


@lru_cache(maxsize=256)
def bit_information(law: Law) -> BitInformation:
    """The best threshold of a law, found numerically."""
    middle = float(law.quantile(0.5))
    median = 4 * law.density_at_median**2
    if (edge := open_edge(law, straight=False)) is not None:
        return BitInformation("none", math.inf, median, edge - middle)
    chances = quantile_grid(BODY)
    places = law.quantile(chances)
    best = int(np.argmax(law.density(places) ** 2 / (chances * (1 - chances))))
    around = float(places[max(best - 1, 0)]), float(places[min(best + 1, len(places) - 1)])
    candidates = float(places[best]), _top(lambda x: information_at(law, x), *around)
    largest, place = max((information_at(law, x), x) for x in candidates)
    if largest <= median * (1 + SAME):
        return BitInformation("median", median, median, 0.0)
    return BitInformation("supremum", largest, median, place - middle)


@lru_cache(maxsize=256)
def full_information(law: Law) -> float:
    """What the whole noisy answer carries: the Fisher information of the law's place."""
    if open_edge(law, straight=True) is not None:
        return math.inf
    coarse, fine = (_cells(law, quantile_grid(size)) for size in (BODY, 4 * BODY))
    return math.inf if fine > 1.2 * coarse else fine  # a jump inside: cells never stop gaining


def edge_pays_after(law: Law) -> float:
    """About how many queries a direction before thresholds at an edge beat those at the median.

    Near a jump of height c in the density, a threshold shrinks a variance s^2 by .686 c s^3; at the
    median by 4 f(0)^2 s^4. They cross where s = .1715 c / f(0)^2.
    """
    heights = [float(law.density(end)) for end in law.edges if math.isfinite(end)]
    height, middle = max(heights, default=0.0), law.density_at_median
    if height == 0:
        return math.inf
    return middle**2 / (4 * 0.1715**2 * height**2)


def quantile_grid(body: int) -> Floats:
    """Chances: even steps, and steps that shrink with the chance in both tails."""
    ends = np.geomspace(TAIL, 1 / body, body // 4, endpoint=False)
    return np.concatenate((ends, np.linspace(0, 1, body + 1)[1:-1], 1 - ends[::-1]))


def open_edge(law: Law, *, straight: bool) -> float | None:
    """An edge without a bound on what is carried there; at most on a `straight` line, or less.

    With a density of x^a at distance x, the bit there carries x^(a - 1), the whole answer the
    integral of x^(a - 2): without bound where a < 1, and where a <= 1.
    """
    bound = 1.05 if straight else 0.95
    step = NEAR * min(law.scale, law.edges[1] - law.edges[0])
    for end, inward in zip(law.edges, (step, -step), strict=True):
        if math.isfinite(end) and _power(law, end, inward) < bound:
            return end
    return None


def _power(law: Law, end: float, step: float) -> float:
    """The power a with which the density grows away from an edge."""
    near, far = float(law.density(end + step)), float(law.density(end + 2 * step))
    return math.log2(far / near) if near > 0 and far > 0 else math.inf


def _cells(law: Law, chances: Floats) -> float:
    """What is carried by the cell between two of these quantiles in which the answer lies."""
    heights = np.concatenate(([0.0], law.density(law.quantile(chances)), [0.0]))
    widths = np.diff(np.concatenate(([0.0], chances, [1.0])))
    return float(np.sum(np.diff(heights) ** 2 / widths))


def _top(height: Callable[[float], float], low: float, high: float) -> float:
    """The highest place of a hill with one top, by golden sections."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    heights = height(left), height(right)
    for _ in range(60):
        if heights[0] > heights[1]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            heights = height(left), heights[0]
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            heights = heights[1], height(right)
    return left if heights[0] > heights[1] else right


# Limit levels -----------------------------------------------------------------------------------


CANDIDATES = 270  # even quantiles of the first grid; half as many more lie in the tails
FINER = np.linspace(-1, 1, 21)
ROUNDS = 14
SHRINK = 0.4


@dataclass(frozen=True)
class LevelInformation:
    """What one of several answers carries, and the thresholds between them."""

    best: float  # infinite where there is no best
    thresholds: tuple[float, ...]  # from w . q; empty where there is no best


@lru_cache(maxsize=256)
def level_information(law: Law, levels: int) -> LevelInformation:
    """The best thresholds of an oracle with several answers, found numerically."""
    if levels < 2:
        raise ValueError(f"need an oracle with at least 2 answers, got {levels}")
    if open_edge(law, straight=False) is not None:
        return LevelInformation(math.inf, ())
    grid = law.quantile(quantile_grid(CANDIDATES))
    places = _chosen(law, [grid] * (levels - 1))
    reach = np.maximum(*_gaps(grid, places))
    for _ in range(ROUNDS):
        places = _chosen(law, [x + h * FINER for x, h in zip(places, reach, strict=True)])
        reach = SHRINK * reach
    return LevelInformation(cells_information(law, places), tuple(places.tolist()))


def cells_information(law: Law, thresholds: Floats) -> float:
    """What is carried by an answer that says between which of these thresholds it lies."""
    below = np.concatenate(([0.0], law.cdf(thresholds), [1.0]))
    heights = np.concatenate(([0.0], law.density(thresholds), [0.0]))
    return float(np.sum(_cell(np.diff(heights), np.diff(below)), where=np.diff(below) > 0))


def _chosen(law: Law, candidates: list[Floats]) -> Floats:
    """The best of the candidates for each threshold, all at once: one cell more at a time."""
    below, heights = (
        [np.zeros(1), *(read(x) for x in candidates), np.full(1, end)]
        for read, end in ((law.cdf, 1.0), (law.density, 0.0))
    )
    value, steps = np.zeros(1), []
    for place in range(len(candidates) + 1):
        rise = heights[place + 1][None, :] - heights[place][:, None]
        sums = value[:, None] + _cell(rise, below[place + 1][None, :] - below[place][:, None])
        steps.append(np.argmax(sums, axis=0))
        value = np.max(sums, axis=0)
    chosen = [0]
    for step in reversed(steps[1:]):
        chosen.append(int(step[chosen[-1]]))
    return np.asarray([x[i] for x, i in zip(candidates, chosen[:0:-1], strict=True)])


def _cell(rise: Floats, chance: Floats) -> Floats:
    """What cells of these chances carry; a cell without a chance is no cell."""
    width = np.where(chance > 0, chance, 1.0)
    return np.where(chance > 0, rise**2 / width, -np.inf)


def _gaps(grid: Floats, places: Floats) -> tuple[Floats, Floats]:
    """How far the neighbours of these places are in the grid, on both sides."""
    spots = np.searchsorted(grid, places)
    left, right = np.maximum(spots - 1, 0), np.minimum(spots + 1, len(grid) - 1)
    return places - grid[left], grid[right] - places


# Limit kernel -----------------------------------------------------------------------------------


@compiled(fastmath=ANY_ORDER)
def spreads(coordinates: Any, root: Any, information: Any) -> Any:
    """The deviation of x' beta before each query x, where each earlier one carried `information`.

    `root` is a square root S of the covariance, P = S S', and is spent: it follows the stream in
    Potter's form, which stays a covariance where P itself would not within rounding.
    """
    count, size = coordinates.shape
    result = np.empty(count)
    seen, gain = np.empty(size), 0.0
    for t in range(count):
        seen[:] = 0.0
        for i in range(size):
            for j in range(size):
                seen[j] += coordinates[t, i] * root[i, j]
        square = 0.0
        for j in range(size):
            square += seen[j] * seen[j]
        result[t] = math.sqrt(square)
        rest = 1.0 / (1.0 + information * square)  # the part of the variance that stays
        factor = information * rest / (1.0 + math.sqrt(rest))  # (1 - sqrt(rest)) / square
        for i in range(size):
            gain = 0.0
            for j in range(size):
                gain += root[i, j] * seen[j]
            for j in range(size):
                root[i, j] -= factor * gain * seen[j]
    return result


# Limit ------------------------------------------------------------------------------------------


MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean size of a standard Gaussian number."""

COUNTS_BELOW = 0.25
"""A ratio to the limit counts only where the limit is below this part of answering one half."""


@dataclass(frozen=True, eq=False)
class OneBitLimit:
    """What the best learner can hope for on one stream.

    Where the kind is "none", an edge of the noise lets a learner do better than any such figure;
    `errors` and `mean` are then those of thresholds at the median, and van Trees' bound is 0.
    """

    kind: Kind
    information: float  # of one answer at the best thresholds; infinite where the kind is none
    median_information: float
    full_information: float
    errors: Floats  # of each query, about w . q
    mean: float
    root_mean_square: float  # van Trees
    full_mean: float  # the same as `mean`, for a learner that sees every noisy answer whole
    half: float  # expected error of answering one half of everything, under the prior

    def counts(self, baseline: float | None = None) -> bool:
        """Whether the stream is long enough for a ratio to mean something."""
        return self.mean < COUNTS_BELOW * (self.half if baseline is None else baseline)

    def ratio(self, error: float, baseline: float | None = None) -> float | None:
        """An average error over the limit, where that counts."""
        return error / self.mean if self.counts(baseline) else None

    @property
    def price_of_the_oracle(self) -> float:
        """How much larger errors are behind the oracle than without it; not a number at an edge."""
        if self.kind == "none":
            return math.nan
        return math.sqrt(self.full_information / self.information)


def one_bit_limit(
    stream: Stream, law: Law, prior: Floats | None = None, levels: int = 2
) -> OneBitLimit:
    """The limit on a stream; `prior` is the learner's covariance in the stream's basis."""
    covariance = box_covariance(stream.basis) if prior is None else np.asarray(prior, float)
    bit, full = bit_information(law), full_information(law)
    kind, best = bit.kind, bit.best
    if levels > 2 and kind != "none":
        kind, best = "supremum", level_information(law, levels).best
    reached = best if math.isfinite(best) else bit.median
    errors = MEAN_ABSOLUTE * deviations(stream.coordinates, covariance, reached)
    return OneBitLimit(
        kind=kind,
        information=best,
        median_information=bit.median,
        full_information=full,
        errors=errors,
        mean=_mean(errors),
        root_mean_square=van_trees(stream, best),
        full_mean=_full_mean(stream, covariance, full),
        half=MEAN_ABSOLUTE * _mean(deviations(stream.coordinates, covariance, 0.0)),
    )


def deviations(coordinates: Floats, covariance: Floats, information: float) -> Floats:
    """sqrt(x' J^-1 x) of each query x, where J grows by `information` x x' with each."""
    root = np.linalg.cholesky(np.asarray(covariance, float))
    return spreads(np.ascontiguousarray(coordinates, float), root, float(information))  # type: ignore[no-any-return]  # numba


def box_covariance(basis: Floats) -> Floats:
    """The covariance of C w for w in [0, 1]^D: even in each direction, plus a level common to all.

    >>> box_covariance(np.array([[1.0, 0.0], [0.0, 1.0]])) * 12
    array([[2., 1.],
           [1., 2.]])
    """
    lengths, level = np.abs(basis).sum(axis=1), basis.sum(axis=1)
    return (np.diag(lengths**2) + np.outer(level, level)) / 12


def box_prior(basis: Floats) -> tuple[Floats, Floats]:
    """What is believed of C w before any bit: its mean, and a root of its covariance."""
    root = np.asarray(np.linalg.cholesky(box_covariance(basis)), np.float64)
    return 0.5 * basis.sum(axis=1), root


def van_trees(stream: Stream, information: float) -> float:
    """A lower bound on the root mean square error, averaged over a smooth law of secrets.

    The law is a squared cosine: of each coordinate of w, or of each coordinate of C w around one
    half of everything; the better of the two, and both keep w in the cube.
    """
    if len(stream) == 0 or not math.isfinite(information):
        return 0.0
    crowding = float(np.abs(stream.basis).sum(axis=0).max())  # directions in one coordinate of w
    prior = 4 * math.pi**2 * min(1.0, crowding**2)  # 4 pi^2 over the square of the width
    covariance = np.eye(len(stream.basis)) / prior
    return math.sqrt(_mean(deviations(stream.coordinates, covariance, information) ** 2))


def half_of_everything(queries: Floats, w: Floats) -> float:
    """The average error of answering one half of everything, without any oracle."""
    return _mean(np.abs(queries @ (0.5 - np.asarray(w, float))))


def _full_mean(stream: Stream, covariance: Floats, information: float) -> float:
    if not math.isfinite(information):
        return 0.0
    return MEAN_ABSOLUTE * _mean(deviations(stream.coordinates, covariance, information))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0
