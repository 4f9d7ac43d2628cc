"""Whole-number solutions that differ from a given one, and the columns in which none does.

Linear programming bounds whole numbers from outside only. Here CP-SAT is asked for a solution
that differs from the known one in some column that is still open; what it finds settles at least
one, usually many, and when it proves that there is none, the open columns are the backbone: the
same in every solution.

Exact      Solutions are re-checked in integers. That there is none is CP-SAT's proof.
Limit      Columns still open when the time is up are undecided.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from casemate.solve.box import Region

LARGEST = 2**40
"""No column, coefficient or right side may be larger; sums must stay within 63 bits."""


@dataclass(frozen=True)
class Backbone:
    """What is settled about the columns asked for.

    `tables` are solutions that differ from the known one, `free` the columns in which some of them
    does, `fixed` those in which none can, `undecided` the rest.
    """

    tables: tuple[tuple[int, ...], ...]
    free: frozenset[int]
    fixed: frozenset[int]
    undecided: frozenset[int]


def backbone(
    region: Region,
    known: Sequence[int],
    columns: Iterable[int],
    *,
    width: int = 1,
    seconds: float = float("inf"),
    seed: int = 0,
) -> Backbone:
    """Settle whether each column can differ from a known solution by at least `width`.

    >>> from casemate.solve.box import Box
    >>> from casemate.solve.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [0, 0, 2]], [1, 2]), Box.of(3, 0, 1, integer=True))
    >>> sorted(backbone(region, [1, 0, 1], range(3)).fixed)
    [2]
    """
    if not region.contains([Fraction(value) for value in known]):
        raise ValueError("the known solution must keep the bounds, the types and the equations")
    deadline = time.monotonic() + seconds
    search = _Search(region, known, width, seed)
    left = set(columns)
    tables: list[tuple[int, ...]] = []
    while left and (found := search.another(left, deadline)) is not None:
        if not found:
            return Backbone(tuple(tables), search.free, frozenset(left), frozenset())
        tables.append(found)
        left -= search.free
    return Backbone(tuple(tables), search.free, frozenset(), frozenset(left))


def whole_solution(
    region: Region, seconds: float = float("inf"), seed: int = 0
) -> list[int] | None:
    """Some solution in whole numbers, or None if there is none; TimeoutError if undecided."""
    from ortools.sat.python import cp_model

    solver, model, columns = _model(region)
    solver.parameters.random_seed = seed
    _limit(solver, time.monotonic() + seconds)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status not in _good():
        raise TimeoutError("CP-SAT found no solution and no contradiction in the time it was given")
    return [solver.value(column) for column in columns]


class _Search:
    """One CP-SAT model, asked again with fewer and fewer open columns."""

    def __init__(self, region: Region, known: Sequence[int], width: int, seed: int) -> None:
        self._region, self._known, self._width = region, known, width
        self._solver, self._model, self._columns = _model(region)
        self._solver.parameters.random_seed = seed
        self.free: frozenset[int] = frozenset()

    def another(self, left: set[int], deadline: float) -> tuple[int, ...] | None:
        """A solution that differs in an open column; () if there is none, None if out of time."""
        from ortools.sat.python import cp_model

        if time.monotonic() >= deadline:
            return None
        asked = self._model.clone()
        asked.add_bool_or([literal for column in left for literal in self._literals(asked, column)])
        _limit(self._solver, deadline)
        status = self._solver.solve(asked)
        if status == cp_model.INFEASIBLE:
            return ()
        if status not in _good():
            return None
        return self._checked(self._values(), left)

    def _literals(self, model: Any, column: int) -> list[Any]:
        """Conditions that a column is far enough below or above its known value."""
        variable = model.get_int_var_from_proto_index(self._columns[column].index)
        low, high = model.new_bool_var(""), model.new_bool_var("")
        known = self._known[column]
        model.add(variable <= known - self._width).only_enforce_if(low)
        model.add(variable >= known + self._width).only_enforce_if(high)
        return [low, high]

    def _values(self) -> list[int]:
        return [self._solver.value(column) for column in self._columns]

    def _checked(self, values: list[int], left: set[int]) -> tuple[int, ...]:
        if not self._region.contains([Fraction(value) for value in values]):
            raise ArithmeticError("CP-SAT returned values that break an equation or a bound")
        self.free |= {c for c in left if abs(values[c] - self._known[c]) >= self._width}
        return tuple(values)


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
        least = cp_model.INT_MIN if low is None else math.ceil(low)
        most = cp_model.INT_MAX if high is None else math.floor(high)
        model.add_linear_constraint(total, least, most)
    return solver, model, columns


def _check_size(region: Region) -> None:
    box = region.box
    if not all(box.integer) or None in box.low or None in box.high:
        raise ValueError("whole-number solutions need whole numbers with finite bounds throughout")
    ends = [end for side in (box.low, box.high, region.low, region.high) for end in side]
    values = [abs(value) for value in region.system.value.tolist()]
    if (
        any(end is not None and abs(end) > LARGEST for end in ends)
        or max(values, default=0) > LARGEST
    ):
        raise ValueError(f"whole-number solutions need numbers of at most {LARGEST}")


def _limit(solver: Any, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left < float("inf"):
        solver.parameters.max_time_in_seconds = max(0.0, left)


def _good() -> tuple[Any, Any]:
    from ortools.sat.python import cp_model

    return cp_model.OPTIMAL, cp_model.FEASIBLE
