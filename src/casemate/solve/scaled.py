"""A region times its common denominator: integers for proofs, doubles for the simplex method."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.solve.box import Bound, Region

Floats = NDArray[np.float64]

SPAN = 2**10
"""The largest finite bound of a column becomes about this, as a double."""


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
        low, high, row_low, row_high = (_multiplied(side, unit) for side in sides)
        return cls(unit, low, high, row_low, row_high, *entries)

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

    @cached_property
    def shrink(self) -> Fraction:
        """The power of two that turns integers into doubles of a moderate size."""
        ends = {abs(end) for end in (*self.low, *self.high) if end}
        ends = ends or {abs(end) for end in (*self.row_low, *self.row_high) if end}
        if not ends:
            return Fraction(1)
        bits = max(ends).bit_length() - SPAN.bit_length()
        return Fraction(1, 2**bits) if bits >= 0 else Fraction(2**-bits)

    def doubles(self, ends: Sequence[int | None], absent: float) -> Floats:
        """Integers as doubles, with `absent` where there is none."""
        shrink = self.shrink
        known = {end: absent if end is None else float(end * shrink) for end in set(ends)}
        return np.fromiter((known[end] for end in ends), np.float64, len(ends))

    def restored(self, value: int | Fraction) -> Fraction:
        """A scaled value in the region's own unit."""
        return Fraction(value) / self.unit


def _multiplied(bounds: Sequence[Bound], unit: int) -> tuple[int | None, ...]:
    known = {end: None if end is None else int(end * unit) for end in set(bounds)}
    return tuple(known[end] for end in bounds)
