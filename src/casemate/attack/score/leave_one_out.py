"""Inference is not disclosure: what would be guessed of somebody who had stayed away.

Source     The baseline of every attack: the best predictor from the public columns and the same
           release made without the target person.
Method     For each target the release is made without the target, the others are reconstructed
           from it, the way to predict that is right most often on these others (by
           cross-validation over people) is learned from them, and the target is predicted.
Guarantee  The prediction does not depend on the target's own value: the true value is used only to
           take the target's contribution off the published numbers, and nothing is started from
           the reconstruction with the target, which would remember it wherever the equations leave
           something open.
Cost       One solve and one search among predictors a target. In a table of many people some
           targets leave together, as many as are one in 5,000; nothing is learned from more than
           5,000 records.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from casemate.attack.features import Places
from casemate.attack.reconstruct.problem import Problem
from casemate.attack.score.predictor import (
    Decision,
    GuessForecast,
    LearningTask,
    PublicDesign,
    Rule,
    Split,
    marks,
)
from casemate.attack.solvers.box_squares import box_squares
from casemate.attack.solvers.convex import RangeConstraints
from casemate.attack.solvers.least_squares import EquationView, least_squares
from casemate.attack.subjects import Bits, Subjects
from casemate.exact import Floats, Passes, Rows


def release_without(problem: Problem, truth: Floats, unknowns: Places) -> Problem:
    """The problem as it would be if these unknowns were nobody's: they are 0 and in no equation.

    Equation by equation, what they contributed is taken off the published number, and the noise
    stays as it was. Rounding is no such noise: what is left of the sum is rounded again, because
    the part that was cut off depends on everybody. Nothing of it depends on what their true values
    are.
    """
    own = np.zeros(problem.equations.width)
    own[unknowns] = truth[unknowns]
    low, high = problem.low.copy(), problem.high.copy()
    low[unknowns] = high[unknowns] = 0.0
    total = None if problem.total is None else problem.total - float(own.sum())
    return replace(
        problem,
        equations=_without_unknowns(problem.equations, unknowns),
        answers=_answers(problem, truth, own, unknowns),
        low=low,
        high=high,
        limits=_limits(problem.limits, own, unknowns),
        total=total,
    )


def _answers(problem: Problem, truth: Floats, own: Floats, unknowns: Places) -> Floats:
    law = problem.noise
    if law is None or law.kind != "round":
        return problem.answers - sums(problem.equations, own)
    others = truth.copy()
    others[unknowns] = 0.0
    exact = sums(problem.equations, others) / problem.spread + problem.public
    shown = np.round(exact / law.scale) * law.scale
    return np.asarray((shown - problem.public) * problem.spread)


def _without_unknowns(equations: Passes, unknowns: Places) -> Passes:
    kept = np.ones(equations.width, np.bool_)
    kept[unknowns] = False
    if not isinstance(equations, Rows):
        return EquationView(equations, free=kept)
    return _keep_entries(equations, kept[equations.columns])


def _keep_entries(rows: Rows, inside: Bits) -> Rows:
    """Only these entries."""
    before = np.concatenate([[0], np.cumsum(inside)])
    values = None if rows.values is None else rows.values[inside]
    return Rows(before[rows.starts], rows.columns[inside], values, rows.width)


def _limits(
    limits: RangeConstraints | None, own: Floats, unknowns: Places
) -> RangeConstraints | None:
    if limits is None:
        return None
    taken = sums(limits.rows, own)
    kept = np.ones(limits.rows.width, np.bool_)
    kept[unknowns] = False
    rows = _keep_entries(limits.rows, kept[limits.rows.columns])
    return RangeConstraints(rows, limits.low - taken, limits.high - taken)


def sums(equations: Passes, point: Floats) -> Floats:
    """What each equation comes to before it is scaled; exactly, of stored whole numbers."""
    if isinstance(equations, Rows):
        return equations.sums(point)
    return equations.times(point) * equations.lengths


# The prediction of each target ------------------------------------------------------------------


Solve = Callable[[Problem], Floats]
"""Reconstructs every unknown of a problem."""

Report = Callable[[int, int], None]
"""Called with how many targets are done, and how many there are."""

FOLD_COUNT = 5
MOST_LEARNERS = 5_000
"""From how many records is learned at most, and of how many people one leaves at a time."""

MOST_GUESSES = 16
MOST_STEPS = 500
"""Of the solver without a target: what comes later changes hardly anybody."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """What is guessed of each target without its help, and by which way to predict."""

    targets: Places
    values: Floats
    ways: tuple[str, ...]


def solve_squares(problem: Problem) -> Floats:
    """The least squares of the scaled equations, within the bounds of the unknowns."""
    found = least_squares(problem.equations, problem.answers, most=MOST_STEPS).values
    if not problem.bounded:
        return found
    low, high = problem.low, problem.high
    return box_squares(
        problem.equations, problem.answers, low=low, high=high, start=found, most=MOST_STEPS
    ).values


def leave_one_out(
    problem: Problem,
    truth: Floats,
    subjects: Subjects,
    rule: Rule,
    targets: Places,
    *,
    random: np.random.Generator,
    solve: Solve = solve_squares,
    together: int | None = None,
    progress: Report | None = None,
) -> Predictions:
    """Predict each target from the release without its person; targets count `subjects.records`.

    `together` people leave at a time. What `progress` raises ends the work.
    """
    size = together or max(1, len(np.unique(subjects.people)) // MOST_LEARNERS)
    places = _learners(targets, len(subjects.records), random)
    people = subjects.people[places]
    school = PublicDesign(
        subjects.features, subjects.records[places], people, _folds(people, random)
    )
    values = np.full((len(targets), len(subjects.kinds)), np.nan)
    ways: dict[int, str] = {}
    for group in _groups(subjects.people[targets], size):
        gone = subjects.people[targets[group]]
        without = release_without(problem, truth, subjects.unknowns_of(gone))
        others = subjects.by_record(solve(without))[places]
        asked = np.searchsorted(places, targets[group])
        values[group], way = _predict_targets(school, rule, others, ~np.isin(people, gone), asked)
        ways |= dict.fromkeys(group.tolist(), way)
        if progress is not None:
            progress(len(ways), len(targets))
    return Predictions(targets, values, tuple(ways[i] for i in range(len(targets))))


def _learners(targets: Places, count: int, random: np.random.Generator) -> Places:
    """The targets, and those from whom is learned, in order."""
    if count <= MOST_LEARNERS:
        return np.arange(count, dtype=np.int64)
    drawn = random.choice(count, MOST_LEARNERS, replace=False)
    return np.union1d(drawn, targets).astype(np.int64)


def _folds(people: Places, random: np.random.Generator) -> Places:
    """A fold for each record; all records of one person are in the same."""
    distinct, place = np.unique(people, return_inverse=True)
    return (random.permutation(len(distinct)) % FOLD_COUNT)[place].astype(np.int64)


def _groups(people: Places, size: int) -> Iterator[Places]:
    """The targets of `size` people at a time."""
    distinct, place = np.unique(people, return_inverse=True)
    for start in range(0, len(distinct), size):
        yield np.flatnonzero((place >= start) & (place < start + size))


def _predict_targets(
    school: PublicDesign, rule: Rule, values: Floats, learn: Bits, asked: Places
) -> tuple[Floats, str]:
    """What the best way to predict says of those asked about, and its name."""
    if not learn.any():
        return np.full((len(asked), values.shape[1]), np.nan), "nobody"
    exam = _GuessJudge(rule, values, learn)
    best = max(marks(school, exam.lesson, learn, exam.judge), key=lambda mark: mark.fraction)
    return best.decide(
        best.predictor.predict(exam.lesson, Split.of(learn, asked))
    ), best.predictor.name


class _GuessJudge:
    """What is to be learned from the reconstructed others, and how often a forecast is right."""

    def __init__(self, rule: Rule, values: Floats, learn: Bits) -> None:
        self._rule, self._values, self._learn = rule, values, learn
        self._guesses, classes = rule.guesses(values[learn], MOST_GUESSES)
        every = np.full(len(values), len(self._guesses), np.int64)
        every[learn] = classes
        self.lesson = LearningTask(every, len(self._guesses), np.where(learn, values[:, 0], 0.0))

    def judge(self, forecast: GuessForecast) -> tuple[float, Decision]:
        """The better of the likeliest guess and, of a single number, the one expected."""
        decisions = [self._likeliest_guess, self._mean_guess][
            : 2 if self._values.shape[1] == 1 else 1
        ]
        return max(((self._right(forecast, each), each) for each in decisions), key=lambda d: d[0])

    def _right(self, forecast: GuessForecast, decide: Decision) -> float:
        right = self._rule.right(decide(forecast), self._values)
        return float(right[self._learn].mean())

    def _likeliest_guess(self, forecast: GuessForecast) -> Floats:
        return np.asarray(self._guesses[np.argmax(forecast.shares, axis=1)])

    def _mean_guess(self, forecast: GuessForecast) -> Floats:
        return np.asarray(forecast.means[:, None])
