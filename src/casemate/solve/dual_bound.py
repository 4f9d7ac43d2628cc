"""Weak duality in exact arithmetic: any multipliers of the equations prove a bound.

For all x in the region and any y, c.x = y.(A x) + (c - A^T y).x, and each term on the right is
bounded by an equation's range or a column's. So multipliers that a floating-point solver suggests
prove a bound whatever they are, and the best ones prove the best bound; nothing about the solver
has to be believed.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rational_solution import common_denominator
from casemate.solve.scaled import Scaled

SAFE = 2**62
"""Sums of magnitudes below this are exact in int64."""


def bound_below(
    scaled: Scaled, multipliers: Sequence[Fraction], objective: Mapping[int, int]
) -> Fraction | None:
    """A value that the objective never falls below, in scaled units; None if y proves none."""
    common, weights = common_denominator(list(multipliers))
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
