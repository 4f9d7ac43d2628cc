"""Cells of a universe, record by record, and aggregates as sums over cells."""

from dataclasses import replace as changed

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Unsupported
from casemate.query import Aggregate, Function
from casemate.query.engines import rows
from casemate.query.language import TRUE
from casemate.query.snapping import Snapped, code, selection, summed, unconditional
from casemate.table import Universe
from casemate.table.sources import Source, bounded


def codes(universe: Universe, source: Source, *, key: bytes | None = None) -> NDArray[np.int64]:
    """The cell of each record in each attribute: records, in the order of their names, x cells."""
    kept = bounded(universe, source, key)
    columns = {f"c{i}": code(each) for i, each in enumerate(universe.attributes)}
    frame = kept.read(rows(kept, (), TRUE, columns))
    order = np.argsort(frame["r"].values, kind="stable")
    found = [frame[name].values[order].astype(np.int64) for name in columns]
    return np.array(found, np.int64).reshape(len(columns), len(order)).T


def snapped(aggregate: Aggregate, universe: Universe) -> Snapped:
    """A COUNT or SUM, without its GROUP BY, as cells of the universe; others are refused."""
    if aggregate.function not in (Function.COUNT, Function.SUM):
        raise Unsupported(f"{aggregate.function} is not a sum over cells; only COUNT and SUM are")
    if aggregate.joins:
        raise Unsupported("a joined table has no cells in the universe; ask without the join")
    unfolded = unconditional(aggregate)
    counted = unfolded.function is Function.COUNT
    found = selection(unfolded.membership if counted else unfolded.predicate, universe)
    if counted or unfolded.argument is None:
        return found
    place, spans = summed(unfolded.argument, universe)
    middles = np.array([float(each.middle) for each in spans])
    halves = np.array([float(each.half) for each in spans])
    return changed(found, weights={place: middles}, slack={place: halves})
