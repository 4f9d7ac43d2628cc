"""Whether each column of a region with whole numbers has another possible value.

The cheapest second solutions first: exchanges between columns that no equation tells apart, then
whole vertices of linear programs; CP-SAT decides what they leave, where every column is a whole
number between finite ends. Elsewhere the lack of a second solution proves nothing, and a column
that none was found for is undecided.

Whole-number solutions that differ from a given one, and the columns in which none does.

Linear programming bounds whole numbers from outside only. Here CP-SAT starts from the known
solution and moves as many columns as it can; those that moved are free, and when it proves that no
solution moves any of the rest, they are the backbone: the same in every solution. Columns that no
equation links are settled apart, small parts first, with more patience in each round.

Exact      Solutions are re-checked in integers. That there is none is CP-SAT's proof.
Limit      Columns still open when the time is up are undecided.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.second import Change, RegionSolution, components, cut, exchanges, witness
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.exact import Region

LARGEST = 2**40
"""No column, coefficient or right side may be larger; sums must stay within 63 bits."""

PATIENCE = 2.0
"""Seconds for each part in the first round; twice as many in every later one."""


@dataclass(frozen=True)
class Backbone:
    """What is settled about the columns asked for.

    `changes` lead to solutions that differ from the known one, `free` are the columns in which
    one of them differs enough, `fixed` those in which none can, `undecided` the rest.
    """

    changes: tuple[Change, ...]
    free: frozenset[int]
    fixed: frozenset[int]
    undecided: frozenset[int]


def backbone(
    region: Region,
    known: Sequence[int],
    columns: Iterable[int],
    *,
    width: int | Sequence[int] = 1,
    seconds: float = float("inf"),
) -> Backbone:
    """Settle whether each column can differ from a known solution by at least its width.

    >>> from casemate.exact.box import Box
    >>> from casemate.exact.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [0, 0, 2]], [1, 2]), Box.of(3, 0, 1, integer=True))
    >>> sorted(backbone(region, [1, 0, 1], range(3)).fixed)
    [2]
    """
    solution = RegionSolution(region, [Fraction(value) for value in known])
    _check_size(region)
    widths = [width] * len(known) if isinstance(width, int) else list(width)
    left = set(columns)
    if seconds <= 0:
        return Backbone((), frozenset(), frozenset(), frozenset(left))
    search = _WholePartSearch(solution, widths, left)
    search.run(Clock(SearchLimit(seconds=seconds)))
    return Backbone(
        tuple(search.changes),
        frozenset(search.free),
        frozenset(search.fixed),
        frozenset(left - search.free - search.fixed),
    )


def decidable(region: Region) -> bool:
    """Whether a region is one of whole numbers, in bounds that a solver's integers can hold."""
    return not _obstacle(region)


class _WholePartSearch:
    """What is shown so far about the columns, part by part."""

    def __init__(self, known: RegionSolution, width: Sequence[int], left: set[int]) -> None:
        self.changes: list[Change] = []
        self.free: set[int] = set()
        self.fixed: set[int] = set()
        self._known, self._width, self._left = known, width, left
        box = known.region.box.inward()
        self._low, self._high = (_whole(side) for side in (box.low, box.high))
        self._truth = np.array([int(value) for value in known.values], np.int64)

    def run(self, clock: Clock) -> None:
        """Settle the parts, with more patience each time something stays open."""
        self.fixed |= {c for c in self._left if self._low[c] == self._high[c]}
        parts, patience = self._parts(), PATIENCE
        while parts and not clock.over:
            parts = [part for part in parts if self._settle(part, clock, patience)]
            patience *= 2

    def _parts(self) -> list["_LinkedPart"]:
        """The parts that hold a column asked for, smallest first."""
        system = self._known.region.system
        label = components(system, self._low < self._high)
        wanted = {int(label[column]) for column in self._left} - {-1}
        rows: dict[int, set[int]] = {each: set() for each in wanted}
        for row, name in zip(system.row.tolist(), label[system.column].tolist(), strict=True):
            if name in rows:
                rows[name].add(row)
        parts = [_LinkedPart(np.flatnonzero(label == each).tolist(), rows[each]) for each in wanted]
        return sorted(parts, key=lambda part: (len(part.columns), part.columns))

    def _settle(self, part: "_LinkedPart", clock: Clock, patience: float) -> bool:
        """Maximise how many columns of a part move; whether some of it is still open."""
        from casemate.audit.order.literals import settle, values_of

        if clock.over:
            return True
        model, moved = self._model(part)
        order = list(moved)

        def accept(solver: Any) -> NDArray[np.bool_]:
            self._keep(*values_of(solver, model.variables))
            return np.array([column in self.free for column in order], np.bool_)

        settled = settle(model.model, moved, accept, clock, patience)
        self.fixed |= set(settled.unmovable.tolist())
        return bool(len(settled.undecided))

    def _model(self, part: "_LinkedPart") -> tuple[Any, dict[int, Any]]:
        """One part as a CP-SAT model, and a literal for each open column that it has moved."""
        from ortools.sat.python import cp_model

        from casemate.audit.order.model import IntegerModel

        region, model = self._known.region, IntegerModel(self._low, self._high, self._truth)
        for row in sorted(part.rows):
            line = region.equations[row]
            terms = [(model.value(j), a) for j, a in line]
            total = cp_model.LinearExpr.weighted_sum([t for t, _ in terms], [a for _, a in terms])
            model.model.add_linear_constraint(total, *_ends(region.low[row], region.high[row]))
        moved: dict[int, Any] = {}
        for column in part.columns:
            if column in self._left and column not in self.free | self.fixed:
                literal = model.moved(column, self._width[column])
                if literal is None:
                    self.fixed.add(column)
                else:
                    moved[column] = literal
        return model, moved

    def _keep(self, columns: NDArray[np.int64], values: NDArray[Any]) -> None:
        pairs = zip(columns.tolist(), values.tolist(), strict=True)
        change = {c: Fraction(v) for c, v in pairs if v != self._truth[c]}
        if not self._known.allows(change):
            raise ArithmeticError("CP-SAT returned values that break an equation or a bound")
        far = {c for c, v in change.items() if abs(v - self._truth[c]) >= self._width[c]}
        fresh = (far & self._left) - self.free
        if fresh:
            self.free |= fresh
            self.changes.append(change)


@dataclass(frozen=True)
class _LinkedPart:
    """Columns that equations link, and those equations."""

    columns: list[int]
    rows: set[int]


def whole_solution(
    region: Region,
    seconds: float = float("inf"),
    seed: int = 0,
    hint: Sequence[Fraction] | None = None,
) -> list[int] | None:
    """Some solution in whole numbers, or None if there is none; TimeoutError if undecided.

    With a `hint` the search starts near those values.
    """
    from ortools.sat.python import cp_model

    solver, model, columns = _model(region)
    for column, value in zip(columns, hint or (), strict=False):
        model.add_hint(column, math.floor(value))
    solver.parameters.random_seed = seed
    _limit(solver, time.monotonic() + seconds)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise TimeoutError("CP-SAT found no solution and no contradiction in the time it was given")
    return [solver.value(column) for column in columns]


def _model(region: Region) -> tuple[Any, Any, list[Any]]:
    """The region as a CP-SAT model, its solver and its variables."""
    from ortools.sat.python import cp_model

    _check_size(region)
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    box = region.box.inward()
    columns = [
        model.new_int_var(int(low or 0), int(high or 0), "")
        for low, high in zip(box.low, box.high, strict=True)
    ]
    for line, low, high in zip(region.equations, region.low, region.high, strict=True):
        total = cp_model.LinearExpr.weighted_sum(
            [columns[j] for j, _ in line], [a for _, a in line]
        )
        model.add_linear_constraint(total, *_ends(low, high))
    return solver, model, columns


def _ends(low: Fraction | None, high: Fraction | None) -> tuple[int, int]:
    from ortools.sat.python import cp_model

    least = cp_model.INT_MIN if low is None else math.ceil(low)
    return least, cp_model.INT_MAX if high is None else math.floor(high)


def _whole(side: Sequence[Fraction | None]) -> NDArray[np.int64]:
    return np.array([int(end or 0) for end in side], np.int64)


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
    if largest > LARGEST or any(end is not None and abs(end) > LARGEST for end in ends):
        return f"numbers of at most {LARGEST}"
    return ""


def _limit(solver: Any, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left < float("inf"):
        solver.parameters.max_time_in_seconds = max(0.0, left)


# Whole ------------------------------------------------------------------------------------------


FIRST = 5.0
"""Seconds that linear programs may take before CP-SAT has its turn, where it can decide."""


@dataclass(frozen=True)
class Whole:
    """Columns with one possible value, those not decided, and changes that move all the others."""

    fixed: frozenset[int]
    undecided: frozenset[int]
    changes: tuple[Change, ...]


def decide(
    known: RegionSolution,
    columns: Iterable[int],
    width: Sequence[Fraction],
    seconds: float = float("inf"),
) -> Whole:
    """Settle whether each column can differ from the known solution by at least its width.

    >>> from casemate.exact.box import Box, Region
    >>> from casemate.exact.system import System
    >>> triangle = System.of([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]], [2, 2, 2])
    >>> region = Region.of(triangle, Box.of(4, 0, 1, integer=True))
    >>> known = RegionSolution(region, [Fraction(v) for v in (1, 1, 1, 0)])
    >>> sorted(decide(known, range(4), [Fraction(1)] * 4).fixed)
    [0, 1, 2, 3]
    """
    deadline = time.monotonic() + seconds
    left = set(columns)
    changes = exchanges(known, left, width) if seconds > 0 else []
    for change in changes:
        left -= known.far(change, width)
    able = decidable(known.region.within(cut(known.region.box, known.values, width)))
    first = min(FIRST, seconds) if able else seconds
    vertices = witness(known.region, known.values, left, width, seconds=first)
    changes += [known.change_to(table) for table in vertices.tables]
    return _by_search(known, set(vertices.open), width, deadline, changes)


def _by_search(
    known: RegionSolution,
    left: set[int],
    width: Sequence[Fraction],
    deadline: float,
    changes: list[Change],
) -> Whole:
    """Let CP-SAT decide; in a box that was cut to be finite it can only show columns to be free."""
    region = known.region
    finite = region.within(cut(region.box, known.values, width))
    if not left or not decidable(finite):
        return Whole(frozenset(), frozenset(left), tuple(changes))
    whole = [int(value) for value in known.values]
    least = [max(1, -int(-each // 1)) for each in width]
    found = backbone(finite, whole, left, width=least, seconds=deadline - time.monotonic())
    changes += found.changes
    if decidable(region):
        return Whole(found.fixed, found.undecided, tuple(changes))
    return Whole(frozenset(), found.fixed | found.undecided, tuple(changes))
