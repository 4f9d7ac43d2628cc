"""What is left of every private number: ranges from propagation and linear programs, proved.

Whole numbers beyond linear programming: what only their being whole gives away.

A linear program bounds whole numbers from outside. Whether somebody has a second possible value is
decided by showing one (an exchange, a whole vertex, a table that CP-SAT finds) or by CP-SAT's proof
that there is none; who is neither within the limit is undecided, and counts as not safe.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.whole import Whole, decidable, decide, whole_solution
from casemate.audit.region.bounds import Bounds, Proof, bounds
from casemate.audit.region.second import Change, RegionSolution, components, part
from casemate.audit.result import RemainingInterval
from casemate.audit.time_limit import Clock
from casemate.exact import Bound, Box, Region
from casemate.published import column_values, true_values
from casemate.query.records import Unknown


def ranges(case: Case, seconds: float = float("inf")) -> Bounds:
    """What is left of every range; without any bound to start from, nothing is to be had."""
    rounded = case.equations.low != case.equations.high
    if rounded or any(end is not None for end in (*case.box.low, *case.box.high)):
        return bounds(case.region, seconds=seconds)
    nothing = (None,) * len(case.box)
    proof: Proof = "propagation"
    return Bounds(nothing, nothing, (proof,) * len(case.box))


def intervals(case: Case, found: Bounds) -> tuple[RemainingInterval, ...]:
    """The range of every private number of which something is known."""
    return tuple(
        RemainingInterval(
            case.name(column),
            case.secret(column),
            found.low[column],
            found.high[column],
            case.box.low[column],
            case.box.high[column],
        )
        for column in range(case.equations.system.columns)
        if case.is_number(column)
        and (found.low[column] is not None or found.high[column] is not None)
    )


def tight(
    case: Case, found: Sequence[RemainingInterval], protect: Fraction
) -> tuple[RemainingInterval, ...]:
    """The ranges in which every value is within a share of the true one."""
    bounded = [each for each in found if None not in (each.low, each.high)]
    names = {each.column for each in bounded}
    true = {name: column_values(name, case.source) for name in names}
    return tuple(
        each
        for each in bounded
        if is_tight(each, Unknown(each.column).of(true[each.column][each.record]), protect)
    )


def is_tight(interval: RemainingInterval, true: Fraction, protect: Fraction) -> bool:
    """Whether several values are possible, and all of them are near the true one."""
    low, high = interval.low, interval.high
    if low is None or high is None or low == high:
        return False
    return is_near(low, high, true, protect)


def is_near(low: Fraction, high: Fraction, true: Fraction, protect: Fraction) -> bool:
    """Whether nothing from `low` to `high` is further from the true value than its share."""
    return max(high - true, true - low) <= protect * abs(true)


# Integers ---------------------------------------------------------------------------------------


ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """The ranges with what whole numbers add, whom they leave undecided, and second solutions."""

    ranges: Bounds
    undecided: frozenset[int] = frozenset()
    changes: tuple[Change, ...] = ()
    impossible: bool = False  # no whole numbers give the answers at all


def whole_numbers(case: Case, found: Bounds, known: Collection[int], clock: Clock) -> WholeNumbers:
    """Decide the columns that share equations with whole numbers and are not yet fixed.

    `known` are columns that follow by rank. Where nothing bounds a whole number the rank decides:
    a multiple of any other solution of the equations is whole.
    """
    region = case.region.within(tightened(case.region.box, found))
    if found.contradiction or not any(region.box.integer):
        return WholeNumbers(found)
    skipped = np.zeros(region.system.columns, np.bool_)
    skipped[[*known, *found.fixed]] = True
    search = _IntegerSearch(case, region, found, clock)
    for columns in _kinds(region, skipped):
        search.settle(columns, [c for c in columns.tolist() if not skipped[c]])
    undecided, changes = frozenset(search.undecided), tuple(search.changes)
    return WholeNumbers(search.ranges(), undecided, changes, search.impossible)


def tightened(box: Box, found: Bounds) -> Box:
    """The box with the ranges that are proved; the box's own ends where nothing is."""
    checked = [kind != "unchecked" for kind in found.proof]

    def side(own: tuple[Bound, ...], proved: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(b if sure else a for a, b, sure in zip(own, proved, checked, strict=True))

    return Box(side(box.low, found.low), side(box.high, found.high), box.integer)


def _kinds(region: Region, skipped: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The columns to decide: those that share a part with a whole number that something bounds."""
    box = region.box
    ends = zip(box.low, box.high, strict=True)
    bounded = np.array([low is not None or high is not None for low, high in ends], np.bool_)
    rounded = np.array([a != b for a, b in zip(region.low, region.high, strict=True)], np.bool_)
    bounded[region.system.column[rounded[region.system.row]]] = True
    integer = np.array(box.integer, np.bool_)
    return kinds(region, [integer, bounded, ~skipped])


def kinds(region: Region, marks: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.int64]]:
    """The parts that have a column of each mark: those of whole numbers alone, and the others."""
    box = region.box
    label = components(region.system, np.array(list(map(_moves, box.low, box.high)), np.bool_))
    inside = label >= 0

    def parts(mark: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return inside & np.isin(label, label[inside & mark])

    wanted = np.logical_and.reduce([inside, *map(parts, marks)])
    pure = wanted & ~parts(~np.array(box.integer, np.bool_))
    return [np.flatnonzero(each) for each in (pure, wanted & ~pure) if each.any()]


def _moves(low: Bound, high: Bound) -> bool:
    return low is None or low != high


class _IntegerSearch:
    """What is shown so far, in the numbers of all columns."""

    def __init__(self, case: Case, region: Region, found: Bounds, clock: Clock) -> None:
        self.undecided: set[int] = set()
        self.changes: list[Change] = []
        self.impossible = False
        self._fixed: dict[int, Fraction] = {}
        self._case, self._region, self._found, self._clock = case, region, found, clock

    def settle(self, columns: NDArray[np.int64], asked: list[int]) -> None:
        """Decide the columns asked for, among those of some parts."""
        smaller = part(self._region, columns)
        solution = self._known(smaller, columns)
        if solution is None:
            self.undecided.update(asked)
            return
        place = {column: i for i, column in enumerate(columns.tolist())}
        widths = [ONE if whole else _least(smaller) for whole in smaller.box.integer]
        left = max(0.0, self._clock.seconds_left)
        self._note(decide(solution, [place[c] for c in asked], widths, left), solution, columns)

    def _known(self, smaller: Region, columns: NDArray[np.int64]) -> RegionSolution | None:
        """The custodian's own values; where the answers are others, some whole solution."""
        true = true_values(self._case.equations, columns.tolist(), self._case.source)
        values = [true[column] for column in columns.tolist()]
        if smaller.contains(values):
            return RegionSolution(smaller, values)
        left = self._clock.seconds_left
        if left <= 0 or not decidable(smaller):
            return None
        try:
            found = whole_solution(smaller, left, hint=values)
        except TimeoutError:
            return None
        if found is None:
            self.impossible = True
            return None
        return RegionSolution(smaller, [Fraction(each) for each in found])

    def _note(self, shown: Whole, solution: RegionSolution, columns: NDArray[np.int64]) -> None:
        name = columns.tolist()
        self.undecided |= {name[c] for c in shown.undecided}
        self._fixed |= {name[c]: solution.values[c] for c in shown.fixed}
        self.changes += [{name[c]: v for c, v in each.items()} for each in shown.changes]

    def ranges(self) -> Bounds:
        """The ranges, with a single value where whole numbers leave one."""
        low, high, proof = list(self._found.low), list(self._found.high), list(self._found.proof)
        for column, value in self._fixed.items():
            low[column] = high[column] = value
            proof[column] = "integer"
        return replace(self._found, low=tuple(low), high=tuple(high), proof=tuple(proof))


def _least(region: Region) -> Fraction:
    """A difference that counts for numbers that need not be whole: the grid of what is known."""
    ends = {end.denominator for end in (*region.low, *region.high) if end is not None}
    return Fraction(1, max(ends, default=1))
