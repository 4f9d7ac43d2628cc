"""Certificates: which equations, in which multiples, add up to an unknown or a few of them.

Guarantee  A certificate that `certify` gives has been checked in integers: the sum of coefficient
           times equation is divisor times the unknown, and nothing else. It is irreducible: its
           equations are linearly independent and none has coefficient zero, so the combination is
           the only one, and no proper subset of them determines the unknown.
Method     A determined unknown is a pivot, and its combination of the independent equations is a
           row of the inverse of the pivot block, lifted from a prime to the integers.
           The independent equations are the greedy ones, so the last equation of a certificate
           over them is the one that tipped the unknown over.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.exact.lifting import LiftingSolver, Solution, lift
from casemate.exact.system import System

MOST_DIGITS = 64
MOST_DIGITS_OF_LARGE = 8
LARGE_BLOCK_EQUATIONS = 2048
"""Coefficients get up to 64 digits in base p; past this many equations 8, which are 180 bits."""

_TARGETS_PER_BATCH = 512  # unknowns solved for at a time, to bound the memory
_EXACT_DOUBLES = 2**53
_NARROW_COEFFICIENT = 2**31


Target = Mapping[int, int]
"""Coefficients of unknowns: what a certificate is asked to add up to."""


@dataclass(frozen=True)
class Certificate:
    """Coefficients of equations (numbered from 0) that add up to `divisor` times the target."""

    target: Target
    coefficients: Mapping[int, int]
    divisor: int

    @property
    def column(self) -> int:
        """The unknown, where the target is a single one."""
        (column,) = self.target
        return column

    @property
    def equations(self) -> tuple[int, ...]:
        """The equations it needs."""
        return tuple(sorted(self.coefficients))

    def value(self, right: Sequence[Fraction]) -> Fraction:
        """The target itself, given what each equation adds up to."""
        numbers = [right[i] for i in self.coefficients]
        scale = math.lcm(1, *{number.denominator for number in numbers})
        total = sum(
            weight * number.numerator * (scale // number.denominator)
            for weight, number in zip(self.coefficients.values(), numbers, strict=True)
        )
        return Fraction(total, scale * self.divisor)


class PivotBlock(LiftingSolver, Protocol):
    """A solver for the independent equations restricted to their pivots."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """The independent equations."""

    @property
    def pivots(self) -> NDArray[np.int64]:
        """Their pivot columns."""


def certify(
    system: System, block: PivotBlock, columns: Sequence[int], digits: int | None = None
) -> Iterator[Certificate]:
    """Certificates of those columns that are determined, in no particular order.

    A column without one is not determined, or its coefficients have more digits than asked for.
    """
    return certify_targets(system, block, [{column: 1} for column in columns], digits)


def certify_targets(
    system: System, block: PivotBlock, targets: Sequence[Target], digits: int | None = None
) -> Iterator[Certificate]:
    """Certificates of those combinations of unknowns that are determined."""
    most_digits = digits or (
        MOST_DIGITS if len(block.rows) <= LARGE_BLOCK_EQUATIONS else MOST_DIGITS_OF_LARGE
    )
    matrix, lines = dense_block(system, block), IntegerRows(system)
    for start in range(0, len(targets), _TARGETS_PER_BATCH):
        batch = targets[start : start + _TARGETS_PER_BATCH]
        yield from _certify_batch(matrix, lines, block, batch, most_digits)


def _certify_batch(
    matrix: NDArray[Any],
    lines: "IntegerRows",
    block: PivotBlock,
    targets: Sequence[Target],
    digits: int,
) -> Iterator[Certificate]:
    def certificate_of(solution: Solution) -> Certificate:
        weights = sorted(solution.numerators.items())
        coefficients = {int(block.rows[k]): weight for k, weight in weights}
        return Certificate(targets[solution.target], coefficients, solution.divisor)

    def check(solution: Solution) -> bool:
        return lines.proves(certificate_of(solution))

    yield from map(certificate_of, lift(matrix, block, _on_pivots(targets, block), digits, check))


def tipping_equations(block: PivotBlock, columns: Sequence[int]) -> dict[int, int]:
    """The equation with which each of these determined columns became determined.

    The last equation of its combination, read modulo the prime: a last coefficient that the prime
    divides would be passed over, with probability about 1 / p.
    """
    targets = [{column: 1} for column in columns]
    found: dict[int, int] = {}
    for start in range(0, len(targets), _TARGETS_PER_BATCH):
        batch = columns[start : start + _TARGETS_PER_BATCH]
        solved = block.solve(_on_pivots(targets[start : start + _TARGETS_PER_BATCH], block))
        for column, line in zip(batch, solved, strict=True):
            found[column] = int(block.rows[np.flatnonzero(line)[-1]])
    return found


def _on_pivots(targets: Sequence[Target], block: PivotBlock) -> NDArray[Any]:
    """The targets' coefficients in the pivot columns, which decide all the others."""
    place = {column: k for k, column in enumerate(block.pivots.tolist())}
    dense = np.zeros((len(targets), len(place)), object)
    for i, target in enumerate(targets):
        for column, coefficient in target.items():
            if column in place:
                dense[i, place[column]] = coefficient
    narrow = all(
        abs(value) < _NARROW_COEFFICIENT for target in targets for value in target.values()
    )
    return dense.astype(np.int64) if narrow else dense


def dense_block(system: System, block: PivotBlock) -> NDArray[Any]:
    """The independent equations restricted to their pivots, as a matrix."""
    part = system.part(block.rows, block.pivots)
    matrix = np.zeros((part.rows, part.columns), system.value.dtype)
    matrix[part.row, part.column] = part.value
    return matrix


class IntegerRows:
    """The equations of a system, ready to be added up in exact integers."""

    def __init__(self, system: System) -> None:
        starts, self._column, self._value = system.by_row()
        self._columns, self._starts = system.columns, starts.tolist()
        self._reach = max((abs(int(value)) for value in np.unique(system.value)), default=0)

    def combine(self, coefficients: Mapping[int, int]) -> dict[int, int]:
        """The non-zero coefficients of a sum of multiples of equations."""
        if not coefficients:
            return {}
        parts = [np.arange(self._starts[i], self._starts[i + 1]) for i in coefficients]
        places = np.concatenate(parts)
        columns, values = self._column[places], self._value[places]
        weights = np.empty(len(parts), object)
        weights[:] = list(coefficients.values())
        if len(places) * self._reach * max(map(abs, coefficients.values())) < _EXACT_DOUBLES:
            weights, values = weights.astype(np.float64), values.astype(np.float64)
        terms = np.repeat(weights, [len(part) for part in parts]) * values
        return _added_up(columns, terms, self._columns)

    def proves(self, certificate: Certificate) -> bool:
        """Whether the certificate adds up to its target and nothing else."""
        divisor = certificate.divisor
        wanted = {j: divisor * value for j, value in certificate.target.items() if value}
        return divisor != 0 and self.combine(certificate.coefficients) == wanted


def _added_up(columns: NDArray[np.int64], terms: NDArray[Any], width: int) -> dict[int, int]:
    """Totals by column, exactly: the doubles here are whole numbers whose sums stay below 2^53."""
    if 8 * len(columns) < width:  # few of many columns: number those that occur
        found, place = np.unique(columns, return_inverse=True)
    else:
        found, place = np.arange(width), columns
    if terms.dtype == object:
        totals = np.zeros(len(found), object)
        np.add.at(totals, place, terms)
    else:
        totals = np.bincount(place, weights=terms, minlength=len(found))
    left = np.flatnonzero(totals).tolist()
    return {int(found[k]): int(totals[k]) for k in left}
