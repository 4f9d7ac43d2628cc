"""The simplex method over one region and many objectives, by HiGHS, from which bounds are proved.

`Scaled` is a region times its common denominator: integers for proofs, doubles for the simplex
method. Each run of a `LinearProgram` starts from the vertex of the last one, with the primal
simplex method, because only the objective changes. Doubles decide where to look; what is claimed is
proved by the caller from the multipliers of a `Vertex`, or from its basis in exact rationals.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.exact.lifting import SquareSystem
from casemate.exact.region import Bound, Region
from casemate.exact.rows import Floats
from casemate.exact.system import System

LARGEST_SCALED_BOUND = 2**10
"""The largest finite bound of a column becomes about this, as a double."""

FIRST_TURN_SECONDS = 0.5
"""How long a program runs before Python has its turn."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """Bounds and right sides as Python integers, entries sorted by column.

    A value v of the region is `v * unit` here; None stands for no bound. As a double it is
    `v * unit * shrink`, and `shrink` is a power of two, so that doubles are exact up to 53 bits.
    """

    unit: int
    low: tuple[int | None, ...]
    high: tuple[int | None, ...]
    row_low: tuple[int | None, ...]
    row_high: tuple[int | None, ...]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[Any]
    shrink: Fraction

    @classmethod
    def of(cls, region: Region) -> Self:
        """The region on the grid of its common denominator."""
        system, box = region.system, region.box
        sides = (box.low, box.high, region.low, region.high)
        unit = math.lcm(
            *{end.denominator for side in sides for end in set(side) if end is not None}
        )
        order = np.lexsort((system.row, system.column))
        entries = system.row[order], system.column[order], system.value[order]
        low, high, row_low, row_high = (_times_unit(side, unit) for side in sides)
        shrink = _moderate_size((*low, *high), (*row_low, *row_high))
        return cls(unit, low, high, row_low, row_high, *entries, shrink)

    @property
    def rows(self) -> int:
        """How many equations there are."""
        return len(self.row_low)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.low)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column's entries begin, and the end."""
        return np.searchsorted(self.column, np.arange(self.columns + 1))

    def doubles(self, ends: Sequence[int | None], absent: float) -> Floats:
        """Integers as doubles, with `absent` where there is none."""
        shrink = float(self.shrink)
        known = {end: absent if end is None else float(end) * shrink for end in set(ends)}
        return np.fromiter((known[end] for end in ends), np.float64, len(ends))

    def box(self) -> tuple[Floats, Floats]:
        """The bounds of the columns as doubles."""
        return self.doubles(self.low, -np.inf), self.doubles(self.high, np.inf)

    def to_region_unit(self, value: int | Fraction) -> Fraction:
        """A scaled value in the region's own unit."""
        return Fraction(value) / self.unit


def _moderate_size(ends: Sequence[int | None], row_ends: Sequence[int | None]) -> Fraction:
    """The power of two that turns integers into doubles of a moderate size."""
    sizes = {abs(end) for end in ends if end} or {abs(end) for end in row_ends if end}
    if not sizes:
        return Fraction(1)
    bits = max(sizes).bit_length() - LARGEST_SCALED_BOUND.bit_length()
    return Fraction(1, 2**bits) if bits >= 0 else Fraction(2**-bits)


def _times_unit(bounds: Sequence[Bound], unit: int) -> tuple[int | None, ...]:
    known = {end: None if end is None else int(end * unit) for end in set(bounds)}
    return tuple(known[end] for end in bounds)


# Runs and their vertices ------------------------------------------------------------------------


BOUND_TOLERANCE = 1e-7
"""A double this close to a bound, in units where the largest bound is about 1,000, is at it."""

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # HiGHS: simplex_strategy


class Status(Enum):
    """How a run ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    STOPPED = "stopped"


@dataclass(frozen=True, eq=False)
class Vertex:
    """Where a run ended: the point and the multipliers as doubles, and the basis behind them."""

    scaled: Scaled
    point: Floats
    multipliers: Floats
    value: float
    basic: NDArray[np.int64]  # the columns in the basis
    tight: NDArray[np.int64]  # the rows at one of their ends, as many

    def _solve(self, right: list[int], *, transposed: bool = False) -> list[Fraction] | None:
        """The exact solution over the basis (tight rows by basic columns), if it has one."""
        if len(self.basic) != len(self.tight):
            return None
        scaled = self.scaled
        whole = System(scaled.rows, scaled.columns, scaled.row, scaled.column, scaled.value)
        part = whole.part(self.tight, self.basic)
        places = (part.column, part.row) if transposed else (part.row, part.column)
        return SquareSystem(len(right), *places, part.value).solve(right)

    def exact_multipliers(self, objective: dict[int, int]) -> list[Fraction] | None:
        """The multipliers of this basis as exact rationals, if the basis can be solved."""
        right = [objective.get(int(j), 0) for j in self.basic]
        found = self._solve(right, transposed=True)
        if found is None:
            return None
        multipliers = [Fraction(0)] * self.scaled.rows
        for place, multiplier in zip(self.tight.tolist(), found, strict=True):
            multipliers[place] = multiplier
        return multipliers

    def exact_point(self) -> list[Fraction] | None:
        """The vertex as exact rationals, in scaled units, if the basis can be solved."""
        point, ends = self._at_their_bounds(), self._tight_ends()
        fixed = np.zeros(self.scaled.rows, object)
        np.add.at(fixed, self.scaled.row, self.scaled.value * point[self.scaled.column])
        right = [end - fixed[i] for end, i in zip(ends, self.tight.tolist(), strict=True)]
        found = self._solve(right)
        if found is None:
            return None
        values = [Fraction(each) for each in point.tolist()]
        for column, value in zip(self.basic.tolist(), found, strict=True):
            values[column] = value
        return values

    def _at_their_bounds(self) -> NDArray[Any]:
        """Every column outside the basis at the bound it is at; 0 in the basis."""
        low, high = self.scaled.low, self.scaled.high
        basic = set(self.basic.tolist())
        point = np.zeros(self.scaled.columns, object)
        for column, value in enumerate(self.point.tolist()):
            if column not in basic:
                point[column] = self._nearer(value, low[column], high[column])
        return point

    def _tight_ends(self) -> list[int]:
        sums = np.bincount(
            self.scaled.row,
            self.scaled.value.astype(np.float64) * self.point[self.scaled.column],
            self.scaled.rows,
        )
        low, high = self.scaled.row_low, self.scaled.row_high
        return [self._nearer(float(sums[i]), low[i], high[i]) for i in self.tight.tolist()]

    def _nearer(self, value: float, low: int | None, high: int | None) -> int:
        """The end that a double is at; a column without ends rests at 0."""
        if low is None or high is None:
            end = high if low is None else low
            return 0 if end is None else end
        middle = float((low + high) * self.scaled.shrink) / 2
        return low if value <= middle else high


class LinearProgram:
    """A region in HiGHS, minimised over one objective after another."""

    def __init__(self, scaled: Scaled) -> None:
        self.scaled = scaled
        self.low, self.high = scaled.box()
        self.runs = 0
        self._highs = _load(scaled, solver="simplex", simplex_strategy=PRIMAL_SIMPLEX)
        self._places = np.arange(scaled.columns, dtype=np.int32)

    def minimise(self, objective: Floats, deadline: float = float("inf")) -> tuple[Status, Vertex]:
        """Run from the last vertex until the objective is least or `time.monotonic()` is late."""
        self.runs += 1
        self._highs.changeColsCost(self.scaled.columns, self._places, objective)
        status = self._run(deadline)
        if status is Status.STOPPED and time.monotonic() < deadline:
            status = self._run_from_scratch(deadline)
        return status, self._vertex()

    def move_ends(self, low: Sequence[int | None], high: Sequence[int | None]) -> None:
        """Go on with other bounds of the columns, in the same units."""
        self.scaled = replace(self.scaled, low=tuple(low), high=tuple(high))
        self.low, self.high = self.scaled.box()
        self._highs.changeColsBounds(self.scaled.columns, self._places, self.low, self.high)

    def move_row_ends(self, low: Sequence[int | None], high: Sequence[int | None]) -> None:
        """Go on with other ends of the rows, in the same units."""
        if (tuple(low), tuple(high)) == (self.scaled.row_low, self.scaled.row_high):
            return
        self.scaled = replace(self.scaled, row_low=tuple(low), row_high=tuple(high))
        ends = self.scaled.doubles(low, -np.inf), self.scaled.doubles(high, np.inf)
        places = np.arange(self.scaled.rows, dtype=np.int32)
        self._highs.changeRowsBounds(self.scaled.rows, places, *ends)

    def _run(self, deadline: float) -> Status:
        """Run in turns, each twice as long, so that an interrupt is heard between two of them."""
        turn = FIRST_TURN_SECONDS
        while True:
            left = max(0.0, deadline - time.monotonic())
            limit = self._highs.getRunTime() + min(left, turn)
            self._highs.setOptionValue("time_limit", limit)
            self._highs.run()
            if left <= turn or not _is_late(self._highs):
                return status_of(self._highs)
            turn *= 2

    def _run_from_scratch(self, deadline: float) -> Status:
        """Forget the last vertex, from which the method got stuck, and take the dual method."""
        self._highs.clearSolver()
        self._highs.setOptionValue("simplex_strategy", DUAL_SIMPLEX)
        status = self._run(deadline)
        self._highs.setOptionValue("simplex_strategy", PRIMAL_SIMPLEX)
        return status

    def _vertex(self) -> Vertex:
        solution = self._highs.getSolution()
        point = np.array(solution.col_value, np.float64)
        multipliers = np.array(solution.row_dual, np.float64)
        value = self._highs.getInfo().objective_function_value
        basic, tight = self._basis()
        return Vertex(self.scaled, point, multipliers, value, basic, tight)

    def _basis(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The basic columns, and the rows whose slack is not basic; none without a basis.

        Read from the statuses: asking HiGHS for the basic variables of a program that it solved
        without a factorisation (no entries, no solution) ends the process.
        """
        import highspy

        basis = self._highs.getBasis()
        if not basis.valid:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        basic, inside = highspy.HighsBasisStatus.kBasic, basis.col_status
        columns = [place for place, status in enumerate(inside) if status == basic]
        rows = [place for place, status in enumerate(basis.row_status) if status != basic]
        return np.array(columns, np.int64), np.array(rows, np.int64)


def analytic_centre(scaled: Scaled, deadline: float = float("inf")) -> Floats | None:
    """A point near the middle of the region by the interior-point method, or None."""
    seconds = max(0.0, deadline - time.monotonic())
    highs = _load(scaled, solver="ipm", run_crossover="off", time_limit=seconds)
    highs.run()
    if status_of(highs) is not Status.OPTIMAL:
        return None
    return np.clip(np.array(highs.getSolution().col_value, np.float64), *scaled.box())


def _load(scaled: Scaled, **options: Any) -> Any:
    rows = scaled.doubles(scaled.row_low, -np.inf), scaled.doubles(scaled.row_high, np.inf)
    entries = scaled.starts, scaled.row, scaled.value
    cost = np.zeros(scaled.columns)
    return load_highs(cost, (*scaled.box(), *rows), entries, presolve="off", **options)


# HiGHS, for this and for every other program ----------------------------------------------------


Ends = tuple[Floats, Floats, Floats, Floats]
"""The low and the high ends of columns, and those of rows."""

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""By column: where the entries of each begin and the end, their rows, and their values."""


def load_highs(cost: Floats, ends: Ends, entries: Entries, whole: int = 0, **options: Any) -> Any:
    """A program in HiGHS, silent and on one thread; so many of its first columns are whole."""
    import highspy

    model = highspy.HighsLp()
    low, high, row_low, row_high = ends
    model.num_col_, model.num_row_ = len(cost), len(row_low)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, low, high
    model.row_lower_, model.row_upper_ = row_low, row_high
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    starts, rows, values = entries
    model.a_matrix_.start_, model.a_matrix_.index_ = starts.astype(np.int32), rows.astype(np.int32)
    model.a_matrix_.value_ = values.astype(np.float64)
    if whole:
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger] * whole + [kinds.kContinuous] * (len(cost) - whole)
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, **options}.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    return highs


def _is_late(highs: Any) -> bool:
    from highspy import HighsModelStatus

    return bool(highs.getModelStatus() == HighsModelStatus.kTimeLimit)


def status_of(highs: Any) -> Status:
    """How the last run of a program in HiGHS ended."""
    from highspy import HighsModelStatus

    statuses = {
        HighsModelStatus.kOptimal: Status.OPTIMAL,
        HighsModelStatus.kModelEmpty: Status.OPTIMAL,
        HighsModelStatus.kInfeasible: Status.INFEASIBLE,
        HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    }
    return statuses.get(highs.getModelStatus(), Status.STOPPED)
