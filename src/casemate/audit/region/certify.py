"""From what the simplex method says to what is proved: bounds and contradictions.

A vertex suggests multipliers. Rounded to simple fractions they usually prove its value outright;
where they do not, the basis is solved in exact rationals.

Weak duality in exact arithmetic: any multipliers of the equations prove a bound.

For all x in the region and any y, c.x = y.(A x) + (c - A^T y).x, and each term on the right is
bounded by an equation's range or a column's. So multipliers that a floating-point solver suggests
prove a bound whatever they are, and the best ones prove the best bound; nothing about the solver
has to be believed.

Which ends of their ranges columns can reach, shown from one point in the middle.

From a point well inside the box, column g moves to its end and the others make up for it by the
smallest step, relative to their room, that keeps every equation: the projection of e_g onto the
null space. With h the leverages (the diagonal of the row space's projection in units of room),
no other column moves by more than sqrt(h_j h_g) / (1 - h_g) of its room per room moved, by
Cauchy-Schwarz; and if that is under 1 for all of them, the end is reached. So one factorisation
settles nearly every column of a large region with few equations, and the simplex method is left
with those of high leverage. A column with next to no room, or whose equations are nearly
dependent, is left to it too.

The ends themselves are bounds already; what doubles decide here is only that nothing tighter holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import (
    Floats,
    LinearProgram,
    Scaled,
    Status,
    Vertex,
    over_common_denominator,
    simple,
)

SAFE = 2**62
"""Sums of magnitudes below this are exact in int64."""


def bound_below(
    scaled: Scaled, multipliers: Sequence[Fraction], objective: Mapping[int, int]
) -> Fraction | None:
    """A value that the objective never falls below, in scaled units; None if y proves none."""
    common, weights = over_common_denominator(list(multipliers))
    total = _smallest(weights, scaled.row_low, scaled.row_high)
    if total is None:
        return None
    reduced = -_combined(scaled, weights)
    for column, coefficient in objective.items():
        reduced[column] += coefficient * common
    places = np.flatnonzero(reduced).tolist()
    rest = _smallest(
        [int(reduced[j]) for j in places],
        [scaled.low[j] for j in places],
        [scaled.high[j] for j in places],
    )
    return None if rest is None else Fraction(total + rest, common)


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


def _combined(scaled: Scaled, weights: list[int]) -> NDArray[Any]:
    """A^T y, column by column."""
    largest = max((abs(weight) for weight in weights), default=0)
    fits = scaled.value.dtype == np.int64
    reach = int(np.abs(scaled.value).max(initial=0)) * largest * max(1, scaled.rows)
    kind = np.int64 if fits and reach < SAFE else object
    products = np.array(weights, kind)[scaled.row] * scaled.value.astype(kind)
    combined = np.zeros(scaled.columns, kind)
    filled = np.flatnonzero(np.diff(scaled.starts))  # reduceat needs columns with entries
    if len(filled):
        combined[filled] = np.add.reduceat(products, scaled.starts[filled])
    return combined.astype(object)


# Certify ----------------------------------------------------------------------------------------


CLOSE = 1e-6
"""A proved bound this close to the vertex's value, in the program's doubles, is good enough."""

SIMPLE = 1000
"""The largest denominator of a simple fraction."""


def proved_minimum(vertex: Vertex, objective: dict[int, int], exact: bool) -> Fraction | None:
    """A proved lower bound close to the vertex's value, in scaled units, or None.

    With `exact` the basis is solved in rationals even if simple fractions come close.
    """
    scaled = vertex.scaled
    if not exact:
        quick = bound_below(scaled, simple(vertex.multipliers, SIMPLE), objective)
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
    return gap <= CLOSE * max(1.0, abs(vertex.value))


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
    for multipliers in (simple(vertex.multipliers, SIMPLE), vertex.exact_multipliers(objective)):
        if multipliers is not None and _proves_contradiction(scaled, multipliers):
            used = set(scaled.row.tolist())
            return tuple(row for row, weight in enumerate(multipliers) if weight and row in used)
    return None


def _proves_contradiction(scaled: Scaled, multipliers: Sequence[Fraction]) -> bool:
    bound = bound_below(scaled, multipliers, {})
    return bound is not None and bound > 0


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


# Interior ---------------------------------------------------------------------------------------


MARGIN = 0.98
"""Moves may use this much of the room there is."""

LEAST_ROOM = 1e-4
"""A column whose room is a smaller part of its width is not settled here."""

DEPENDENT = 1e-11
"""Eigenvalues smaller than this, relative to the largest, count as dependent equations."""

RESIDUAL = 1e-7
"""A column keeps its equations to this relative precision, or is not settled here."""

MOST_ROOM = 2.0**20
"""An equation without ends counts as having this much room: less than it has, which is safe."""

BATCH = 2048

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ReachedEnds:
    """The columns that reach their low end and those that reach their high end."""

    low: Flags
    high: Flags


def reached(scaled: Scaled, low: Floats, high: Floats, point: Floats) -> ReachedEnds:
    """The ends that are reached from an inner point of a box with finite ends."""
    room = np.minimum(point - low, high - point)
    solid = room > LEAST_ROOM * (high - low)
    room = np.where(room > 0, room, 0.0)
    slack = _row_room(scaled, point)
    inverse = _Gram(scaled, room, slack)
    leverage, sound = inverse.leverages(room)
    largest = min(1.0, max(leverage.max(initial=0.0), inverse.slack_leverage(slack)))
    others = 1 - leverage
    usable = solid & sound & (others > DEPENDENT)
    per_room = np.sqrt(np.maximum(leverage, 0) * largest) / np.where(usable, others, 1.0)
    return ReachedEnds(
        usable & (per_room * (point - low) < MARGIN * room),
        usable & (per_room * (high - point) < MARGIN * room),
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
        kept = values > DEPENDENT * values.max(initial=0.0)
        self._inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T

    def leverages(self, room: Floats) -> tuple[Floats, Flags]:
        """Each column's leverage, and whether its equations are kept by the projection."""
        leverage = np.zeros(len(room))
        sound = np.ones(len(room), np.bool_)
        for columns, block in _blocks(self._scaled, room):
            normal = block * self._scale[:, None]
            solved = self._inverse @ normal
            leverage[columns] = np.einsum("ij,ij->j", normal, solved)
            left = np.abs(normal - self._gram @ solved).max(axis=0, initial=0.0)
            sound[columns] = left <= RESIDUAL * np.abs(normal).max(axis=0, initial=0.0)
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
    for start in range(0, scaled.columns, BATCH):
        end = min(start + BATCH, scaled.columns)
        entries = slice(*scaled.starts[[start, end]])
        block = np.zeros((scaled.rows, end - start))
        column = scaled.column[entries]
        value = scaled.value[entries].astype(np.float64) * room[column]
        block[scaled.row[entries], column - start] = value
        yield slice(start, end), block
