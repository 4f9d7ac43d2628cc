"""A few attributes of a stand-in, fitted again in every world.

Cost       A pass over worlds x cells for each table that shares attributes with the scope, and
           each sweep: about a millisecond for three attributes.
Real       The first deviation is of the fit to what was really measured: how far the stand-in is
           from what its own measurements say of this scope alone. A fit of many tables that
           contradict each other a little ends elsewhere, and this shows how far.
Drawn      Then come the worlds: what noise does.
Sampled    Then come tables drawn from the stand-in and measured without noise: what no measured
           table could have told of them.
Departure  The stand-in fits all attributes at once, from nothing. Here only those of a scope are
           fitted, from the stand-in's own counts over it. A table that reaches outside is summed
           over what lies outside; what noise elsewhere does to the interactions inside is left
           out. A wide table is approached once, by the first-order form of the soft step; one that
           shares less than a wide table counts only where no narrow one knows the same.
"""

import hashlib
from collections.abc import Callable, Iterator

import numpy as np

from casemate.answer.replicates_worlds import LEAST_VARIANCE, Worlds
from casemate.surrogate.product import Floats, MeasuredMarginal, Scope
from casemate.surrogate.replay import SHARPNESS, WIDE

SWEEPS = 5
"""So many sweeps fit a few attributes again: they start close to where they end."""

NOTHING = 1e-300
"""A cell without mass has this share, so that ratios exist."""

SOMEBODY = 0.5
"""A drawn table expects at least so many people in a cell: one that seems empty may not be."""

MOST_WEIGHTS = 2**22
"""Numbers that the single questions of a fit hold together."""

FURTHEST = 5.0
"""The logarithm of the largest factor of a step towards a single question."""

Step = Callable[[Floats], None]
"""A move of all worlds towards one measurement, in place."""


class LocalFit:
    """One scope in `number` worlds, of those that were drawn."""

    def __init__(self, worlds: Worlds, scope: Scope, counts: Floats, number: int) -> None:
        self._worlds, self._scope, self._counts = worlds, scope, counts
        self._used = slice(0, 1 + number)
        digest = hashlib.sha256(f"{worlds.key}:{scope}".encode()).digest()
        draws = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
        expected = np.repeat(np.maximum(counts, SOMEBODY)[..., None], number, axis=-1)
        self._drawn = draws.poisson(expected).astype(np.float64)
        people = np.maximum(self._drawn.sum(axis=tuple(range(counts.ndim))), 1.0)
        self._totals = np.concatenate([worlds.totals[self._used], people])

    def deviations(self) -> Floats:
        """How far each fit is from its truth, in counts: the real one, `number` drawn, sampled."""
        truths = np.repeat(self._counts[..., None], self._totals.size, axis=-1)
        truths[..., self._used.stop :] = self._drawn
        total = max(float(self._counts.sum()), 1.0)
        cells = np.maximum(self._counts / total, NOTHING)[..., None]
        cells = np.repeat(cells, self._totals.size, axis=-1)
        for step in self._soft_steps():
            step(cells)
        steps = [*self._table_steps(), *self._product_steps()]
        for _ in range(SWEEPS):
            for step in steps:
                step(cells)
        return np.asarray(self._totals * cells - truths)

    # What each world wants ---------------------------------------------------------------------

    def _shared(self, table: MeasuredMarginal, wanted: Floats) -> tuple[Scope, Floats]:
        """What a table says of the scope: as shares, in the worlds and in the drawn tables."""
        axes = tuple(x for x, a in enumerate(table.marginal.scope) if a not in self._scope)
        shared = tuple(a for a in table.marginal.scope if a in self._scope)
        seen = wanted.sum(axis=axes)[..., self._used]
        drawn = self._drawn.sum(axis=self._over(shared)) / self._totals[self._used.stop :]
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
        tables = self._worlds.tables
        known = [set(t.marginal.scope) for t in tables if len(t.marginal.scope) < WIDE]
        for table, wanted in zip(tables, self._worlds.wanted, strict=True):
            kept = set(table.marginal.scope) & set(self._scope)
            wide = len(table.marginal.scope) >= WIDE
            if 0 < len(kept) < WIDE and not (wide and any(kept <= each for each in known)):
                yield self._shared(table, wanted)

    def _soft_steps(self) -> Iterator[Step]:
        for table, wanted in zip(self._worlds.tables, self._worlds.wanted, strict=True):
            if len(set(table.marginal.scope) & set(self._scope)) >= WIDE:
                shared, values = self._shared(table, wanted)
                summed = table.values.size * self._totals.size / values.size
                variance = max(table.variance, LEAST_VARIANCE) * summed
                yield self._approach(shared, values, SHARPNESS * self._totals / variance)

    def _product_steps(self) -> Iterator[Step]:
        """Single questions inside the scope: the latest, where they are too many."""
        inside = [
            (place, measured.product)
            for place, measured in enumerate(self._worlds.products)
            if measured.product.scope and set(measured.product.scope) <= set(self._scope)
        ]
        for place, product in inside[-max(1, MOST_WEIGHTS // self._counts.size) :]:
            weights = product.over(self._scope).reshape(self._counts.shape)[..., None]
            axes = tuple(range(self._counts.ndim))
            seen = self._worlds.values(place, float((self._counts[..., None] * weights).sum()))
            drawn = (self._drawn * weights).sum(axis=axes)
            yield self._meet(weights, np.concatenate([seen[self._used], drawn]) / self._totals)

    # How it is moved there -----------------------------------------------------------------------

    def _match(self, shared: Scope, wanted: Floats) -> Step:
        """Make a marginal the wanted one."""
        over, laid = self._over(shared), np.maximum(wanted, 0.0)[self._laid(shared)]

        def step(cells: Floats) -> None:
            cells *= laid / np.maximum(cells.sum(axis=over, keepdims=True), NOTHING)

        return step

    def _approach(self, shared: Scope, wanted: Floats, trust: Floats) -> Step:
        """Move a marginal q towards y by q (1 + trust y) / (1 + trust q).

        That is where the derivative of trust/2 |q' - y|^2 plus the relative entropy of q' to q
        vanishes to first order. The real world was fitted to its wide tables already.
        """
        over, laid = self._over(shared), self._laid(shared)

        def step(cells: Floats) -> None:
            marginal = cells.sum(axis=over)
            factors = np.maximum(1 + trust * wanted, 0.0) / (1 + trust * marginal)
            cells *= factors[laid]
            np.maximum(cells, NOTHING, out=cells)
            cells /= cells.sum(axis=tuple(range(cells.ndim - 1)))

        return step

    def _meet(self, weights: Floats, wanted: Floats) -> Step:
        """One Newton step of the tilt that gives a single question its value."""
        reach = float(np.abs(weights).max()) or 1.0  # of a question that nobody can be in
        unit, axes = weights / reach, tuple(range(weights.ndim - 1))

        def step(cells: Floats) -> None:
            mean = (cells * unit).sum(axis=axes)
            spread = (cells * unit**2).sum(axis=axes) - mean**2
            eta = np.clip((wanted / reach - mean) / np.maximum(spread, 1e-12), -FURTHEST, FURTHEST)
            cells *= np.exp(eta * unit)
            cells /= np.maximum(cells.sum(axis=axes), NOTHING)  # a world may be empty

        return step

    def _over(self, shared: Scope) -> tuple[int, ...]:
        """The axes of the scope that a table does not have."""
        return tuple(axis for axis, a in enumerate(self._scope) if a not in shared)

    def _laid(self, shared: Scope) -> tuple[slice | None, ...]:
        """The index that lays a table over the axes of the scope."""
        return (*(slice(None) if a in shared else None for a in self._scope), slice(None))
