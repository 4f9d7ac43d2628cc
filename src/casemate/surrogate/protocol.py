"""What every stand-in for a table can do, and what it knows of the number of records."""

import math
from collections.abc import Sequence
from typing import Protocol

from casemate.grid import Floats, MeasuredMarginal, Measurement, Product, Scope


class Surrogate(Protocol):
    """A public stand-in for a table of counts: it answers, and learns from what was measured.

    It sees nothing but measurements, so whatever it answers costs no privacy; and it is a
    deterministic function of them and of its settings, so a transcript rebuilds it.
    """

    @property
    def total(self) -> float:
        """How many records it believes there are."""
        ...

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        ...

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        ...

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute."""
        ...

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        ...


class DailyStandIn(Surrogate, Protocol):
    """A stand-in for daily use: it fits what was measured together, and all that came before."""

    shape: tuple[int, ...]

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """Its counts over many scopes."""
        ...

    def learn(self, measurements: Sequence[Measurement], sweeps: int = ...) -> None:
        """Learn from what was published together, going over everything so many times."""
        ...


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
