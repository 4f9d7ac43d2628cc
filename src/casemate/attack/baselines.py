"""What somebody gets right who never saw the release: three guesses to hold an attack against."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from casemate.attack.problem import Problem
from casemate.attack.rule import Rule
from casemate.attack.subjects import Bits, Subjects
from casemate.solve.rows import Floats


class PriorMean(StrEnum):
    """Where the guess of the prior mean comes from."""

    TOTAL = "total"
    RANGE = "range"


@dataclass(frozen=True)
class Baselines:
    """The fraction right of each guess, under the rule by which the attack is judged.

    `prior_mean` is the share of a public total, or else the middle of the known range; it is None
    where neither is known, and `source` says which it is. `majority` is the single value that is
    right most often, and `marginal` what draws from the true distribution get right on average.
    `leave_one_out` is the best predictor from the public columns and the same release without the
    target.
    """

    prior_mean: float | None
    source: PriorMean | None
    majority: float
    marginal: float
    leave_one_out: float


def prior_mean(
    problem: Problem, truth: Floats, subjects: Subjects, rule: Rule, judged: Bits
) -> tuple[float | None, PriorMean | None]:
    """The fraction right of the mean known beforehand, among `judged`, and where it is known from.

    A mean halfway between two whole numbers is taken for either with the same probability.
    """
    if problem.total is not None:
        mean = np.full(problem.equations.width, problem.total / problem.equations.width)
        source = PriorMean.TOTAL
    elif np.isfinite([problem.low[subjects.scored], problem.high[subjects.scored]]).all():
        mean, source = problem.low / 2 + problem.high / 2, PriorMean.RANGE
    else:
        return None, None
    guess, true = (subjects.by_record(each)[judged] for each in (mean, truth))
    halves = [np.where(rule.whole, side(guess - 0.5 * down), guess) for side, down in SIDES]
    return float(np.mean([rule.right(each, true).mean() for each in halves])), source


SIDES = ((np.ceil, 1.0), (np.floor, -1.0))
"""Rounding a half down, and up."""


def majority(truth: Floats, rule: Rule) -> float:
    """The fraction for which the best single guess is right; a row of `truth` for each secret.

    >>> majority(np.array([[1.0], [1.0], [4.0]]), Rule(np.array([True]), 0.0)) == 2 / 3
    True
    """
    guess, _ = rule.guesses(truth, 1)
    return float(rule.right(np.broadcast_to(guess, truth.shape), truth).mean())


def marginal(truth: Floats, rule: Rule) -> float:
    """The fraction that is right on average when every guess is drawn from the true values.

    >>> marginal(np.array([[0.0], [1.0]]), Rule(np.array([True]), 0.0))
    0.5
    """
    return float(rule.frequency(truth).mean() / len(truth))
