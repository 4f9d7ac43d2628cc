"""Cells of a universe, record by record, and aggregates as sums over cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Unsupported
from casemate.query import Aggregate, Function
from casemate.query.engines import rows
from casemate.query.language import TRUE
from casemate.query.snapping import Product, Snapped, code, selection, sum_spans, unconditional
from casemate.table import Universe
from casemate.table.sources import Source, bound_contribution


def codes(universe: Universe, source: Source, *, key: bytes | None = None) -> NDArray[np.int64]:
    """The cell of each record in each attribute: records, in the order of their names, x cells."""
    kept = bound_contribution(universe, source, key)
    columns = {f"c{i}": code(each) for i, each in enumerate(universe.attributes)}
    frame = kept.read(rows(kept, (), TRUE, columns))
    order = np.argsort(frame["r"].values, kind="stable")
    found = [frame[name].values[order].astype(np.int64) for name in columns]
    return np.array(found, np.int64).reshape(len(columns), len(order)).T


@dataclass(frozen=True, eq=False)
class SnappedSum(Snapped):
    """Cells, each weighed by the middle of what a record there may add; `slack` is how far off."""

    weights: Mapping[int, NDArray[np.float64]] | None = None
    slack: Mapping[int, NDArray[np.float64]] | None = None

    @property
    def masks(self) -> Product:
        """The only product."""
        (only,) = self.products
        return only

    @property
    def scope(self) -> tuple[int, ...]:
        """The attributes that the question reads, in order."""
        named = {place for product in self.products for place in product}
        return tuple(sorted(named | set(self.weights or {})))

    def total(self, marginal: NDArray[Any]) -> int:
        """What the cells of a marginal over its scope come to."""
        whole = [np.ones(size, np.bool_) for size in marginal.shape]
        sides = [dict(zip(self.scope, whole, strict=True)) | dict(each) for each in self.products]
        return sum(int(marginal[np.ix_(*each.values())].sum()) for each in sides)


def counted(found: Snapped) -> SnappedSum:
    """Cells whose records are counted."""
    return SnappedSum(found.products, found.bracket, found.notes)


def snapped(aggregate: Aggregate, universe: Universe) -> SnappedSum:
    """A COUNT or SUM, without its GROUP BY, as cells of the universe; others are refused."""
    if aggregate.function not in (Function.COUNT, Function.SUM):
        raise Unsupported(f"{aggregate.function} is not a sum over cells; only COUNT and SUM are")
    if aggregate.joins:
        raise Unsupported("a joined table has no cells in the universe; ask without the join")
    unfolded = unconditional(aggregate)
    counts = unfolded.function is Function.COUNT
    found = selection(unfolded.membership if counts else unfolded.predicate, universe)
    if counts or unfolded.argument is None:
        return counted(found)
    place, spans = sum_spans(unfolded.argument, universe)
    middles = np.array([float(each.middle) for each in spans])
    halves = np.array([float(each.half) for each in spans])
    return SnappedSum(found.products, found.bracket, found.notes, {place: middles}, {place: halves})
