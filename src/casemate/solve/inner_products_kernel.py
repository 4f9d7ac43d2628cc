"""A compiled pass that adds up products of the coefficients of each equation."""

from typing import Any

from numba import njit


@njit(cache=True)
def add_products(starts: Any, columns: Any, values: Any, weights: Any, found: Any) -> None:
    """Add weight * coefficient * coefficient for all pairs of each equation."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        for k in range(starts[i], starts[i + 1]):
            own = found[columns[k]]
            weight = weights[i] if plain else weights[i] * values[k]
            for other in range(starts[i], starts[i + 1]):
                own[columns[other]] += weight if plain else weight * values[other]
