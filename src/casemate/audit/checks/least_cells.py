"""The least set of published cells behind a value that has no certificate.

What bounds, types and searches determine follows from all equations together. For a reader, cells
are left out until the value would not follow without any one of those that are left. They are
looked for among the nearest first: the cells about the value, then those that share a secret with
these, and so on.

Guarantee  The cells that are named force the value, with bounds, types and known values: each set
           was decided by itself. Where the time is up, statements are named as wholes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.ranges import backbone, decidable, tighten_box, whole_solution
from casemate.audit.checks.totals import shown_total, totals
from casemate.audit.least import least
from casemate.audit.region.bounds import bounds
from casemate.audit.region.groups import with_combinations
from casemate.audit.region.second import RegionSolution, components, part
from casemate.audit.result import CellName, DerivationStep, Exposed
from casemate.audit.time_limit import Clock
from casemate.exact import Bound, Region, System
from casemate.query.language import Scalar
from casemate.query.records import Category, Cut

LEAST_CELLS_SECONDS = 5.0
"""How long cells may be left out, of all values together."""

SECONDS_FOR_ONE_SET = 1.0
"""The longest that one set of cells may take to be decided."""

BY_BOUNDS = "with bounds and the other cells of this proof, one value is left"
BY_SEARCH = "a search found no other table that gives the cells of this proof: it is the only proof"

NOT_SHORTENED = (
    "with bounds and the other statements of this proof, one value is left; the time was up before "
    "it was found which of their cells are needed"
)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The columns that show a value, totals behind all others, and what their values show."""

    region: Region
    targets: Sequence[int]
    own: Sequence[int]  # the columns of the equations that it is about
    shows: Callable[[Mapping[int, Fraction]], bool]


class LeastCells:
    """Looks for the cells behind values of a case, as long as the time allows."""

    def __init__(self, case: Case, clock: Clock) -> None:
        self._case, self._clock = case, clock
        self._statements_of: dict[int, tuple[DerivationStep, ...]] = {}

    def derivation(self, exposed: Exposed) -> tuple[DerivationStep, ...]:
        """The cells behind a value, as steps of a proof; none where equations do not show it."""
        asked = self._total(exposed) if exposed.total else self._single(exposed)
        if not asked.targets:
            return ()
        near: list[CellName] = []
        for near in self._rings(asked.own):
            if self._clock.over:
                return self._statements(asked.own)
            if self._suffices(asked, near):
                cells = least(near, lambda some: self._suffices(asked, some), self._clock)
                text = BY_BOUNDS if self._suffices(asked, cells, search=False) else BY_SEARCH
                return tuple(DerivationStep(query, key, text) for query, key in cells)
        return ()

    def _single(self, exposed: Exposed) -> _Asked:
        case, people = self._case, self._case.equations.people
        place, owners = people.place(exposed.record), people.owners(exposed.column)
        unit = place if place is None or owners is None else int(owners[place])
        mine = np.flatnonzero(case.equations.record == (-1 if unit is None else unit)).tolist()
        columns = [column for column in mine if case.secret(column) == exposed.column]

        def shows(values: Mapping[int, Fraction]) -> bool:
            value, shown_by = value_shown(case, exposed.column, sorted(values), values)
            return shown_by is not None and value == exposed.value

        return _Asked(case.region, columns, columns, shows)

    def _total(self, exposed: Exposed) -> _Asked:
        case = self._case
        first, count = case.equations.people.first_of(exposed.person), case.region.system.columns
        found = [t for t in totals(case) if (t.first, t.column) == (first, exposed.column)]
        own = sorted({column for each in found for column in each.target})
        if not own:
            return _Asked(case.region, (), (), lambda _: False)
        whole = all(case.box.integer[column] for column in own)
        longer = with_combinations(case.region, [each.target for each in found], whole=whole)

        def shows(values: Mapping[int, Fraction]) -> bool:
            return (
                shown_total(case, {found[c - count]: v for c, v in values.items()}) == exposed.value
            )

        return _Asked(longer, range(count, count + len(found)), own, shows)

    # Cells ----------------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> list[CellName]:
        """The cell of each equation."""
        return [(each.query, each.key) for each in self._case.equations.places]

    @cached_property
    def _rows_of(self) -> Mapping[CellName, list[int]]:
        found: dict[CellName, list[int]] = {}
        for row, cell in enumerate(self._cells):
            found.setdefault(cell, []).append(row)
        return found

    def _rings(self, own: Sequence[int]) -> Iterator[list[CellName]]:
        """The cells about some columns, then with those about all columns of these, and so on."""
        system, published = self._case.region.system, len(self._cells)
        reached = np.zeros(system.columns, np.bool_)
        reached[list(own)] = True
        before = 0
        while before < int(reached.sum()):
            before = int(reached.sum())
            rows = np.unique(system.row[reached[system.column]])
            near = {self._cells[row] for row in rows[rows < published].tolist()}
            rows = np.union1d(rows, [row for cell in near for row in self._rows_of[cell]])
            yield sorted(near, key=lambda cell: (cell[0], str(cell[1])))
            reached[system.column[np.isin(system.row, rows)]] = True

    def _statements(self, own: Sequence[int]) -> tuple[DerivationStep, ...]:
        """All statements that have to do with some columns, as wholes."""
        system = self._case.region.system
        label = components(system, np.ones(system.columns, np.bool_))
        which = int(label[own[0]])
        if which not in self._statements_of:
            rows = np.unique(system.row[label[system.column] == which]).tolist()
            queries = sorted({self._cells[row][0] for row in rows if row < len(self._cells)})
            steps = tuple(DerivationStep(query, None, NOT_SHORTENED) for query in queries)
            self._statements_of[which] = steps
        return self._statements_of[which]

    # Deciding with fewer cells --------------------------------------------------------------------

    def _suffices(self, asked: _Asked, cells: Collection[CellName], *, search: bool = True) -> bool:
        """Whether a value follows from some cells, types, bounds and what was known."""
        region, columns = self._with_cells(asked, cells)
        place = {column: i for i, column in enumerate(columns.tolist())}
        seconds = min(SECONDS_FOR_ONE_SET, max(1e-3, self._clock.seconds_left))
        found = bounds(region, seconds=seconds)
        if found.contradiction:
            return False
        fixed = {column: found.low[column] for column in found.fixed}
        left = [place[column] for column in asked.targets if place[column] not in fixed]
        tight = region.within(tighten_box(region.box, found))
        if search and left and decidable(tight):
            fixed |= _only_whole_numbers(tight, left, seconds)
        values = ((column, fixed.get(place[column])) for column in asked.targets)
        return asked.shows({column: value for column, value in values if value is not None})

    def _with_cells(
        self, asked: _Asked, cells: Collection[CellName]
    ) -> tuple[Region, NDArray[np.int64]]:
        """What some cells say of columns, with types, bounds and all that shares rows with them."""
        region, system = asked.region, asked.region.system
        kept = np.zeros(system.rows, np.bool_)
        kept[[row for cell in cells for row in self._rows_of[cell]]] = True
        kept[len(self._cells) :] = True
        inside, rows = kept[system.row], np.flatnonzero(kept).tolist()
        row = (np.cumsum(kept) - 1)[system.row[inside]]
        fewer = Region(
            System(len(rows), system.columns, row, system.column[inside], system.value[inside]),
            region.box,
            tuple(region.low[each] for each in rows),
            tuple(region.high[each] for each in rows),
        )
        label = components(fewer.system, np.ones(system.columns, np.bool_))
        columns = np.flatnonzero(np.isin(label, label[list(asked.targets)]))
        return part(fewer, columns), columns


def _only_whole_numbers(
    region: Region, asked: Sequence[int], seconds: float
) -> dict[int, Fraction]:
    """The columns that have one value among whole numbers."""
    try:
        values = whole_solution(region, seconds)
    except TimeoutError:
        return {}
    if values is None:
        return {}
    fixed = backbone(RegionSolution(region, values), asked, [1] * len(values), seconds).fixed
    return {column: values[column] for column in fixed}


# What known columns come to -----------------------------------------------------------------------


def value_shown(
    case: Case, name: str, columns: Sequence[int], values: Mapping[int, Bound]
) -> tuple[Scalar | Fraction, int | None]:
    """The value that the known columns of a record come to, and the column that shows it."""
    if any(not isinstance(case.unknown(column).category, Category) for column in columns):
        return _number(case, columns, values)
    for column in columns:
        category = case.unknown(column).category
        if values[column] == 1 and isinstance(category, Category):
            return category.value, column
    declared = case.declared_values(name)
    if columns and len(columns) == len(declared) - 1:  # none of the others: it is the last
        return declared[-1], columns[-1]
    return None, None


def _number(
    case: Case, columns: Sequence[int], values: Mapping[int, Bound]
) -> tuple[Scalar | Fraction, int | None]:
    """A number, or that it is missing; 0 may stand for both, and then neither is known."""
    kinds = {case.unknown(column).category: column for column in columns}
    number, presence = kinds.get(None), kinds.get(Cut(None))
    if presence is not None and values[presence] == 0:
        return None, presence
    if number is None or (values[number] == 0 and presence is None and case.may_be_missing(number)):
        return None, None
    return values[number], number
