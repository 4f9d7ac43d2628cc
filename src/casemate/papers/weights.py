"""Multiplicative weights: the database update algorithm of the online construction.

Source     Source document 003, section 5.2.2: a T(alpha)-database update algorithm with
           T(alpha) = 4 ln|X| / alpha^2. The document names the rule and its T; the step that this
           T comes from is eta = alpha / 2: each cell is multiplied by exp(eta * query) when the
           stand-in answers too little and by exp(-eta * query) when too much, and the total kept.
Guarantee  For queries in [0, 1], a step eta in the direction of the gap lowers the relative
           entropy of the data to the stand-in by at least eta * gap - eta^2 / 8 (Hoeffding). With
           eta = 4 * (measured gap) that is at least 2 gap^2 - 2 noise^2, and with the fixed step
           eta = 4 alpha the updates with a gap of alpha or more are at most ln|X| / (2 alpha^2).
Departure  `corrected_step` is eta = 4 gap: the document's rule loses eta^2 where eta^2 / 8 is
           lost, and its T is 8 times too large
           (`test_the_documents_step_needs_many_times_the_updates`). The literal step stays for
           reference.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from casemate.grid import Floats, MeasuredMarginal, Measurement, Product, Scope
from casemate.surrogate import Histogram, most_off, tilted

Step = Callable[[float], float]
"""From the gap (measured minus answered, as fractions) to eta."""


def literal_updates(cells: int, alpha: float) -> float:
    """T(alpha) as the document has it: 4 ln|X| / alpha^2."""
    return 4 * math.log(cells) / alpha**2


def corrected_updates(cells: int, alpha: float, entropy: float | None = None) -> float:
    """T(alpha) as it can be: ln|X| / (2 alpha^2), or with the relative entropy to a prior."""
    return (math.log(cells) if entropy is None else entropy) / (2 * alpha**2)


def literal_step(alpha: float) -> Step:
    """The document's step: alpha / 2 in the direction of the gap."""
    return lambda gap: math.copysign(alpha / 2, gap)


def fixed_step(alpha: float) -> Step:
    """The longest fixed step that loses nothing at a gap of alpha: 4 alpha."""
    return lambda gap: math.copysign(4 * alpha, gap)


def corrected_step(gap: float) -> float:
    """Four times the gap: the step with the largest sure drop."""
    return 4 * gap


def relative_entropy(data: Floats, stand_in: Floats) -> float:
    """The potential: the sum of data * log(data / stand-in), both distributions."""
    held = data > 0
    if not (stand_in[held] > 0).all():
        return math.inf
    return float((data[held] * np.log(data[held] / stand_in[held])).sum())


def sure_drop(gap: float, noise: float = 0.0) -> float:
    """What `corrected_step` takes off the potential at least; the step sees gap + noise."""
    return 2 * gap**2 - 2 * noise**2


class MultiplicativeWeights:
    """A stand-in that learns by multiplicative weights.

    Of a measured marginal it learns the cell that it gets most wrong. Queries have weights
    between 0 and 1.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        total: float,
        step: Step = corrected_step,
        prior: Floats | None = None,
    ) -> None:
        if not (math.isfinite(total) and total > 0):
            raise ValueError(f"a stand-in needs a positive total, got {total}")
        self._histogram = Histogram(shape, prior)
        self._total, self._step = float(total), step

    @property
    def total(self) -> float:
        """How many records there are."""
        return self._total

    def answer(self, product: Product) -> float:
        """The value of one question, in counts."""
        return self._total * self._histogram.fraction(product)

    def answers(self, products: Sequence[Product]) -> Floats:
        """The values of many questions, in counts."""
        return self._total * self._histogram.fractions(products)

    def marginal(self, scope: Scope) -> Floats:
        """The counts over a scope."""
        return self._total * self._histogram.marginal(scope)

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        if isinstance(measurement, MeasuredMarginal):
            believed = self.marginal(measurement.marginal.scope)
            self._learn(*most_off(measurement, believed, self._histogram.shape))
        else:
            self._learn(measurement.product, measurement.value)

    def _learn(self, product: Product, value: float) -> None:
        wanted = value / self._total
        if product.counts:
            inside = float(self._histogram.look(product))
            raised = math.exp(self._step(wanted - inside))
            normaliser = 1 + (raised - 1) * inside
            self._histogram.tilt(product, raised / normaliser, 1 / normaliser)
            return
        marginal, weights = self._histogram.marginal(product.scope), _unit(product)
        eta = self._step(wanted - float((marginal * weights).sum()))
        self._histogram.spread(product.scope, tilted(marginal, weights, eta))


def _unit(product: Product) -> Floats:
    """The weights over the product's scope, which the theorem wants between 0 and 1."""
    weights = product.over(product.scope)
    if weights.min() < 0 or weights.max() > 1:
        raise ValueError("multiplicative weights learns from weights in [0, 1]; rescale the query")
    return weights.reshape([product.shape[attribute] for attribute in product.scope])
