"""Totals of whole numbers: what only their being whole gives away about a person.

A total is free where a second table changes it: one that was found for the rows, an exchange with
somebody whom no published number tells apart, or one that is looked for with the total as one more
column. CP-SAT proves that there is none.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.audit.integers import kinds
from casemate.audit.totals import Total
from casemate.published.truth import true_values
from casemate.solve.box import Bound, Box, Region
from casemate.solve.order_limit import Clock
from casemate.solve.second import Change, Solution, part
from casemate.solve.system import System
from casemate.solve.twins import collapse
from casemate.solve.whole import decide

ONE = Fraction(1)


@dataclass(eq=False)
class WholeTotals:
    """What combinations come to that have one value; those that move, and the undecided ones."""

    values: dict[Total, Fraction] = field(default_factory=dict)
    free: set[Total] = field(default_factory=set)
    undecided: set[Total] = field(default_factory=set)


def whole_totals(
    case: Case, region: Region, wanted: Iterable[Total], changes: Sequence[Change], clock: Clock
) -> WholeTotals:
    """Decide the totals of whole numbers, given what is left of every range."""
    listed = [each for each in wanted if all(region.box.integer[c] for c in each.target)]
    found = WholeTotals()
    if not listed:
        return found
    columns = range(case.equations.system.columns)
    true = true_values(case.equations, columns, case.source)
    values = [true[column] for column in columns]
    if not region.contains(values):  # the answers are not the table's: nothing to start from
        found.undecided |= set(listed)
        return found
    exchange = _Exchange(region, values)
    for total in listed:
        if _is_changed(total, changes, values) or exchange.changes(total):
            found.free.add(total)
    left = [total for total in listed if total not in found.free]
    _search(_Longer(region, values, left), found, clock)
    return found


def _is_changed(total: Total, changes: Sequence[Change], values: Sequence[Fraction]) -> bool:
    """Whether a second table that is known already has another total."""
    return any(
        sum((w * (each[c] - values[c]) for c, w in total.target.items() if c in each), Fraction(0))
        for each in changes
    )


class _Exchange:
    """Columns that no equation tells apart, whose values may be exchanged or moved by one."""

    def __init__(self, region: Region, values: Sequence[Fraction]) -> None:
        self._box, self._values = region.box, values
        self._group = collapse(region).group
        self._members: dict[int, list[int]] = {}
        for column, group in enumerate(self._group.tolist()):
            self._members.setdefault(group, []).append(column)

    def changes(self, total: Total) -> bool:
        """Whether giving or taking with somebody else's column moves the total."""
        return any(
            self._moves(column, other)
            for column, weight in total.target.items()
            if self._group[column] >= 0
            for other in self._members[int(self._group[column])]
            if total.target.get(other, 0) != weight
        )

    def _moves(self, column: int, other: int) -> bool:
        low, high, value = self._box.low[column], self._box.high[column], self._values[column]
        if value != self._values[other]:
            return True
        return (low is None or low < value) and (high is None or value < high)


# With the totals as columns -------------------------------------------------------------------


class _Longer:
    """A region with one more column for each total, and the values of all columns."""

    def __init__(self, region: Region, values: Sequence[Fraction], wanted: Sequence[Total]) -> None:
        system, size = region.system, region.system.columns
        entries = list(_defining(wanted, system.rows, size))
        rows, columns, weights = (
            np.array(each, np.int64)
            for each in (zip(*entries, strict=True) if entries else [[]] * 3)
        )
        ends = [_ends(total, region.box) for total in wanted]
        box, zeros = region.box, (Fraction(0),) * len(wanted)
        amounts = [
            sum((w * values[c] for c, w in total.target.items()), Fraction(0)) for total in wanted
        ]
        self.first, self.wanted, self.values = size, wanted, [*values, *amounts]
        self.region = Region(
            System(
                system.rows + len(wanted),
                size + len(wanted),
                np.concatenate([system.row, rows]),
                np.concatenate([system.column, columns]),
                np.concatenate([system.value, weights]),
            ),
            Box(
                (*box.low, *(low for low, _ in ends)),
                (*box.high, *(high for _, high in ends)),
                (*box.integer, *(True for _ in wanted)),
            ),
            (*region.low, *zeros),
            (*region.high, *zeros),
        )


def _defining(wanted: Sequence[Total], rows: int, columns: int) -> Iterator[tuple[int, int, int]]:
    """The entries of the equations that say what each total is."""
    for k, total in enumerate(wanted):
        yield from ((rows + k, column, weight) for column, weight in total.target.items())
        yield rows + k, columns + k, -1


def _ends(total: Total, box: Box) -> tuple[Bound, Bound]:
    """The least and the greatest that the ranges of a total's columns allow."""
    low, high = Fraction(0), Fraction(0)
    open_low = open_high = False
    for column, weight in total.target.items():
        ends = (box.low[column], box.high[column])[:: 1 if weight > 0 else -1]
        open_low, open_high = open_low or ends[0] is None, open_high or ends[1] is None
        low, high = low + weight * (ends[0] or 0), high + weight * (ends[1] or 0)
    return None if open_low else low, None if open_high else high


def _search(longer: _Longer, found: WholeTotals, clock: Clock) -> None:
    """Look for second tables in which totals differ, or for the proof that there are none."""
    if not longer.wanted:
        return
    asked = np.zeros(len(longer.values), np.bool_)
    asked[longer.first :] = True
    for columns in kinds(longer.region, [asked]):
        smaller = part(longer.region, columns)
        solution = Solution(smaller, [longer.values[c] for c in columns.tolist()])
        mine = {i: c for i, c in enumerate(columns.tolist()) if c >= longer.first}
        shown = decide(solution, mine, [ONE] * len(columns), max(0.0, clock.seconds_left))
        for place, column in mine.items():
            total = longer.wanted[column - longer.first]
            if place in shown.fixed:
                found.values[total] = longer.values[column]
            elif place in shown.undecided:
                found.undecided.add(total)
            else:
                found.free.add(total)
