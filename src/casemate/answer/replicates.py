"""The typical error of a stand-in's answers: an estimate, and labelled as one wherever it is shown.

Source     The parametric bootstrap, done to the few attributes that a question looks at.
Guarantee  None. What is proven about an answer is elsewhere (`casemate.answer.schedule`,
           `casemate.answer.widths`). docs/derivations/answer_intervals.md says where this fails.
Cost       The first question about a scope some milliseconds, each further one a look at a
           summed-area table in every world. It reads only what is public, so it costs no privacy.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from casemate.answer.asked import Asked, Linear
from casemate.answer.replicates_fit import LocalFit
from casemate.answer.replicates_worlds import StandIn, Worlds
from casemate.surrogate.marginals import contracted, over_ranges
from casemate.surrogate.product import Floats, Measurement, Product, Scope

WORLDS = 32
"""So many replicates of a small scope; the estimate itself is then off by an eighth or so."""

FEWEST_WORLDS, MOST_NUMBERS = 8, 2**20
"""A large scope has fewer replicates, so that worlds x cells stay within this."""

LARGEST = 10**5
"""Cells of a scope up to which it is fitted again; beyond, pairs of its attributes are."""

KEPT = 2**24
"""So many numbers of replicates are remembered at most."""

MOST_PAIRS = 2**17
"""So many errors of pairs are remembered at most."""

MANY_CORNERS = 6
"""Ranges over more attributes than this are looked up one by one."""


class TypicalErrors:
    """One standard deviation of the error of a stand-in's answers, as far as can be guessed.

    `measurements` are all that the stand-in has learnt, and `total_variance` is how well the total
    was known before; after an update, make a new one.
    """

    def __init__(
        self, surrogate: StandIn, measurements: Sequence[Measurement], total_variance: float
    ) -> None:
        if not total_variance >= 0:
            raise ValueError(f"a variance is not negative, got {total_variance}")
        self._stand_in, self._measurements = surrogate, tuple(measurements)
        self._total_variance = float(total_variance)
        self._scopes: dict[Scope, Deviations] = {}
        self._pairs: dict[tuple[int, int, bytes, bytes], float] = {}

    def errors(self, asked: Asked) -> list[Floats]:
        """The typical error of each cell of each part, in the part's units."""
        return [self._of_part(part) for part in asked.parts]

    @cached_property
    def _worlds(self) -> Worlds:
        return Worlds(self._stand_in, self._measurements, self._total_variance, WORLDS)

    def _of_part(self, part: Linear) -> Floats:
        products = part.products
        scope = tuple(sorted({a for product in products for a in product.scope}))
        if not products or not _small(products[0].shape, scope):
            return np.array([self._of_cell(cell) for cell in part.cells])
        deviations = self._deviations(scope)
        values = deviations.of(products)
        sizes = [len(cell) for cell in part.cells]
        if any(size != 1 for size in sizes):
            joined = np.zeros((len(sizes), values.shape[1]))
            np.add.at(joined, np.repeat(np.arange(len(sizes)), sizes), values)
            values = joined
        return deviations.typical(values)

    def _of_cell(self, cell: tuple[Product, ...]) -> float:
        """Where all products together are too much: a sum errs no more than its parts together."""
        return sum(self._of_product(product) for product in cell)

    def _of_product(self, product: Product) -> float:
        if _small(product.shape, product.scope):
            deviations = self._deviations(product.scope)
            return float(deviations.typical(deviations.of([product]))[0])
        return self._of_wide_product(product)

    def _of_wide_product(self, product: Product) -> float:
        """To first order: the relative errors of its pairs add up as if they were independent."""
        weights = {a: np.abs(weight) for a, weight in product.weights.items()}
        product = Product(product.shape, product.masks, weights)
        pairs = [pair for pair in combinations(product.scope, 2) if _small(product.shape, pair)]
        names = {a: product.factor(a).tobytes() for a in product.scope}
        squares = sum(self._of_pair(product, a, b, (names[a], names[b])) for a, b in pairs)
        return abs(self._stand_in.answer(product)) * math.sqrt(squares if pairs else 1.0)

    def _of_pair(self, product: Product, a: int, b: int, factors: tuple[bytes, bytes]) -> float:
        """The squared relative error of two attributes; many groups share theirs."""
        name = a, b, *factors
        if name not in self._pairs:
            masks = {each: mask for each, mask in product.masks.items() if each in (a, b)}
            seen = {each: weight for each, weight in product.weights.items() if each in (a, b)}
            one = Product(product.shape, masks, seen)
            error = self._of_product(one)
            relative = error / max(abs(self._stand_in.answer(one)), error, 1e-300)
            if len(self._pairs) >= MOST_PAIRS:
                self._pairs.clear()
            self._pairs[name] = relative**2
        return self._pairs[name]

    def _deviations(self, scope: Scope) -> "Deviations":
        """The replicates of a scope, made at its first question."""
        found = self._scopes.pop(scope, None) or self._made(scope)
        self._scopes[scope] = found
        while len(self._scopes) > 1 and sum(each.size for each in self._scopes.values()) > KEPT:
            self._scopes.pop(next(iter(self._scopes)))
        return found

    def _made(self, scope: Scope) -> "Deviations":
        counts = np.asarray(self._stand_in.marginal(scope))
        number = min(max(MOST_NUMBERS // counts.size, FEWEST_WORLDS), WORLDS)
        return Deviations(scope, LocalFit(self._worlds, scope, counts, number).deviations())


def _small(shape: tuple[int, ...], scope: Scope) -> bool:
    return math.prod(shape[a] for a in scope) <= LARGEST


class Deviations:
    """How far the fits of a scope are off, cell by cell: the real one, drawn ones, sampled ones."""

    def __init__(self, scope: Scope, table: Floats) -> None:
        self._scope, self._table = scope, table
        number = (table.shape[-1] - 1) // 2
        self._shares = np.full(table.shape[-1], 1 / number)
        self._shares[0] = 1.0  # there is one real world, and it counts as much as all others

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return 2 * self._table.size

    def typical(self, values: Floats) -> Floats:
        """The root of the mean square of what each world says, a row for each question."""
        return np.asarray(np.sqrt(values**2 @ self._shares))

    def of(self, products: Sequence[Product]) -> Floats:
        """The deviations of some questions: a row for each, a column for each world."""
        ranges = [product.ranges for product in products]
        if len(products) == 1 or len(self._scope) > MANY_CORNERS or None in ranges:
            return np.stack([self._one(product) for product in products])
        return self._over_many(np.array([self._ends(product) for product in products]))

    def _one(self, product: Product) -> Floats:
        if product.ranges is not None and len(self._scope) <= MANY_CORNERS:
            firsts, ends = zip(*self._ends(product), strict=True) if self._scope else ((), ())
            return over_ranges(self._area, firsts, ends)
        return contracted(self._table, [product.factor(a) for a in self._scope])

    def _ends(self, product: Product) -> list[tuple[int, int]]:
        """First and last-plus-one code on each attribute of the scope."""
        runs = dict(zip(product.scope, product.ranges or (), strict=True))
        return [
            runs.get(a, (0, width))
            for a, width in zip(self._scope, self._table.shape, strict=False)
        ]

    def _over_many(self, ranges: Floats) -> Floats:
        """Corner by corner, all questions at once."""
        depth = len(self._scope)
        corners = np.zeros((len(ranges), self._table.shape[-1]))
        for corner in np.ndindex((2,) * depth):
            sign = 1 - 2 * ((depth - sum(corner)) % 2)
            corners += (
                sign * self._area[tuple(ranges[:, axis, end] for axis, end in enumerate(corner))]
            )
        return corners

    @cached_property
    def _area(self) -> Floats:
        """Entry (i, j, ...) is the sum over all codes below i, j, ..., in each world."""
        *widths, worlds = self._table.shape
        area = np.zeros([*(width + 1 for width in widths), worlds])
        area[(slice(1, None),) * len(widths)] = self._table
        for axis in range(len(widths)):
            np.cumsum(area, axis=axis, out=area)
        return area
