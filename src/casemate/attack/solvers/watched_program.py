"""A linear or whole-number program in HiGHS that can be watched while it runs, and stopped.

The solver runs in a thread of its own. Whatever the watcher raises, an interrupt from the keyboard
included, stops the solver before it is passed on.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from casemate.exact import Floats, Rows, Status, load_highs, status_of

WATCH_INTERVAL_SECONDS = 0.05
"""Seconds from one call of the watcher to the next."""

Watcher = Callable[[int, Floats | None], None]
"""Called with the steps made and the best point so far, if there is one."""


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise a cost over columns and rows, each between two ends."""

    cost: Floats
    low: Floats
    high: Floats
    row_low: Floats
    row_high: Floats
    matrix: Any  # sparse: a row for each row, a column for each column
    whole: int = 0  # so many of the first columns are whole numbers


def as_sparse(equations: Rows) -> Any:
    """Stored equations, not scaled, as a sparse matrix of SciPy."""
    from scipy.sparse import csr_array

    shape, values = (equations.height, equations.width), equations.values
    entries = np.ones(len(equations.columns)) if values is None else values
    return csr_array((entries, equations.columns.astype(np.int32), equations.starts), shape)


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
    highs = load_program(program, time_limit=float(seconds), **options)
    if start is not None:
        _set_start(highs, start)
    kinds, stop = _callback_kinds(), threading.Event()
    seen = _CallbackState(kinds[-1], stop)
    highs.setCallback(lambda kind, _, out, into, __: seen.look(kind, out, into), None)
    for kind in kinds:
        highs.startCallback(kind)
    thread = threading.Thread(target=highs.run)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(WATCH_INTERVAL_SECONDS)
            if watch is not None:
                watch(seen.steps, seen.point)
    finally:
        stop.set()
        thread.join()
    return _outcome(highs, seen)


class _CallbackState:
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


def _callback_kinds() -> tuple[Any, ...]:
    """When HiGHS calls: three times it can be stopped, the last brings a better solution."""
    import highspy

    kinds = highspy.cb.HighsCallbackType
    return (
        kinds.kCallbackSimplexInterrupt,
        kinds.kCallbackIpmInterrupt,
        kinds.kCallbackMipInterrupt,
        kinds.kCallbackMipImprovingSolution,
    )


def load_program(program: Program, **options: Any) -> Any:
    """The program in HiGHS."""
    matrix = program.matrix.tocsc()
    ends = program.low, program.high, program.row_low, program.row_high
    entries = matrix.indptr, matrix.indices, matrix.data
    return load_highs(program.cost, ends, entries, program.whole, **options)


def _set_start(highs: Any, start: Floats) -> None:
    import highspy

    solution = highspy.HighsSolution()
    solution.col_value = start.tolist()
    highs.setSolution(solution)


def _outcome(highs: Any, seen: _CallbackState) -> ProgramOutcome:
    info, solution = highs.getInfo(), highs.getSolution()
    steps = max(info.simplex_iteration_count, info.ipm_iteration_count, seen.steps)
    return ProgramOutcome(
        status_of(highs),
        np.array(solution.col_value, np.float64),
        np.array(solution.row_dual, np.float64),
        float(info.objective_function_value),
        int(steps),
    )
