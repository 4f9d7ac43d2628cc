"""Which ends of their ranges columns can reach, shown from one point in the middle.

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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.solve.scaled import Floats, Scaled

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
class Reach:
    """The columns that reach their low end and those that reach their high end."""

    low: Flags
    high: Flags


def reached(scaled: Scaled, low: Floats, high: Floats, point: Floats) -> Reach:
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
    return Reach(
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
