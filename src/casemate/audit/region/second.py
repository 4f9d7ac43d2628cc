"""Second solutions: values that keep every equation, bound and type, yet differ from the true ones.

`witness` shows columns to be free by vertices of the region, `exchanges` by columns that give and
take, and `Freedom` says in doubles whether a solution can move at all. What is found is kept, and
checked in exact arithmetic, as the change of a `RegionSolution`.

Method     A column is shown to be free by a solution in which it differs from its true value by a
           stated width. One vertex of the region shows that for many columns at once; where columns
           have no ends, the region is cut some way from the truth first. Each vertex is solved
           exactly from its basis and re-checked in rationals; one that is not whole where it must
           be is tried again as many times as far from the truth as makes it so, and one that fails
           the check is dropped: its columns stay open.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.collapse import collapse, free_columns
from casemate.exact import (
    Bound,
    Box,
    LinearProgram,
    Region,
    Scaled,
    Status,
    System,
    Vertex,
    load_highs,
    status_of,
    within,
)

SEARCH_REACH_WIDTHS = 64
"""A column without an end is first looked for within this many widths of the truth."""


@dataclass(frozen=True)
class Witnesses:
    """Checked second solutions, and the columns in which none of them differs enough."""

    tables: tuple[tuple[Fraction, ...], ...]
    open: frozenset[int]


def witness(
    region: Region,
    true: Sequence[Fraction],
    columns: Iterable[int],
    width: Fraction | Sequence[Fraction],
    *,
    seconds: float = float("inf"),
) -> Witnesses:
    """Find, for as many of the columns as possible, a solution that differs by at least its width.

    >>> from casemate.exact import Box
    >>> from casemate.exact.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [0, 0, 1]], [7, 2]), Box.of(3, 0, 9))
    >>> found = witness(region, [Fraction(3), Fraction(4), Fraction(2)], range(3), Fraction(2))
    >>> len(found.tables), sorted(found.open)
    (1, [2])
    """
    widths = [width] * len(true) if isinstance(width, Fraction) else list(width)
    if min(widths, default=1) <= 0 or not region.contains(true):
        raise ValueError("witnesses need a positive width and a true solution of the equations")
    search = _SecondSearch(region, true, columns, widths, time.monotonic() + seconds)
    for box in dict.fromkeys((cut(region.box, true, widths), region.box)):
        search.within(box)
    return Witnesses(tuple(search.tables), frozenset(search.open_columns))


def cut(box: Box, true: Sequence[Fraction], width: Sequence[Fraction]) -> Box:
    """The box with ends where it has none: whole numbers, some way from the truth."""

    def end(own: Bound, column: int, way: int) -> Bound:
        far = true[column] + way * SEARCH_REACH_WIDTHS * max(Fraction(1), width[column])
        return Fraction(math.ceil(far)) if own is None else own

    low = tuple(end(own, column, -1) for column, own in enumerate(box.low))
    high = tuple(end(own, column, 1) for column, own in enumerate(box.high))
    return Box(low, high, box.integer)


def hold(box: Box, values: Mapping[int, Fraction]) -> Box:
    """The box of somebody who knows these values."""
    low = tuple(values.get(column, end) for column, end in enumerate(box.low))
    high = tuple(values.get(column, end) for column, end in enumerate(box.high))
    return Box(low, high, box.integer)


class _SecondSearch:
    """The columns that no solution found so far shows to be free."""

    def __init__(
        self,
        region: Region,
        true: Sequence[Fraction],
        columns: Iterable[int],
        width: Sequence[Fraction],
        deadline: float,
    ) -> None:
        self.tables: list[tuple[Fraction, ...]] = []
        self.open_columns = set(columns)
        self._region, self._true, self._width, self._deadline = region, true, width, deadline
        self._float_true = np.array([float(value) for value in true])
        self._float_width = np.array([float(value) for value in width])

    def within(self, box: Box) -> None:
        """Look for solutions in a box that may be smaller than the region's own."""
        if not self.open_columns or time.monotonic() >= self._deadline:
            return
        self._box = box
        self._scaled = Scaled.of(self._region.within(box.inward()))
        self._program = LinearProgram(self._scaled)
        self.many_at_once()
        self.one_by_one()

    def many_at_once(self) -> None:
        """Send all open columns away from their true values, down or up, while that shows some."""
        for up in (True, False):
            while self._run(self._away(up)):
                pass

    def one_by_one(self) -> None:
        """Send each column that is still open as far as it goes, both ways."""
        for column in sorted(self.open_columns):
            for sign in (1.0, -1.0):
                if column in self.open_columns and time.monotonic() < self._deadline:
                    costs = np.zeros(self._scaled.columns)
                    costs[column] = sign
                    self._run(costs)

    def _away(self, up: bool) -> NDArray[np.float64]:
        """Costs that push each open column towards an end that is far enough from the truth."""
        costs = np.zeros(self._scaled.columns)
        box = self._box
        for column in self.open_columns:
            low, high, true = box.low[column], box.high[column], self._true[column]
            above = high is not None and high - true >= self._width[column]
            below = low is not None and true - low >= self._width[column]
            if above or below:
                costs[column] = -1.0 if above and (up or not below) else 1.0
        return costs

    def _run(self, costs: NDArray[np.float64]) -> bool:
        """Solve one program; whether its vertex shows anything new."""
        if not costs.any() or time.monotonic() >= self._deadline:
            return False
        status, vertex = self._program.minimise(costs, self._deadline)
        if status is Status.UNBOUNDED:
            return self._bounded_run(costs)
        return status is Status.OPTIMAL and self._keep(vertex)

    def _bounded_run(self, costs: NDArray[np.float64]) -> bool:
        """A column without an end goes just far enough: the region is cut there for one run."""
        column = int(np.flatnonzero(costs)[0])
        way = self._width[column] if costs[column] < 0 else -self._width[column]
        far = math.ceil(self._true[column] + 2 * way) if way > 0 else self._true[column] + 2 * way
        low, high = list(self._box.low), list(self._box.high)
        (high if way > 0 else low)[column] = Fraction(far)
        shorter = Box(tuple(low), tuple(high), self._box.integer)
        scaled = Scaled.of(self._region.within(shorter.inward()))
        status, vertex = LinearProgram(scaled).minimise(costs, self._deadline)
        return status is Status.OPTIMAL and self._keep(vertex)

    def _keep(self, vertex: Vertex) -> bool:
        """Solve a vertex exactly, and keep it if it is a solution that shows something new."""
        if not self._promises(vertex):
            return False
        exact = vertex.exact_point()
        if exact is None:
            return False
        table = self._whole([vertex.scaled.to_region_unit(value) for value in exact])
        shown = {c for c in self.open_columns if abs(table[c] - self._true[c]) >= self._width[c]}
        if not shown or not self._region.contains(table):
            return False
        self.tables.append(table)
        self.open_columns -= shown
        return True

    def _whole(self, table: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The table, or one so many times as far from the truth that whole numbers are whole."""
        kinds = zip(table, self._region.box.integer, strict=True)
        times = math.lcm(*(value.denominator for value, integer in kinds if integer))
        if times == 1:
            return tuple(table)
        pairs = zip(self._true, table, strict=True)
        return tuple(true + times * (value - true) for true, value in pairs)

    def _promises(self, vertex: Vertex) -> bool:
        """Whether the doubles say that an open column differs enough; spares exact work."""
        per_unit = float(vertex.scaled.unit * vertex.scaled.shrink)
        columns = sorted(self.open_columns)
        away = np.abs(vertex.point[columns] / per_unit - self._float_true[columns])
        return bool((away >= self._float_width[columns] * (1 - 1e-6)).any())


# A known solution, and the changes that lead from it to others ----------------------------------
# A second solution usually differs from the known one in few columns, so it is kept, and checked in
# exact arithmetic, as what it changes: only the equations that the change touches are read.


Change = dict[int, Fraction]
"""The columns in which a second solution differs, and their values in it."""


class RegionSolution:
    """A solution of a region.

    >>> from casemate.exact import Box
    >>> region = Region.of(System.of([[1, 1, 1]], [9]), Box.of(3, 0, 9))
    >>> known = RegionSolution(region, [Fraction(2), Fraction(3), Fraction(4)])
    >>> known.allows({0: Fraction(3), 1: Fraction(2)}), known.allows({0: Fraction(3)})
    (True, False)
    """

    def __init__(self, region: Region, values: Sequence[Fraction]) -> None:
        if not region.contains(values):
            raise ValueError("the known solution must keep the bounds, the types and the equations")
        self.region, self.values = region, tuple(values)
        system = region.system
        order = np.argsort(system.column, kind="stable")
        self._row, self._value = system.row[order], system.value[order]
        self._start = np.searchsorted(system.column[order], np.arange(system.columns + 1))
        self._sums = [
            sum((a * values[j] for j, a in line), Fraction(0)) for line in region.equations
        ]

    def allows(self, change: Change) -> bool:
        """Whether the solution with this change is one too."""
        box, shifts = self.region.box, dict[int, Fraction]()
        for column, value in change.items():
            if not within(value, box.low[column], box.high[column]):
                return False
            if box.integer[column] and value.denominator != 1:
                return False
            moved = value - self.values[column]
            for row, a in self._entries(column):
                shifts[row] = shifts.get(row, Fraction(0)) + a * moved
        return all(
            within(self._sums[row] + shift, self.region.low[row], self.region.high[row])
            for row, shift in shifts.items()
        )

    def change_to(self, values: Sequence[Fraction | int]) -> Change:
        """What must change for these values."""
        pairs = enumerate(zip(self.values, values, strict=True))
        return {column: Fraction(new) for column, (old, new) in pairs if old != new}

    def far(self, change: Change, width: Sequence[Fraction] | Mapping[int, Fraction]) -> set[int]:
        """The columns that a change moves by their width or more."""
        return {c for c, value in change.items() if abs(value - self.values[c]) >= width[c]}

    def _entries(self, column: int) -> Iterator[tuple[int, int]]:
        span = slice(self._start[column], self._start[column + 1])
        return zip(self._row[span].tolist(), self._value[span].tolist(), strict=True)


def components(system: System, counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each column, the same for columns that equations link; -1 if it does not count.

    >>> links = System.of([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    >>> components(links, np.array([True, True, False, True])).tolist()
    [0, 0, -1, 3]
    """
    kept = counts[system.column]
    row, column = system.row[kept], system.column[kept]
    label = np.arange(system.columns)
    while True:
        least = np.full(system.rows, system.columns)
        np.minimum.at(least, row, label[column])
        lower = label.copy()
        np.minimum.at(lower, column, least[row])
        lower = lower[lower]
        if (lower == label).all():
            return np.where(counts, label, -1)
        label = lower


def linked_components(size: int, groups: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The smallest member of each one's part, where the members of a group belong together.

    >>> linked_components(5, [np.array([1, 2]), np.array([2, 4])]).tolist()
    [0, 1, 1, 3, 1]
    """
    members = list(groups)
    row = np.repeat(np.arange(len(members)), [len(each) for each in members])
    column = np.concatenate([np.zeros(0, np.int64), *members])
    links = System(len(members), size, row, column, np.ones(len(column), np.int64))
    return components(links, np.ones(size, np.bool_))


def part(region: Region, columns: NDArray[np.int64]) -> Region:
    """The region of these columns alone, given that all others they meet have one value.

    >>> box = Box((Fraction(0),) * 3, (Fraction(9), Fraction(9), Fraction(0)), (False,) * 3)
    >>> smaller = part(Region.of(System.of([[1, 1, 1]], [4]), box), np.array([0, 1]))
    >>> smaller.system.dense(), smaller.low
    ([[1, 1]], (Fraction(4, 1),))
    """
    system, box = region.system, region.box
    place = np.full(system.columns, -1, np.int64)
    place[columns] = np.arange(len(columns))
    inside = place[system.column] >= 0
    rows = np.unique(system.row[inside])
    line = np.full(system.rows, -1, np.int64)
    line[rows] = np.arange(len(rows))
    shift = [Fraction(0)] * len(rows)
    for entry in np.flatnonzero(~inside & (line[system.row] >= 0)).tolist():
        value = box.low[system.column[entry]]
        shift[line[system.row[entry]]] += int(system.value[entry]) * (value or 0)
    entries = line[system.row[inside]], place[system.column[inside]], system.value[inside]
    own = columns.tolist()
    return Region(
        System(len(rows), len(columns), *entries),
        Box(
            tuple(box.low[c] for c in own),
            tuple(box.high[c] for c in own),
            tuple(box.integer[c] for c in own),
        ),
        _shift([region.low[row] for row in rows.tolist()], shift),
        _shift([region.high[row] for row in rows.tolist()], shift),
    )


def _shift(ends: Sequence[Bound], shift: Sequence[Fraction]) -> tuple[Bound, ...]:
    return tuple(None if e is None else e - s for e, s in zip(ends, shift, strict=True))


# Exchanges between columns that no equation tells apart -----------------------------------------
# Two columns with the same coefficients everywhere may move by the same amount in opposite ways, as
# far as their bounds allow. That costs one sort, and shows most columns of a large table to be
# free.


PAIRING_TURNS = 4  # how many ways of pairing up are tried


def exchanges(
    solution: RegionSolution, columns: Iterable[int], width: Sequence[Fraction]
) -> list[Change]:
    """Changes that move many of the columns by their width, each a second solution.

    >>> from casemate.exact import Box, Region
    >>> from casemate.exact.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [1, 1, 1]], [5, 6]), Box.of(3, 0, 9))
    >>> known = RegionSolution(region, [Fraction(2), Fraction(3), Fraction(1)])
    >>> exchanges(known, range(3), [Fraction(1)] * 3)
    [{0: Fraction(5, 1), 1: Fraction(0, 1)}]
    """
    groups = [group for group in _alike(solution) if len(group) > 1]
    open_columns = set(columns)
    found: list[Change] = []
    for turn in range(PAIRING_TURNS):
        change: Change = {}
        for group in groups:
            change |= _pair_up(solution, group, open_columns, width, turn)
        shown = solution.far(change, width) & open_columns
        if shown and solution.allows(change):
            found.append(change)
            open_columns -= shown
    return found


def _alike(solution: RegionSolution) -> list[list[int]]:
    """Columns with room to move, by their coefficients, each group in the order of its values."""
    groups, group = defaultdict[int, list[int]](list), collapse(solution.region.system).group
    for column in np.flatnonzero(free_columns(solution.region.box)).tolist():
        groups[int(group[column])].append(column)
    return [sorted(group, key=solution.values.__getitem__) for group in groups.values()]


def _pair_up(
    solution: RegionSolution,
    group: list[int],
    open_columns: set[int],
    width: Sequence[Fraction],
    turn: int,
) -> Change:
    """Columns still to be moved, each with a partner of its group that some turn decides."""
    change: Change = {}
    step = max(1, len(group) // 2 - turn)
    for place, column in enumerate(group):
        partner = group[(place + step) % len(group)]
        if (
            column in open_columns
            and column != partner
            and column not in change
            and partner not in change
        ):
            change |= _trade(solution, column, partner, max(width[column], width[partner]))
    return change


def _trade(solution: RegionSolution, one: int, other: int, width: Fraction) -> Change:
    """As much as two columns can trade, one way or the other."""
    box, values = solution.region.box, solution.values
    up = _least(_room(values[one], box.high[one]), _room(values[other], box.low[other]), width)
    down = _least(_room(values[one], box.low[one]), _room(values[other], box.high[other]), width)
    amount = max(up, down)
    if box.integer[one] or box.integer[other]:
        amount = Fraction(math.floor(amount))
    if amount <= 0:
        return {}
    signed = amount if up >= down else -amount
    return {one: values[one] + signed, other: values[other] - signed}


def _room(value: Fraction, end: Bound) -> Bound:
    return None if end is None else abs(end - value)


def _least(one: Bound, other: Bound, width: Fraction) -> Fraction:
    """How far both can go; where neither has an end, twice the width, as a whole number."""
    if one is None or other is None:
        only = other if one is None else one
        return Fraction(math.ceil(2 * width)) if only is None else only
    return min(one, other)


# Whether a solution can move --------------------------------------------------------------------
# In one direction, with every column going where it has to go. A solution of equations that lies at
# an end of some column's range shows that column's value if all other solutions have it at that end
# too. It does not iff there is a direction in which the column leaves its end, no other column
# passes its own, and no equation changes; and if there is such a direction for each of some
# columns, their sum is one for all of them. So columns whose direction has a given sign, at least 1
# in size, and equations that stay at 0, are a linear program without an objective; it is kept while
# equations come, and one that would leave no direction is turned away. Nothing here is exact: the
# program is in doubles, and its answers say what to try. Whoever relies on them checks what comes
# of it.


Floats = NDArray[np.float64]

SUM_CHANGE_TOLERANCE = 1e-9
"""A sum that changes by less, in units of its own size, does not change."""


@dataclass(frozen=True, eq=False)
class HeldSum:
    """A weighted sum of columns that may change only between `low` and `high`."""

    columns: NDArray[np.int64]
    weights: Floats
    low: float = 0.0
    high: float = 0.0


class Freedom:
    """A direction for columns between `low` and `high`, and the sums that it must hold.

    >>> free = Freedom(np.array([1.0, -np.inf, 1.0]), np.full(3, np.inf))
    >>> sums = [HeldSum(np.array(columns), np.ones(2)) for columns in ([0, 1], [1, 2], [0, 2])]
    >>> [free.admit([each]) for each in sums]  # the last would let neither of two columns go up
    [True, True, False]
    """

    def __init__(self, low: Floats, high: Floats) -> None:
        self._low, self._high = low, high
        self._now = np.clip(np.zeros(len(low)), low, high)  # the direction at present
        nothing = np.zeros(0)
        no_entries = np.zeros(len(low) + 1), nothing, nothing
        ends = low, high, nothing, nothing
        self._highs = load_highs(
            np.zeros(len(low)), ends, no_entries, presolve="off", solver="simplex"
        )

    def admit(self, sums: Sequence[HeldSum]) -> bool:
        """Hold some more sums, unless no direction would be left."""
        scaled = [_normalise(each) for each in sums]
        if any(self._impossible(each) for each in scaled):
            return False
        before, basis = self._highs.getNumRow(), self._highs.getBasis()
        for each in scaled:
            places = each.columns.astype(np.int32)
            self._highs.addRow(each.low, each.high, len(places), places, each.weights)
        if all(self._is_held(each) for each in scaled):
            return True
        self._highs.run()
        if status_of(self._highs) is Status.OPTIMAL:
            self._now = np.array(self._highs.getSolution().col_value, np.float64)
            return True
        added = np.arange(before, self._highs.getNumRow(), dtype=np.int32)
        self._highs.deleteRows(len(added), added)
        if basis.valid:
            self._highs.setBasis(basis)
        return False

    def _impossible(self, held: HeldSum) -> bool:
        """Whether the columns' own ends already exclude it."""
        up, down = np.maximum(held.weights, 0), np.minimum(held.weights, 0)
        low, high = self._low[held.columns], self._high[held.columns]
        least = _product(up, low) + _product(down, high)
        most = _product(up, high) + _product(down, low)
        return least > held.high + SUM_CHANGE_TOLERANCE or most < held.low - SUM_CHANGE_TOLERANCE

    def _is_held(self, held: HeldSum) -> bool:
        change = float(held.weights @ self._now[held.columns])
        return held.low - SUM_CHANGE_TOLERANCE <= change <= held.high + SUM_CHANGE_TOLERANCE


def _normalise(held: HeldSum) -> HeldSum:
    """The same, with weights of at most 1: an end that is not 0 is moved with them."""
    size = float(np.abs(held.weights).max(initial=0.0)) or 1.0
    return HeldSum(held.columns, held.weights / size, held.low / size, held.high / size)


def _product(weights: Floats, ends: Floats) -> float:
    """The sum of weights times ends, where nothing times no end is nothing."""
    return float(weights @ np.where(weights == 0, 0.0, ends))
