"""What the literal online construction fixes before the first question: all of it is public.

Source     Source document 003, section 5.2.2: a T(alpha)-database update algorithm (multiplicative
           weights, the perceptron, the median mechanism), c = T(alpha) updates, a threshold of
           2 alpha, the noise of NumericSparse, and Theorems 5.14 and 5.15 about the whole.
Guarantee  `promised` says whether the theorem holds at this alpha, this many people and this many
           questions; then, but for a chance of beta, every answer is within 3 alpha and no more
           than T(alpha) updates are needed.
Departure  Theorem 5.15 does not cover the numbers of its own noise, whose scale is sqrt(8) times
           what its constant leaves them: `with_numbers` asks for that too
           (`test_theorem_5_15_does_not_keep_the_numbers_of_its_own_noise_within_alpha`).
           Everything is counted in whole people: a question, a stand-in's answer and the threshold
           are rounded, which may cost three people, and their number may be one that was measured,
           with a `doubt` (`test_a_measured_number_of_people_costs_its_doubt`). `promised` asks that
           the bound of the noise in use leaves room for these
           (`test_what_is_rounded_fits_into_what_the_theorems_leave`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Self

from casemate.answer.theorems import (
    ROOT,
    NumericSparseNoise,
    Statement,
    Terms,
    UpdateBound,
    accuracy,
    theorem_5_13,
    theorem_5_14,
    theorem_5_15,
)
from casemate.privacy.sparse_vector_calibration import noise_bound
from casemate.surrogate import perceptron
from casemate.surrogate.median import (
    EveryDatabase,
    MedianMechanism,
    rows_needed,
    updates_of_databases,
)
from casemate.surrogate.protocol import Surrogate
from casemate.surrogate.weights import MultiplicativeWeights, literal_step, literal_updates

ROUNDED = 3
"""People: a weighted question is rounded down, a stand-in's answer to the nearest, the threshold
down; each moves a comparison by at most one, the second by half of that."""


@dataclass(frozen=True)
class DatabaseUpdate:
    """A T(alpha)-database update algorithm: its T, and the stand-in it begins with."""

    name: str
    shape: tuple[int, ...]
    bound: UpdateBound = field(repr=False)  # T
    start: Callable[[float, int], Surrogate] = field(repr=False)  # from alpha and the people

    @classmethod
    def by_weights(cls, *shape: int) -> Self:
        """Multiplicative weights with the document's step: T(alpha) = 4 ln|X| / alpha^2."""
        cells = math.prod(shape)
        return cls(
            "multiplicative weights",
            shape,
            lambda alpha: literal_updates(cells, alpha),
            lambda alpha, people: MultiplicativeWeights(shape, people, literal_step(alpha)),
        )

    @classmethod
    def by_perceptron(cls, *shape: int) -> Self:
        """The perceptron with the document's step: T(alpha) = |X| / alpha^2."""
        cells = math.prod(shape)
        return cls(
            "perceptron",
            shape,
            lambda alpha: perceptron.updates(alpha, longest=cells),
            lambda alpha, people: perceptron.Perceptron(shape, people, alpha=alpha),
        )

    @classmethod
    def by_median(cls, *shape: int, questions: int) -> Self:
        """The median of all databases that are large enough for so many questions."""
        cells = math.prod(shape)

        def rows(alpha: float) -> int:
            return rows_needed(min(alpha, 1.0), questions)

        return cls(
            "median",
            shape,
            lambda alpha: updates_of_databases(cells, rows(alpha)),
            lambda alpha, people: MedianMechanism(shape, people, EveryDatabase(rows(alpha))),
        )


@dataclass(frozen=True)
class Setting:
    """The public numbers of one construction.

    >>> asked = Terms(questions=1000, epsilon=1.0, beta=0.05)
    >>> setting = Setting.least(DatabaseUpdate.by_weights(4, 4), asked, people=10**8)
    >>> f"{setting.error:.3f}", setting.updates, setting.promised
    ('0.083', 14337, True)
    """

    update: DatabaseUpdate
    terms: Terms
    people: int  # ||x||_1, which is public or was measured and paid for
    alpha: float
    doubt: int = 0  # how far the number of people may be off, if it was measured

    def __post_init__(self) -> None:
        if self.people < 1 or self.doubt < 0 or not 0 < self.alpha <= 1:
            raise ValueError(
                f"need people >= 1, doubt >= 0 and 0 < alpha <= 1, got {self.people}, "
                f"{self.doubt} and {self.alpha:.6g}: a larger alpha says nothing, and a larger "
                f"table allows a smaller one"
            )
        self.needed  # noqa: B018 - a theorem that is not about these terms says so now

    @classmethod
    def least(cls, update: DatabaseUpdate, terms: Terms, people: int, doubt: int = 0) -> Self:
        """The least alpha that the theorem, with its numbers, allows."""

        def doubted(asked: Terms, updates: UpdateBound, alpha: float) -> float:
            return _theorem(asked)(asked, updates, alpha) + doubt

        found = accuracy(doubted, terms, update.bound, people)
        return cls(update, terms, people, found.alpha, doubt)

    @cached_property
    def updates(self) -> int:
        """c = T(alpha): how often the stand-in may be updated."""
        return max(1, math.floor(self.update.bound(self.alpha)))

    @cached_property
    def noise(self) -> NumericSparseNoise:
        """The noise of Theorem 5.13."""
        epsilon, delta = Fraction(self.terms.epsilon), Fraction(self.terms.delta)
        return theorem_5_13(self.updates, epsilon, delta)

    @cached_property
    def threshold(self) -> int:
        """2 alpha, in people."""
        return math.floor(2 * Fraction(self.alpha) * self.people)

    @property
    def error(self) -> float:
        """3 alpha: what every answer is within, as a fraction of the people."""
        return 3 * self.alpha

    @property
    def unit(self) -> float:
        """alpha, in people."""
        return self.alpha * self.people

    @cached_property
    def needed(self) -> float:
        """What alpha must be at least, in people, for the theorem to hold."""
        return _theorem(self.terms)(self.terms, self.update.bound, self.alpha) + self.doubt

    @cached_property
    def error_bound(self) -> int:
        """What comparisons and numbers are off by at most, in people, but for beta."""
        noise, half = self.noise, self.terms.beta / 2
        comparisons = noise.run.error_bound(2 * self.terms.questions, half, runs=self.updates)
        return max(comparisons, noise_bound(noise.answer, self.updates, half))

    @property
    def promised(self) -> bool:
        """Whether the theorem holds here."""
        kept = self.error_bound + ROUNDED + self.doubt
        return self.needed <= self.unit and kept <= self.unit


def with_numbers(terms: Terms, updates: UpdateBound, alpha: float) -> float:
    """Theorem 5.15, and what c numbers of its noise are off by at most, but for beta/2.

    The latter is (sqrt(512) + 1) sqrt(8 T ln(2/delta)) ln(4 T/beta) / epsilon, T = T(alpha).
    """
    count = updates(alpha)
    spread = math.sqrt(8 * count * math.log(2 / terms.delta))
    numbers = (ROOT + 1) * spread * math.log(4 * count / terms.beta) / terms.epsilon
    return max(theorem_5_15(terms, updates, alpha), numbers + ROUNDED)


def _theorem(terms: Terms) -> Statement:
    return with_numbers if terms.delta else theorem_5_14
