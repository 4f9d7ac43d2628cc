"""How far a weighted sum of measured noise can be off: widths that are proven.

Guarantee  `half_width` is a w with P(|a_1 X_1 + ... + a_m X_m| <= w) >= confidence, for independent
           X_i of the discrete law that was drawn from. It is close to the least one; for one draw
           it is the least, or for Gaussian noise at most one more.
           docs/derivations/answer_intervals.md has the proofs.
Cost       Microseconds; sums of Laplace noise take a transform, once for each set of weights.
Rounding   Chances are kept below what was asked for by a margin far above what floats lose.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.answer.widths_gaussian import gaussian_width
from casemate.answer.widths_laplace import laplace_deviation, laplace_width
from casemate.doors.law import GaussianLaw, Law

Magnitudes = tuple[tuple[int, int], ...]
"""How often each weight occurs, without its sign; the largest first and none of zero."""


def half_width(law: Law, weights: Sequence[int] | NDArray[Any], confidence: float) -> int:
    """How far a sum of independent noise, each times its weight, is off at this confidence.

    >>> from fractions import Fraction
    >>> half_width(GaussianLaw(Fraction(10)), [1], 0.95)
    20
    """
    if not 0 < confidence < 1:
        raise ValueError(f"need 0 < confidence < 1, got {confidence}")
    return _width(law, magnitudes(weights), float(confidence))


def deviation(law: Law, weights: Sequence[int] | NDArray[Any]) -> float:
    """The standard deviation of that sum, or for Gaussian noise what it is at most."""
    norm = math.sqrt(sum(times * size**2 for size, times in magnitudes(weights)))
    if isinstance(law, GaussianLaw):
        return float(law.scale) * norm
    return laplace_deviation(float(law.scale)) * norm


def magnitudes(weights: Sequence[int] | NDArray[Any]) -> Magnitudes:
    """The weights as far as their order and signs do not matter.

    >>> magnitudes([2, -1, 0, 1])
    ((2, 1), (1, 2))
    """
    given = np.asarray(weights).ravel()
    if given.dtype.kind in "bf":
        given = _whole(given)
    sizes = np.abs(given)
    if sizes.size and (sizes == sizes[0]).all():
        return ((int(sizes[0]), sizes.size),) if sizes[0] else ()
    found, times = np.unique(sizes, return_counts=True)
    pairs = zip(found.tolist()[::-1], times.tolist()[::-1], strict=True)
    return tuple((int(size), int(count)) for size, count in pairs if size)


def _whole(given: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers that came as floats or as a mask."""
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if not np.array_equal(whole, given):
        raise ValueError("weights are whole numbers, and some of these are not")
    return whole


@lru_cache(maxsize=4096)
def _width(law: Law, sizes: Magnitudes, confidence: float) -> int:
    if not sizes:
        return 0
    unit = math.gcd(*(size for size, _ in sizes))
    primitive = tuple((size // unit, times) for size, times in sizes)
    if isinstance(law, GaussianLaw):
        return unit * gaussian_width(float(law.scale), primitive, confidence)
    return unit * laplace_width(law.scale, primitive, confidence)
