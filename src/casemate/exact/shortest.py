"""Short certificates: few equations with small coefficients, for a reader to check by hand.

Method     Least total |coefficient|: min |y|_1 with y A = t. Its dual, max t.x with |A x| <= 1,
           has the equations as they stand as constraints and the coefficients as multipliers, and
           only the objective changes from one target to the next, so each starts where the last
           one ended. Floating point proposes the equations; the coefficients are then solved for
           and checked in integers on those equations alone.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact.certificate import Certificate, Target, certify_targets
from casemate.exact.primes import RandomBytes
from casemate.exact.system import System
from casemate.exact.unknowns import incremental

_USED = 1e-7  # a multiplier below this is taken for zero; a wrong guess fails the exact check


def short(
    system: System, targets: Sequence[Target], seconds: float, random: RandomBytes | None = None
) -> Iterator[Certificate | None]:
    """A short certificate for each target; None where the time is over or doubles do not help."""
    deadline = time.monotonic() + seconds
    program, plain = None, system.value.dtype != object  # larger integers are beyond doubles
    for target in targets:
        found = None
        if plain and time.monotonic() < deadline:
            program = program or _Program(system)
            rows = program.equations_for(target, deadline)
            found = on_equations(system, rows, target, random)
        yield found


def on_equations(
    system: System, rows: Sequence[int], target: Target, random: RandomBytes | None = None
) -> Certificate | None:
    """A certificate that uses no other equations than these, if they determine the target."""
    part, columns = restricted(system, rows)
    if not set(target).issubset(columns):
        return None
    renamed = {columns.index(column): weight for column, weight in target.items()}
    found = next(certify_targets(part, incremental(part, random).block, [renamed]), None)
    if found is None:
        return None
    named = {rows[i]: weight for i, weight in found.coefficients.items()}
    return Certificate(target, named, found.divisor)


def restricted(system: System, rows: Sequence[int]) -> tuple[System, list[int]]:
    """The chosen equations over the columns they touch, and which columns those are."""
    place = np.full(system.rows, -1, np.int64)
    place[list(rows)] = np.arange(len(rows))
    chosen = place[system.row] >= 0
    columns, renumbered = np.unique(system.column[chosen], return_inverse=True)
    part = System(
        len(rows), len(columns), place[system.row[chosen]], renumbered, system.value[chosen]
    )
    return part, columns.tolist()


class _Program:
    """max t.x with |A x| <= 1, for one target t after another."""

    def __init__(self, system: System) -> None:
        import highspy

        self._highs: Any = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "presolve": "off"}.items():
            self._highs.setOptionValue(name, value)
        self._highs.setOptionValue("simplex_strategy", 4)  # primal: only the objective changes
        self._highs.passModel(_model(system, highspy))
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._last: Target = {}

    def equations_for(self, target: Target, deadline: float) -> list[int]:
        """The equations that float arithmetic proposes; none if the time is over."""
        for column in self._last:
            self._highs.changeColCost(column, 0.0)
        for column, weight in target.items():
            self._highs.changeColCost(column, -float(weight))
        self._last = target
        left = max(0.0, deadline - time.monotonic())
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            return []
        multipliers = np.abs(np.array(self._highs.getSolution().row_dual))
        return np.flatnonzero(multipliers > _USED).tolist()


def _model(system: System, highspy: Any) -> Any:
    order = np.argsort(system.row, kind="stable")
    starts: NDArray[np.int64] = np.searchsorted(system.row[order], np.arange(system.rows + 1))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = system.columns, system.rows
    model.col_cost_ = np.zeros(system.columns)
    model.col_lower_ = np.full(system.columns, -highspy.kHighsInf)
    model.col_upper_ = np.full(system.columns, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = -np.ones(system.rows), np.ones(system.rows)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = system.column[order].astype(np.int32)
    model.a_matrix_.value_ = system.value[order].astype(np.float64)
    return model
