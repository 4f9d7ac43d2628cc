"""The range of every column over all values that keep the box and the equations, proved.

Propagation first, which is exact where an equation shares no column with another; columns that no
equation tells apart become one; most ends are shown to be reached from a point in the middle
(`reachable_ends`); the rest are linear programs, each started at the vertex of the last one, and
every column that a vertex has at an end of its range is settled too.

Guarantee  `low` and `high` are proved in exact arithmetic whatever the solver does: by propagation,
           as a bound of the box, or by multipliers (`bound_below`). No possible value lies outside.
           A range is as tight as linear programming makes it up to `BOUND_TOLERANCE`;
           where it has a single value, that is exact.
Integers   Ranges of whole numbers are rounded inwards, yet they come from the relaxation and can
           be wider than the truth: `checks.ranges` decides.
Unchecked  What a filter or the time limit left out has no range at all, rather than its prior one.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.collapse import TwinRegion, collapse_region, tighter
from casemate.audit.region.propagation import propagate
from casemate.exact import (
    BOUND_TOLERANCE,
    Bound,
    Box,
    Floats,
    LinearProgram,
    Region,
    Scaled,
    Status,
    System,
    Vertex,
    analytic_centre,
    nearest_fractions,
    over_common_denominator,
)

INT64_SAFE_TOTAL = 2**62
"""Sums of magnitudes below this are exact in int64."""


def bound_below(
    scaled: Scaled, multipliers: Sequence[Fraction], objective: Mapping[int, int]
) -> Fraction | None:
    """A value that the objective never falls below, in scaled units; None if y proves none.

    Weak duality: for all x in the region and any y, c.x = y.(A x) + (c - A^T y).x, and each term on
    the right is bounded by an equation's range or a column's. So multipliers that a floating-point
    solver suggests prove a bound whatever they are, and the best ones prove the best bound; nothing
    about the solver has to be believed.
    """
    common, weights = over_common_denominator(list(multipliers))
    total = _smallest(weights, scaled.row_low, scaled.row_high)
    if total is None:
        return None
    reduced = -_transpose_times(scaled, weights)
    for column, coefficient in objective.items():
        reduced[column] += coefficient * common
    places = np.flatnonzero(reduced).tolist()
    reduced_minimum = _smallest(
        [int(reduced[j]) for j in places],
        [scaled.low[j] for j in places],
        [scaled.high[j] for j in places],
    )
    return None if reduced_minimum is None else Fraction(total + reduced_minimum, common)


def _smallest(
    weights: Sequence[int], low: Sequence[int | None], high: Sequence[int | None]
) -> int | None:
    """The least value of a weighted sum of bounded terms, or None if it has none."""
    total = 0
    for weight, least, most in zip(weights, low, high, strict=True):
        if weight:
            end = least if weight > 0 else most
            if end is None:
                return None
            total += weight * end
    return total


def _transpose_times(scaled: Scaled, weights: list[int]) -> NDArray[Any]:
    """A^T y, column by column."""
    largest = max((abs(weight) for weight in weights), default=0)
    fits = scaled.value.dtype == np.int64
    reach = int(np.abs(scaled.value).max(initial=0)) * largest * max(1, scaled.rows)
    kind = np.int64 if fits and reach < INT64_SAFE_TOTAL else object
    products = np.array(weights, kind)[scaled.row] * scaled.value.astype(kind)
    combined = np.zeros(scaled.columns, kind)
    filled = np.flatnonzero(np.diff(scaled.starts))  # reduceat needs columns with entries
    if len(filled):
        combined[filled] = np.add.reduceat(products, scaled.starts[filled])
    return combined.astype(object)


# From what the simplex method says to what is proved --------------------------------------------
# A vertex suggests multipliers. Rounded to simple fractions they usually prove its value outright;
# where they do not, the basis is solved in exact rationals.


PROOF_GAP_TOLERANCE = 1e-6
"""A proved bound this close to the vertex's value, in the program's doubles, is good enough."""

SIMPLE_DENOMINATOR = 1000
"""The largest denominator of a simple fraction."""


def proved_minimum(vertex: Vertex, objective: dict[int, int], exact: bool) -> Fraction | None:
    """A proved lower bound close to the vertex's value, in scaled units, or None.

    With `exact` the basis is solved in rationals even if simple fractions come close.
    """
    scaled = vertex.scaled
    if not exact:
        quick = bound_below(
            scaled, nearest_fractions(vertex.multipliers, SIMPLE_DENOMINATOR), objective
        )
        if quick is not None and _is_close(vertex, quick):
            return quick
    multipliers = vertex.exact_multipliers(objective)
    found = None if multipliers is None else bound_below(scaled, multipliers, objective)
    if found is not None and _is_close(vertex, found):
        return found
    rough = bound_below(scaled, [Fraction(each) for each in vertex.multipliers], objective)
    return rough if rough is not None and _is_close(vertex, rough) else None


def _is_close(vertex: Vertex, bound: Fraction) -> bool:
    gap = vertex.value - float(bound * vertex.scaled.shrink)
    return gap <= PROOF_GAP_TOLERANCE * max(1.0, abs(vertex.value))


def contradiction(scaled: Scaled, deadline: float = float("inf")) -> tuple[int, ...] | None:
    """Equations that cannot hold together within the bounds, or None if that is not proved.

    The least total by which the equations must be missed has multipliers; if those prove 0 > 0
    for the region itself, the equations they combine contradict each other.
    """
    elastic = _elastic(scaled)
    objective = dict.fromkeys(range(scaled.columns, elastic.columns), 1)
    costs = np.zeros(elastic.columns)
    costs[scaled.columns :] = 1
    status, vertex = LinearProgram(elastic).minimise(costs, deadline)
    if status is not Status.OPTIMAL:
        return None
    for multipliers in (
        nearest_fractions(vertex.multipliers, SIMPLE_DENOMINATOR),
        vertex.exact_multipliers(objective),
    ):
        proved = None if multipliers is None else bound_below(scaled, multipliers, {})
        if multipliers is not None and proved is not None and proved > 0:
            used = set(scaled.row.tolist())
            return tuple(row for row, weight in enumerate(multipliers) if weight and row in used)
    return None


def _elastic(scaled: Scaled) -> Scaled:
    """The region with a column for every amount by which an equation is missed, either way."""
    rows = np.repeat(np.arange(scaled.rows), 2)
    count = 2 * scaled.rows
    return replace(
        scaled,
        low=scaled.low + (0,) * count,
        high=scaled.high + (None,) * count,
        row=np.concatenate([scaled.row, rows]),
        column=np.concatenate([scaled.column, scaled.columns + np.arange(count)]),
        value=np.concatenate([scaled.value, np.tile([1, -1], scaled.rows).astype(np.int64)]),
    )


# Ends that are reached from one point in the middle ---------------------------------------------
# From a point well inside the box, column g moves to its end and the others make up for it by the
# smallest step, relative to their room, that keeps every equation: the projection of e_g onto the
# null space. With h the leverages (the diagonal of the row space's projection in units of room), no
# other column moves by more than sqrt(h_j h_g) / (1 - h_g) of its room per room moved, by
# Cauchy-Schwarz; and if that is under 1 for all of them, the end is reached. So one factorisation
# settles nearly every column of a large region with few equations, and the simplex method is left
# with those of high leverage. A column with next to no room, or whose equations are nearly
# dependent, is left to it too. The ends themselves are bounds already; what doubles decide here is
# only that nothing tighter holds.


ROOM_MARGIN = 0.98
"""Moves may use this much of the room there is."""

LEAST_ROOM = 1e-4
"""A column whose room is a smaller part of its width is not settled here."""

DEPENDENT_EIGENVALUE = 1e-11
"""Eigenvalues smaller than this, relative to the largest, count as dependent equations."""

PROJECTION_RESIDUAL = 1e-7
"""A column keeps its equations to this relative precision, or is not settled here."""

MOST_ROOM = 2.0**20
"""An equation without ends counts as having this much room: less than it has, which is safe."""

BATCH_COLUMNS = 2048

Flags = NDArray[np.bool_]


def reachable_ends(scaled: Scaled, low: Floats, high: Floats, point: Floats) -> tuple[Flags, Flags]:
    """The low and the high ends that are reached from an inner point of a finite box."""
    room = np.minimum(point - low, high - point)
    solid = room > LEAST_ROOM * (high - low)
    room = np.where(room > 0, room, 0.0)
    slack = _row_room(scaled, point)
    inverse = _Gram(scaled, room, slack)
    leverage, sound = inverse.leverages(room)
    largest = min(1.0, max(leverage.max(initial=0.0), inverse.slack_leverage(slack)))
    others = 1 - leverage
    usable = solid & sound & (others > DEPENDENT_EIGENVALUE)
    per_room = np.sqrt(np.maximum(leverage, 0) * largest) / np.where(usable, others, 1.0)
    return (
        usable & (per_room * (point - low) < ROOM_MARGIN * room),
        usable & (per_room * (high - point) < ROOM_MARGIN * room),
    )


class _Gram:
    """The equations' inner products in units of room, rows normalised, and their inverse."""

    def __init__(self, scaled: Scaled, room: Floats, slack: Floats) -> None:
        self._scaled = scaled
        gram = np.diag(slack**2)
        for _, block in _blocks(scaled, room):
            gram += block @ block.T
        norm = np.sqrt(np.diag(gram))
        self._scale = 1 / np.where(norm > 0, norm, 1.0)
        self._gram = gram * self._scale[:, None] * self._scale
        values, vectors = np.linalg.eigh(self._gram)
        kept = values > DEPENDENT_EIGENVALUE * values.max(initial=0.0)
        self._inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T

    def leverages(self, room: Floats) -> tuple[Floats, Flags]:
        """Each column's leverage, and whether its equations are kept by the projection."""
        leverage = np.zeros(len(room))
        sound = np.ones(len(room), np.bool_)
        for columns, block in _blocks(self._scaled, room):
            normal = block * self._scale[:, None]
            solved = self._inverse @ normal
            leverage[columns] = np.einsum("ij,ij->j", normal, solved)
            residual = np.abs(normal - self._gram @ solved).max(axis=0, initial=0.0)
            sound[columns] = residual <= PROJECTION_RESIDUAL * np.abs(normal).max(
                axis=0, initial=0.0
            )
        return leverage, sound

    def slack_leverage(self, slack: Floats) -> float:
        """The largest leverage of the rounding of an answer."""
        own = np.diag(self._inverse) * (slack * self._scale) ** 2
        return float(own.max(initial=0.0))


def _row_room(scaled: Scaled, point: Floats) -> Floats:
    """How far each equation's sum is from its nearer end; 0 for an exact answer."""
    low = scaled.doubles(scaled.row_low, -np.inf)
    high = scaled.doubles(scaled.row_high, np.inf)
    value = scaled.value.astype(np.float64) * point[scaled.column]
    sums = np.bincount(scaled.row, value, scaled.rows)
    room = np.clip(np.minimum(sums - low, high - sums), 0.0, MOST_ROOM)
    return np.where(low < high, room, 0.0)


def _blocks(scaled: Scaled, room: Floats) -> Iterator[tuple[slice, Floats]]:
    """The matrix in units of room, some dense columns at a time."""
    for start in range(0, scaled.columns, BATCH_COLUMNS):
        end = min(start + BATCH_COLUMNS, scaled.columns)
        entries = slice(*scaled.starts[[start, end]])
        block = np.zeros((scaled.rows, end - start))
        column = scaled.column[entries]
        value = scaled.value[entries].astype(np.float64) * room[column]
        block[scaled.row[entries], column - start] = value
        yield slice(start, end), block


# The range of every column ----------------------------------------------------------------------


Proof = Literal["propagation", "lp", "integer", "unchecked"]
"""How a range is known; `integer` where whole numbers were searched besides."""

NARROW_RANGE = 1e-4
"""A narrower range, in the program's doubles, is settled by exact rationals alone."""

BULK_ENDS = 16
"""Ends that a program for many columns at once must settle to be followed by another one."""

LARGEST_PLAIN = 10**6
"""Ends with larger denominators, or relatively closer than its inverse, are not for doubles."""

MAX_DENSE_EQUATIONS = 3_000
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


def bounds(
    region: Region, *, seconds: float = float("inf"), columns: Sequence[int] | None = None
) -> Bounds:
    """The range of every column; what is not settled after `seconds` is left unchecked.

    With `columns` the others are looked at only as far as that comes by itself.

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
    if columns is not None:
        search.settle_all_but(collapsed.group[list(columns)])
    search.run()
    if search.impossible is not None:
        return _nothing(region, search.impossible)
    return _spread(region, first.box, collapsed, search)


def _plain(prior: Box, tightened: Box) -> Box:
    """The tightened ends, save where an endless cascade left ones that no double can tell apart."""
    low, high = list(tightened.low), list(tightened.high)
    for column, (least, most) in enumerate(zip(low, high, strict=True)):
        if least != most and not (_is_plain(least, most) and _is_plain(most, least)):
            low[column], high[column] = prior.low[column], prior.high[column]
    return Box(tuple(low), tuple(high), prior.integer)


def _is_plain(end: Bound, other: Bound) -> bool:
    if end is None or end.denominator == 1:
        return True
    apart = other is None or abs(end - other) * LARGEST_PLAIN > abs(end)
    return apart and end.denominator <= LARGEST_PLAIN


def _nothing(region: Region, contradicting: tuple[int, ...]) -> Bounds:
    count = region.system.columns
    unchecked: Proof = "unchecked"
    return Bounds((None,) * count, (None,) * count, (unchecked,) * count, contradicting)


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

    def settle_all_but(self, groups: NDArray[np.int64]) -> None:
        """Take the ends of all other groups as they are."""
        others = ~np.isin(np.arange(len(self.low)), groups)
        self.low_done |= others
        self.high_done |= others

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
        if not bounded or scaled.rows > MAX_DENSE_EQUATIONS or len(self.low) < BULK_ENDS:
            return
        point = analytic_centre(scaled, self._deadline)
        if point is None:
            return
        low, high = scaled.doubles(scaled.low, -np.inf), scaled.doubles(scaled.high, np.inf)
        reached_low, reached_high = reachable_ends(scaled, low, high, point)
        self.low_done |= reached_low
        self.high_done |= reached_high

    def _settle(self, program: LinearProgram, vertex: Vertex) -> int:
        """Every column that is at an end of its range reaches it; how many of them are news."""
        before = self.low_done.sum() + self.high_done.sum()
        wide = program.high - program.low > NARROW_RANGE
        self.low_done |= wide & (vertex.point <= program.low + BOUND_TOLERANCE)
        self.high_done |= wide & (vertex.point >= program.high - BOUND_TOLERANCE)
        return int(self.low_done.sum() + self.high_done.sum() - before)

    def _many_at_once(self, program: LinearProgram) -> None:
        """Send all open columns to an open end at once, while that settles many."""
        down = True
        while not self._late():
            costs = self._directions(program, down)
            status, vertex = program.minimise(costs, self._deadline)
            if status is not Status.OPTIMAL or self._settle(program, vertex) < BULK_ENDS:
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
        width = np.where(np.isfinite(width), np.maximum(width, BOUND_TOLERANCE), 1.0)
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
            self._tighten(group, sign, sign * self._scaled.to_region_unit(proved))
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
        return float((high - low) * per_unit) < NARROW_RANGE

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
    return _finish(region, low, high, proof, search.programs)


def _finish(
    region: Region, low: list[Bound], high: list[Bound], proof: list[Proof], programs: int
) -> Bounds:
    """Read whole numbers once more, then forget what was not checked."""
    if any(region.box.integer):
        empty = [
            column
            for column, (least, most) in enumerate(zip(low, high, strict=True))
            if least is not None and most is not None and least > most
        ]
        if empty:
            rows = region.system.row[region.system.column == empty[0]]
            return _nothing(region, tuple(sorted(set(rows.tolist()))))
        again = propagate(region.within(Box(tuple(low), tuple(high), region.box.integer)))
        if again.contradiction is not None:
            return _nothing(region, (again.contradiction,))
        low, high = list(again.box.low), list(again.box.high)
    checked = [kind != "unchecked" for kind in proof]
    return Bounds(
        tuple(end if k else None for end, k in zip(low, checked, strict=True)),
        tuple(end if k else None for end, k in zip(high, checked, strict=True)),
        tuple(proof),
        (),
        programs,
    )
