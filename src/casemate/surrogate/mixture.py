"""A stand-in for universes of any size: a mixture of products, fitted to all that was measured.

Source     The online construction of source document 003, whose stand-in is public: any fit to
           the published measurements is free. The document's own updates need a number for each
           cell; this one needs a number for each code of each attribute and component.
Guarantee  A deterministic function of its settings and of the measurements in their order, the
           same bits on every machine; when it was asked, and how the measurements were grouped,
           does not matter. One distribution answers everything: marginals of marginals agree,
           nothing is negative.
Fit        A descent on squared residuals, each in units of its own noise. The weights of the
           components, and the shares of an attribute in a component, are squares over their sum:
           never negative, with the sum one, and without any exponential. Steps are those of Adam
           (mean gradient over its root mean square), shortened linearly to nothing. A round that
           leaves some measurement further off than its noise explains is followed by another from
           where it ended.
Cost       Memory and an answer: components x codes. A fit: that times the codes and the steps for
           all tables of two attributes, plus components x cells x steps for each wider table. It
           is made when the first answer after a measurement is wanted, from the start, so
           rebuilding from a long transcript is one fit.
Departure  It approaches measurements by least squares in units of their noise, and does not find
           the distribution of largest entropy. Where the universe is small, the dense stand-in is
           closer to the truth; and where many components are needed for what was measured (tables
           in which three attributes decide each other), those that nobody measured are off by
           about the mass of a few components.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from casemate.compiled import compiled
from casemate.grid import Floats, Marginal, Measurement, Product, Scope
from casemate.surrogate.histogram import MAX_DENSE_CELLS
from casemate.surrogate.kept_fit import FitState
from casemate.surrogate.mixture_residuals import (
    MAX_PLAIN_NUMBERS,
    Evidence,
    MixtureMisfit,
    Places,
    ProductMixture,
    ShareLayout,
    balanced_split,
    evidence,
    joined_axes,
    plain_transpose_product,
    transpose_product,
)
from casemate.surrogate.projection import KnownTotal, check_grid, checked_shape

ADAM_BETA_1, ADAM_BETA_2 = 0.9, 0.99
"""How much of the mean gradient, and of the mean square of gradients, is kept from step to step."""


@compiled
def component_shares(roots: Floats, firsts: Places) -> tuple[Floats, Floats]:
    """Squares of roots over their sum, attribute by attribute; and those sums."""
    found, sums = np.empty(roots.shape), np.empty((roots.shape[0], firsts.shape[0] - 1))
    for k in range(roots.shape[0]):
        for a in range(firsts.shape[0] - 1):
            mass = 0.0
            for i in range(firsts[a], firsts[a + 1]):
                mass += roots[k, i] * roots[k, i]
            sums[k, a] = mass
            for i in range(firsts[a], firsts[a + 1]):
                found[k, i] = roots[k, i] * roots[k, i] / mass
    return found, sums


@compiled
def root_gradients(roots: Floats, gradients: Floats, firsts: Places) -> Floats:
    """The gradients of the roots from those of the shares."""
    found = np.empty(roots.shape)
    held, sums = component_shares(roots, firsts)
    for k in range(roots.shape[0]):
        for a in range(firsts.shape[0] - 1):
            mean = 0.0
            for i in range(firsts[a], firsts[a + 1]):
                mean += held[k, i] * gradients[k, i]
            for i in range(firsts[a], firsts[a + 1]):
                found[k, i] = 2.0 * roots[k, i] * (gradients[k, i] - mean) / sums[k, a]
    return found


class AdamMoments(NamedTuple):
    """Exponentially weighted means of each gradient, and of its square."""

    means: Floats
    squares: Floats


@compiled
def adam_step(
    roots: Floats,
    gradients: Floats,
    moments: AdamMoments,
    rate: float,
    corrections: tuple[float, float],
) -> None:
    """Move each root against its mean gradient, measured in its root mean square.

    The corrections are one minus the weight that the zeros still have which both means began with.
    """
    means, squares = moments
    for k in range(roots.shape[0]):
        for i in range(roots.shape[1]):
            gradient = gradients[k, i]
            means[k, i] = ADAM_BETA_1 * means[k, i] + (1 - ADAM_BETA_1) * gradient
            squares[k, i] = ADAM_BETA_2 * squares[k, i] + (1 - ADAM_BETA_2) * gradient * gradient
            size = math.sqrt(squares[k, i] / corrections[1]) + 1e-12
            roots[k, i] -= rate * (means[k, i] / corrections[0]) / size


class ProductSupport(NamedTuple):
    """The codes with a factor, attribute after attribute, and where each attribute ends."""

    codes: Places
    factors: Floats
    ends: Places


@compiled
def product_value(weights: Floats, by_code: Floats, support: ProductSupport) -> float:
    """The value of a product: a row of `by_code` holds the shares of one code."""
    codes, factors, ends = support
    product, sums = weights.copy(), np.empty(weights.size)
    start = 0
    for end in ends:
        sums[:] = 0.0
        for place in range(start, end):
            for k in range(weights.size):
                sums[k] += factors[place] * by_code[codes[place], k]
        for k in range(weights.size):
            product[k] *= sums[k]
        start = end
    total = 0.0
    for k in range(weights.size):
        total += product[k]
    return total


def plain_product_value(weights: Floats, by_code: Floats, support: ProductSupport) -> float:
    """The same bits as `product_value`, by the same sums in the same order."""
    codes, factors, ends = support
    product, start = weights, 0
    for end in ends:
        terms = factors[start:end, None] * by_code[codes[start:end]]
        product = product * (np.add.accumulate(terms, axis=0)[-1] if end > start else 0.0)
        start = end
    return float(np.add.accumulate(product)[-1]) + 0.0


# The fit ----------------------------------------------------------------------------------------


LEARNING_RATE = 0.15
"""The first step of each root; roots start between nothing and one."""

WEIGHTS_LEARNING_RATE_RATIO = 0.05
"""The same for the weights, as a part of it: a mixture in which all count answers best what nobody
measured."""

MAX_EXPLAINED_EXCESS = 6.0
"""The mean square of residuals is one in units of noise, up to so many of its own deviations."""

MAX_ROUNDS = 3
"""So many rounds at most."""

MIN_STEPS_PER_ROUND = 60
"""Steps of a round, however large the tables are."""

MAX_MULTIPLICATIONS_PER_ROUND = 1e11
"""A round has fewer steps when they would be more multiplications than this."""


class Roots(NamedTuple):
    """What the descent moves: weights and shares are their squares, made to sum to one."""

    of_weights: Floats  # in one row
    of_shares: Floats


def initial_roots(components: int, layout: ShareLayout, known: Sequence[Evidence] = ()) -> Roots:
    """Roots of numbers from a generator of counters: the same everywhere and for ever.

    An attribute of which nothing is known together with another one starts, and so stays, the
    same in all components: independent of all others.
    """
    codes = sum(layout.shape)
    bits = np.random.Philox(key=components).random_raw(components * codes)
    units = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    roots: Floats = np.sqrt(units).reshape(components, codes)
    tied = {attribute for each in known for attribute in each.tied}
    for attribute in set(range(len(layout.shape))) - tied:
        roots[:, layout.columns(attribute)] = 1.0
    return Roots(np.ones((1, components)), roots)


def mixture_of(roots: Roots, layout: ShareLayout) -> ProductMixture:
    """The weights and shares that the roots stand for."""
    weights, _ = component_shares(roots.of_weights, _all_weights(roots))
    shares, _ = component_shares(roots.of_shares, layout.firsts)
    return ProductMixture(weights[0], shares)


def fit_mixture(
    roots: Roots,
    layout: ShareLayout,
    known: Sequence[Evidence],
    steps: int,
    rounds: int = MAX_ROUNDS,
) -> ProductMixture:
    """The mixture after the descent, which moves the roots."""
    if known:
        steps = affordable_steps(steps, roots.of_weights.size, known)
        for _ in range(rounds):
            if _descend(roots, layout, known, steps) <= MAX_EXPLAINED_EXCESS:
                break
    return mixture_of(roots, layout)


def affordable_steps(steps: int, components: int, known: Sequence[Evidence]) -> int:
    """How many steps a round has."""
    work = components * sum(each.work for each in known)
    return max(
        min(steps, int(MAX_MULTIPLICATIONS_PER_ROUND / work)), min(steps, MIN_STEPS_PER_ROUND)
    )


def total_misfit(known: Sequence[Evidence], mixture: ProductMixture) -> MixtureMisfit:
    """The excess of each measurement, and the gradients of all together."""
    comparisons = [each.compare(mixture) for each in known]
    by_weight, by_share = comparisons[0].gradients
    for each in comparisons[1:]:
        by_weight, by_share = by_weight + each.gradients.weights, by_share + each.gradients.shares
    excesses = np.concatenate([each.excesses for each in comparisons])
    return MixtureMisfit(excesses, ProductMixture(by_weight, by_share))


def _descend(roots: Roots, layout: ShareLayout, known: Sequence[Evidence], steps: int) -> float:
    """Move the roots down; and the largest excess among all measurements before the last step."""
    one_row = _all_weights(roots)
    of_weights, of_shares = (AdamMoments(np.zeros_like(r), np.zeros_like(r)) for r in roots)
    worst, beta_1, beta_2 = 0.0, 1.0, 1.0  # powers, by products alone: the same bits everywhere
    for taken in range(steps):
        excesses, gradients = total_misfit(known, mixture_of(roots, layout))
        worst = float(excesses.max())
        rate = LEARNING_RATE * (1 - taken / steps)
        beta_1, beta_2 = beta_1 * ADAM_BETA_1, beta_2 * ADAM_BETA_2
        corrections = 1 - beta_1, 1 - beta_2
        down = root_gradients(roots.of_weights, gradients.weights[None], one_row)
        adam_step(
            roots.of_weights, down, of_weights, WEIGHTS_LEARNING_RATE_RATIO * rate, corrections
        )
        down = root_gradients(roots.of_shares, gradients.shares, layout.firsts)
        adam_step(roots.of_shares, down, of_shares, rate, corrections)
    return worst


def _all_weights(roots: Roots) -> Places:
    """All weights together sum to one."""
    return np.array([0, roots.of_weights.size])


# The stand-in -----------------------------------------------------------------------------------


DEFAULT_COMPONENTS = 200
"""Products in the mixture."""

DEFAULT_SWEEPS = 10
"""The length of a fit, unless more is asked for."""

MAX_PLAIN_ANSWERS = 64
"""More questions at once are answered by a compiled pass, which takes some time to load."""

STEPS_PER_SWEEP = 60
"""So many steps of the descent stand for one sweep."""


class MixtureSurrogate:
    """A mixture of products that agrees with all that was measured, as far as noise and form allow.

    `total` is what is known of the number of records and `total_variance` how well: 0 for a
    public number, infinity for none; measured totals and tables then sharpen it. More `components`
    hold more structure and take longer.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        total: float,
        total_variance: float = 0.0,
        *,
        components: int = DEFAULT_COMPONENTS,
        steps: int = STEPS_PER_SWEEP,
    ) -> None:
        if components < 1 or steps < 1:
            raise ValueError(
                f"a mixture has at least one component and one step a sweep, "
                f"got {components} and {steps}"
            )
        self.shape = checked_shape(shape)
        self._layout = ShareLayout(self.shape)
        self._firsts = self._layout.firsts
        self._known, self._components = KnownTotal(total, total_variance), int(components)
        self._steps = int(steps)
        self._measured: list[Measurement] = []
        self._sweeps = DEFAULT_SWEEPS
        self._fit: tuple[ProductMixture, Floats] | None = None

    @property
    def total(self) -> float:
        """How many records there are, as far as is known; at least one."""
        return self._known.records

    # What it answers ------------------------------------------------------------------------------

    def answer(self, product: Product) -> float:
        """The value of one question, in counts."""
        return self._value(product, plain_product_value)

    def answers(self, products: Sequence[Product]) -> Floats:
        """The values of many questions, in counts."""
        value = product_value if len(products) > MAX_PLAIN_ANSWERS else plain_product_value
        return np.array([self._value(product, value) for product in products], np.float64)

    def _value(self, product: Product, value: Callable[..., float]) -> float:
        if product.shape != self.shape:
            raise ValueError(f"a question about the grid {product.shape} met one of {self.shape}")
        codes, factors, ends = [], [], []
        for attribute in product.scope:
            factor = product.factor(attribute)
            kept = factor.nonzero()[0]
            codes.append(kept + self._firsts[attribute])
            factors.append(factor[kept])
            ends.append(kept.size)
        if not codes:
            return self.total
        support = ProductSupport(np.concatenate(codes), np.concatenate(factors), np.cumsum(ends))
        mixture, by_code = self._by_code
        return self.total * value(mixture.weights, by_code, support)

    def marginal(self, scope: Scope) -> Floats:
        """The counts over a scope."""
        Marginal(scope)
        widths = [self.shape[attribute] for attribute in scope]
        if math.prod(widths) > MAX_DENSE_CELLS:
            raise ValueError(
                f"a table over {scope} would have {math.prod(widths)} cells, more than "
                f"{MAX_DENSE_CELLS}; ask for fewer attributes, or for single products"
            )
        axes = [
            np.ascontiguousarray(self.mixture.shares[:, self._layout.columns(a)]) for a in scope
        ]
        middle, weights = balanced_split(widths), self.mixture.weights[:, None]
        left = joined_axes(axes[:middle], weights)
        right = joined_axes(axes[middle:], np.ones_like(weights))
        few = weights.size * math.prod(widths) <= MAX_PLAIN_NUMBERS
        cells: Floats = self.total * (plain_transpose_product if few else transpose_product)(
            left, right
        )
        return cells.reshape(widths)

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """The counts over many scopes."""
        return {scope: self.marginal(scope) for scope in scopes}

    @property
    def mixture(self) -> ProductMixture:
        """The mixture itself: the weight of each component, and its share for each code."""
        return self._by_code[0]

    # How it changes -------------------------------------------------------------------------------

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        self.learn([measurement])

    def learn(self, measurements: Sequence[Measurement], sweeps: int = DEFAULT_SWEEPS) -> None:
        """Learn from what was published together; the longest fit ever asked for counts."""
        self.note(measurements, sweeps)

    def note(self, measurements: Sequence[Measurement], sweeps: int = DEFAULT_SWEEPS) -> None:
        """Take what was published together into account, and leave the fitting to `resume`."""
        for measurement in measurements:
            check_grid(self.shape, measurement)
        for measurement in measurements:
            self._known.count(measurement)
        self._measured += measurements
        self._sweeps = max(self._sweeps, sweeps)
        self._fit = None

    def fitted(self) -> FitState:
        """The weights and the shares of the mixture."""
        return self.mixture._asdict()

    def resume(self, fitted: FitState) -> None:
        """Go on from a fit of all that was noted."""
        form = {"weights": (self._components,), "shares": (self._components, sum(self.shape))}
        if {name: each.shape for name, each in fitted.items()} != form:
            raise ValueError("this fit is of another mixture")
        mixture = ProductMixture(**fitted)
        self._fit = mixture, np.ascontiguousarray(mixture.shares.T)

    @property
    def _by_code(self) -> tuple[ProductMixture, Floats]:
        """The mixture, and its shares with a row for each code."""
        if self._fit is None:
            known = evidence(self._layout, self._measured, self.total)
            roots = initial_roots(self._components, self._layout, known)
            mixture = fit_mixture(roots, self._layout, known, self._steps * self._sweeps)
            self._fit = mixture, np.ascontiguousarray(mixture.shares.T)
        return self._fit
