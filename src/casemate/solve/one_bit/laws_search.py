"""The inverse of a distribution function that has no formula: by doubling, then by halving."""

from collections.abc import Callable

import numpy as np

from casemate.solve.one_bit.laws_protocol import Floats

HALVINGS = 200
"""Enough to reach neighbouring numbers from anywhere; the search ends earlier."""


def cdf_inverse(
    cdf: Callable[[Floats], Floats], p: Floats, edges: tuple[float, float], scale: float
) -> Floats:
    """The smallest x with cdf(x) >= p, within rounding, for each p."""
    chances = np.atleast_1d(np.asarray(p, float))
    low = _bracket(lambda x: cdf(x) >= chances, chances, edges[0], -scale)
    high = _bracket(lambda x: cdf(x) < chances, chances, edges[1], scale)
    for _ in range(HALVINGS):
        middle = 0.5 * low + 0.5 * high
        if np.all((middle == low) | (middle == high)):
            break
        enough = cdf(middle) >= chances
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    found = np.where(chances <= 0, edges[0], np.where(chances >= 1, edges[1], high))
    return found.reshape(np.shape(p))


def _bracket(
    short: Callable[[Floats], np.ndarray], chances: Floats, edge: float, step: float
) -> Floats:
    """A number beyond each quantile: the edge, or as many doublings of the step as it takes."""
    if np.isfinite(edge):
        return np.full(chances.shape, edge)
    inside = (chances > 0) & (chances < 1)
    reach = np.full(chances.shape, float(step))
    while np.any(wanting := inside & short(reach) & (np.abs(reach) < 1e300)):
        reach = np.where(wanting, 2 * reach, reach)
    return reach
