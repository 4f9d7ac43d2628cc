"""Exact rational solutions of integer systems: from one inverse modulo a prime, or one in doubles.

`lift` solves for many targets with a solver modulo a prime (Dixon); `SquareSystem` solves a sparse
square system for any right side with an inverse in doubles (Wan).

Source     Dixon, "Exact solution of linear equations using p-adic expansions", Numerische
           Mathematik 40 (1982); rational numbers are recovered by Wang's continued fractions.
           Wan, "An algorithm to solve integer linear systems exactly using numerical methods"
           (2006).
Method     Modulo a prime, Y A = E is solved digit by digit in base p, each digit with the same
           inverse modulo p. Digits lie between -p/2 and p/2, so an integer solution ends by
           itself; a rational one is recovered from its digits.
Exact      `lift` gives a solution back only if the caller's check in integers accepts it; what
           `SquareSystem` returns satisfies every equation in integers, None says that none was
           found.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.exact.system import largest_magnitude

_EXACT_DOUBLES = 2**53
_PROBED_PLACES = 4


class LiftingSolver(Protocol):
    """A square integer matrix, and its solutions modulo a prime."""

    @property
    def prime(self) -> int:
        """The modulus."""

    def solve(self, targets: NDArray[Any]) -> NDArray[Any]:
        """Y with Y A = targets modulo the prime, one solution a row."""


@dataclass(frozen=True)
class Solution:
    """y A = divisor times the target: the non-zero parts of y, by place."""

    target: int
    numerators: dict[int, int]
    divisor: int


Check = Callable[[Solution], bool]
"""Whether a solution is one, decided in integers."""


def lift(
    matrix: NDArray[Any], solver: LiftingSolver, targets: NDArray[Any], digits: int, check: Check
) -> Iterator[Solution]:
    """Solve y A = target for each row of targets, as far as that many digits suffice."""
    work = _Digits(matrix, solver, targets, check)
    for count in range(1, digits + 1):
        work.advance()
        yield from work.take_integers()
        if count & (count - 1) == 0 or count == digits:  # a rational is tried at powers of two
            yield from work.take_rationals()
        if not len(work.places):
            return


class _Digits:
    """The digits found so far of the targets that are still open."""

    def __init__(
        self, matrix: NDArray[Any], solver: LiftingSolver, targets: NDArray[Any], check: Check
    ) -> None:
        self._matrix, self._solver, self._check = matrix, solver, check
        self.places = np.arange(len(targets))
        self._remainder = targets
        self._digits: list[NDArray[Any]] = []

    def advance(self) -> None:
        """Find one more digit of each."""
        prime = self._solver.prime
        digit = self._solver.solve(self._remainder)
        digit = np.where(digit > prime // 2, digit - prime, digit)
        self._remainder = (self._remainder - product(digit, self._matrix)) // prime
        self._digits.append(digit)

    def take_integers(self) -> Iterator[Solution]:
        """Give the integer solutions whose remainder is zero, and drop them."""
        done = np.asarray(~(self._remainder != 0).any(axis=1), np.bool_)
        for k in np.flatnonzero(done).tolist():
            used = self._support(k)
            numbers = dict(zip(used.tolist(), self._numbers(k, used), strict=True))
            solution = Solution(int(self.places[k]), numbers, 1)
            if self._check(solution):
                yield solution
        self._keep(~done)

    def take_rationals(self) -> Iterator[Solution]:
        """Give the rational solutions that the digits determine already, and drop them."""
        unsolved = np.ones(len(self.places), np.bool_)
        for k in range(len(self.places)):
            solution = self._reconstruct(k)
            if solution is not None and self._check(solution):
                unsolved[k] = False
                yield solution
        self._keep(unsolved)

    def _reconstruct(self, k: int) -> Solution | None:
        """A solution with a common denominator; a few of its parts show if there is none."""
        modulus, used = self._solver.prime ** len(self._digits), self._support(k)
        if common_denominator(self._numbers(k, used[:_PROBED_PLACES]), modulus) is None:
            return None
        found = common_denominator(self._numbers(k, used), modulus)
        if found is None:
            return None
        return Solution(
            int(self.places[k]), dict(zip(used.tolist(), found[0], strict=True)), found[1]
        )

    def _keep(self, chosen: NDArray[np.bool_]) -> None:
        self.places, self._remainder = self.places[chosen], self._remainder[chosen]
        self._digits = [digit[chosen] for digit in self._digits]

    def _support(self, k: int) -> NDArray[np.int64]:
        """The places with a digit other than zero; such digits never cancel."""
        return np.flatnonzero(np.any([digit[k] != 0 for digit in self._digits], axis=0))

    def _numbers(self, k: int, places: NDArray[np.int64]) -> list[int]:
        """The parts of a solution at these places as far as their digits are known."""
        total = np.zeros(len(places), object)
        for digit in reversed(self._digits):
            total = total * self._solver.prime + digit[k, places]
        return [int(number) for number in total]


def product(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """An exact product of integers: in doubles where they hold it, else in Python's integers."""
    reach = largest_magnitude(one) * largest_magnitude(other) * max(1, other.shape[0])
    if reach < _EXACT_DOUBLES:
        return (one.astype(np.float64) @ other.astype(np.float64)).astype(np.int64)
    return np.asarray(one.astype(object) @ other.astype(object), object)


def common_denominator(numbers: Iterable[int], modulus: int) -> tuple[list[int], int] | None:
    """Small numerators and a small denominator: numerator = number times denominator."""
    denominator, bound, seen = 1, math.isqrt(modulus // 2), []
    for number in numbers:  # ends at the first one that shows the digits to be too few
        found = reconstruct_rational(number * denominator % modulus, modulus, bound)
        if found is None or denominator * found[1] > bound:
            return None
        denominator *= found[1]
        seen.append(number)
    return [_symmetric_residue(number * denominator, modulus) for number in seen], denominator


def reconstruct_rational(residue: int, modulus: int, bound: int) -> tuple[int, int] | None:
    """n/d congruent to the residue with |n| and d at most `bound`, if there is one.

    >>> reconstruct_rational(2 * pow(3, -1, 101) % 101, 101, 7)
    (2, 3)
    """
    old, new = modulus, residue
    before, now = 0, 1
    while new > bound:
        quotient = old // new
        old, new = new, old - quotient * new
        before, now = now, before - quotient * now
    if now == 0 or abs(now) > bound or math.gcd(new, abs(now)) > 1:
        return None
    return (new, now) if now > 0 else (-new, -now)


def _symmetric_residue(value: int, modulus: int) -> int:
    rest = value % modulus
    return rest - modulus if rest > modulus // 2 else rest


# From an inverse in doubles ---------------------------------------------------------------------
# Each step corrects the solution by what a double can see of the exact residual, which is then
# enlarged and corrected again; a few steps give hundreds of correct bits, and the fractions are
# read off by continued fractions and checked against the equations. It costs one inverse in
# doubles, then a product with it and with the sparse matrix per step.


BITS_PER_STEP = 24
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
            found = [(old << BITS_PER_STEP) + new for old, new in zip(found, digits, strict=True)]
            residual = residual * (1 << BITS_PER_STEP) - self._times(digits)
            if step == try_at or not residual.any():
                solution = self._read(found, step * BITS_PER_STEP, right)
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
        return 4 + int((2 * determinant + largest + self.size.bit_length()) / BITS_PER_STEP)

    def _digits(self, residual: NDArray[Any]) -> list[int] | None:
        """The next bits of the solution, or None if the steps do not converge."""
        largest = max(abs(each) for each in residual.tolist())
        if largest == 0:
            return [0] * self.size
        shift = max(0, largest.bit_length() - 60)
        seen = np.array([float(each >> shift) for each in residual.tolist()])
        assert self._inverse is not None
        guess = (self._inverse @ seen) * 2.0**BITS_PER_STEP
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


def nearest_fractions(values: NDArray[np.float64], largest: int) -> list[Fraction]:
    """The nearest fractions whose denominators are at most `largest`."""
    known: dict[float, Fraction] = {}
    for value in values.tolist():
        if value not in known:
            known[value] = Fraction(value).limit_denominator(largest)
    return [known[value] for value in values.tolist()]


def over_common_denominator(values: list[Fraction]) -> tuple[int, list[int]]:
    """The least common denominator, and every value times it."""
    common = math.lcm(*(value.denominator for value in values))
    return common, [int(value * common) for value in values]
