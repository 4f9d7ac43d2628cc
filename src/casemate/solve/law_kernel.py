"""Compiled losses, and what a change of one unknown does to the losses of its equations.

`left` holds what is left of each equation, divided by its spread; `system` is (starts, rows,
values, inverse spreads, law), entries sorted by unknown; no stored values means that all are 1.
"""

from typing import Any

from numba import njit

GAUSSIAN, LAPLACE = 0, 1
BEYOND = 1 + 1e-9
"""A residual of at most this many spreads keeps a bound; the rest of it is rounding."""


@njit(cache=True, inline="always")
def loss(law: Any, rest: Any) -> Any:
    """The negative log-likelihood of a residual, up to a constant."""
    if law == GAUSSIAN:
        return 0.5 * rest * rest
    if law == LAPLACE:
        return abs(rest)
    return max(0.0, abs(rest) - BEYOND)


@njit(cache=True)
def total_loss(law: Any, left: Any) -> Any:
    """The loss of all equations together."""
    total = 0.0
    for i in range(left.shape[0]):
        total += loss(law, left[i])
    return total


@njit(cache=True)
def saved(system: Any, left: Any, unknown: Any, step: Any) -> Any:
    """How much loss goes away when one unknown changes by `step`."""
    starts, rows, values, inverse, law = system
    plain = values.shape[0] == 0
    total = 0.0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        moved = step * inverse[i] if plain else step * inverse[i] * values[k]
        total += loss(law, left[i]) - loss(law, left[i] - moved)
    return total


@njit(cache=True)
def parabola(system: Any, left: Any, unknown: Any) -> Any:
    """For Gaussian noise: a change by d saves `slope` * d - `curve` * d^2 / 2."""
    starts, rows, values, inverse, _ = system
    plain = values.shape[0] == 0
    slope, curve = 0.0, 0.0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        weight = inverse[i] if plain else inverse[i] * values[k]
        slope += weight * left[i]
        curve += weight * weight
    return slope, curve


@njit(cache=True)
def change(system: Any, left: Any, unknown: Any, step: Any) -> None:
    """Let one unknown change by `step`."""
    starts, rows, values, inverse, _ = system
    plain = values.shape[0] == 0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        left[i] -= step * inverse[i] if plain else step * inverse[i] * values[k]
