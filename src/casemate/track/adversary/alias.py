"""Draws from a fixed distribution in constant time (the alias method of Walker and Vose)."""

import numpy as np
from numpy.typing import NDArray


def zipf_weights(exponent: float, sites: int) -> NDArray[np.float64]:
    """Weights 1, 2^-s, 3^-s, ... of the sites in order."""
    return np.arange(1.0, sites + 1.0) ** -exponent


def alias_table(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each of n equal columns the share its own number keeps, and who has the rest."""
    kept = weights * (len(weights) / weights.sum())
    alias = np.arange(len(weights))
    small = [i for i, share in enumerate(kept) if share < 1.0]
    large = [i for i, share in enumerate(kept) if share >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        kept[rich] -= 1.0 - kept[poor]
        if kept[rich] < 1.0:
            small.append(large.pop())
    kept[small + large] = 1.0  # what rounding left over
    return kept, alias
