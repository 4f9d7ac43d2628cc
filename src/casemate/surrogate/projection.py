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

A projection takes and gives small arrays: the mass inside a question, or a marginal, both as
fractions of the total. What it gives is the factor for each of their cells. What is projected on is
made here, too: the cell of a marginal that is most off, noisy tables that agree, and the number of
records that all of them are fractions of.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from casemate.grid import Floats, MeasuredMarginal, Measurement, Product

MIN_MEASURED_FRACTION = 1e-5
"""A measured fraction is believed between this and one minus this: never nothing, never all."""

MIN_SOFT_STEP_SHARE, NEGLIGIBLE_SHARE = 1e-60, 1e-200
"""A soft step leaves no less than the first in a cell, and a cell below the second is left alone:
so no factor leaves the range of floats."""

MAX_ITERATIONS = 100
"""Enough for every one-dimensional equation here to be solved to the last digit."""


def inside_and_outside(inside: float, outside: float, measured: float) -> tuple[float, float]:
    """The factors inside and outside a 0/1 question that make the mass inside the measured one."""
    if inside <= 0 or outside <= 0:  # no factor could move mass to where none is
        return 1.0, 1.0
    wanted = min(max(measured, MIN_MEASURED_FRACTION), 1 - MIN_MEASURED_FRACTION)
    return wanted / inside, (1 - wanted) / outside


def to_marginal(marginal: Floats, measured: Floats) -> Floats:
    """The factors that make a marginal the measured one, moved to where it is a distribution.

    A cell without mass stays empty, and the others share what was measured there.
    """
    wanted = project_on_distributions(measured[..., None])[..., 0]
    alive = marginal > 0
    if not alive.all():
        wanted = wanted / wanted[alive].sum()
    factors: Floats = np.ones(wanted.shape)
    np.divide(wanted, marginal, out=factors, where=alive)
    return factors


def project_on_distributions(shares: Floats) -> Floats:
    """The nearest distributions, one for each place on the last axis; no cell without mass."""
    flat = shares.reshape(-1, shares.shape[-1])
    wanted = np.maximum(project_on_simplex(flat), MIN_MEASURED_FRACTION / len(flat))
    return np.asarray((wanted / wanted.sum(axis=0)).reshape(shares.shape))


def to_mean(marginal: Floats, weights: Floats, measured: float) -> Floats:
    """The factors exp(eta * weight) / Z that make the mean of the weights the measured one."""
    low, high = float(weights.min()), float(weights.max())
    if low == high:
        return np.ones_like(marginal)
    unit = (weights - low) / (high - low)
    wanted = min(
        max((measured - low) / (high - low), MIN_MEASURED_FRACTION), 1 - MIN_MEASURED_FRACTION
    )
    return exponential_tilt(
        marginal, unit, _bisect_zero(lambda eta: _mean(marginal, unit, eta) - wanted)
    )


def exponential_tilt(marginal: Floats, weights: Floats, eta: float) -> Floats:
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
    from scipy.special import wrightomega

    alive = marginal > NEGLIGIBLE_SHARE
    start = np.log(marginal[alive]) + sharpness * measured[alive] - theta[alive]
    mass = float(marginal.sum())
    shift = _shift_for(start, sharpness * mass)
    wanted = wrightomega(start + shift)
    wanted = np.maximum(wanted / wanted.sum(), MIN_SOFT_STEP_SHARE)
    factors, multipliers = np.ones_like(marginal), theta.copy()
    factors[alive] = wanted / wanted.sum() * mass / marginal[alive]
    multipliers[alive] += np.log(factors[alive]) - shift + math.log(sharpness)
    return factors, multipliers


def _shift_for(start: Floats, total: float) -> float:
    """The s for which wrightomega(start + s) has this total: Newton's method between bounds.

    The largest entry alone is at most the total, and at least its share among equals.
    """
    from scipy.special import wrightomega

    highest, share = float(start.max()), total / start.size
    low, high = share + math.log(share) - highest, total + math.log(total) - highest
    shift = min(max(math.log(total) - highest, low), high)
    for _ in range(MAX_ITERATIONS):
        w = wrightomega(start + shift)
        missing = math.log(total) - math.log(float(w.sum()))
        low, high = (shift, high) if missing > 0 else (low, shift)
        step = missing * float(w.sum()) / float((w / (1 + w)).sum())
        if abs(step) <= 1e-13 * (1 + abs(shift)):
            break
        shift = shift + step if low < shift + step < high else (low + high) / 2
    return shift


def project_on_simplex(values: Floats) -> Floats:
    """The nearest numbers along the first axis that are not negative and sum to one."""
    falling = np.sort(values, axis=0)[::-1]
    surplus = np.cumsum(falling, axis=0) - 1.0
    ranks = np.arange(1, len(values) + 1).reshape(-1, *[1] * (values.ndim - 1))
    kept = np.count_nonzero(falling * ranks > surplus, axis=0, keepdims=True)
    nearest = np.maximum(values - np.take_along_axis(surplus, kept - 1, axis=0) / kept, 0.0)
    return np.asarray(nearest)


def _mean(marginal: Floats, weights: Floats, eta: float) -> float:
    return float(
        (marginal * exponential_tilt(marginal, weights, eta) * weights).sum() / marginal.sum()
    )


def _bisect_zero(rising: Callable[[float], float]) -> float:
    """Where a rising function is zero, by halving."""
    low, high = -700.0, 700.0
    for _ in range(MAX_ITERATIONS):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


# The cell of a measured marginal that a stand-in gets most wrong --------------------------------


def worst_cell(
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


# Noisy tables moved so that they agree with each other ------------------------------------------


MIN_VARIANCE = 1e-12
"""An exact number counts as one of this variance: it counts most, and nothing is infinite."""


def reconcile(
    tables: Sequence[MeasuredMarginal], values: Sequence[Floats], totals: Floats
) -> list[Floats]:
    """The values of noisy tables, moved to agree on the total and on every attribute they share.

    The last axis of the values, and of the totals, are worlds apart from each other. The counts of
    an attribute are the mean of what its tables say, each weighed by its variance. Once the totals
    agree, a table can be moved along one attribute without touching another.
    """
    scopes = [table.marginal.scope for table in tables]
    moved = [_with_total(each, totals) for each in values]
    for attribute in sorted({a for scope in scopes for a in scope}):
        holding = [place for place, scope in enumerate(scopes) if attribute in scope]
        sides = [tuple(x for x, a in enumerate(scopes[p]) if a != attribute) for p in holding]
        shown = [moved[place].sum(axis=axes) for place, axes in zip(holding, sides, strict=True)]
        rows = [one.size / moved[place].size for place, one in zip(holding, shown, strict=True)]
        exact = [max(tables[place].variance, MIN_VARIANCE) for place in holding]
        precise = [row / variance for row, variance in zip(rows, exact, strict=True)]
        mean = np.average(np.stack(shown), axis=0, weights=precise)
        for place, axes, one, row in zip(holding, sides, shown, rows, strict=True):
            moved[place] = moved[place] + np.expand_dims((mean - one) * row, axes)
    return moved


def _with_total(values: Floats, totals: Floats) -> Floats:
    axes = tuple(range(values.ndim - 1))
    return np.asarray(values + (totals - values.sum(axis=axes)) / math.prod(values.shape[:-1]))


# The number of records, and whether a measurement is about a grid at all ------------------------


class KnownTotal:
    """A number of records and the variance of what is known of it.

    The variance is 0 for a public number and infinity for none; every measured total and table
    sharpens it, each weighed by its own variance.
    """

    def __init__(self, value: float, variance: float = 0.0) -> None:
        if not math.isfinite(value) or not variance >= 0:
            raise ValueError(
                f"a stand-in needs a finite total and a variance that is not negative, "
                f"got {value} and {variance}"
            )
        self.value, self.variance = float(value), float(variance)

    @property
    def records(self) -> float:
        """How many there are, as far as is known; at least one."""
        return max(self.value, 1.0)

    def count(self, measurement: Measurement) -> None:
        """Learn from a total that was measured, alone or as the sum of a table."""
        if isinstance(measurement, MeasuredMarginal):
            measured, cells = float(measurement.values.sum()), measurement.values.size
        elif not measurement.product.scope:
            measured, cells = measurement.value, 1
        else:
            return
        if self.variance == 0:
            return
        variance = cells * measurement.variance
        share = 1.0 if math.isinf(self.variance) else self.variance / (self.variance + variance)
        self.value += share * (measured - self.value)
        self.variance = variance if math.isinf(self.variance) else (1 - share) * self.variance


def check_grid(shape: tuple[int, ...], measurement: Measurement) -> None:
    """Refuse what is about another grid."""
    if isinstance(measurement, MeasuredMarginal):
        scope, widths = measurement.marginal.scope, measurement.values.shape
        fits = all(0 <= a < len(shape) for a in scope)
        fits = fits and widths == tuple(shape[a] for a in scope)
    else:
        fits = measurement.product.shape == shape
    if not fits:
        raise ValueError(f"this measurement is not about the grid {shape}")


def checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The widths of a grid as plain numbers; none is empty."""
    widths = tuple(int(width) for width in shape)
    if not widths or min(widths) < 1:
        raise ValueError(f"a grid has attributes of at least one code each, got {shape}")
    return widths
