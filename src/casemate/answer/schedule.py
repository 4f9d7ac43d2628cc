"""The gate's public schedule: its thresholds, what an easy answer proves, what a surprise measures.

Source     Source document 003, OnlineIC: the threshold is 2 alpha there, with alpha the accuracy
           of the sparse vector.
Guarantee  `easy_interval` holds with its confidence for all easy answers of a dataset at once,
           whoever asks. docs/derivations/online_construction.md has the proof.
Cost       Constant time a question; scales are rationals that are rounded up.
Departure  The document fixes the number of questions in advance and has noise of both signs. Here
           nobody knows the number: thresholds grow with ln(i), so that question i fires without
           need with at most 1/i of a chance; and noise is one-sided, so that only that on the
           threshold can hide a deviation: `test_all_easy_answers_are_within_the_interval_at_once`.
           Nothing is said about the number of updates.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from casemate.grid import CellClasses, GridQuestion, Product, Relation, all_codes, coarsest_classes
from casemate.privacy import Concentrated
from casemate.privacy.mechanisms import Calibration, run_epsilon, split_share
from casemate.privacy.noise import Law, geometric_bound, variance

FALSE_ALARM_CHANCE = 0.005
"""With which the first question fires although the stand-in is right; the i-th has 1/i of it."""

SPLIT_QUESTION = 100
"""A run's epsilon is split so that the interval of this question is least, at 95 %."""


@dataclass(frozen=True)
class GateSchedule:
    """What everybody knows of a gate before the first question."""

    calibration: Calibration
    runs: int  # c: how many positive answers there are in all
    false_alarm: float = FALSE_ALARM_CHANCE

    def __post_init__(self) -> None:
        if self.runs < 1 or not 0 < self.false_alarm < 1:
            raise ValueError(
                f"need runs >= 1 and 0 < false_alarm < 1, got {self.runs} and {self.false_alarm}"
            )
        if self.calibration.positives != 1 or not self.calibration.one_sided:
            raise ValueError("a gate has one-sided noise, and one positive a run")

    @classmethod
    def of(cls, epsilon: Fraction, runs: int, *, sensitivity: int = 1) -> Self:
        """Spend at most `epsilon` on each run, split between the noises where the error is least.

        A threshold may hide ln(runs/.05) of its scale, and a comparison needs the logarithm of its
        chances as room.
        """
        share = split_share(
            math.log(runs / 0.05), 2 * math.log(SPLIT_QUESTION / 2 / FALSE_ALARM_CHANCE)
        )
        return cls(Calibration.of(epsilon, share, sensitivity=sensitivity, one_sided=True), runs)

    @classmethod
    def within(cls, rho: Fraction, runs: int, *, sensitivity: int = 1) -> Self:
        """Spend at most `rho` on all runs."""
        return cls.of(run_epsilon(rho, runs), runs, sensitivity=sensitivity)

    @property
    def concentrated_cost(self) -> Concentrated:
        """The cost of all runs, from the scales in use."""
        return Concentrated(self.runs * self.calibration.concentrated_cost.rho)

    def threshold(self, question: int) -> int:
        """The public threshold of question 1, 2, 3, ..."""
        if question < 1:
            raise ValueError(f"questions are numbered from 1, got {question}")
        noise = self.calibration
        odds = question / self.false_alarm * _chance_of_no_less(noise)
        return max(0, math.ceil(float(noise.query) * math.log(odds) * (1 + 1e-12)))


def _chance_of_no_less(noise: Calibration) -> float:
    """P(m >= r) for the noise m on a comparison and r on the threshold; times q^T, P(m >= T + r).

    The sum over r of (1 - p) p^r q^r, where p and q are the ratios of the two laws.
    """
    threshold, both = 1 / noise.threshold, 1 / noise.threshold + 1 / noise.query
    return math.expm1(-threshold) / math.expm1(-both)


def easy_interval(gate: GateSchedule, question: int, confidence: float = 0.95) -> int:
    """The largest deviation, either way, that an easy answer to this question leaves possible.

    It holds for all easy answers at once: an easy answer has deviation + m < threshold + r with
    m >= 0, so nothing but the noise r on the threshold of one of the runs can hide a deviation.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"need 0 < confidence < 1, got {confidence}")
    hidden = geometric_bound(gate.calibration.threshold, gate.runs, 1 - confidence)
    return max(0, gate.threshold(question) + hidden - 1)


# What to measure when the gate fires ------------------------------------------------------------


MAX_MEASURED_CODES = 2**17
"""Cells of a table of all codes: what is measured is learnt, which takes time by the cell."""

TOLERATED_ERROR_SHARE = Fraction(1, 2)
"""The whole table is taken if its error is within this share of what the gate lets pass."""


def table_for(
    asked: GridQuestion, shape: tuple[int, ...], law: Law, relation: Relation, threshold: int
) -> CellClasses:
    """The table to measure for a question that the gate found too far off, by predicted error.

    Every candidate costs the same, because one person moves one cell of any table. The table of all
    codes of the scope also answers what will be asked next about it, so it is taken where it
    answers this question well enough; a sum over thousands of noisy cells does not, and then the
    coarsest table that answers the question is. Both follow from the question and public noise.
    """
    whole = all_codes(asked.scope, shape)
    if whole.cells > MAX_MEASURED_CODES:
        return coarsest_classes(asked)
    fits = predicted_error(asked, whole, law, relation) <= TOLERATED_ERROR_SHARE * threshold
    return whole if fits else coarsest_classes(asked)


def predicted_error(
    asked: GridQuestion, classes: CellClasses, law: Law | None, relation: Relation
) -> float:
    """The largest standard error of a cell that is read from a table, in sensitivities."""
    worst = 0.0
    for part in asked.parts:
        for cell in part.cells:
            square = sum(_square(classes, product) for product in cell)
            worst = max(worst, math.sqrt(square) / part.sensitivity(relation))
    return worst * math.sqrt(variance(law))


def _square(classes: CellClasses, product: Product) -> float:
    """The sum of the squared weights of the cells of a table in a product, without listing them."""
    return math.prod(float((factor**2).sum()) for factor in classes.factors(product))
