"""The range of every column over all values that keep the box and the equations.

Propagation first, which is exact where an equation shares no column with another; columns that no
equation tells apart become one; most ends are shown to be reached from a point in the middle
(`interior`); the rest are linear programs, each started at the vertex of the last one, and every
column that a vertex has at an end of its range is settled too.

Guarantee  `low` and `high` are proved in exact arithmetic whatever the solver does: by propagation,
           as a bound of the box, or by multipliers (`dual_bound`). No possible value lies outside.
           A range is as tight as linear programming makes it up to `linear_program.TOLERANCE`;
           where it has a single value, that is exact.
Integers   Ranges of whole numbers are rounded inwards, yet they come from the relaxation and can
           be wider than the truth: `backbone` decides.
Unchecked  What a filter or the time limit left out has no range at all, rather than its prior one.
"""

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.certify import contradiction, proved_minimum, reached
from casemate.audit.region.collapse import TwinRegion, collapse_region, tighter
from casemate.audit.region.propagation import propagate
from casemate.exact import (
    TOLERANCE,
    Bound,
    Box,
    Floats,
    LinearProgram,
    Region,
    Scaled,
    Status,
    System,
    Vertex,
    centre,
)

Proof = Literal["propagation", "lp", "integer", "unchecked"]
"""How a range is known; `integer` where whole numbers were searched besides."""

NEARLY = 1e-4
"""A narrower range, in the program's doubles, is settled by exact rationals alone."""

BULK = 16
"""Ends that a program for many columns at once must settle to be followed by another one."""

LARGEST_PLAIN = 10**6
"""Ends with larger denominators, or relatively closer than its inverse, are not for doubles."""

MOST_EQUATIONS = 3_000
"""Past this many equations the dense algebra from the middle costs more than it saves."""


@dataclass(frozen=True)
class Bounds:
    """Per column the least and the greatest possible value (None: no bound) and how it is known.

    `contradiction` names equations that cannot all hold, given the box and the other equations; it
    is empty when they can, and also when that was not decided: then every column is unchecked.
    """

    low: tuple[Bound, ...]
    high: tuple[Bound, ...]
    proof: tuple[Proof, ...]
    contradiction: tuple[int, ...] = ()
    programs: int = 0

    @property
    def fixed(self) -> list[int]:
        """The columns that have one possible value."""
        ends = enumerate(zip(self.low, self.high, strict=True))
        return [column for column, (low, high) in ends if low is not None and low == high]

    @property
    def unchecked(self) -> list[int]:
        """The columns about which nothing is said."""
        return [column for column, proof in enumerate(self.proof) if proof == "unchecked"]


def bounds(region: Region, *, seconds: float = float("inf")) -> Bounds:
    """The range of every column; what is not settled after `seconds` is left unchecked.

    >>> from casemate.exact.system import System
    >>> sums = System.of([[1, 1, 1], [0, 1, 1]], [9, 5])
    >>> found = bounds(Region.of(sums, Box.of(3, 1, None)))
    >>> [(int(low), int(high)) for low, high in zip(found.low, found.high)]
    [(4, 4), (1, 4), (1, 4)]
    """
    deadline = time.monotonic() + seconds
    first = propagate(region)
    if first.contradiction is not None:
        return _nothing(region, (first.contradiction,))
    collapsed = collapse_region(region.within(_plain(region.box.inward(), first.box)))
    search = _BoundsSearch(collapsed.region, deadline)
    search.run()
    if search.impossible is not None:
        return _nothing(region, search.impossible)
    return _spread(region, first.box, collapsed, search)


def _plain(given: Box, tightened: Box) -> Box:
    """The tightened ends, save where an endless cascade left ones that no double can tell apart."""
    low, high = list(tightened.low), list(tightened.high)
    for column, (least, most) in enumerate(zip(low, high, strict=True)):
        if least != most and not (_is_plain(least, most) and _is_plain(most, least)):
            low[column], high[column] = given.low[column], given.high[column]
    return Box(tuple(low), tuple(high), given.integer)


def _is_plain(end: Bound, other: Bound) -> bool:
    if end is None or end.denominator == 1:
        return True
    apart = other is None or abs(end - other) * LARGEST_PLAIN > abs(end)
    return apart and end.denominator <= LARGEST_PLAIN


def _nothing(region: Region, contradicting: tuple[int, ...]) -> Bounds:
    count = region.system.columns
    return Bounds((None,) * count, (None,) * count, _unchecked(count), contradicting)


def _unchecked(count: int) -> tuple[Proof, ...]:
    each: Proof = "unchecked"
    return (each,) * count


class _BoundsSearch:
    """The ends of the groups' ranges, settled one after the other."""

    def __init__(self, region: Region, deadline: float) -> None:
        self.low: list[Bound] = list(region.box.low)
        self.high: list[Bound] = list(region.box.high)
        self.impossible: tuple[int, ...] | None = None
        self.programs = 0
        self._scaled = Scaled.of(region)
        settled = _by_propagation(region.system)
        self.low_done: NDArray[np.bool_] = settled.copy()
        self.high_done: NDArray[np.bool_] = settled.copy()
        self._deadline = deadline

    def run(self) -> None:
        """Settle every end, or as many as the time allows."""
        if not len(self.low) or self.low_done.all():
            return
        self._from_the_middle()
        if self.low_done.all() and self.high_done.all():
            return
        program = LinearProgram(self._scaled)
        status, vertex = program.minimise(np.zeros(len(self.low)), self._deadline)
        if status is Status.INFEASIBLE:
            self.impossible = contradiction(self._scaled, self._deadline)
        elif status is Status.OPTIMAL:
            self._settle(program, vertex)
            self._many_at_once(program)
            self._one_by_one(program)
        self.programs = program.runs

    def _from_the_middle(self) -> None:
        scaled = self._scaled
        bounded = None not in self.low and None not in self.high
        if not bounded or scaled.rows > MOST_EQUATIONS or len(self.low) < BULK:
            return
        point = centre(scaled, self._deadline)
        if point is None:
            return
        low, high = scaled.doubles(scaled.low, -np.inf), scaled.doubles(scaled.high, np.inf)
        reach = reached(scaled, low, high, point)
        self.low_done |= reach.low
        self.high_done |= reach.high

    def _settle(self, program: LinearProgram, vertex: Vertex) -> int:
        """Every column that is at an end of its range reaches it; how many of them are news."""
        before = self.low_done.sum() + self.high_done.sum()
        wide = program.high - program.low > NEARLY
        self.low_done |= wide & (vertex.point <= program.low + TOLERANCE)
        self.high_done |= wide & (vertex.point >= program.high - TOLERANCE)
        return int(self.low_done.sum() + self.high_done.sum() - before)

    def _many_at_once(self, program: LinearProgram) -> None:
        """Send all open columns to an open end at once, while that settles many."""
        down = True
        while not self._late():
            costs = self._directions(program, down)
            status, vertex = program.minimise(costs, self._deadline)
            if status is not Status.OPTIMAL or self._settle(program, vertex) < BULK:
                return
            down = not down

    def _directions(self, program: LinearProgram, down: bool) -> Floats:
        """Costs that pull each open column to an open end, those with two to the one named."""
        to_low = ~self.low_done & np.isfinite(program.low)
        to_high = ~self.high_done & np.isfinite(program.high)
        both = to_low & to_high
        to_low &= ~both | down
        to_high &= ~both | (not down)
        width = np.where(to_low | to_high, program.high - program.low, 1.0)
        width = np.where(np.isfinite(width), np.maximum(width, TOLERANCE), 1.0)
        return (to_low * 1.0 - to_high * 1.0) / width

    def _one_by_one(self, program: LinearProgram) -> None:
        for group in range(len(self.low)):
            for sign, done in ((1, self.low_done), (-1, self.high_done)):
                if not done[group]:
                    self._end(program, group, sign)
            if self._is_narrow(group):
                self._end(program, group, 1, exact=True)
                self._end(program, group, -1, exact=True)
            if self._late():
                return

    def _end(self, program: LinearProgram, group: int, sign: int, exact: bool = False) -> None:
        """Settle one end by a program of its own."""
        costs = np.zeros(len(self.low))
        costs[group] = sign
        status, vertex = program.minimise(costs, self._deadline)
        if status is Status.UNBOUNDED:
            self._done(sign)[group] = True
        if status is not Status.OPTIMAL:
            return
        self._settle(program, vertex)
        proved = proved_minimum(vertex, {group: sign}, exact)
        if proved is not None:
            self._tighten(group, sign, sign * self._scaled.restored(proved))
            self._done(sign)[group] = True

    def _done(self, sign: int) -> NDArray[np.bool_]:
        """Which ends of one side are settled."""
        return self.low_done if sign > 0 else self.high_done

    def _tighten(self, group: int, sign: int, value: Fraction) -> None:
        ends = self.low if sign > 0 else self.high
        old = ends[group]
        if old is None or sign * value > sign * old:
            ends[group] = value

    def _is_narrow(self, group: int) -> bool:
        """Whether a range is nearly, but not exactly, a single value."""
        low, high = self.low[group], self.high[group]
        if low is None or high is None or low == high:
            return False
        per_unit = self._scaled.unit * self._scaled.shrink
        return float((high - low) * per_unit) < NEARLY

    def _late(self) -> bool:
        return time.monotonic() >= self._deadline


def _by_propagation(system: System) -> NDArray[np.bool_]:
    """Columns in no equation, or in one that is linked to no other: there propagation is exact."""
    degree = np.bincount(system.column, minlength=system.columns)
    alone: NDArray[np.bool_] = np.ones(system.rows, np.bool_)
    alone[system.row[degree[system.column] > 1]] = False
    linked: NDArray[np.bool_] = np.zeros(system.columns, np.bool_)
    linked[system.column[~alone[system.row]]] = True
    return ~linked


def _spread(region: Region, box: Box, collapsed: TwinRegion, search: _BoundsSearch) -> Bounds:
    """From the groups' totals back to the columns, whole numbers propagated once more."""
    low, high = list(box.low), list(box.high)
    proof: list[Proof] = ["propagation"] * len(box)
    settled = (search.low_done & search.high_done).tolist()
    ranges = [
        collapsed.member(group, *ends)
        for group, ends in enumerate(zip(search.low, search.high, strict=True))
    ]
    for column, group in enumerate(collapsed.group.tolist()):
        if group >= 0:
            proof[column] = "lp" if settled[group] else "unchecked"
            low[column] = tighter(low[column], ranges[group][0], max)
            high[column] = tighter(high[column], ranges[group][1], min)
    return _finished(region, low, high, proof, search.programs)


def _finished(
    region: Region, low: list[Bound], high: list[Bound], proof: list[Proof], programs: int
) -> Bounds:
    """Read whole numbers once more, then forget what was not checked."""
    if any(region.box.integer):
        empty = [c for c, (a, b) in enumerate(zip(low, high, strict=True)) if _is_crossed(a, b)]
        if empty:
            rows = region.system.row[region.system.column == empty[0]]
            return _nothing(region, tuple(sorted(set(rows.tolist()))))
        again = propagate(region.within(Box(tuple(low), tuple(high), region.box.integer)))
        if again.contradiction is not None:
            return _nothing(region, (again.contradiction,))
        low, high = list(again.box.low), list(again.box.high)
    known = [kind != "unchecked" for kind in proof]
    return Bounds(
        tuple(end if k else None for end, k in zip(low, known, strict=True)),
        tuple(end if k else None for end, k in zip(high, known, strict=True)),
        tuple(proof),
        (),
        programs,
    )


def _is_crossed(low: Bound, high: Bound) -> bool:
    return low is not None and high is not None and low > high
