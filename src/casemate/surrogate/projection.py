"""Projections: the nearest distribution, in relative entropy, that agrees with a measurement.

Source     The update step of source document 003's database update algorithms, with the one of
           least relative entropy in the place of a fixed step; iterative proportional fitting.
Guarantee  Projecting on a measured fraction m lowers the relative entropy of the data (with
           fraction d) to the stand-in (with fraction f) by exactly kl(d, f) - kl(d, m), where kl
           is the relative entropy of two coins: without noise at least 2 gap^2, and more than
           any step of multiplicative weights.
Soft       A noisy table is not to be believed to the last digit. The soft step minimises relative
           entropy plus sharpness / 2 times the squared distance to what was measured, exactly, for
           one table at a time with the total kept at one. Each table keeps multipliers (theta, one
           for each cell), and steps taken in turns reach the common minimum.

Every function takes and gives small arrays: the mass inside a question, or a marginal, both as
fractions of the total. What it gives is the factor for each of their cells.

The one cell of a measured marginal that a stand-in gets most wrong, as a question.
"""

import math
from collections.abc import Callable

import numpy as np

from casemate.grid import Floats, MeasuredMarginal, Product

LEAST = 1e-5
"""A measured fraction is believed between this and one minus this: never nothing, never all."""

SCARCE, GONE = 1e-60, 1e-200
"""A soft step leaves no less than the first in a cell, and a cell below the second is left alone:
so no factor leaves the range of floats."""

ROUNDS = 100
"""Enough for every one-dimensional equation here to be solved to the last digit."""


def inside_and_outside(inside: float, outside: float, measured: float) -> tuple[float, float]:
    """The factors inside and outside a 0/1 question that make the mass inside the measured one."""
    if inside <= 0 or outside <= 0:  # no factor could move mass to where none is
        return 1.0, 1.0
    wanted = min(max(measured, LEAST), 1 - LEAST)
    return wanted / inside, (1 - wanted) / outside


def to_marginal(marginal: Floats, measured: Floats) -> Floats:
    """The factors that make a marginal the measured one, moved to where it is a distribution."""
    wanted = np.maximum(on_simplex(measured.ravel()), LEAST / measured.size)
    wanted = (wanted / wanted.sum()).reshape(measured.shape)
    factors: Floats = np.ones(wanted.shape)
    np.divide(wanted, marginal, out=factors, where=marginal > 0)
    return factors


def to_mean(marginal: Floats, weights: Floats, measured: float) -> Floats:
    """The factors exp(eta * weight) / Z that make the mean of the weights the measured one."""
    low, high = float(weights.min()), float(weights.max())
    if low == high:
        return np.ones_like(marginal)
    unit = (weights - low) / (high - low)
    wanted = min(max((measured - low) / (high - low), LEAST), 1 - LEAST)
    return tilted(marginal, unit, _solved(lambda eta: _mean(marginal, unit, eta) - wanted))


def tilted(marginal: Floats, weights: Floats, eta: float) -> Floats:
    """The factors exp(eta * weight) / Z, where Z keeps the total of the marginal."""
    raised: Floats = np.exp(eta * weights - max(eta * weights.max(), eta * weights.min()))
    raised *= marginal.sum() / (raised * marginal).sum()
    return raised


def soft_to_marginal(
    marginal: Floats, measured: Floats, sharpness: float, theta: Floats
) -> tuple[Floats, Floats]:
    """Factors for a marginal, and the new thetas.

    Cell by cell, sharpness * wanted + log(wanted) is known up to one common number, and that is
    found by keeping the total. The multipliers are what was really applied, so a cell that is held
    above nothing comes back when others need it.
    """
    alive = marginal > GONE
    start = np.log(marginal[alive]) + sharpness * measured[alive] - theta[alive]
    mass = float(marginal.sum())
    shift = _shift_for(start, sharpness * mass)
    wanted = wright_omega(start + shift)
    wanted = np.maximum(wanted / wanted.sum(), SCARCE)
    factors, multipliers = np.ones_like(marginal), theta.copy()
    factors[alive] = wanted / wanted.sum() * mass / marginal[alive]
    multipliers[alive] += np.log(factors[alive]) - shift + math.log(sharpness)
    return factors, multipliers


def _shift_for(start: Floats, total: float) -> float:
    """The s for which wright_omega(start + s) has this total: Newton's method between bounds.

    The largest entry alone is at most the total, and at least its share among equals.
    """
    highest, share = float(start.max()), total / start.size
    low, high = share + math.log(share) - highest, total + math.log(total) - highest
    shift = min(max(math.log(total) - highest, low), high)
    for _ in range(ROUNDS):
        w = wright_omega(start + shift)
        missing = math.log(total) - math.log(float(w.sum()))
        low, high = (shift, high) if missing > 0 else (low, shift)
        step = missing * float(w.sum()) / float((w / (1 + w)).sum())
        if abs(step) <= 1e-13 * (1 + abs(shift)):
            break
        shift = shift + step if low < shift + step < high else (low + high) / 2
    return shift


def wright_omega(value: Floats) -> Floats:
    """The w with w + log(w) = value, by Newton's method from below, where it cannot overshoot."""
    value = np.maximum(value, -700.0)  # below, w is smaller than any float that matters
    small, large = np.minimum(value, 1.0), np.maximum(value, 1.0)
    w: Floats = np.where(value > 1, large - np.log(large), np.exp(small) / (1 + np.exp(small)))
    for _ in range(8):
        w = w * (1 + value - np.log(w)) / (1 + w)
    return w


def on_simplex(values: Floats) -> Floats:
    """The nearest numbers that are not negative and sum to one."""
    falling = np.sort(values)[::-1]
    surplus = np.cumsum(falling) - 1.0
    kept = int(np.count_nonzero(falling * np.arange(1, values.size + 1) > surplus))
    nearest: Floats = np.maximum(values - surplus[kept - 1] / kept, 0.0)
    return nearest


def _mean(marginal: Floats, weights: Floats, eta: float) -> float:
    return float((marginal * tilted(marginal, weights, eta) * weights).sum() / marginal.sum())


def _solved(rising: Callable[[float], float]) -> float:
    """Where a rising function is zero, by halving."""
    low, high = -700.0, 700.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


# Most off ---------------------------------------------------------------------------------------


def most_off(
    measured: MeasuredMarginal, believed: Floats, shape: tuple[int, ...]
) -> tuple[Product, float]:
    """The question about that cell, the first of equals, and its measured value."""
    if believed.shape != measured.values.shape:
        raise ValueError(
            f"a marginal over {measured.marginal.scope} has the shape {believed.shape} here, "
            f"got {measured.values.shape}"
        )
    where = int(np.argmax(np.abs(measured.values - believed)))
    cell = np.unravel_index(where, believed.shape)
    masks = {
        axis: np.arange(shape[axis]) == code
        for axis, code in zip(measured.marginal.scope, cell, strict=True)
    }
    return Product(shape, masks), float(measured.values[cell])
