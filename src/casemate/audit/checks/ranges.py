"""What is left of every private number: proved ranges, and what only being whole gives away.

`ranges` are from propagation and linear programs, which bound whole numbers from outside only.
`whole_numbers` decides whether somebody has a second possible value by showing one (an exchange, a
whole vertex, a table that CP-SAT finds) or by CP-SAT's proof that there is none.

Exact      Ranges are proved in exact arithmetic and solutions are re-checked in integers. That
           there is no other whole solution is CP-SAT's proof.
Limit      Who is neither within the limit is undecided, and counts as not safe.
"""

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.region.bounds import Bounds, Proof, bounds
from casemate.audit.region.collapse import free_columns
from casemate.audit.region.second import (
    Change,
    RegionSolution,
    components,
    cut,
    exchanges,
    part,
    witness,
)
from casemate.audit.result import RemainingInterval
from casemate.audit.time_limit import CP_SAT_LARGEST_VALUE, Clock, SearchLimit, Stop
from casemate.exact import Bound, Box, Region
from casemate.published import column_values, true_values
from casemate.query.records import Cut, Unknown

if TYPE_CHECKING:
    from casemate.audit.order.solver import IntegerModel

FIRST_ROUND_SECONDS = 2.0
"""Seconds for each part in the first round; twice as many in every later one."""


@dataclass(frozen=True)
class Whole:
    """Columns with one possible value, those not decided, and changes that move all the others."""

    fixed: frozenset[int]
    undecided: frozenset[int]
    changes: tuple[Change, ...]


def backbone(
    solution: RegionSolution,
    columns: Iterable[int],
    width: Sequence[int],
    seconds: float = float("inf"),
    stop: Stop | None = None,
) -> Whole:
    """Let CP-SAT settle whether each column can differ from the solution by at least its width.

    It starts from the known solution and moves as many columns as it can; those that moved are
    free, and when it proves that no solution moves any of the rest, they are the backbone: the same
    in every solution. Columns that no equation links are settled apart, small parts first, with
    more patience in each round; those still open when the time is up are undecided.

    >>> from casemate.exact.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [0, 0, 2]], [1, 2]), Box.of(3, 0, 1, integer=True))
    >>> known = RegionSolution(region, [Fraction(value) for value in (1, 0, 1)])
    >>> sorted(backbone(known, range(3), [1, 1, 1]).fixed)
    [2]
    """
    _check_size(solution.region)
    if seconds <= 0:
        return Whole(frozenset(), frozenset(columns), ())
    box = solution.region.box.inward()
    label = components(solution.region.system, free_columns(box))
    asked: dict[int, set[int]] = {}
    for column in columns:
        asked.setdefault(int(label[column]), set()).add(column)
    fixed = asked.pop(-1, set())
    parts = [
        _WholePart(solution, np.flatnonzero(label == name), asked_here, width)
        for name, asked_here in sorted(asked.items())
    ]
    pending = sorted(parts, key=lambda part: len(part.names))
    clock = Clock(SearchLimit(seconds=seconds, stop=stop or Stop()))
    patience = FIRST_ROUND_SECONDS
    while pending and not clock.over:
        pending = [part for part in pending if part.settle(clock, patience)]
        patience *= 2
    return Whole(
        frozenset(fixed.union(*(part.fixed for part in parts))),
        frozenset[int]().union(*(part.open for part in parts)),
        tuple(change for part in parts for change in part.changes),
    )


class _WholePart:
    """Columns that equations link, and what is shown of them so far."""

    def __init__(
        self,
        solution: RegionSolution,
        columns: NDArray[np.int64],
        asked: set[int],
        width: Sequence[int],
    ) -> None:
        self.names, self.open, self._width = columns.tolist(), asked, width
        self.fixed: set[int] = set()
        self.changes: list[Change] = []
        values = [solution.values[column] for column in self.names]
        self._solution = RegionSolution(part(solution.region, columns), values)

    def settle(self, clock: Clock, patience: float) -> bool:
        """Maximise how many columns move; whether some of them are still open."""
        from casemate.audit.order.solver import settle, values_of

        if clock.over:
            return True
        model = _model(self._solution.region, self._solution.values)
        asked = {i: name for i, name in enumerate(self.names) if name in self.open}
        literals = {i: model.move_literal(i, self._width[name]) for i, name in asked.items()}
        moved = {i: literal for i, literal in literals.items() if literal is not None}

        def accept(solver: Any) -> NDArray[np.bool_]:
            self._keep(*values_of(solver, model.variables))
            return np.array([asked[i] not in self.open for i in moved], np.bool_)

        settled = settle(model.model, moved, accept, clock, patience)
        stuck = [*(literals.keys() - moved.keys()), *settled.unmovable.tolist()]
        self.fixed |= {asked[i] for i in stuck}
        self.open -= self.fixed
        return bool(self.open)

    def _keep(self, places: NDArray[np.int64], values: NDArray[Any]) -> None:
        pairs = zip(places.tolist(), map(Fraction, values.tolist()), strict=True)
        change = {i: value for i, value in pairs if value != self._solution.values[i]}
        if not self._solution.allows(change):
            raise ArithmeticError("CP-SAT returned values that break an equation or a bound")
        widths = {i: Fraction(self._width[self.names[i]]) for i in change}
        newly_moved = self.open.intersection(
            self.names[i] for i in self._solution.far(change, widths)
        )
        if newly_moved:
            self.open -= newly_moved
            self.changes.append({self.names[i]: value for i, value in change.items()})


def whole_solution(
    region: Region,
    seconds: float = float("inf"),
    hint: Sequence[Fraction] | None = None,
    stop: Stop | None = None,
) -> list[Fraction] | None:
    """Some solution in whole numbers, or None if there is none; TimeoutError if undecided.

    With a `hint` the search starts near those values.
    """
    from ortools.sat.python import cp_model

    _check_size(region)
    low = [end or Fraction(0) for end in region.box.inward().low]
    model = _model(region, low if hint is None else hint)
    limit = SearchLimit(seconds=max(seconds, 1e-3), workers=1, stop=stop or Stop())
    solver = Clock(limit).solver(math.inf)
    status = solver.solve(model.model)
    if status == cp_model.INFEASIBLE:
        return None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise TimeoutError("CP-SAT found no solution and no contradiction in the time it was given")
    found = {column: Fraction(solver.value(v)) for column, v in model.variables.items()}
    return [found.get(column, end) for column, end in enumerate(low)]


def _model(region: Region, start: Sequence[Fraction]) -> "IntegerModel":
    """A region of whole numbers as a CP-SAT model, which starts at these values."""
    from ortools.sat.python import cp_model

    from casemate.audit.order.solver import IntegerModel

    box = region.box.inward()
    low, high = (np.array([int(end or 0) for end in side]) for side in (box.low, box.high))
    model = IntegerModel(low, high, np.array([math.floor(value) for value in start]))
    for line, least, most in zip(region.equations, region.low, region.high, strict=True):
        total = cp_model.LinearExpr.weighted_sum(
            [model.value(j) for j, _ in line], [a for _, a in line]
        )
        first = cp_model.INT_MIN if least is None else math.ceil(least)
        last = cp_model.INT_MAX if most is None else math.floor(most)
        model.model.add_linear_constraint(total, first, last)
    return model


def decidable(region: Region) -> bool:
    """Whether a region is one of whole numbers, in bounds that a solver's integers can hold."""
    return not _obstacle(region)


def _check_size(region: Region) -> None:
    obstacle = _obstacle(region)
    if obstacle:
        raise ValueError(f"whole-number solutions need {obstacle}")


def _obstacle(region: Region) -> str:
    """What a region lacks for a search over whole numbers, or nothing."""
    box = region.box
    if not all(box.integer) or None in box.low or None in box.high:
        return "whole numbers with finite bounds throughout"
    ends = {end for side in (box.low, box.high, region.low, region.high) for end in side}
    largest = max((abs(value) for value in region.system.value.tolist()), default=0)
    if largest > CP_SAT_LARGEST_VALUE or any(
        end is not None and abs(end) > CP_SAT_LARGEST_VALUE for end in ends
    ):
        return f"numbers of at most {CP_SAT_LARGEST_VALUE}"
    return ""


# Columns of a region with whole numbers ---------------------------------------------------------
# The cheapest second solutions first: exchanges between columns that no equation tells apart, then
# whole vertices of linear programs; CP-SAT decides what they leave, where every column is a whole
# number between finite ends. Elsewhere the lack of a second solution proves nothing, and a column
# that none was found for is undecided.


VERTEX_SEARCH_SECONDS = 5.0
"""Seconds that linear programs may take before CP-SAT has its turn, where it can decide."""


def decide(
    solution: RegionSolution,
    columns: Iterable[int],
    width: Sequence[Fraction],
    seconds: float = float("inf"),
    stop: Stop | None = None,
) -> Whole:
    """Settle whether each column can differ from the known solution by at least its width.

    In a box that was cut to be finite CP-SAT can only show columns to be free.

    >>> from casemate.exact.system import System
    >>> triangle = System.of([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]], [2, 2, 2])
    >>> region = Region.of(triangle, Box.of(4, 0, 1, integer=True))
    >>> known = RegionSolution(region, [Fraction(v) for v in (1, 1, 1, 0)])
    >>> sorted(decide(known, range(4), [Fraction(1)] * 4).fixed)
    [0, 1, 2, 3]
    """
    deadline = time.monotonic() + seconds
    region, open_columns = solution.region, set(columns)
    changes = exchanges(solution, open_columns, width) if seconds > 0 else []
    for change in changes:
        open_columns -= solution.far(change, width)
    finite = region.within(cut(region.box, solution.values, width))
    cp_sat_decides = decidable(finite)
    vertex_seconds = min(VERTEX_SEARCH_SECONDS, seconds) if cp_sat_decides else seconds
    vertices = witness(region, solution.values, open_columns, width, seconds=vertex_seconds)
    changes += [solution.change_to(table) for table in vertices.tables]
    if not vertices.open or not cp_sat_decides:
        return Whole(frozenset(), vertices.open, tuple(changes))
    whole_widths = [max(1, math.ceil(each)) for each in width]
    start = RegionSolution(finite, solution.values)
    found = backbone(start, vertices.open, whole_widths, deadline - time.monotonic(), stop)
    fixed = found.fixed if decidable(region) else frozenset[int]()
    undecided = found.undecided | (found.fixed - fixed)
    return Whole(fixed, undecided, (*changes, *found.changes))


def decide_part(
    region: Region,
    columns: NDArray[np.int64],
    values: Sequence[Fraction] | Mapping[int, Fraction],
    asked: NDArray[np.bool_],
    width: Sequence[Fraction] | Mapping[int, Fraction],
    *,
    clock: Clock,
) -> Whole:
    """The same for some columns that no equation links to others, in the numbers of all."""
    names = columns.tolist()
    solution = RegionSolution(part(region, columns), [values[column] for column in names])
    places = np.flatnonzero(asked[columns]).tolist()
    widths, seconds = [width[column] for column in names], max(0.0, clock.seconds_left)
    found = decide(solution, places, widths, seconds, clock.limit.stop)
    return Whole(
        frozenset(names[i] for i in found.fixed),
        frozenset(names[i] for i in found.undecided),
        tuple({names[i]: value for i, value in each.items()} for each in found.changes),
    )


# Ranges of a case -------------------------------------------------------------------------------


def ranges(case: Case, seconds: float = float("inf")) -> Bounds:
    """What is left of every range; without any bound to start from, nothing is to be had.

    Of numbers that may be missing the prior ranges are left as they are: classes decide who is
    exposed among them, and programs over people take too long to say more.
    """
    if may_only_be_missing(case):
        return prior_ranges(case)
    rounded = case.equations.low != case.equations.high
    if rounded or any(end is not None for end in (*case.box.low, *case.box.high)):
        return bounds(case.region, seconds=seconds)
    nothing = (None,) * len(case.box)
    proof: Proof = "propagation"
    return Bounds(nothing, nothing, (proof,) * len(case.box))


def prior_ranges(case: Case) -> Bounds:
    """What was known of every range before anything was published."""
    proved: Proof = "propagation"
    return Bounds(case.box.low, case.box.high, (proved,) * len(case.box))


def may_only_be_missing(case: Case) -> bool:
    """Whether the secrets are one number that may be missing, the answers the table's own.

    Classes decide about one number at a time, and not where it shares equations with another.
    """
    kinds = {each.category for each in case.equations.unknowns}
    if len({each.column for each in case.equations.unknowns}) > 1:
        return False
    return Cut(None) in kinds and kinds <= {None, Cut(None)} and not case.publication.told


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


# Whole numbers of a case ------------------------------------------------------------------------


ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """The ranges with what whole numbers add, whom they leave undecided, and second solutions."""

    ranges: Bounds
    undecided: frozenset[int] = frozenset()
    changes: tuple[Change, ...] = ()
    impossible: bool = False  # no whole numbers give the answers at all


def whole_numbers(
    case: Case, ranges: Bounds, by_rank: Collection[int], clock: Clock
) -> WholeNumbers:
    """Decide the columns that share equations with whole numbers and are not yet fixed.

    `by_rank` are columns that follow by rank. Where nothing bounds a whole number the rank decides:
    a multiple of any other solution of the equations is whole.
    """
    if may_only_be_missing(case):
        return WholeNumbers(ranges)
    region = case.region.within(tighten_box(case.region.box, ranges))
    if ranges.contradiction or not any(region.box.integer):
        return WholeNumbers(ranges)
    skipped = np.zeros(region.system.columns, np.bool_)
    skipped[[*by_rank, *ranges.fixed]] = True
    fixed: dict[int, Fraction] = {}
    undecided, changes, impossible = set[int](), list[Change](), False
    for columns in _kinds(region, skipped):
        smaller = part(region, columns)
        try:
            values = _solution(case, smaller, columns, clock)
            impossible |= values is None
        except TimeoutError:
            values = None
        if values is None:
            undecided.update(columns[~skipped[columns]].tolist())
            continue
        solution, real_width = dict(zip(columns.tolist(), values, strict=True)), _least(smaller)
        width = {column: ONE if region.box.integer[column] else real_width for column in solution}
        decided = decide_part(region, columns, solution, ~skipped, width, clock=clock)
        fixed |= {column: solution[column] for column in decided.fixed}
        undecided |= decided.undecided
        changes += decided.changes
    low, high, proof = list(ranges.low), list(ranges.high), list(ranges.proof)
    for column, value in fixed.items():
        low[column] = high[column] = value
        proof[column] = "integer"
    ranges = replace(ranges, low=tuple(low), high=tuple(high), proof=tuple(proof))
    return WholeNumbers(ranges, frozenset(undecided), tuple(changes), impossible)


def _solution(
    case: Case, region: Region, columns: NDArray[np.int64], clock: Clock
) -> list[Fraction] | None:
    """The custodian's own values; where the answers are others, some whole solution, or None."""
    true = true_values(case.equations, columns.tolist(), case.source)
    values = [true[column] for column in columns.tolist()]
    if region.contains(values):
        return values
    if clock.over or not decidable(region):
        raise TimeoutError("nothing is known to start from")
    return whole_solution(region, clock.seconds_left, values, clock.limit.stop)


def tighten_box(box: Box, ranges: Bounds) -> Box:
    """The box with the ranges that are proved; the box's own ends where nothing is."""
    checked = [kind != "unchecked" for kind in ranges.proof]

    def side(own: tuple[Bound, ...], proved: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(b if sure else a for a, b, sure in zip(own, proved, checked, strict=True))

    return Box(side(box.low, ranges.low), side(box.high, ranges.high), box.integer)


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
    label = components(region.system, free_columns(box))
    inside = label >= 0

    def parts(mark: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return inside & np.isin(label, label[inside & mark])

    wanted = np.logical_and.reduce([inside, *map(parts, marks)])
    pure = wanted & ~parts(~np.array(box.integer, np.bool_))
    return [np.flatnonzero(each) for each in (pure, wanted & ~pure) if each.any()]


def _least(region: Region) -> Fraction:
    """A difference that counts for numbers that need not be whole: the grid of what is known."""
    ends = {end.denominator for end in (*region.low, *region.high) if end is not None}
    return Fraction(1, max(ends, default=1))
