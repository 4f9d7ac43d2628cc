"""The gate's public schedule: its thresholds, what an easy answer proves, what a surprise measures.

Source     Source document 003, OnlineIC: the threshold is 2 alpha there, with alpha the accuracy
           of the sparse vector. The split of a run's epsilon and the growing threshold are those
           of docs/derivations/sparse_vector.md.
Guarantee  `easy_interval` holds with its confidence for the discrete noise in use; `Holds` says
           for which answers. docs/derivations/online_construction.md has the proofs.
Cost       Constant time a question; scales are rationals that are rounded up.
Departure  The document fixes the number of questions in advance. Without it question i may fail
           with beta/(2 i^2) and thresholds grow with ln(i). PRACTICE fires earlier than the
           proof allows, so it bounds errors better and the number of updates not at all:
           `test_only_the_threshold_of_the_proof_promises_that_an_update_was_needed`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Self

from casemate.grid import Classes, GridQuestion, Product, Relation, all_codes, coarsest_classes
from casemate.privacy import Concentrated
from casemate.privacy.mechanisms import Calibration, Side, accuracy_share, run_epsilon
from casemate.privacy.noise import Law, noise_bound, variance

PRACTICAL_THRESHOLD_MULTIPLE = Fraction(1, 2)  # tau
"""Of alpha: errors of at most 1.5 alpha, and nothing is said about updates."""

EXPECTED_QUESTIONS = 10**5
"""For so many epsilon is split when nobody knows how many will come."""

RELATIVE_ROUNDING_ERROR = 1e-9
"""Far above what a dozen floating-point operations lose."""


class Holds(Enum):
    """For which answers at once an interval holds, all noise being drawn afresh."""

    IN_A_RUN = "in a run"  # the i-th question of one run, i fixed when the run is opened
    ALONE = "alone"  # a question whose number is fixed in advance, whichever run it meets
    TOGETHER = "together"  # all easy answers of the session


@dataclass(frozen=True)
class GateSchedule:
    """What everybody knows of a gate before the first question."""

    calibration: Calibration
    runs: int  # c: how many positive answers there are in all
    beta: float = 0.05
    multiple: Fraction = PRACTICAL_THRESHOLD_MULTIPLE  # tau
    side: Side = Side.MAGNITUDE
    questions: int | None = None  # k_max; None where nobody knows

    def __post_init__(self) -> None:
        if self.runs < 1 or self.multiple <= 0 or not 0 < self.beta < 1:
            raise ValueError(
                f"need runs >= 1, multiple > 0 and 0 < beta < 1, "
                f"got {self.runs}, {self.multiple} and {self.beta}"
            )
        if self.calibration.positives != 1 or self.side is Side.ABOVE:
            raise ValueError("a gate looks for deviations on both sides, one positive a run")
        if self.questions is not None and self.questions < 1:
            raise ValueError(f"need questions >= 1, got {self.questions}")

    @classmethod
    def within(
        cls,
        rho: Fraction,
        runs: int,
        beta: float = 0.05,
        *,
        multiple: Fraction = PRACTICAL_THRESHOLD_MULTIPLE,
        side: Side = Side.MAGNITUDE,
        questions: int | None = None,
        sensitivity: int = 1,
    ) -> Self:
        """Spend at most `rho` on all runs, split between the noises where the error is least."""
        comparisons = _sides(side) * (questions or EXPECTED_QUESTIONS)
        share = accuracy_share(comparisons, beta, runs=runs)
        calibration = Calibration.of(run_epsilon(rho, runs), share, sensitivity=sensitivity)
        return cls(calibration, runs, beta, multiple, side, questions)

    @property
    def concentrated_cost(self) -> Concentrated:
        """The cost of all runs, from the scales in use."""
        return Concentrated(self.runs * self.calibration.concentrated_cost.rho)

    def error_bound(self, question: int) -> int:
        """How far a comparison can err at question 1, 2, 3, ...; all at once but for beta."""
        last = math.inf if self.questions is None else self.questions
        if not 1 <= question <= last:
            raise ValueError(f"questions are numbered from 1 to {last}, got {question}")
        if self.questions is None:
            return self.calibration.error_bound_at(
                question, self.beta, self.runs, _sides(self.side)
            )
        return self.calibration.error_bound(
            _sides(self.side) * self.questions, self.beta, self.runs
        )

    def threshold(self, question: int) -> int:
        """The public threshold of question 1, 2, 3, ..."""
        return math.ceil(self.multiple * self.error_bound(question))


def easy_interval(
    gate: GateSchedule, question: int, confidence: float = 0.95, holds: Holds = Holds.IN_A_RUN
) -> int:
    """The largest deviation, either way, that an easy answer to this question leaves possible.

    IN_A_RUN inverts the test: it is the largest g with P(easy | g) >= 1 - confidence. The others
    bound the noises one by one. Which of them is used is chosen before any noise is drawn: the
    smaller of two intervals holds with the confidence of neither.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"need 0 < confidence < 1, got {confidence}")
    threshold = gate.threshold(question)
    return max(0, threshold - 1 + _MARGIN[holds](gate, question, 1 - confidence))


def excess_chance(calibration: Calibration, excess: int) -> float:
    """P(r - n >= excess) for the noise r on the threshold and n on a comparison.

    Both laws are discrete Laplace, of ratios p = exp(-1/threshold) and q = exp(-1/query). What is
    summed is positive, so nothing cancels, also where p and q are almost equal.
    """
    if excess <= 0:
        return 1 - excess_chance(calibration, 1 - excess)
    a, b = 1 / float(calibration.threshold), 1 / float(calibration.query)
    p, q = math.exp(-a), math.exp(-b)
    both = -math.expm1(-(a + b))  # 1 - p q
    peak = -math.expm1(-a) / (1 + p)  # P(r = 0)
    far = math.exp(-a * excess) * (1 / (1 + p) - peak * q / ((1 + q) * both))  # r >= excess
    near = peak / (1 + q) * _between(calibration, excess)  # 0 <= r < excess
    below = peak / (1 + q) * math.exp(-b * excess) * p * q / both  # r < 0
    return far + near + below


def _between(calibration: Calibration, excess: int) -> float:
    """The sum of p^r q^(excess - r) over 0 <= r < excess."""
    slope = float(1 / calibration.query - 1 / calibration.threshold)  # ln(p/q), rounded once
    ratio = -abs(slope)
    terms = math.expm1(ratio * excess) / math.expm1(ratio) if ratio else float(excess)
    widest = float(max(calibration.query, calibration.threshold))
    return math.exp(-excess / widest + min(0.0, -slope)) * terms


Margin = Callable[[GateSchedule, int, float], int]


def _in_a_run(gate: GateSchedule, _: int, level: float) -> int:
    """The largest excess of the noise on the threshold that has at least this chance."""

    def likely(excess: int) -> bool:
        return excess_chance(gate.calibration, excess) * (1 + RELATIVE_ROUNDING_ERROR) >= level

    low, high = -1, 1
    while not likely(low):
        low *= 2
    while likely(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if likely(middle) else (low, middle)
    return low


def _alone(gate: GateSchedule, _: int, level: float) -> int:
    """All thresholds bounded at once, and the one comparison: a run may have been outlived."""
    noise = gate.calibration
    share = float(noise.threshold / (noise.threshold + noise.query))  # where the sum is least
    return _upper(noise.threshold, gate.runs, level * share) + _upper(
        noise.query, 1, level * (1 - share)
    )


def _together(gate: GateSchedule, question: int, level: float) -> int:
    """All thresholds and all comparisons bounded at once."""
    known = gate.questions
    part, each = (2, 2 * known) if known else (6, 2 * question**2)
    return _upper(gate.calibration.threshold, gate.runs, level / part) + _upper(
        gate.calibration.query, 1, level / each
    )


_MARGIN: dict[Holds, Margin] = {
    Holds.IN_A_RUN: _in_a_run,
    Holds.ALONE: _alone,
    Holds.TOGETHER: _together,
}


def _upper(scale: Fraction, draws: int, beta: float) -> int:
    """What none of `draws` draws passes upwards, but for `beta`: half the chance of both ways."""
    return noise_bound(scale, draws, min(2 * beta, 1 - RELATIVE_ROUNDING_ERROR))


def _sides(side: Side) -> int:
    return len(side.comparisons(0))


# What to measure when the gate fires ------------------------------------------------------------


MAX_MEASURED_CODES = 2**17
"""Cells of a table of all codes: what is measured is learnt, which takes time by the cell."""

TOLERATED_ERROR_SHARE = Fraction(1, 2)
"""The whole table is taken if its error is within this share of what the gate lets pass."""


def table_for(
    asked: GridQuestion, shape: tuple[int, ...], law: Law, relation: Relation, threshold: int
) -> Classes:
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
    asked: GridQuestion, classes: Classes, law: Law | None, relation: Relation
) -> float:
    """The largest standard error of a cell that is read from a table, in sensitivities."""
    worst = 0.0
    for part in asked.parts:
        for cell in part.cells:
            square = sum(_square(classes, product) for product in cell)
            worst = max(worst, math.sqrt(square) / part.sensitivity(relation))
    return worst * math.sqrt(variance(law))


def _square(classes: Classes, product: Product) -> float:
    """The sum of the squared weights of the cells of a table in a product, without listing them."""
    return math.prod(float((factor**2).sum()) for factor in classes.factors(product))
