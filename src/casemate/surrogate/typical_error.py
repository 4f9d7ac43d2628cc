"""The typical error of a stand-in's answers: an estimate, and labelled as one wherever it is shown.

In `BootstrapReplicates` the stand-in is the truth: everything is measured again, with fresh noise.
A `LocalFit` fits the few attributes that a question looks at again in each of them, and
`TypicalErrors` reads off how far the answers move.

Source     The parametric bootstrap: what was done to the table is done again to the stand-in, for
           the few attributes that a question looks at.
Guarantee  None. What is proven about an answer is elsewhere (`casemate.answer.intervals`,
           `casemate.privacy.noise`). docs/derivations/answer_intervals.md says where this fails.
           It is a deterministic function of what is public: the generator's key is a digest of the
           measurements, so a replay of a transcript gives the same bits, and it costs no privacy.
Cost       A draw for each measured cell and replicate, once. Then the first question about a scope
           some milliseconds: a pass over replicates x cells for each table that shares attributes
           with it, and each sweep. Each further one is a look at a summed-area table in each.
Departure  The stand-in fits all attributes at once, from nothing. Here only those of a scope are
           fitted, from the stand-in's own counts over it. A table that reaches outside is summed
           over what lies outside; what noise elsewhere does to the interactions inside is left
           out. A wide table is approached once, by the first-order form of the soft step; one that
           shares less than a wide table counts only where no narrow one knows the same.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from casemate.grid import (
    Floats,
    GridQuestion,
    LinearCells,
    MeasuredMarginal,
    Measurement,
    Product,
    Scope,
    contract,
    over_many_ranges,
    summed_area,
)
from casemate.surrogate.dense import SOFT_STEP_SHARPNESS, WIDE_TABLE_ATTRIBUTES
from casemate.surrogate.projection import MIN_VARIANCE, project_on_distributions, reconcile
from casemate.surrogate.stand_in import DailyStandIn

MAX_TABLE_NUMBERS = 2**24
"""Numbers of all tables in all replicates; a table beyond that is not drawn again."""


class BootstrapReplicates:
    """What was measured, and `number` bootstrap replicates of it, in the form a fit takes.

    `total_variance` is how well the total was known before the measurements, as a stand-in takes
    it. `totals` holds the total of each replicate and `wanted` its tables, as shares of that. The
    first is no replicate: it holds what was really measured. Every array has one axis for each
    attribute, and the replicates last.
    """

    def __init__(
        self,
        stand_in: DailyStandIn,
        measurements: Sequence[Measurement],
        total_variance: float,
        number: int,
    ) -> None:
        self.number = number
        self.key = _digest(measurements, total_variance)
        self.tables = _within_cell_limit(
            [m for m in measurements if isinstance(m, MeasuredMarginal)],
            MAX_TABLE_NUMBERS // number,
        )
        self.products = [m for m in measurements if not isinstance(m, MeasuredMarginal)]
        believed = stand_in.marginals([table.marginal.scope for table in self.tables])
        noised = [
            self._replicate(place, believed[t.marginal.scope], t.values, t.variance)
            for place, t in enumerate(self.tables)
        ]
        self.totals = self._totals(stand_in.total, total_variance, noised)
        self.wanted = self._target_shares(noised)

    def values(self, place: int, believed: float) -> Floats:
        """The answers to a single measured question in all replicates, in counts."""
        measured = self.products[place]
        exact, real = np.array(believed), np.array(measured.value)
        return self._replicate(len(self.tables) + place, exact, real, measured.variance)

    def _replicate(self, place: int, exact: Floats, real: Floats, variance: float) -> Floats:
        """One measurement in all replicates; no other measurement moves its noise."""
        draws = np.random.Generator(np.random.Philox(key=self.key, counter=place << 128))
        noise = draws.standard_normal((*exact.shape, 1 + self.number))
        noised: Floats = exact[..., None] + math.sqrt(variance) * noise
        noised[..., 0] = real
        return noised

    def _totals(self, believed: float, variance: float, noised: Sequence[Floats]) -> Floats:
        """The number of records, joined as a stand-in joins all that is known of it."""
        if variance == 0:
            return np.full(1 + self.number, believed)
        whole = [place for place, each in enumerate(self.products) if not each.product.scope]
        shown = [self.values(place, believed) for place in whole]
        shown += [values.sum(axis=tuple(range(values.ndim - 1))) for values in noised]
        variances = [self.products[place].variance for place in whole]
        variances += [t.variance * t.values.size for t in self.tables]
        if math.isfinite(variance) or not shown:  # a total that nothing is known of may be anything
            variance, one = min(variance, believed**2), np.array(believed)
            place = len(self.tables) + len(self.products)
            shown.append(self._replicate(place, one, one, variance))
            variances.append(variance)
        weights = [1 / max(each, MIN_VARIANCE) for each in variances]
        totals = np.maximum(np.average(np.stack(shown), axis=0, weights=weights), 1.0)
        totals[0] = believed
        return np.asarray(totals)

    def _target_shares(self, noised: Sequence[Floats]) -> list[Floats]:
        """Narrow tables agree with each other and are distributions; wide ones are as measured."""
        wanted = [values / self.totals for values in noised]
        narrow = [
            place
            for place, t in enumerate(self.tables)
            if len(t.marginal.scope) < WIDE_TABLE_ATTRIBUTES
        ]
        moved = reconcile(
            [self.tables[place] for place in narrow], [noised[p] for p in narrow], self.totals
        )
        for place, values in zip(narrow, moved, strict=True):
            wanted[place] = project_on_distributions(values / self.totals)
        return wanted


def _within_cell_limit(tables: Sequence[MeasuredMarginal], cells: int) -> list[MeasuredMarginal]:
    """The tables that have no more cells together, the first ones first."""
    kept = []
    for table in tables:
        cells -= table.values.size
        if cells >= 0:
            kept.append(table)
    return kept


def _digest(measurements: Sequence[Measurement], total_variance: float) -> int:
    """A key for generators that depends on everything that was measured."""
    digest = hashlib.sha256(repr(float(total_variance)).encode())
    for measured in measurements:
        if isinstance(measured, MeasuredMarginal):
            digest.update(repr((measured.marginal.scope, float(measured.variance))).encode())
            digest.update(measured.values.tobytes())
        else:
            numbers = [("value", float(measured.value)), ("variance", float(measured.variance))]
            product = ("product", measured.product.to_dict())
            digest.update(repr([("kind", "product"), product, *numbers]).encode())
    return int.from_bytes(digest.digest()[:16], "little")


# A few attributes fitted again in every replicate ----------------------------------------------


LOCAL_FIT_SWEEPS = 5
"""So many sweeps fit a few attributes again: they start close to where they end."""

MIN_CELL_SHARE = 1e-300
"""A cell without mass has this share, so that ratios exist."""

MIN_EXPECTED_COUNT = 0.5
"""A drawn table expects at least so many people in a cell: one that seems empty may not be."""

MAX_QUESTION_WEIGHTS = 2**22
"""Numbers that the single questions of a fit hold together."""

MAX_LOG_TILT = 5.0
"""The logarithm of the largest factor of a step towards a single question."""

Step = Callable[[Floats], None]
"""A move of all replicates towards one measurement, in place."""


class LocalFit:
    """One scope in `number` replicates, of those that were drawn.

    Real       The first deviation is of the fit to what was really measured: how far the stand-in
               is from what its own measurements say of this scope alone. A fit of many tables that
               contradict each other a little ends elsewhere, and this shows how far.
    Drawn      Then come the replicates: what noise does.
    Sampled    Then come tables drawn from the stand-in and measured without noise: what no measured
               table could have told of them.
    """

    def __init__(
        self, replicates: BootstrapReplicates, scope: Scope, counts: Floats, number: int
    ) -> None:
        self._replicates, self._scope, self._counts = replicates, scope, counts
        self._used = slice(0, 1 + number)
        digest = hashlib.sha256(f"{replicates.key}:{scope}".encode()).digest()
        draws = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
        expected = np.repeat(np.maximum(counts, MIN_EXPECTED_COUNT)[..., None], number, axis=-1)
        self._drawn = draws.poisson(expected).astype(np.float64)
        people = np.maximum(self._drawn.sum(axis=tuple(range(counts.ndim))), 1.0)
        self._totals = np.concatenate([replicates.totals[self._used], people])

    def deviations(self) -> Floats:
        """How far each fit is from its truth, in counts: the real one, `number` drawn, sampled."""
        truths = np.repeat(self._counts[..., None], self._totals.size, axis=-1)
        truths[..., self._used.stop :] = self._drawn
        total = max(float(self._counts.sum()), 1.0)
        cells = np.maximum(self._counts / total, MIN_CELL_SHARE)[..., None]
        cells = np.repeat(cells, self._totals.size, axis=-1)
        for step in self._soft_steps():
            step(cells)
        steps = [*self._table_steps(), *self._product_steps()]
        for _ in range(LOCAL_FIT_SWEEPS):
            for step in steps:
                step(cells)
        return np.asarray(self._totals * cells - truths)

    # What each replicate wants ----------------------------------------------------------------

    def _shares_over_scope(self, table: MeasuredMarginal, wanted: Floats) -> tuple[Scope, Floats]:
        """What a table says of the scope: as shares, in the replicates and in the drawn tables."""
        axes = tuple(x for x, a in enumerate(table.marginal.scope) if a not in self._scope)
        shared = tuple(a for a in table.marginal.scope if a in self._scope)
        seen = wanted.sum(axis=axes)[..., self._used]
        drawn = self._drawn.sum(axis=self._summed_axes(shared)) / self._totals[self._used.stop :]
        return shared, np.concatenate([seen, drawn], axis=-1)

    def _table_steps(self) -> Iterator[Step]:
        """Narrow tables in their order; single attributes only before something else moves."""
        waiting: dict[Scope, Floats] = {}
        for shared, wanted in self._narrow():
            if len(shared) > 1:
                yield from (self._match(*each) for each in waiting.items())
                waiting = {}
                yield self._match(shared, wanted)
            else:
                waiting[shared] = wanted
        yield from (self._match(*each) for each in waiting.items())

    def _narrow(self) -> Iterator[tuple[Scope, Floats]]:
        tables = self._replicates.tables
        known = [
            set(t.marginal.scope) for t in tables if len(t.marginal.scope) < WIDE_TABLE_ATTRIBUTES
        ]
        for table, wanted in zip(tables, self._replicates.wanted, strict=True):
            kept = set(table.marginal.scope) & set(self._scope)
            wide = len(table.marginal.scope) >= WIDE_TABLE_ATTRIBUTES
            if 0 < len(kept) < WIDE_TABLE_ATTRIBUTES and not (
                wide and any(kept <= each for each in known)
            ):
                yield self._shares_over_scope(table, wanted)

    def _soft_steps(self) -> Iterator[Step]:
        for table, wanted in zip(self._replicates.tables, self._replicates.wanted, strict=True):
            if len(set(table.marginal.scope) & set(self._scope)) >= WIDE_TABLE_ATTRIBUTES:
                shared, values = self._shares_over_scope(table, wanted)
                summed = table.values.size * self._totals.size / values.size
                variance = max(table.variance, MIN_VARIANCE) * summed
                yield self._approach(shared, values, SOFT_STEP_SHARPNESS * self._totals / variance)

    def _product_steps(self) -> Iterator[Step]:
        """Single questions inside the scope: the latest, where they are too many."""
        inside = [
            (place, measured.product)
            for place, measured in enumerate(self._replicates.products)
            if measured.product.scope and set(measured.product.scope) <= set(self._scope)
        ]
        for place, product in inside[-max(1, MAX_QUESTION_WEIGHTS // self._counts.size) :]:
            weights = product.over(self._scope).reshape(self._counts.shape)[..., None]
            axes = tuple(range(self._counts.ndim))
            seen = self._replicates.values(place, float((self._counts[..., None] * weights).sum()))
            drawn = (self._drawn * weights).sum(axis=axes)
            yield self._meet(weights, np.concatenate([seen[self._used], drawn]) / self._totals)

    # How it is moved there -----------------------------------------------------------------------

    def _match(self, shared: Scope, wanted: Floats) -> Step:
        """Make a marginal the wanted one."""
        over, laid = (
            self._summed_axes(shared),
            np.maximum(wanted, 0.0)[self._broadcast_index(shared)],
        )

        def step(cells: Floats) -> None:
            cells *= laid / np.maximum(cells.sum(axis=over, keepdims=True), MIN_CELL_SHARE)

        return step

    def _approach(self, shared: Scope, wanted: Floats, trust: Floats) -> Step:
        """Move a marginal q towards y by q (1 + trust y) / (1 + trust q).

        That is where the derivative of trust/2 |q' - y|^2 plus the relative entropy of q' to q
        vanishes to first order. What was measured was fitted to its wide tables already.
        """
        over, laid = self._summed_axes(shared), self._broadcast_index(shared)

        def step(cells: Floats) -> None:
            marginal = cells.sum(axis=over)
            factors = np.maximum(1 + trust * wanted, 0.0) / (1 + trust * marginal)
            cells *= factors[laid]
            np.maximum(cells, MIN_CELL_SHARE, out=cells)
            cells /= cells.sum(axis=tuple(range(cells.ndim - 1)))

        return step

    def _meet(self, weights: Floats, wanted: Floats) -> Step:
        """One Newton step of the tilt that gives a single question its value."""
        reach = float(np.abs(weights).max()) or 1.0  # of a question that nobody can be in
        unit, axes = weights / reach, tuple(range(weights.ndim - 1))

        def step(cells: Floats) -> None:
            mean = (cells * unit).sum(axis=axes)
            spread = (cells * unit**2).sum(axis=axes) - mean**2
            eta = np.clip(
                (wanted / reach - mean) / np.maximum(spread, 1e-12), -MAX_LOG_TILT, MAX_LOG_TILT
            )
            cells *= np.exp(eta * unit)
            cells /= np.maximum(cells.sum(axis=axes), MIN_CELL_SHARE)  # a replicate may be empty

        return step

    def _summed_axes(self, shared: Scope) -> tuple[int, ...]:
        """The axes of the scope that a table does not have."""
        return tuple(axis for axis, a in enumerate(self._scope) if a not in shared)

    def _broadcast_index(self, shared: Scope) -> tuple[slice | None, ...]:
        """The index that lays a table over the axes of the scope."""
        return (*(slice(None) if a in shared else None for a in self._scope), slice(None))


# The estimate -----------------------------------------------------------------------------------


MAX_REPLICATES = 32
"""So many replicates of a small scope; the estimate itself is then off by an eighth or so."""

MIN_REPLICATES, MAX_REPLICATED_NUMBERS = 8, 2**20
"""A large scope has fewer replicates, so that replicates x cells stay within this."""

MAX_REFITTED_CELLS = 10**5
"""Cells of a scope up to which it is fitted again; beyond, pairs of its attributes are."""

MAX_CACHED_NUMBERS = 2**24
"""So many numbers of replicates are remembered at most."""

MAX_CACHED_PAIRS = 2**17
"""So many errors of pairs are remembered at most."""

MAX_AREA_ATTRIBUTES = 6
"""Ranges over more attributes than this are summed cell by cell."""


class TypicalErrors:
    """One standard deviation of the error of a stand-in's answers, as far as can be guessed.

    `measurements` are all that the stand-in has learnt, and `total_variance` is how well the total
    was known before; after an update, make a new one.
    """

    def __init__(
        self,
        surrogate: DailyStandIn,
        measurements: Sequence[Measurement],
        total_variance: float,
    ) -> None:
        if not total_variance >= 0:
            raise ValueError(f"a variance is not negative, got {total_variance}")
        self._stand_in, self._measurements = surrogate, tuple(measurements)
        self._total_variance = float(total_variance)
        self._scopes: dict[Scope, Deviations] = {}
        self._pairs: dict[tuple[int, int, bytes, bytes], float] = {}

    def errors(self, asked: GridQuestion) -> list[Floats]:
        """The typical error of each cell of each part, in the part's units."""
        return [self._of_part(part) for part in asked.parts]

    @cached_property
    def _replicates(self) -> BootstrapReplicates:
        return BootstrapReplicates(
            self._stand_in, self._measurements, self._total_variance, MAX_REPLICATES
        )

    def _of_part(self, part: LinearCells) -> Floats:
        products = part.products
        scope = tuple(sorted({a for product in products for a in product.scope}))
        if not products or not _is_refitted(products[0].shape, scope):
            return np.array([self._of_cell(cell) for cell in part.cells])
        deviations = self._deviations(scope)
        return deviations.typical(part.sum_by_cell(deviations.of(products)))

    def _of_cell(self, cell: tuple[Product, ...]) -> float:
        """Where all products together are too much: a sum errs no more than its parts together."""
        return sum(self._of_product(product) for product in cell)

    def _of_product(self, product: Product) -> float:
        if _is_refitted(product.shape, product.scope):
            deviations = self._deviations(product.scope)
            return float(deviations.typical(deviations.of([product]))[0])
        return self._of_wide_product(product)

    def _of_wide_product(self, product: Product) -> float:
        """To first order: the relative errors of its pairs add up as if they were independent."""
        weights = {a: np.abs(weight) for a, weight in product.weights.items()}
        product = Product(product.shape, product.masks, weights)
        pairs = [
            pair for pair in combinations(product.scope, 2) if _is_refitted(product.shape, pair)
        ]
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
            if len(self._pairs) >= MAX_CACHED_PAIRS:
                self._pairs.clear()
            self._pairs[name] = relative**2
        return self._pairs[name]

    def _deviations(self, scope: Scope) -> "Deviations":
        """The replicates of a scope, made at its first question."""
        found = self._scopes.pop(scope, None)
        if found is None:
            counts = np.asarray(self._stand_in.marginal(scope))
            number = min(max(MAX_REPLICATED_NUMBERS // counts.size, MIN_REPLICATES), MAX_REPLICATES)
            fit = LocalFit(self._replicates, scope, counts, number)
            found = Deviations(scope, fit.deviations())
        self._scopes[scope] = found
        while (
            len(self._scopes) > 1
            and sum(each.size for each in self._scopes.values()) > MAX_CACHED_NUMBERS
        ):
            self._scopes.pop(next(iter(self._scopes)))
        return found


def _is_refitted(shape: tuple[int, ...], scope: Scope) -> bool:
    return math.prod(shape[a] for a in scope) <= MAX_REFITTED_CELLS


class Deviations:
    """How far the fits of a scope are off, cell by cell: the real one, drawn ones, sampled ones."""

    def __init__(self, scope: Scope, table: Floats) -> None:
        self._scope, self._table = scope, table
        number = (table.shape[-1] - 1) // 2
        self._shares = np.full(table.shape[-1], 1 / number)
        self._shares[0] = 1.0  # what was really measured counts as much as all others

    @property
    def size(self) -> int:
        """How many numbers are kept."""
        return 2 * self._table.size

    def typical(self, values: Floats) -> Floats:
        """The root of the mean square of what each replicate says, a row for each question."""
        return np.asarray(np.sqrt(values**2 @ self._shares))

    def of(self, products: Sequence[Product]) -> Floats:
        """The deviations of some questions: a row for each, a column for each replicate."""
        if len(self._scope) > MAX_AREA_ATTRIBUTES or any(each.ranges is None for each in products):
            factors = ([each.factor(a) for a in self._scope] for each in products)
            return np.stack([contract(self._table, each) for each in factors])
        ranges = np.array([self._ends(each) for each in products], np.int64)
        return over_many_ranges(self._area, ranges.reshape(len(products), -1, 2))

    def _ends(self, product: Product) -> list[tuple[int, int]]:
        """First and last-plus-one code on each attribute of the scope."""
        runs = dict(zip(product.scope, product.ranges or (), strict=True))
        return [
            runs.get(a, (0, width))
            for a, width in zip(self._scope, self._table.shape, strict=False)
        ]

    @cached_property
    def _area(self) -> Floats:
        return summed_area(self._table, len(self._scope))
