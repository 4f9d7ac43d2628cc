"""A linear or whole-number program in HiGHS that can be watched while it runs, and stopped.

The solver runs in a thread of its own. Whatever the watcher raises, an interrupt from the keyboard
included, stops the solver before it is passed on.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Floats, Rows, Status

LOOK = 0.05
"""Seconds from one call of the watcher to the next."""

Watcher = Callable[[int, Floats | None], None]
"""Called with the steps made and the best point so far, if there is one."""


Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Entries:
    """Some entries of a program's matrix, in any order."""

    row: Ints
    column: Ints
    value: Floats

    @classmethod
    def of(cls, equations: Rows, first: int = 0) -> "Entries":
        """The entries of equations that are rows from `first` on."""
        row = np.repeat(np.arange(equations.height), np.diff(equations.starts)) + first
        column = equations.columns.astype(np.int64)
        values = equations.values
        return cls(row, column, np.ones(len(row)) if values is None else values)

    @classmethod
    def diagonal(cls, value: Floats, first_row: int, first_column: int) -> "Entries":
        """Entries one below the other to the right."""
        places = np.arange(len(value))
        return cls(places + first_row, places + first_column, value)

    def turned(self) -> "Entries":
        """Rows for columns."""
        return Entries(self.column, self.row, self.value)

    def to_the_right(self, columns: int, factor: float = 1.0) -> "Entries":
        """The same entries so many columns on, multiplied."""
        return Entries(self.row, self.column + columns, factor * self.value)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise a cost over columns and rows, each between two ends."""

    cost: Floats
    low: Floats
    high: Floats
    row_low: Floats
    row_high: Floats
    entries: tuple[Entries, ...]
    whole: int = 0  # so many of the first columns are whole numbers

    def by_column(self) -> tuple[Ints, Ints, Floats]:
        """Where each column's entries start, their rows and their values."""
        row = np.concatenate([each.row for each in self.entries])
        column = np.concatenate([each.column for each in self.entries])
        value = np.concatenate([each.value for each in self.entries])
        order = np.lexsort((row, column))
        starts = np.searchsorted(column[order], np.arange(len(self.cost) + 1))
        return starts, row[order], value[order]


@dataclass(frozen=True, eq=False)
class ProgramOutcome:
    """How a run ended: the point, the multipliers of its rows, what it costs, and the steps."""

    status: Status
    point: Floats
    multipliers: Floats
    cost: float
    steps: int


def run(
    program: Program,
    *,
    start: Floats | None = None,
    watch: Watcher | None = None,
    seconds: float = np.inf,
    **options: Any,
) -> ProgramOutcome:
    """Solve a program with these options of HiGHS, from a point that keeps its ends if given."""
    highs = _loaded(program, {"time_limit": float(seconds), **options})
    if start is not None:
        _set_start(highs, start)
    kinds, stop = _kinds(), threading.Event()
    seen = _Seen(kinds[-1], stop)
    highs.setCallback(lambda kind, _, out, into, __: seen.look(kind, out, into), None)
    for kind in kinds:
        highs.startCallback(kind)
    thread = threading.Thread(target=highs.run)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(LOOK)
            if watch is not None:
                watch(seen.steps, seen.point)
    finally:
        stop.set()
        thread.join()
    return _outcome(highs, seen)


class _Seen:
    """What the solver has shown of itself so far."""

    def __init__(self, better: Any, stop: threading.Event) -> None:
        self._better, self._stop = better, stop
        self.steps = 0
        self.point: Floats | None = None

    def look(self, kind: Any, out: Any, into: Any) -> None:
        """Take note, and pass on the wish to stop."""
        self.steps += 1
        if kind == self._better:
            self.point = np.array(out.mip_solution, np.float64)
        elif self._stop.is_set():
            into.user_interrupt = True


def _kinds() -> tuple[Any, ...]:
    """When HiGHS calls: three times it can be stopped, the last brings a better solution."""
    import highspy

    kinds = highspy.cb.HighsCallbackType
    return (
        kinds.kCallbackSimplexInterrupt,
        kinds.kCallbackIpmInterrupt,
        kinds.kCallbackMipInterrupt,
        kinds.kCallbackMipImprovingSolution,
    )


def _loaded(program: Program, options: dict[str, Any]) -> Any:
    import highspy

    highs = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, **options}.items():
        highs.setOptionValue(name, value)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.row_low)
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost, program.low, program.high
    model.row_lower_, model.row_upper_ = program.row_low, program.row_high
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    starts, row, value = program.by_column()
    model.a_matrix_.start_, model.a_matrix_.index_ = starts.astype(np.int32), row.astype(np.int32)
    model.a_matrix_.value_ = value
    if program.whole:
        kinds = highspy.HighsVarType
        others = len(program.cost) - program.whole
        model.integrality_ = [kinds.kInteger] * program.whole + [kinds.kContinuous] * others
    highs.passModel(model)
    return highs


def _set_start(highs: Any, start: Floats) -> None:
    import highspy

    solution = highspy.HighsSolution()
    solution.col_value = start.tolist()
    highs.setSolution(solution)


def _outcome(highs: Any, seen: _Seen) -> ProgramOutcome:
    import highspy

    statuses = {
        highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
        highspy.HighsModelStatus.kModelEmpty: Status.OPTIMAL,
        highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
        highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    }
    info, solution = highs.getInfo(), highs.getSolution()
    steps = max(info.simplex_iteration_count, info.ipm_iteration_count, seen.steps)
    return ProgramOutcome(
        statuses.get(highs.getModelStatus(), Status.STOPPED),
        np.array(solution.col_value, np.float64),
        np.array(solution.row_dual, np.float64),
        float(info.objective_function_value),
        int(steps),
    )
