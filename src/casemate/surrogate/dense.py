"""The stand-in for daily use: projections, every past measurement replayed after each new one.

Source     The online construction of source document 003, whose stand-in is public: whatever
           learns from the measurements costs no privacy, so the best fit is free.
Guarantee  A deterministic function of its settings and of the measurements in their order: the
           same transcript gives the same bits.
Cost       One pass over the cells for each past measurement and each sweep, fused with the look
           at what the next one needs.
Hard       Single questions and tables of one or two attributes are matched in turn (iterative
           proportional fitting), after tables that share an attribute were made to agree on it.
Soft       The cells of a table of three or more attributes are few people each, and matching them
           would be matching noise: it is approached as far as the variance of its noise allows,
           and before the others in each sweep, so that large sums stay with those who know them.
           `test_a_noisy_wide_table_is_approached_and_not_matched` shows both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate.histogram import Histogram, Target
from casemate.surrogate.kept_fit import FitState
from casemate.surrogate.projection import (
    KnownTotal,
    check_grid,
    inside_and_outside,
    reconcile,
    soft_to_marginal,
    to_marginal,
    to_mean,
)

DEFAULT_SWEEPS = 10
"""So many sweeps fit several measurements that come together."""

SOFT_STEP_SHARPNESS = 50.0
"""How many times its own information a measurement is believed in the soft steps: kappa."""

WIDE_TABLE_ATTRIBUTES = 3
"""A table of so many attributes is approached softly."""


@dataclass
class HeldQuestion:
    """A measured question, and what a step towards it looks at."""

    measurement: MeasuredProduct

    @property
    def target(self) -> Target:
        """The mass inside a 0/1 question; a weighted one needs the marginal of its scope."""
        product = self.measurement.product
        return product if product.counts else Marginal(product.scope)


@dataclass
class HeldTable:
    """A measured table, what it is moved to, and the multipliers of its soft steps."""

    measurement: MeasuredMarginal
    wanted: Floats
    theta: Floats

    @property
    def target(self) -> Marginal:
        """The marginal that was measured."""
        return self.measurement.marginal


Held = HeldQuestion | HeldTable


def _is_wide(held: Held) -> bool:
    """Whether its cells are too few people each to be matched."""
    return isinstance(held, HeldTable) and len(held.target.scope) >= WIDE_TABLE_ATTRIBUTES


def _hold(measurement: Measurement) -> Held:
    if isinstance(measurement, MeasuredMarginal):
        values = measurement.values
        return HeldTable(measurement, values, np.zeros_like(values))
    return HeldQuestion(measurement)


class DenseSurrogate:
    """A dense stand-in that agrees with all that was measured, as far as the noise allows.

    `total` is what is known of the number of records and `total_variance` how well: 0 for a
    public number, infinity for none; measured totals and tables then sharpen it. It starts even,
    or from a `prior` with a share for each cell.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        total: float,
        total_variance: float = 0.0,
        prior: Floats | None = None,
    ) -> None:
        self.shape = tuple(int(width) for width in shape)
        self._histogram = Histogram(self.shape, prior)
        self._total = KnownTotal(total, total_variance)
        self._held: list[Held] = []

    @property
    def total(self) -> float:
        """How many records there are, as far as is known; at least one."""
        return self._total.records

    def answer(self, product: Product) -> float:
        """The value of one question, in counts."""
        return self.total * self._histogram.fraction(product)

    def answers(self, products: Sequence[Product]) -> Floats:
        """The values of many questions, in counts."""
        return self.total * self._histogram.fractions(products)

    def marginal(self, scope: Scope) -> Floats:
        """The counts over a scope."""
        return self.total * self._histogram.marginal(scope)

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """The counts over many scopes, by shared summation."""
        tables = self._histogram.marginals(scopes)
        return {scope: self.total * table for scope, table in tables.items()}

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published, then replay all there was, in order."""
        self.learn([measurement], sweeps=1)

    def learn(self, measurements: Sequence[Measurement], sweeps: int = DEFAULT_SWEEPS) -> None:
        """Learn from what was published together, such as all tables of two attributes."""
        before = len(self._held)
        self.note(measurements)
        fresh = self._held[before:]
        self._agree()
        if len(fresh) < len(self._held):
            self._sweep(fresh)
        order = sorted(  # wide tables first, and last what is no measurement but a fact
            self._held, key=lambda held: (held.measurement.variance == 0, not _is_wide(held))
        )
        for _ in range(sweeps):
            self._sweep(order)

    def note(
        self,
        measurements: Sequence[Measurement],
        sweeps: int = DEFAULT_SWEEPS,  # noqa: ARG002 - of a fit that is made afresh each time
    ) -> None:
        """Take what was published together into account, and leave the fitting to `resume`."""
        for measurement in measurements:
            check_grid(self.shape, measurement)
        for measurement in measurements:
            self._total.count(measurement)
        self._held += [held for held in map(_hold, measurements) if held.target.scope]

    def fitted(self) -> FitState:
        """The cells, and the multipliers of the soft steps."""
        thetas = {f"theta {place}": held.theta for place, held in self._wide()}
        return self._histogram.state() | thetas

    def resume(self, fitted: FitState) -> None:
        """Go on from a fit of all that was noted."""
        thetas = {f"theta {place}": held for place, held in self._wide()}
        if fitted.keys() != thetas.keys() | Histogram.STATE or any(
            fitted[name].shape != held.theta.shape for name, held in thetas.items()
        ):
            raise ValueError("this fit is of other measurements")
        self._histogram.restore(fitted)
        for name, held in thetas.items():
            held.theta = fitted[name]

    def _wide(self) -> Iterator[tuple[int, HeldTable]]:
        for place, held in enumerate(self._held):
            if isinstance(held, HeldTable) and _is_wide(held):
                yield place, held

    def _agree(self) -> None:
        """Let the narrow tables that share an attribute agree about it."""
        narrow = [held for held in self._held if isinstance(held, HeldTable) and not _is_wide(held)]
        tables = [held.measurement for held in narrow]
        measured = [table.values[..., None] for table in tables]
        moved = reconcile(tables, measured, np.array([self._total.value]))
        for held, values in zip(narrow, moved, strict=True):
            held.wanted = values[..., 0]

    def _sweep(self, order: Sequence[Held]) -> None:
        """Project on one measurement after the other; each pass looks at what the next needs."""
        if not order:
            return
        seen = self._histogram.look(order[0].target)
        for held, following in zip(order, [*order[1:], None], strict=True):
            then = following.target if following else None
            after = self._project(held, seen, then)
            seen = seen if after is None else after

    def _project(self, held: Held, seen: Floats, then: Target | None) -> Floats | None:
        """One step, and the look at what comes next."""
        if isinstance(held, HeldQuestion) and isinstance(held.target, Product):
            inside, wanted = float(seen), held.measurement.value / self.total
            outside = self._histogram.outside(held.target, inside)
            factors = inside_and_outside(inside, outside, wanted)
            return self._histogram.tilt(held.target, *factors, then)
        scope = held.target.scope
        return self._histogram.spread(scope, self._factors(held, seen), then)

    def _factors(self, held: Held, marginal: Floats) -> Floats:
        """One factor for each cell of what was measured."""
        if isinstance(held, HeldQuestion):
            weights = held.measurement.product.over(held.target.scope).reshape(marginal.shape)
            return to_mean(marginal, weights, held.measurement.value / self.total)
        wanted, variance = held.wanted / self.total, held.measurement.variance
        if not _is_wide(held) or variance == 0:
            return to_marginal(marginal, wanted)
        trust = SOFT_STEP_SHARPNESS * self.total / variance
        factors, held.theta = soft_to_marginal(marginal, wanted, trust, held.theta)
        return factors
