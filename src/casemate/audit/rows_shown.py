"""What there is to publish: the rows that show something about secrets, and what each one tells."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.statements import Statements, Withheld
from casemate.published.cells import presence, shown_cells
from casemate.published.equations import Place, place_of
from casemate.query.lineage import lineage
from casemate.solve.equation import equations as equations_of


@dataclass(eq=False)
class Shown:
    """What a row tells: equations, and the positions of the records that it is about."""

    equations: list[int]
    records: NDArray[np.int64]


def rows_shown(case: Case, statements: Statements) -> dict[Withheld, Shown]:
    """Every row that shows something about secrets, in the order of the log."""
    found: dict[Withheld, Shown] = {}
    for place, equation, records in (*_summed(case), *_ordered(case)):
        row = statements.listed[place.query].row(place)
        shown = found.setdefault(row, Shown([], np.zeros(0, np.int64)))
        shown.equations += equation
        shown.records = np.union1d(shown.records, records)
    return dict(sorted(found.items(), key=lambda pair: pair[0].rank))


def _summed(case: Case) -> Iterator[tuple[Place, list[int], NDArray[np.int64]]]:
    """The places of the equations, and whose secrets these are about."""
    for number, line in enumerate(equations_of(case.equations.system)):
        place = case.equations.places[number]
        yield place, [number], np.unique(case.equations.record[line.columns])


def _ordered(case: Case) -> Iterator[tuple[Place, list[int], NDArray[np.int64]]]:
    """The places of extremes and medians, and the records behind them."""
    first = case.equations.people.first
    for column in case.publication.ordered:
        found = lineage([presence(column.select)], case.source)
        there = {cell.key: i for i, cell in enumerate(found.cells)}
        for cell in shown_cells(column.select, case.source):
            place = place_of(column.query, column.select, column.output.name, cell.key)
            records = found.record[found.cell == there.get(cell.key, -1)]
            yield place, [], np.union1d(records, first[records])
