"""A stand-in for universes of any size: a mixture of products, fitted to all that was measured.

Source     The online construction of source document 003, whose stand-in is public: any fit to
           the published measurements is free. The document's own updates need a number for each
           cell; this one needs a number for each code of each attribute and component.
Guarantee  A deterministic function of its settings and of the measurements in their order, the
           same bits on every machine; when it was asked, and how the measurements were grouped,
           does not matter. One distribution answers everything: marginals of marginals agree,
           nothing is negative.
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
from collections.abc import Sequence

import numpy as np

from casemate.surrogate import mixture_kernel as kernel
from casemate.surrogate.dense import LARGEST
from casemate.surrogate.known_total import KnownTotal, check_grid, checked_shape
from casemate.surrogate.mixture_evidence import Layout, Mixture, balanced, chain, evidence
from casemate.surrogate.mixture_fit import fitted, start
from casemate.surrogate.product import Floats, Marginal, Measurement, Product, Scope

COMPONENTS = 200
"""Products in the mixture."""

SWEEPS = 10
"""The length of a fit, unless more is asked for."""

STEPS = 60
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
        components: int = COMPONENTS,
        steps: int = STEPS,
    ) -> None:
        if components < 1 or steps < 1:
            raise ValueError(
                f"a mixture has at least one component and one step a sweep, "
                f"got {components} and {steps}"
            )
        self.shape = checked_shape(shape)
        self._layout = Layout(self.shape)
        self._firsts = self._layout.firsts
        self._known, self._components = KnownTotal(total, total_variance), int(components)
        self._steps = int(steps)
        self._measured: list[Measurement] = []
        self._sweeps = SWEEPS
        self._fit: tuple[Mixture, Floats] | None = None

    @property
    def total(self) -> float:
        """How many records there are, as far as is known; at least one."""
        return self._known.records

    # What it answers ------------------------------------------------------------------------------

    def answer(self, product: Product) -> float:
        """The value of one question, in counts."""
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
        where, weights = np.concatenate(codes), np.concatenate(factors)
        mixture, by_code = self._by_code
        value = kernel.weighed(mixture.weights, by_code, where, weights, np.cumsum(ends))
        return self.total * float(value)

    def answers(self, products: Sequence[Product]) -> Floats:
        """The values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """The counts over a scope."""
        Marginal(scope)
        widths = [self.shape[attribute] for attribute in scope]
        if math.prod(widths) > LARGEST:
            raise ValueError(
                f"a table over {scope} would have {math.prod(widths)} cells, more than {LARGEST}; "
                f"ask for fewer attributes, or for single products"
            )
        axes = [
            np.ascontiguousarray(self.mixture.shares[:, self._layout.columns(a)]) for a in scope
        ]
        middle, weights = balanced(widths), self.mixture.weights[:, None]
        left, right = chain(axes[:middle], weights), chain(axes[middle:], np.ones_like(weights))
        cells: Floats = self.total * kernel.crossed(left[-1], right[-1])
        return cells.reshape(widths)

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """The counts over many scopes."""
        return {scope: self.marginal(scope) for scope in scopes}

    @property
    def mixture(self) -> Mixture:
        """The mixture itself: the weight of each component, and its share for each code."""
        return self._by_code[0]

    # How it changes -------------------------------------------------------------------------------

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        self.learn([measurement])

    def learn(self, measurements: Sequence[Measurement], sweeps: int = SWEEPS) -> None:
        """Learn from what was published together; the longest fit ever asked for counts."""
        for measurement in measurements:
            check_grid(self.shape, measurement)
        for measurement in measurements:
            self._known.count(measurement)
        self._measured += measurements
        self._sweeps = max(self._sweeps, sweeps)
        self._fit = None

    @property
    def _by_code(self) -> tuple[Mixture, Floats]:
        """The mixture, and its shares with a row for each code."""
        if self._fit is None:
            known = evidence(self._layout, self._measured, self.total)
            roots = start(self._components, self._layout, known)
            mixture = fitted(roots, self._layout, known, self._steps * self._sweeps)
            self._fit = mixture, np.ascontiguousarray(mixture.shares.T)
        return self._fit
