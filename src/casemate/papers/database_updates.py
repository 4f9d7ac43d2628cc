"""The three database update algorithms that the source document names, as stand-ins.

Source     Source document 003, section 5.2.2: T(alpha)-database update algorithms, by
           multiplicative weights, by the perceptron, and by the median mechanism. Each class has
           the statement and the guarantee of its own; docs/derivations/online_construction.md has
           the proofs.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from casemate.grid import Floats, MeasuredProduct, Measurement, Product, Scope
from casemate.surrogate import Histogram, exponential_tilt, worst_cell

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


def measured_question(
    measurement: Measurement, marginal: Callable[[Scope], Floats], shape: tuple[int, ...]
) -> tuple[Product, float]:
    """The question that was measured and its value; of a marginal, the cell that is most off."""
    if isinstance(measurement, MeasuredProduct):
        return measurement.product, measurement.value
    return worst_cell(measurement, marginal(measurement.marginal.scope), shape)


class MultiplicativeWeights:
    """A stand-in that learns by multiplicative weights.

    Of a measured marginal it learns the cell that it gets most wrong. Queries have weights
    between 0 and 1.

    Source     T(alpha) = 4 ln|X| / alpha^2. The document names the rule and its T; the step that
               this T comes from is eta = alpha / 2: each cell is multiplied by exp(eta * query)
               when the stand-in answers too little and by exp(-eta * query) when too much, and the
               total kept.
    Guarantee  For queries in [0, 1], a step eta in the direction of the gap lowers the relative
               entropy of the data to the stand-in by at least eta * gap - eta^2 / 8 (Hoeffding).
               With eta = 4 * (measured gap) that is at least 2 gap^2 - 2 noise^2, and with the
               fixed step eta = 4 alpha the updates with a gap of alpha or more are at most
               ln|X| / (2 alpha^2).
    Departure  `corrected_step` is eta = 4 gap: the document's rule loses eta^2 where eta^2 / 8 is
               lost, and its T is 8 times too large
               (`test_the_documents_step_needs_many_times_the_updates`). The literal step stays for
               reference.
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
        product, value = measured_question(measurement, self.marginal, self._histogram.shape)
        wanted = value / self._total
        if product.counts:
            inside = float(self._histogram.look(product))
            raised = math.exp(self._step(wanted - inside))
            normaliser = 1 + (raised - 1) * inside
            self._histogram.tilt(product, raised / normaliser, 1 / normaliser)
            return
        marginal, weights = self._histogram.marginal(product.scope), _unit(product)
        eta = self._step(wanted - float((marginal * weights).sum()))
        self._histogram.spread(product.scope, exponential_tilt(marginal, weights, eta))


def _unit(product: Product) -> Floats:
    """The weights over the product's scope, which the theorem wants between 0 and 1."""
    weights = product.over(product.scope)
    if weights.min() < 0 or weights.max() > 1:
        raise ValueError("multiplicative weights learns from weights in [0, 1]; rescale the query")
    return weights.reshape([product.shape[attribute] for attribute in product.scope])


# The perceptron ---------------------------------------------------------------------------------


class Perceptron:
    """A vector of shares, one a cell, moved along each question that it got wrong.

    Source     From 0, a step of alpha/|X| along each question that was wrong by alpha or more,
               upwards or downwards.
    Guarantee  `perceptron_updates` is its T(alpha): each such step shortens the squared distance to
               the truth by at least alpha^2 / |X|, all as fractions of the records.
    Cost       One pass over the cells a question touches; |X| numbers are kept.
    Departure  Of a whole marginal the step takes the cell that is most off.

    >>> stand_in = Perceptron((2, 3), total=100, alpha=0.5)
    >>> question = Product((2, 3), {1: np.array([True, False, False])})
    >>> stand_in.update(MeasuredProduct(question, value=40, variance=0))
    >>> round(stand_in.answer(question), 3)
    16.667
    """

    def __init__(self, shape: Sequence[int], total: float, *, alpha: float = 0.05) -> None:
        if total <= 0 or not 0 < alpha <= 1:
            raise ValueError(f"need total > 0 and 0 < alpha <= 1, got {total} and {alpha}")
        self.alpha = alpha
        self._shape = tuple(shape)
        self._total = float(total)
        self._shares: Floats = np.zeros(self._shape)

    @property
    def total(self) -> float:
        """How many records it was told there are."""
        return self._total

    @property
    def shares(self) -> Floats:
        """The share of every cell; they need not be probabilities."""
        return self._shares.copy()

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        if product.shape != self._shape:
            raise ValueError(f"the question is about {product.shape}, not about {self._shape}")
        return float(product.over(product.scope) @ self.marginal(product.scope).ravel())

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute."""
        others = tuple(axis for axis in range(len(self._shape)) if axis not in scope)
        return np.asarray(self._total * self._shares.sum(axis=others))

    def update(self, measurement: Measurement) -> None:
        """Move along the question that was measured; of a marginal, the cell that is most off."""
        product, value = measured_question(measurement, self.marginal, self._shape)
        length = np.sign(value - self.answer(product)) * self.alpha / product.size
        scope = product.scope
        widths = [width if axis in scope else 1 for axis, width in enumerate(self._shape)]
        self._shares += length * product.over(scope).reshape(widths)


def perceptron_updates(alpha: float, cells: int, *, distance: float = 1.0) -> float:
    """T(alpha): how many updates by questions that are wrong by alpha or more there can be.

    Questions have weights from 0 to 1; `distance` is the squared one from start to truth, 1 or
    less from 0.
    """
    return distance * cells / alpha**2


# The median mechanism ---------------------------------------------------------------------------


MAX_HELD_NUMBERS = 10**8  # databases times cells that are held at once


@lru_cache(maxsize=1)
def every_database(rows: int, cells: int) -> Floats:
    """Every multiset of so many rows: whole numbers, one a cell, in lexicographic order."""
    count = math.comb(cells + rows - 1, rows) if rows > 0 else 0
    if not 0 < count * cells <= MAX_HELD_NUMBERS:
        raise ValueError(
            f"{rows} rows over {cells} cells make {count} databases, too many to hold or none: "
            f"take fewer rows, or more than none"
        )
    counts = np.zeros((count, cells))
    for line, chosen in zip(counts, combinations_with_replacement(range(cells), rows), strict=True):
        np.add.at(line, list(chosen), 1)
    counts.flags.writeable = False
    return counts


class MedianMechanism:
    """The databases of a size that agree with every update so far; an answer is their median.

    Source     Keep the databases that agree with every update, answer by the median, and on an
               update drop those on the wrong side of it.
    Guarantee  An update drops at least half, so that it takes at most `updates_of_databases`; one
               of all databases of a size is within alpha on every question when the size is
               `rows_needed`.
    Cost       A number for each cell and each multiset of cells, so tiny universes only.
    Departure  A cut that would leave nothing is not made.

    >>> stand_in = MedianMechanism((2,), total=100, rows=4)
    >>> first = Product((2,), {0: np.array([True, False])})
    >>> stand_in.answer(first)
    50.0
    >>> stand_in.update(MeasuredProduct(first, value=80, variance=0))
    >>> stand_in.answer(first), stand_in.left
    (75.0, 2)
    """

    def __init__(self, shape: Sequence[int], total: float, rows: int) -> None:
        if total <= 0:
            raise ValueError(f"need total > 0, got {total}")
        self._shape = tuple(shape)
        self._total = float(total)
        self._databases = every_database(rows, math.prod(self._shape))
        self._each = self._total / rows  # records that one row stands for

    @property
    def total(self) -> float:
        """How many records it was told there are."""
        return self._total

    @property
    def left(self) -> int:
        """How many databases it is the median of."""
        return len(self._databases)

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        return self._each * lower_median(self._values(product))

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute: the median of each by itself."""
        others = tuple(axis + 1 for axis in range(len(self._shape)) if axis not in scope)
        each = self._databases.reshape(-1, *self._shape).sum(axis=others)
        return np.asarray(self._each * np.sort(each, axis=0)[(len(each) - 1) // 2])

    def update(self, measurement: Measurement) -> None:
        """Drop the databases on the wrong side; of a marginal, by the cell that is most off."""
        product, value = measured_question(measurement, self.marginal, self._shape)
        values, measured = self._values(product), value / self._each
        middle = lower_median(values)
        keep = values > middle if measured >= middle else values < middle
        if keep.any():
            self._databases = self._databases[keep]

    def _values(self, product: Product) -> Floats:
        if product.shape != self._shape:
            raise ValueError(f"the question is about {product.shape}, not about {self._shape}")
        return np.asarray(self._databases @ product.dense())


def rows_needed(alpha: float, questions: int) -> int:
    """So many rows that some database of this size is within alpha of any table on all questions.

    A random sample of the table is, with positive probability, as soon as 2 |Q| exp(-2 m alpha^2)
    is below 1; the ln|Q|/alpha^2 of the literature is about twice that.
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"need 0 < alpha <= 1, got {alpha}")
    return math.floor(math.log(2 * questions) / (2 * alpha**2)) + 1


def updates_of_databases(cells: int, rows: int) -> float:
    """T(alpha) with all databases of `rows_needed(alpha, |Q|)` rows: each update drops half."""
    return math.log2(math.comb(cells + rows - 1, rows))


def lower_median(values: Floats) -> float:
    """The middle value, the lower of two: at least half are at most it, and half at least it."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])
