"""How accurate an online construction is guaranteed to be: the theorems as calculators.

Source     Source document 003, Theorems 5.13 (privacy), 5.14 and 5.15 (accuracy); Theorem 3.28
           and NumericSparse as recalled there.
Guarantee  With probability 1 - beta every answer is within 3 alpha of the truth, as a fraction of
           the people. Each statement asks for alpha * people >= need(alpha), where alpha also
           enters through the number of updates; `accuracy` finds the least such alpha.
Cost       Some hundred evaluations; floats, because no privacy rests on these numbers. The noise
           scales of Theorem 5.13 are rationals, and their cost is computed from themselves.
Departure  `corrected_pure` and `corrected_concentrated` are our own, with constants derived in
           docs/derivations/online_construction.md. Theorem 5.15 is read with sqrt(512) where 521
           is printed, and sqrt(T(alpha) ln(2/delta)) where sqrt(T(alpha ln(2/delta))) is:
           `test_the_printed_place_of_a_bracket_promises_what_the_noise_cannot_keep`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from casemate.privacy import Concentrated, Cost, Pure, rho_of
from casemate.privacy.mechanisms import Calibration
from casemate.privacy.noise import round_up

UpdateBound = Callable[[float], float]
"""T(alpha): how often a surrogate can be updated by questions it gets wrong by alpha or more."""

COMPOSITION_ROOT = math.sqrt(512)
"""In Theorem 3.28: four noise scales of sqrt(32 c ln(2/delta)) each."""


@dataclass(frozen=True)
class PromiseTerms:
    """What is promised to whom: so many questions, at this price, but for this chance."""

    questions: int  # |Q|, the k of Theorem 3.28 being twice that
    epsilon: float = 1.0
    delta: float = 0.0
    beta: float = 0.05

    def __post_init__(self) -> None:
        if self.questions < 1 or self.epsilon <= 0:
            raise ValueError(
                f"need questions >= 1 and epsilon > 0, got {self.questions} and {self.epsilon}"
            )
        if not (0 < self.beta < 1 and 0 <= self.delta < 1):
            raise ValueError(
                f"need 0 < beta < 1 and 0 <= delta < 1, got {self.beta} and {self.delta}"
            )

    @cached_property
    def rho(self) -> float:
        """The most rho whose (epsilon, delta) is within these terms."""
        _require_delta("zero-concentrated accounting", self)
        return float(rho_of(Fraction(self.epsilon), Fraction(self.delta)))


Statement = Callable[[PromiseTerms, UpdateBound, float], float]
"""need(alpha): the number of people times alpha that a statement asks for at alpha."""


@dataclass(frozen=True)
class AchievableAlpha:
    """The least alpha that a statement allows, and the updates it then makes room for."""

    alpha: float
    updates: float  # c = T(alpha)

    @property
    def error(self) -> float:
        """What every answer is within, as a fraction of the people."""
        return 3 * self.alpha


def accuracy(
    statement: Statement, terms: PromiseTerms, updates: UpdateBound, people: float
) -> AchievableAlpha:
    """The least alpha with alpha * people >= need(alpha).

    >>> universe = 10**6
    >>> def updates(alpha: float) -> float:
    ...     return 4 * math.log(universe) / alpha**2
    >>> terms = PromiseTerms(questions=10_000)
    >>> round(accuracy(theorem_5_14, terms, updates, people=48_842).error, 3)
    1.747
    """
    if people <= 0:
        raise ValueError(f"need people > 0, got {people}")
    low, high = 1e-12, 1e12  # need(alpha) falls and alpha * people rises, so they cross once
    while high > low * (1 + 1e-13):
        middle = math.sqrt(low * high)
        if statement(terms, updates, middle) > middle * people:
            low = middle
        else:
            high = middle
    return AchievableAlpha(high, updates(high))


# Accuracy -------------------------------------------------------------------------------------


def theorem_5_14(terms: PromiseTerms, updates: UpdateBound, alpha: float) -> float:
    """9 T(alpha) (ln(2|Q|) + ln(4 T(alpha)/beta)) / epsilon, for delta = 0."""
    if terms.delta:
        raise ValueError(f"Theorem 5.14 is about delta = 0, got {terms.delta}: use theorem_5_15")
    count = updates(alpha)
    return 9 * count * _log_odds(terms, count) / terms.epsilon


def theorem_5_15(
    terms: PromiseTerms, updates: UpdateBound, alpha: float, constant: int = 512
) -> float:
    """(sqrt(512) + 1) (ln(2|Q|) + ln(4 T/beta)) sqrt(T ln(2/delta)) / epsilon, T = T(alpha).

    It stands on a corollary of advanced composition that is stated for epsilon <= 1 only.
    """
    count = updates(alpha)
    weight = (math.sqrt(constant) + 1) * _log_odds(terms, count)
    return weight * math.sqrt(count * _log_inverse_half(terms)) / terms.epsilon


def corrected_pure(terms: PromiseTerms, updates: UpdateBound, alpha: float) -> float:
    """(sqrt(ln(2/beta)) + sqrt(2 c ln(8 k/beta)))^2 / epsilon, c = T(alpha), for delta = 0.

    One noise on the threshold for all c positives, gaps read for free, the best split of epsilon.
    """
    if terms.delta:
        raise ValueError(f"this is about delta = 0, got {terms.delta}: use corrected_concentrated")
    once = math.log(2 / terms.beta)
    often = 2 * max(1.0, updates(alpha)) * math.log(8 * terms.questions / terms.beta)
    return _square_of_roots(once, often) / terms.epsilon


def corrected_concentrated(terms: PromiseTerms, updates: UpdateBound, alpha: float) -> float:
    """(sqrt(ln(2c/beta)) + sqrt(2 ln(4 k/beta)))^2 / e0, c = T(alpha), e0 = sqrt(2 rho/c).

    c runs with gaps read for free, composed by zero-concentrated differential privacy.
    """
    count = max(1.0, updates(alpha))
    thresholds = math.log(2 * count / terms.beta)
    comparisons = 2 * math.log(4 * terms.questions / terms.beta)
    return _square_of_roots(thresholds, comparisons) / math.sqrt(2 * terms.rho / count)


# Privacy --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumericSparseNoise:
    """The noise of NumericSparse, whose privacy is that of OnlineIC (Theorem 5.13)."""

    positives: int  # c
    run: Calibration  # of each of the c comparisons that may fire
    answer: Fraction  # scale of the number that follows each

    @property
    def costs(self) -> tuple[Cost, Cost]:
        """The cost of one run and of one number; there are `positives` of each."""
        return self.run.cost, Pure(1 / self.answer)

    @property
    def pure_cost(self) -> Pure:
        """The cost of everything when epsilons are added up."""
        return Pure(self.positives * (self.run.epsilon + 1 / self.answer))

    @property
    def concentrated_cost(self) -> Concentrated:
        """The cost of everything in zCDP."""
        return Concentrated(self.positives * (self.run.epsilon**2 + 1 / self.answer**2) / 2)


def theorem_5_13(positives: int, epsilon: Fraction, delta: Fraction) -> NumericSparseNoise:
    """The noise with which OnlineIC is (epsilon, delta)-private, rounded up to rationals.

    For delta = 0 the comparisons take 8/9 of epsilon and the numbers 1/9. Otherwise they take
    sqrt(512) parts and 1 part of sqrt(512) + 1, and each is spread over c steps by advanced
    composition with delta/2, in the form that is stated for epsilon <= 1 only.
    """
    if positives < 1 or epsilon <= 0 or not 0 <= delta < 1:
        raise ValueError(
            f"need positives >= 1, epsilon > 0 and 0 <= delta < 1, "
            f"got {positives}, {epsilon} and {delta}"
        )
    weight = COMPOSITION_ROOT if delta else 8.0
    comparisons = _each(epsilon, weight / (weight + 1), positives, delta)
    numbers = _each(epsilon, 1 / (weight + 1), positives, delta)
    return NumericSparseNoise(positives, Calibration.of(comparisons), round_up(1 / numbers))


# Their parts ----------------------------------------------------------------------------------


def _log_odds(terms: PromiseTerms, updates: float) -> float:
    return math.log(2 * terms.questions) + math.log(4 * updates / terms.beta)


def _log_inverse_half(terms: PromiseTerms) -> float:
    _require_delta("Theorem 5.15", terms)
    if terms.epsilon > 1:
        raise ValueError(
            f"Theorem 5.15 holds for epsilon <= 1, got {terms.epsilon}: use corrected_concentrated"
        )
    return math.log(2 / terms.delta)


def _square_of_roots(a: float, b: float) -> float:
    """The least of a/x + b/(1 - x), which is at x : 1 - x = sqrt(a) : sqrt(b)."""
    return (math.sqrt(a) + math.sqrt(b)) ** 2


def _each(epsilon: Fraction, share: float, steps: int, delta: Fraction) -> Fraction:
    """What each of `steps` steps may spend of a share of epsilon, rounded down."""
    spread = math.sqrt(8 * steps * math.log(2 / delta)) if delta else float(steps)
    return Fraction(float(epsilon) * share / spread * (1 - 2**-40))


def _require_delta(what: str, terms: PromiseTerms) -> None:
    if not terms.delta:
        raise ValueError(f"{what} needs delta > 0; for delta = 0 there is a pure statement")
