"""Exact rational solutions out of one factorisation modulo a prime.

Source     Dixon, "Exact solution of linear equations using p-adic expansions", Numerische
           Mathematik 40 (1982); rational numbers are recovered by Wang's continued fractions.
Method     Y A = E is solved digit by digit in base p, each digit with the same inverse modulo p.
           Digits lie between -p/2 and p/2, so an integer solution ends by itself; a rational one is
           recovered from its digits.
Exact      A solution is given back only if the caller's check in integers accepts it.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_EXACT = 2**53
_PROBE = 4


class Solver(Protocol):
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
    matrix: NDArray[Any], solver: Solver, targets: NDArray[Any], digits: int, check: Check
) -> Iterator[Solution]:
    """Solve y A = target for each row of targets, as far as that many digits suffice."""
    work = _Digits(matrix, solver, targets, check)
    for count in range(1, digits + 1):
        work.advance()
        yield from work.finished()
        if count & (count - 1) == 0 or count == digits:  # a rational is tried at powers of two
            yield from work.recovered()
        if not len(work.places):
            return


class _Digits:
    """The digits found so far of the targets that are still open."""

    def __init__(
        self, matrix: NDArray[Any], solver: Solver, targets: NDArray[Any], check: Check
    ) -> None:
        self._matrix, self._solver, self._check = matrix, solver, check
        self.places = np.arange(len(targets))
        self._left = targets
        self._digits: list[NDArray[Any]] = []

    def advance(self) -> None:
        """Find one more digit of each."""
        prime = self._solver.prime
        digit = self._solver.solve(self._left)
        digit = np.where(digit > prime // 2, digit - prime, digit)
        self._left = (self._left - product(digit, self._matrix)) // prime
        self._digits.append(digit)

    def finished(self) -> Iterator[Solution]:
        """Give the integer solutions whose remainder is zero, and drop them."""
        done = np.asarray(~(self._left != 0).any(axis=1), np.bool_)
        for k in np.flatnonzero(done).tolist():
            used = self._used(k)
            numbers = dict(zip(used.tolist(), self._numbers(k, used), strict=True))
            solution = Solution(int(self.places[k]), numbers, 1)
            if self._check(solution):
                yield solution
        self._keep(~done)

    def recovered(self) -> Iterator[Solution]:
        """Give the rational solutions that the digits determine already, and drop them."""
        unsolved = np.ones(len(self.places), np.bool_)
        for k in range(len(self.places)):
            solution = self._recover(k)
            if solution is not None and self._check(solution):
                unsolved[k] = False
                yield solution
        self._keep(unsolved)

    def _recover(self, k: int) -> Solution | None:
        """A solution with a common denominator; a few of its parts show if there is none."""
        modulus, used = self._solver.prime ** len(self._digits), self._used(k)
        if common_denominator(self._numbers(k, used[:_PROBE]), modulus) is None:
            return None
        found = common_denominator(self._numbers(k, used), modulus)
        if found is None:
            return None
        return Solution(
            int(self.places[k]), dict(zip(used.tolist(), found[0], strict=True)), found[1]
        )

    def _keep(self, chosen: NDArray[np.bool_]) -> None:
        self.places, self._left = self.places[chosen], self._left[chosen]
        self._digits = [digit[chosen] for digit in self._digits]

    def _used(self, k: int) -> NDArray[np.int64]:
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
    reach = _reach(one) * _reach(other) * max(1, other.shape[0])
    if reach < _EXACT:
        return (one.astype(np.float64) @ other.astype(np.float64)).astype(np.int64)
    return np.asarray(one.astype(object) @ other.astype(object), object)


def _reach(matrix: NDArray[Any]) -> int:
    return max(int(matrix.max()), -int(matrix.min())) if matrix.size else 0


def common_denominator(numbers: Iterable[int], modulus: int) -> tuple[list[int], int] | None:
    """Small numerators and a small denominator: numerator = number times denominator."""
    denominator, bound, seen = 1, math.isqrt(modulus // 2), []
    for number in numbers:  # ends at the first one that shows the digits to be too few
        found = rational(number * denominator % modulus, modulus, bound)
        if found is None or denominator * found[1] > bound:
            return None
        denominator *= found[1]
        seen.append(number)
    return [_centred(number * denominator, modulus) for number in seen], denominator


def rational(residue: int, modulus: int, bound: int) -> tuple[int, int] | None:
    """n/d congruent to the residue with |n| and d at most `bound`, if there is one.

    >>> rational(2 * pow(3, -1, 101) % 101, 101, 7)
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


def _centred(value: int, modulus: int) -> int:
    rest = value % modulus
    return rest - modulus if rest > modulus // 2 else rest
