"""The least error that any learner can have on a stream of one-bit answers, beside two yardsticks.

First how much one answer says about w . q: a bit at the best threshold, at the median, all of it;
one of K answers; then what these add up to along a stream.

Source     The local asymptotic minimax theorem (Hajek, Le Cam) for the loss |.|, and van Trees'
           inequality; the quantity they bound is the average error of source document 000,
           Theorem 2.1. Derived in docs/derivations/one_bit_limit.md. The source asks for the
           threshold at the middle of what is still possible. A bit at distance x from w . q carries
           f(x)^2 / (F(x) (1 - F(x))), 4 f(0)^2 at the median.
Guarantee  `root_mean_square` is a theorem: over a smooth law of secrets inside the cube, no learner
           with adaptive thresholds has a smaller root of the mean of its squared errors. `mean` is
           a benchmark: no learner is better everywhere as the stream grows, but at a finite length
           ratios down to .9 are seen. No threshold, adaptive or not, carries more than the largest
           of the figures above; no K answers carry more than the largest sum of
           (f(b) - f(a))^2 / (F(b) - F(a)) over K cells from a to b.
Cost       O(d^2) a query, O(d^2) memory besides the stream. For K answers K tables of 400 x 400
           cells, then of 21 x 21.
Departure  None of the source's bounds is used: they are 28 to 140 times larger. It has two answers,
           and its median is the best threshold for some laws only. The search for the best is
           numerical; for K answers it is exact on a grid of quantiles, one cell after the other,
           and again on finer and finer grids around each threshold found. At an edge where the
           density does not fall faster than in a straight line, it is replaced by the exact answer:
           there is no largest one.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from casemate.attack.one_bit.laws import Floats, Law
from casemate.attack.one_bit.square_root import potter_update, predict
from casemate.attack.one_bit.streams import Stream
from casemate.compiled import compiled

Kind = Literal["median", "supremum", "none"]

BODY_QUANTILES = 2_000  # quantiles at even steps
LEAST_TAIL_CHANCE = (
    1e-9  # the chance beyond which nothing is looked for, and the first step of the grid there
)
SAME_INFORMATION_RATIO = 1e-6  # a threshold that is better by less is not better
EDGE_STEP_SCALES = 1e-6  # how near to an edge its shape is read, in scales


@dataclass(frozen=True)
class BitInformation:
    """What a bit carries, at the median and at the best threshold."""

    kind: Kind
    best: float  # infinite where the kind is none
    median: float  # 4 f(0)^2
    offset: float  # of the best threshold, from w . q plus the median of the noise


@lru_cache(maxsize=256)
def bit_information(law: Law) -> BitInformation:
    """The best threshold of a law: that of an oracle with two answers."""
    middle, median = float(law.quantile(0.5)), 4 * law.density_at_median**2
    if (edge := open_edge(law, straight=False)) is not None:
        return BitInformation("none", math.inf, median, edge - middle)
    found = level_information(law, 2)
    if found.best <= median * (1 + SAME_INFORMATION_RATIO):
        return BitInformation("median", median, median, 0.0)
    return BitInformation("supremum", found.best, median, found.thresholds[0] - middle)


@lru_cache(maxsize=256)
def full_information(law: Law) -> float:
    """What the whole noisy answer carries: the Fisher information of the law's place."""
    if open_edge(law, straight=True) is not None:
        return math.inf
    coarse, fine = (
        _quantile_information(law, quantile_grid(size))
        for size in (BODY_QUANTILES, 4 * BODY_QUANTILES)
    )
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
    ends = np.geomspace(LEAST_TAIL_CHANCE, 1 / body, body // 4, endpoint=False)
    return np.concatenate((ends, np.linspace(0, 1, body + 1)[1:-1], 1 - ends[::-1]))


def open_edge(law: Law, *, straight: bool) -> float | None:
    """An edge without a bound on what is carried there; at most on a `straight` line, or less.

    With a density of x^a at distance x, the bit there carries x^(a - 1), the whole answer the
    integral of x^(a - 2): without bound where a < 1, and where a <= 1.
    """
    bound = 1.05 if straight else 0.95
    step = EDGE_STEP_SCALES * min(law.scale, law.edges[1] - law.edges[0])
    for end, inward in zip(law.edges, (step, -step), strict=True):
        if math.isfinite(end) and _edge_exponent(law, end, inward) < bound:
            return end
    return None


def _edge_exponent(law: Law, end: float, step: float) -> float:
    """The power a with which the density grows away from an edge."""
    near, far = float(law.density(end + step)), float(law.density(end + 2 * step))
    return math.log2(far / near) if near > 0 and far > 0 else math.inf


def _quantile_information(law: Law, chances: Floats) -> float:
    """What is carried by the cell between two of these quantiles in which the answer lies."""
    heights = np.concatenate(([0.0], law.density(law.quantile(chances)), [0.0]))
    widths = np.diff(np.concatenate(([0.0], chances, [1.0])))
    return float(np.sum(np.diff(heights) ** 2 / widths))


# One of K answers, at the best K - 1 thresholds -------------------------------------------------


LEVEL_QUANTILES = 270  # even quantiles of the first grid of many levels; half as many in the tails
REFINED_STEPS = np.linspace(-1, 1, 21)
REFINEMENT_ROUNDS = 14
REFINEMENT_RATIO = 0.4


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
    grid = law.quantile(quantile_grid(BODY_QUANTILES if levels == 2 else LEVEL_QUANTILES))
    places = _best_thresholds(law, [grid] * (levels - 1))
    reach = np.maximum(*_grid_gaps(grid, places))
    for _ in range(REFINEMENT_ROUNDS):
        places = _best_thresholds(
            law, [x + h * REFINED_STEPS for x, h in zip(places, reach, strict=True)]
        )
        reach = REFINEMENT_RATIO * reach
    return LevelInformation(cells_information(law, places), tuple(places.tolist()))


def cells_information(law: Law, thresholds: Floats) -> float:
    """What is carried by an answer that says between which of these thresholds it lies."""
    below = np.concatenate(([0.0], law.cdf(thresholds), [1.0]))
    heights = np.concatenate(([0.0], law.density(thresholds), [0.0]))
    return float(
        np.sum(_cell_information(np.diff(heights), np.diff(below)), where=np.diff(below) > 0)
    )


def _best_thresholds(law: Law, candidates: list[Floats]) -> Floats:
    """The best of the candidates for each threshold, all at once: one cell more at a time."""
    below, heights = (
        [np.zeros(1), *(read(x) for x in candidates), np.full(1, end)]
        for read, end in ((law.cdf, 1.0), (law.density, 0.0))
    )
    value, steps = np.zeros(1), []
    for place in range(len(candidates) + 1):
        rise = heights[place + 1][None, :] - heights[place][:, None]
        sums = value[:, None] + _cell_information(
            rise, below[place + 1][None, :] - below[place][:, None]
        )
        steps.append(np.argmax(sums, axis=0))
        value = np.max(sums, axis=0)
    chosen = [0]
    for step in reversed(steps[1:]):
        chosen.append(int(step[chosen[-1]]))
    return np.asarray([x[i] for x, i in zip(candidates, chosen[:0:-1], strict=True)])


def _cell_information(rise: Floats, chance: Floats) -> Floats:
    """What cells of these chances carry; a cell without a chance is no cell."""
    width = np.where(chance > 0, chance, 1.0)
    return np.where(chance > 0, rise**2 / width, -np.inf)


def _grid_gaps(grid: Floats, places: Floats) -> tuple[Floats, Floats]:
    """How far the neighbours of these places are in the grid, on both sides."""
    spots = np.searchsorted(grid, places)
    left, right = np.maximum(spots - 1, 0), np.minimum(spots + 1, len(grid) - 1)
    return places - grid[left], grid[right] - places


# Compiled accumulation of information along a stream --------------------------------------------


@compiled
def prior_deviations(coordinates: Floats, root: Floats, information: float) -> Floats:
    """The deviation of x' beta before each query x, where each earlier one carried `information`.

    `root` is a square root S of the covariance, P = S S', and is spent: it follows the stream in
    Potter's form, which stays a covariance where P itself would not within rounding.
    """
    count, size = coordinates.shape
    result = np.empty(count)
    noise = 1.0 / information if information > 0.0 else math.inf
    belief, workspace = (np.zeros(size), root), (np.empty(size), np.empty(size))
    for t in range(count):
        _, variance = predict(belief, coordinates[t], workspace)
        result[t] = math.sqrt(variance)
        potter_update(belief, workspace, (variance, noise, 1.0), (0.0, 1.0))
    return result


# The limit of a stream --------------------------------------------------------------------------


MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean size of a standard Gaussian number."""

COUNTS_BELOW = 0.25
"""A ratio to the limit counts only where the limit is below this part of answering one half."""


class Precision:
    """What is left of the uncertainty about w when each query has told so much."""

    def __init__(self, covariance: Floats, information: float) -> None:
        self._root = np.linalg.cholesky(np.asarray(covariance, float))
        self._information = float(information)

    def add(self, coordinates: Floats) -> Floats:
        """sqrt(x' J^-1 x) of each query x, where J grows by `information` x x' with each."""
        held = np.ascontiguousarray(coordinates, float)
        return prior_deviations(held, self._root, self._information)  # the root follows the stream


class LeastErrors:
    """What the best learner can hope for on one stream, which may come in blocks.

    Nothing of the stream is kept but the errors of its last block. Where the kind is "none", an
    edge of the noise lets a learner do better than any such figure; `errors` and `mean` are then
    those of thresholds at the median, and van Trees' bound is 0.
    """

    def __init__(
        self, law: Law, basis: Floats, prior: Floats | None = None, levels: int = 2
    ) -> None:
        bit, full = bit_information(law), full_information(law)
        self.kind: Kind = bit.kind
        self.information = bit.best  # of one answer; infinite where the kind is none
        if levels > 2 and bit.kind != "none":
            self.kind, self.information = "supremum", level_information(law, levels).best
        self.median_information, self.full_information = bit.median, full
        covariance = box_covariance(basis) if prior is None else prior
        bounded = math.isfinite(self.information)
        reached = self.information if bounded else bit.median
        self._prior_root = np.linalg.cholesky(np.asarray(covariance, float))
        self._bit = Precision(covariance, reached)
        self._full = Precision(covariance, full) if math.isfinite(full) else None
        self._smooth = Precision(smooth_covariance(basis), reached) if bounded else None
        self.queries = 0
        self.errors: Floats = np.zeros(0)  # of each query of the last block, about w . q
        self._sums = np.zeros(4)

    def add(self, coordinates: Floats) -> Self:
        """Take note of the next queries."""
        self.queries += len(coordinates)
        self.errors = MEAN_ABSOLUTE * self._bit.add(coordinates)
        self._sums[0] += self.errors.sum()
        prior = np.linalg.norm(coordinates @ self._prior_root, axis=1)
        self._sums[1] += MEAN_ABSOLUTE * prior.sum()
        if self._full is not None:
            self._sums[2] += MEAN_ABSOLUTE * self._full.add(coordinates).sum()
        if self._smooth is not None:
            self._sums[3] += float((self._smooth.add(coordinates) ** 2).sum())
        return self

    def _average(self, place: int) -> float:
        return float(self._sums[place]) / max(1, self.queries)

    @property
    def mean(self) -> float:
        """Of the errors of a learner with one bit a query."""
        return self._average(0)

    @property
    def half(self) -> float:
        """The expected error of answering one half of everything, under the prior."""
        return self._average(1)

    @property
    def full_mean(self) -> float:
        """The same as `mean` for a learner that sees whole noisy answers; 0 without a bound."""
        return self._average(2)

    @property
    def root_mean_square(self) -> float:
        """Van Trees' bound; 0 where an edge leaves none."""
        return math.sqrt(self._average(3))

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
) -> LeastErrors:
    """The limit on a stream; `prior` is the learner's covariance in the stream's basis."""
    return LeastErrors(law, stream.basis, prior, levels).add(stream.coordinates)


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


def smooth_covariance(basis: Floats) -> Floats:
    """One over the information of a smooth law of C w, for van Trees' bound.

    The law is a squared cosine: of each coordinate of w, or of each coordinate of C w around one
    half of everything; the better of the two, and both keep w in the cube.
    """
    crowding = float(np.abs(basis).sum(axis=0).max())  # directions in one coordinate of w
    prior = 4 * math.pi**2 * min(1.0, crowding**2)  # 4 pi^2 over the square of the width
    return np.eye(len(basis)) / prior


def half_of_everything(queries: Floats, w: Floats) -> float:
    """The average error of answering one half of everything, without any oracle."""
    off = np.abs(queries @ (0.5 - np.asarray(w, float)))
    return float(off.mean()) if off.size else 0.0
