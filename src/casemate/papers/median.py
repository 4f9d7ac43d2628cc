"""The median mechanism: many tables that agree with everything so far, and the middle of them.

Source     Source document 003, section 5.2.2, which names the median mechanism as one of the
           database update algorithms of the iterative construction: keep the databases that
           agree with every update, answer by the median, and on an update drop those on the
           wrong side of it.
Guarantee  An update drops at least half. With all databases of a size it takes at most
           `updates_of_databases`, and one of them is within alpha on every question when the size
           is `rows_needed`; with all distributions it takes at most `updates_of_simplex`, if the
           medians are exact. docs/derivations/online_construction.md has the proofs.
Cost       All databases: a number for each cell and each multiset, so tiny universes only. A
           committee: `members` vectors, and after an update some sweeps over cells x cuts.
Departure  For larger universes the databases are a committee, drawn by hit-and-run from the
           distributions that every cut allows, with a generator that is keyed by the number of
           updates: the same measurements give the same committee. A cut that would leave nothing is
           not made. `width` also drops who is further than that from the measured number, which
           uses the number and not only its side:
           `test_cuts_on_both_sides_need_fewer_updates`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.grid import Floats, MeasuredProduct, Measurement, Product, Scope
from casemate.surrogate import most_off

Kept = NDArray[np.bool_]
MOST_NUMBERS = 10**8  # candidates times cells that are held at once
SWEEPS = 8  # of hit-and-run after an update, each as many moves as there are cells


@dataclass
class Cuts:
    """Half-spaces that every candidate left is in: normals . p >= offsets."""

    normals: list[Floats] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)

    def add(self, normal: Floats, offset: float) -> None:
        """Require normal . p >= offset from now on."""
        self.normals.append(normal)
        self.offsets.append(offset)


class CandidateTables(Protocol):
    """Where the tables that are left come from."""

    @property
    def rows(self) -> int:
        """What the cells of a table add up to."""
        ...

    def start(self, cells: int) -> Floats:
        """All of them before the first update, one a line, a number a cell."""
        ...

    def refill(self, left: Floats, cuts: Cuts) -> Floats:
        """Those to go on with after an update left these."""
        ...


@dataclass(frozen=True)
class EveryDatabase:
    """All databases of so many rows: the document's choice, for tiny universes."""

    rows: int

    def start(self, cells: int) -> Floats:
        """Every multiset of cells, as whole numbers, in lexicographic order."""
        count = math.comb(cells + self.rows - 1, self.rows)
        if self.rows < 1 or count * cells > MOST_NUMBERS:
            raise ValueError(
                f"{self.rows} rows over {cells} cells make {count} databases, "
                f"too many to hold or none: take fewer rows, or a Committee"
            )
        chosen = combinations_with_replacement(range(cells), self.rows)
        counts = np.zeros((count, cells))
        for line, database in zip(counts, chosen, strict=True):
            np.add.at(line, list(database), 1)
        return counts

    def refill(self, left: Floats, cuts: Cuts) -> Floats:  # noqa: ARG002 - a Candidates
        """Whoever is left: nobody comes back."""
        return left


@dataclass(frozen=True)
class Committee:
    """A sample of all distributions that the cuts allow, drawn again after each of them."""

    members: int = 200
    key: int = 0
    sweeps: int = SWEEPS

    @property
    def rows(self) -> int:
        """A distribution adds up to 1."""
        return 1

    def start(self, cells: int) -> Floats:
        """A uniform sample of the simplex."""
        if self.members < 1 or self.sweeps < 1 or self.members * cells > MOST_NUMBERS:
            raise ValueError(
                f"a committee of {self.members} over {cells} cells with {self.sweeps} sweeps is "
                f"empty or too large"
            )
        drawn = self._generator(0).standard_exponential((self.members, cells))
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))

    def refill(self, left: Floats, cuts: Cuts) -> Floats:
        """As many again, from those left by moves between two cells that keep every cut."""
        generator = self._generator(len(cuts.offsets))
        points = left[np.arange(self.members) % len(left)].copy()
        cells = points.shape[1]
        normals, offsets = np.array(cuts.normals), np.array(cuts.offsets)
        if cells == 1:
            return points
        for _ in range(self.sweeps):
            room = points @ normals.T - offsets
            pairs = _pairs(generator, self.members, cells)
            _sweep(points, normals, room, pairs, generator.random((self.members, cells)))
        return points

    def _generator(self, cuts: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.key, cuts]))


class MedianMechanism:
    """The tables that agree with every update so far; an answer is their median.

    >>> stand_in = MedianMechanism((2,), total=100, candidates=EveryDatabase(rows=4))
    >>> first = Product((2,), {0: np.array([True, False])})
    >>> stand_in.answer(first)
    50.0
    >>> stand_in.update(MeasuredProduct(first, value=80, variance=0))
    >>> stand_in.answer(first), stand_in.left
    (75.0, 2)
    """

    def __init__(
        self,
        shape: Sequence[int],
        total: float,
        candidates: CandidateTables,
        *,
        width: float | None = None,
    ) -> None:
        if total <= 0 or (width is not None and width <= 0):
            raise ValueError(f"need total > 0 and a width > 0 or None, got {total} and {width}")
        self._shape = tuple(shape)
        self._total = float(total)
        self._source = candidates
        self._width = width
        self._cuts = Cuts()
        self._points = candidates.start(math.prod(self._shape))
        self._each = self._total / candidates.rows  # records that one unit of a cell stands for

    @property
    def total(self) -> float:
        """How many records it was told there are."""
        return self._total

    @property
    def left(self) -> int:
        """How many candidates it is the median of."""
        return len(self._points)

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        return self._each * lower_median(self._values(product))

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute: the median of each by itself."""
        others = tuple(axis + 1 for axis in range(len(self._shape)) if axis not in scope)
        each = self._points.reshape(-1, *self._shape).sum(axis=others)
        return np.asarray(self._each * np.sort(each, axis=0)[(len(each) - 1) // 2])

    def update(self, measurement: Measurement) -> None:
        """Drop the candidates on the wrong side; of a marginal, by the cell that is most off."""
        if isinstance(measurement, MeasuredProduct):
            self._cut(measurement.product, measurement.value)
        else:
            believed = self.marginal(measurement.marginal.scope)
            product, value = most_off(measurement, believed, self._shape)
            self._cut(product, value)

    def _values(self, product: Product) -> Floats:
        if product.shape != self._shape:
            raise ValueError(f"the question is about {product.shape}, not about {self._shape}")
        return np.asarray(self._points @ product.dense())

    def _cut(self, product: Product, count: float) -> None:
        """Keep who is strictly on the measured side of the median, and near the number if asked."""
        normal, values, measured = product.dense(), self._values(product), count / self._each
        middle = lower_median(values)
        upwards = measured >= middle
        keep = values > middle if upwards else values < middle
        if not keep.any():
            return
        self._cuts.add(*((normal, middle) if upwards else (-normal, -middle)))
        if self._width is not None:
            keep = self._narrowed(keep, normal, values - measured, measured)
        self._points = self._source.refill(self._points[keep], self._cuts)

    def _narrowed(self, keep: Kept, normal: Floats, off: Floats, measured: float) -> Kept:
        """Of those kept, who is also near the measured number; all if nobody is."""
        near = (self._width or math.inf) * self._total / self._each
        both = keep & (np.abs(off) <= near)
        if not both.any():
            return keep
        self._cuts.add(normal, measured - near)
        self._cuts.add(-normal, -measured - near)
        return np.asarray(both)


def rows_needed(alpha: float, questions: int) -> int:
    """So many rows that some database of this size is within alpha of any table on all questions.

    A random sample of the table is, with positive probability, as soon as 2 |Q| exp(-2 m alpha^2)
    is below 1; the ln|Q|/alpha^2 of the literature is about twice that.
    """
    _require(alpha)
    return math.floor(math.log(2 * questions) / (2 * alpha**2)) + 1


def updates_of_databases(cells: int, rows: int) -> float:
    """T(alpha) with all databases of `rows_needed(alpha, |Q|)` rows: each update drops half."""
    return math.log2(math.comb(cells + rows - 1, rows))


def updates_of_simplex(cells: int, alpha: float) -> float:
    """T(alpha) with all distributions, each update dropping half of their volume."""
    _require(alpha)
    return (cells - 1) * math.log2(1 / alpha)


def lower_median(values: Floats) -> float:
    """The middle value, the lower of two: at least half are at most it, and half at least it."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def _require(alpha: float) -> None:
    if not 0 < alpha <= 1:
        raise ValueError(f"need 0 < alpha <= 1, got {alpha}")


def _pairs(generator: np.random.Generator, members: int, cells: int) -> NDArray[np.int64]:
    """For every member and move two different cells."""
    first = generator.integers(cells, size=(members, cells))
    step = generator.integers(1, cells, size=(members, cells))
    return np.stack([first, (first + step) % cells], axis=2)


@compiled
def _sweep(points: Any, normals: Any, room: Any, pairs: Any, uniform: Any) -> None:
    """Move share between two cells, uniformly over what positivity and the cuts allow.

    room[m, c] is how far member m is inside cut c.
    """
    for m in range(points.shape[0]):
        for move in range(pairs.shape[1]):
            i, j = pairs[m, move]
            low, high = -points[m, i], points[m, j]
            for c in range(normals.shape[0]):
                slope = normals[c, i] - normals[c, j]
                if slope > 0:
                    low = max(low, -room[m, c] / slope)
                elif slope < 0:
                    high = min(high, -room[m, c] / slope)
            if low >= high:  # only by rounding: the point is on the edge
                continue
            shift = low + uniform[m, move] * (high - low)
            points[m, i] += shift
            points[m, j] -= shift
            for c in range(normals.shape[0]):
                room[m, c] += shift * (normals[c, i] - normals[c, j])
