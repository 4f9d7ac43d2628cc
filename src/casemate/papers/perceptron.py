"""The perceptron: a stand-in that moves along the question it got wrong.

Source     Source document 003, section 5.2.2, which names the perceptron as one of the database
           update algorithms of the iterative construction: from 0, a step of alpha/|X| along each
           question that was wrong by alpha or more, upwards or downwards.
Guarantee  `updates` is its T(alpha): each such step shortens the squared distance to the truth by
           at least alpha^2 / |X|, all as fractions of the records. The normalised step projects
           on what was measured, and shortens it by (deviation^2 - noise^2) / |question|^2.
           docs/derivations/online_construction.md has the proofs.
Cost       One pass over the cells a question touches; |X| numbers are kept.
Departure  `simplex` projects on the probability vectors after every step, which never moves away
           from the truth: `test_the_simplex_never_leads_away_from_the_truth`. Of a whole marginal
           the document's step takes the cell that is most off, the normalised one takes all.
"""

from collections.abc import Sequence
from enum import Enum
from math import inf, prod

import numpy as np

from casemate.grid import Floats, MeasuredMarginal, MeasuredProduct, Measurement, Product, Scope
from casemate.surrogate import most_off


class PerceptronStep(Enum):
    """How far along a question to move."""

    DOCUMENT = "document"  # alpha/|X|, up or down
    NORMALISED = "normalised"  # to where the question has the measured value


class Perceptron:
    """A vector of shares, one a cell, corrected by one question at a time.

    >>> stand_in = Perceptron((2, 3), total=100, step=PerceptronStep.NORMALISED)
    >>> question = Product((2, 3), {1: np.array([True, False, False])})
    >>> stand_in.update(MeasuredProduct(question, value=40, variance=0))
    >>> round(stand_in.answer(question), 9)
    40.0
    """

    def __init__(
        self,
        shape: Sequence[int],
        total: float,
        *,
        alpha: float = 0.05,
        step: PerceptronStep = PerceptronStep.DOCUMENT,
        simplex: bool = False,
    ) -> None:
        if total <= 0 or not 0 < alpha <= 1:
            raise ValueError(f"need total > 0 and 0 < alpha <= 1, got {total} and {alpha}")
        self.alpha = alpha
        self.step = step
        self.simplex = simplex
        self._shape = tuple(shape)
        self._total = float(total)
        cells = prod(self._shape)
        self._shares = np.full(self._shape, 1 / cells if simplex else 0.0)

    @property
    def total(self) -> float:
        """How many records it was told there are."""
        return self._total

    @property
    def shares(self) -> Floats:
        """The share of every cell; they are probabilities only on the simplex."""
        return self._shares.copy()

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        return self._total * self._share(product)

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute."""
        return self._total * self._margin(scope)

    def update(self, measurement: Measurement) -> None:
        """Move along the question, or the cells of the marginal, that was measured."""
        if isinstance(measurement, MeasuredProduct):
            self._step_along(measurement.product, measurement.value)
        elif self.step is PerceptronStep.DOCUMENT:
            believed = self.marginal(measurement.marginal.scope)
            self._step_along(*most_off(measurement, believed, self._shape))
        else:
            self._project_on(measurement)
        if self.simplex:
            self._shares = onto_simplex(self._shares.ravel()).reshape(self._shape)

    def _margin(self, scope: Scope) -> Floats:
        others = tuple(axis for axis in range(len(self._shape)) if axis not in scope)
        return np.asarray(self._shares.sum(axis=others))

    def _share(self, product: Product) -> float:
        if product.shape != self._shape:
            raise ValueError(f"the question is about {product.shape}, not about {self._shape}")
        return float(product.over(product.scope) @ self._margin(product.scope).ravel())

    def _step_along(self, product: Product, value: float) -> None:
        missing = value / self._total - self._share(product)
        if self.step is PerceptronStep.DOCUMENT:
            length = np.sign(missing) * self.alpha / product.size
        else:
            length = missing / (squared_length(product) or inf)
        self._shares += length * _spread(product.over(product.scope), product.scope, self._shape)

    def _project_on(self, measured: MeasuredMarginal) -> None:
        """The cells of a marginal share no cell of the universe, so one step serves all."""
        scope = measured.marginal.scope
        believed = self._margin(scope)
        if believed.shape != measured.values.shape:
            raise ValueError(f"a marginal over {scope} has the shape {believed.shape} here")
        missing = measured.values / self._total - believed
        cells = self._shares.size // missing.size
        self._shares += _spread(missing.ravel() / cells, scope, self._shape)


def perceptron_updates(
    alpha: float, longest: float, *, distance: float = 1.0, noise: float = 0.0
) -> float:
    """T(alpha): how many updates by questions that are wrong by alpha or more there can be.

    `longest` is the largest squared length of a question, |X| or less for questions in [0, 1], and
    for the document's step |X| itself. `distance` is the squared one from start to truth, 1 or
    less from 0 or the uniform distribution. `noise` is how far off measurements are at most; only
    the normalised step suffers from it.
    """
    if not 0 <= noise < alpha:
        raise ValueError(f"need 0 <= noise < alpha, got {noise} and {alpha}")
    return distance * longest / (alpha**2 - noise**2)


def squared_length(product: Product) -> float:
    """The sum of the squares of what each cell contributes to a question."""
    inside = float(np.sum(product.over(product.scope) ** 2))
    free = (width for axis, width in enumerate(product.shape) if axis not in product.scope)
    return inside * prod(free)


def onto_simplex(point: Floats) -> Floats:
    """The nearest vector of probabilities: what is above a common level, less that level."""
    falling = np.sort(point)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, point.size + 1)
    kept = int(np.flatnonzero(falling > levels)[-1])
    return np.asarray(np.maximum(point - levels[kept], 0.0))


def _spread(values: Floats, scope: Scope, shape: tuple[int, ...]) -> Floats:
    """Numbers over a scope, shaped so that they repeat along every other attribute."""
    widths = [width if axis in scope else 1 for axis, width in enumerate(shape)]
    return values.reshape(widths)
