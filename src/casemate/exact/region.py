"""What is known before any equation is used, and with them: ranges and types of unknowns.

A `Box` bounds the columns of a system; a `Region` adds what its equations say, each as a range, so
that a rounded answer is an equation like any other. Everything is an exact rational.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.exact.system import System

Bound = Fraction | None
"""A finite bound, or None where there is none."""

Number = Fraction | int


@dataclass(frozen=True)
class Box:
    """For each column its least and its greatest value, and whether it is a whole number."""

    low: tuple[Bound, ...]
    high: tuple[Bound, ...]
    integer: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not len(self.low) == len(self.high) == len(self.integer):
            raise ValueError(
                f"a box needs one low, high and integer per column, "
                f"got {len(self.low)}, {len(self.high)} and {len(self.integer)}"
            )
        for column, (low, high, integer) in enumerate(
            zip(self.low, self.high, self.integer, strict=True)
        ):
            if low is not None and high is not None and is_empty(low, high, integer):
                raise ValueError(f"no value of column {column} lies between its bounds")

    @classmethod
    def of(
        cls,
        columns: int,
        low: Number | None = None,
        high: Number | None = None,
        integer: bool = False,
    ) -> Self:
        """The same bounds and type for every column.

        >>> Box.of(2, 0, 1, integer=True).high
        (Fraction(1, 1), Fraction(1, 1))
        """
        ends = (None if end is None else Fraction(end) for end in (low, high))
        first, last = ends
        return cls((first,) * columns, (last,) * columns, (integer,) * columns)

    def __len__(self) -> int:
        return len(self.low)

    def inward(self) -> "Box":
        """The same values, with the bounds of whole numbers moved to whole numbers."""
        if not any(self.integer):
            return self
        low = [_ceil(v) if i else v for v, i in zip(self.low, self.integer, strict=True)]
        high = [_floor(v) if i else v for v, i in zip(self.high, self.integer, strict=True)]
        return Box(tuple(low), tuple(high), self.integer)

    def contains(self, values: Sequence[Fraction]) -> bool:
        """Whether every value has its column's type and lies between its bounds."""
        return all(
            within(value, low, high) and (not integer or value.denominator == 1)
            for value, low, high, integer in zip(
                values, self.low, self.high, self.integer, strict=True
            )
        )


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """All values in a box whose equations come to something between `low` and `high`."""

    system: System
    box: Box
    low: tuple[Bound, ...]
    high: tuple[Bound, ...]

    def __post_init__(self) -> None:
        if len(self.box) != self.system.columns:
            raise ValueError(f"{self.system.columns} columns need as many bounds, {len(self.box)}")
        if not len(self.low) == len(self.high) == self.system.rows:
            raise ValueError(
                f"{self.system.rows} equations need as many right sides, "
                f"got {len(self.low)} and {len(self.high)}"
            )

    @classmethod
    def of(
        cls, system: System, box: Box, half_unit: Sequence[Fraction] | Fraction = Fraction(0)
    ) -> Self:
        """The right sides of a system, each give or take half a unit of its rounding."""
        if system.right is None:
            raise ValueError("bounds need the equations' right sides, and this system has none")
        if isinstance(half_unit, Fraction):
            half_unit = (half_unit,) * system.rows
        pairs = list(zip(system.right, half_unit, strict=True))
        return cls(
            system,
            box,
            tuple(right - half for right, half in pairs),
            tuple(right + half for right, half in pairs),
        )

    def within(self, box: Box) -> "Region":
        """The same equations over another box."""
        return Region(self.system, box, self.low, self.high)

    @cached_property
    def equations(self) -> list[list[tuple[int, int]]]:
        """Each equation as its (column, coefficient) pairs, for exact work in Python."""
        return _pairs(self.system.row, self.system.column, self.system.value, self.system.rows)

    def contains(self, values: Sequence[Fraction]) -> bool:
        """Whether the values keep every bound, type and equation, exactly."""
        if not self.box.contains(values):
            return False
        sums = (sum((a * values[j] for j, a in line), Fraction(0)) for line in self.equations)
        return all(map(within, sums, self.low, self.high))


def within(value: Fraction, low: Bound, high: Bound) -> bool:
    """Whether a value keeps two bounds, either of which may be absent."""
    return (low is None or low <= value) and (high is None or value <= high)


def is_empty(low: Fraction, high: Fraction, integer: bool) -> bool:
    """Whether no value of the type lies between two bounds."""
    return math.ceil(low) > math.floor(high) if integer else low > high


def _ceil(value: Bound) -> Bound:
    return value if value is None or value.denominator == 1 else Fraction(math.ceil(value))


def _floor(value: Bound) -> Bound:
    return value if value is None or value.denominator == 1 else Fraction(math.floor(value))


def _pairs(
    major: NDArray[np.int64], minor: NDArray[np.int64], value: NDArray[Any], count: int
) -> list[list[tuple[int, int]]]:
    lines: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for i, j, a in zip(major.tolist(), minor.tolist(), value.tolist(), strict=True):
        lines[i].append((j, a))
    return lines
