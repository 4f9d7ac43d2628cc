"""The exact rational solution of a square integer system, from an inexact inverse.

Each step corrects the solution by what a double can see of the exact residual, which is then
enlarged and corrected again; a few steps give hundreds of correct bits, and the fractions are
read off by continued fractions and checked against the equations. After Wan, "An algorithm to
solve integer linear systems exactly using numerical methods" (2006).

Exact      What is returned satisfies every equation in integers; None says that none was found.
Cost       One inverse in doubles, then a product with it and with the sparse matrix per step.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 24
"""How many bits each step adds."""


class SquareSystem:
    """A sparse square integer matrix that is solved exactly for any right side."""

    def __init__(
        self, size: int, row: NDArray[np.int64], column: NDArray[np.int64], value: NDArray[Any]
    ) -> None:
        self.size = size
        self._row, self._column, self._value = row, column, value.astype(object)
        dense = np.zeros((size, size))
        dense[row, column] = value.astype(np.float64)
        self._inverse = _inverse(dense)

    def solve(self, right: list[int]) -> list[Fraction] | None:
        """The exact solution, or None if the matrix is singular or too close to it."""
        if not any(right):
            return [Fraction(0)] * self.size
        if self._inverse is None:
            return None
        residual, found, try_at = np.array(right, object), [0] * self.size, 1
        last = self._most_steps(right)
        for step in range(1, last + 1):
            digits = self._digits(residual)
            if digits is None:
                return None
            found = [(old << BITS) + new for old, new in zip(found, digits, strict=True)]
            residual = residual * (1 << BITS) - self._times(digits)
            if step == try_at or not residual.any():
                solution = self._read(found, step * BITS, right)
                if solution is not None:
                    return solution
                try_at = min(last, step + max(1, step // 2))
        return None

    def _most_steps(self, right: list[int]) -> int:
        """Steps after which Hadamard's bound on the determinants leaves no other solution."""
        squares = np.zeros(self.size)
        np.add.at(squares, self._row, self._value.astype(np.float64) ** 2)
        determinant = float(np.log2(np.maximum(squares, 1)).sum()) / 2
        largest = max(abs(each) for each in right).bit_length()
        return 4 + int((2 * determinant + largest + self.size.bit_length()) / BITS)

    def _digits(self, residual: NDArray[Any]) -> list[int] | None:
        """The next bits of the solution, or None if the steps do not converge."""
        largest = max(abs(each) for each in residual.tolist())
        if largest == 0:
            return [0] * self.size
        shift = max(0, largest.bit_length() - 60)
        seen = np.array([float(each >> shift) for each in residual.tolist()])
        assert self._inverse is not None
        guess = (self._inverse @ seen) * 2.0**BITS
        if not np.isfinite(guess).all():
            return None
        return [round(each) << shift for each in guess.tolist()]

    def _times(self, digits: list[int]) -> NDArray[Any]:
        product = np.zeros(self.size, object)
        np.add.at(product, self._row, self._value * np.array(digits, object)[self._column])
        return product

    def _read(self, found: list[int], bits: int, right: list[int]) -> list[Fraction] | None:
        """Fractions near the bits found, if they satisfy the equations exactly."""
        whole, most = 1 << bits, 1 << (bits // 2 - 1)
        common, numerators = 1, []
        for each in found:
            # the denominators are nearly all the same, so what is left after the last is small
            near = Fraction(each * common, whole).limit_denominator(max(1, most // common))
            common *= near.denominator
            numerators.append((near.numerator, common))
            if common > most:
                return None
        values = [Fraction(top, bottom) for top, bottom in numerators]
        scaled = [int(value * common) for value in values]
        agrees = self._times(scaled) == np.array(right, object) * common
        return values if bool(np.all(agrees)) else None


def _inverse(dense: NDArray[np.float64]) -> NDArray[np.float64] | None:
    try:
        inverse = np.linalg.inv(dense).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None


def simple(values: NDArray[np.float64], largest: int) -> list[Fraction]:
    """The nearest fractions whose denominators are at most `largest`."""
    known: dict[float, Fraction] = {}
    for value in values.tolist():
        if value not in known:
            known[value] = Fraction(value).limit_denominator(largest)
    return [known[value] for value in values.tolist()]


def common_denominator(values: list[Fraction]) -> tuple[int, list[int]]:
    """The least common denominator, and every value times it."""
    common = math.lcm(*(value.denominator for value in values))
    return common, [int(value * common) for value in values]
