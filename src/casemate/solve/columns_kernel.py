"""A compiled pass that turns entries sorted by equation into entries sorted by unknown."""

from typing import Any

from numba import njit


@njit(cache=True)
def turn(starts: Any, columns: Any, given: Any, places: Any, found: Any) -> None:
    """Put each entry at the next free place of its unknown; `found` is (rows, values)."""
    rows, values = found
    plain = given.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        for k in range(starts[i], starts[i + 1]):
            place = places[columns[k]]
            places[columns[k]] += 1
            rows[place] = i
            if not plain:
                values[place] = given[k]
