"""Predicting a secret from public columns: cells, a linear form, neighbours.

Each way gives, for every record asked about, how likely each of some guesses is to be right, and
what number is to be expected, learned from the records it may learn from and no others.

The way to predict that is right most often, found by cross-validation over people.

The records of some people are predicted from those of all others, so that nobody's own rows help.

What somebody gets right who never saw the release: three guesses to hold an attack against.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import numpy as np

from casemate.attack.reconstruct.problem import Problem
from casemate.attack.score.rule import Rule
from casemate.attack.subjects import Bits, Features, Places, Subjects, combined
from casemate.exact import Floats

PENALTY = 0.01
"""Of squared coefficients, for each record."""

NEIGHBOURS = (1, 5, 20)
HARDLY = 1e-6
"""How many records like the average stand in where there is no neighbour to learn from."""

KEPT = 48
"""How many of a record's neighbours are remembered: some of them may not be learned from."""

BLOCK = 512


@dataclass(frozen=True, eq=False)
class Lesson:
    """What there is to learn: which guess is right for each record (`count`: none), its number."""

    classes: Places
    count: int
    numbers: Floats


@dataclass(frozen=True, eq=False)
class GuessForecast:
    """How likely each guess is to be right for each record asked about, and the number expected."""

    shares: Floats
    means: Floats


@dataclass(frozen=True, eq=False)
class Split:
    """Which records are learned from, as a mask and as places, and which are asked about."""

    learn: Bits
    held: Places
    asked: Places

    @classmethod
    def of(cls, learn: Bits, asked: Places) -> "Split":
        """Learn from those of a mask."""
        return cls(learn, np.flatnonzero(learn), asked)


class Predictor(Protocol):
    """A way to predict."""

    @property
    def name(self) -> str:
        """What it is called in a report."""

    def predict(self, lesson: Lesson, split: Split) -> GuessForecast:
        """What to expect of the records asked about, having learned from the others."""


# Cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellPredictor:
    """The records with the same public values, and a little of all others."""

    codes: Places
    strength: float = 1.0
    name: str = "cells"

    @cached_property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.codes.max(initial=0)) + 1

    def predict(self, lesson: Lesson, split: Split) -> GuessForecast:
        """The shares and the mean of each record's cell, drawn towards those of all."""
        cells = _Grouping(self.codes[split.held], self.codes[split.asked], self.size)
        return _mixed(lesson, split.held, cells, self.strength)


@dataclass(frozen=True, eq=False)
class _Grouping:
    """The cell of each record learned from and asked about, and how many cells there are."""

    learned: Places
    asked: Places
    size: int


def _mixed(lesson: Lesson, held: Places, cells: _Grouping, strength: float) -> GuessForecast:
    """Shares and means of cells, to which `strength` records like the average are added."""
    width, asked = lesson.count + 1, cells.asked
    places = cells.learned * width + lesson.classes[held]
    table = np.bincount(places, minlength=cells.size * width).reshape(cells.size, width)
    sums = np.bincount(cells.learned, weights=lesson.numbers[held], minlength=cells.size)
    total = max(1, len(held))
    weights = table.sum(axis=1)[asked] + strength
    shares = (table[asked] + strength * (table.sum(axis=0) / total)) / weights[:, None]
    means = (sums[asked] + strength * (sums.sum() / total)) / weights
    return GuessForecast(shares[:, :-1], means)


# A linear form --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ridge:
    """A linear form of the coded public columns, with a penalty on its coefficients."""

    design: Floats
    name: str = "ridge"

    @cached_property
    def squares(self) -> Floats:
        """The design multiplied with itself, all records together."""
        return np.asarray(self.design.T @ self.design)

    def predict(self, lesson: Lesson, split: Split) -> GuessForecast:
        """What the linear form comes to; each guess has one of its own."""
        held, other = split.held, self.design[~split.learn]
        right = np.zeros((len(held), lesson.count + 1))
        right[:, -1] = lesson.numbers[held]
        inside = np.flatnonzero(lesson.classes[held] < lesson.count)
        right[inside, lesson.classes[held[inside]]] = 1.0
        level = right.mean(axis=0) if len(held) else right.sum(axis=0)
        squares = self.squares - other.T @ other
        squares[np.diag_indices_from(squares)] += PENALTY * max(1, len(held))
        slopes = np.linalg.solve(squares, self.design[held].T @ (right - level))
        found = level + self.design[split.asked] @ slopes
        return GuessForecast(found[:, :-1], found[:, -1])


# Neighbours -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NearestRecords:
    """The records whose public columns are nearest."""

    near: Places
    count: int
    name: str = "neighbours"

    def predict(self, lesson: Lesson, split: Split) -> GuessForecast:
        """The shares and the mean of the nearest that may be learned from."""
        near = self.near[split.asked]
        there = split.learn[near]
        place, which = np.nonzero(there & (np.cumsum(there, axis=1) <= self.count))
        cells = _Grouping(place, np.arange(len(near)), len(near))
        return _mixed(lesson, near[place, which], cells, HARDLY)


def nearest(design: Floats, people: Places, kept: int = KEPT) -> Places:
    """The nearest records of other people, the nearest first, of each record."""
    lengths, count = (design**2).sum(axis=1), len(design)
    found = [np.zeros((0, min(kept, count)), np.int64)]
    for start in range(0, count, BLOCK):
        block = slice(start, start + BLOCK)
        apart = lengths[block, None] + lengths - 2 * design[block] @ design.T
        apart[people[block, None] == people] = np.inf
        part = np.argpartition(apart, min(kept, count) - 1, axis=1)[:, :kept]
        own = np.take_along_axis(apart, part, axis=1)
        order = np.lexsort((part, own), axis=1)
        found.append(np.take_along_axis(part, order, axis=1))
    return np.concatenate(found)


# Best predictor ---------------------------------------------------------------------------------


STRENGTHS = (0.01, 10.0)
"""How many records of the whole table are mixed into the best cells, beside 1."""

MOST_PAIRS = 16
"""How many pairs of columns are tried."""


class School:
    """The public columns of some records, coded once for everything that is learned from them."""

    def __init__(self, features: Features, places: Places, people: Places, folds: Places) -> None:
        self.folds = folds
        self._codes = [each.cells[places] for each in features.shared]
        self._names = [each.name for each in features.shared]
        self._cells: dict[tuple[int, ...], CellPredictor] = {}
        self.others: list[Predictor] = []
        design = features.design(places)
        if design.shape[1]:
            near = nearest(design, people)
            self.others += [Ridge(design), *(NearestRecords(near, count) for count in NEIGHBOURS)]

    def cells(self, columns: tuple[int, ...], strength: float = 1.0) -> CellPredictor:
        """The cells of some public columns together; of none, all records."""
        if columns not in self._cells:
            codes = combined([self._codes[i] for i in columns], len(self.folds))
            name = " x ".join(self._names[i] for i in columns) or "everybody"
            self._cells[columns] = CellPredictor(codes, name=name)
        kept = self._cells[columns]
        return kept if strength == 1.0 else CellPredictor(kept.codes, strength, kept.name)

    @property
    def width(self) -> int:
        """How many public columns put records together."""
        return len(self._codes)

    def splits(self, learn: Bits) -> list[Split]:
        """Each fold of the records learned from, to be predicted from the others."""
        folds = range(int(self.folds.max(initial=0)) + 1)
        own = [self.folds == fold for fold in folds]
        return [Split.of(learn & ~each, np.flatnonzero(learn & each)) for each in own]


def crossed(predictor: Predictor, lesson: Lesson, splits: Sequence[Split]) -> GuessForecast:
    """What each record would be predicted to be from the records of other folds."""
    shares = np.zeros((len(lesson.classes), lesson.count))
    means = np.zeros(len(lesson.classes))
    for split in splits:
        found = predictor.predict(lesson, split)
        shares[split.asked], means[split.asked] = found.shares, found.means
    return GuessForecast(shares, means)


Decision = Callable[[GuessForecast], Floats]
"""Makes a guess of each row of a forecast."""


@dataclass(frozen=True, eq=False)
class PredictorMark:
    """A way to predict, how its forecasts are made guesses, and the fraction right of these."""

    fraction: float
    predictor: Predictor
    decide: Decision


Judge = Callable[[GuessForecast], tuple[float, Decision]]
"""Says by which decision a forecast is right most often, and how often that is."""

Scores = dict[tuple[int, ...], float]


def marks(school: School, lesson: Lesson, learn: Bits, judge: Judge) -> Iterator[PredictorMark]:
    """Every way to predict, with its fraction right among the records learned from.

    Cells are tried for every single column, then for the pairs whose columns did best alone, then
    for the best pair with a third, and for all columns together.
    """

    splits = school.splits(learn)

    def mark(predictor: Predictor) -> PredictorMark:
        fraction, decide = judge(crossed(predictor, lesson, splits))
        return PredictorMark(fraction, predictor, decide)

    scores: Scores = {}
    for wider in (_singles, _pairs, _triples):
        for columns in wider(school, scores):
            yield (found := mark(school.cells(columns)))
            scores[columns] = found.fraction
    best = max(scores, key=lambda columns: scores[columns])
    for strength in STRENGTHS:
        yield mark(school.cells(best, strength))
    yield from map(mark, school.others)


def _singles(school: School, _: Scores) -> list[tuple[int, ...]]:
    """No column at all, and every single one."""
    return [(), *((i,) for i in range(school.width))]


def _pairs(_: School, scores: Scores) -> list[tuple[int, ...]]:
    single = [columns[0] for columns in scores if columns]
    pairs: list[tuple[int, ...]] = [(a, b) for i, a in enumerate(single) for b in single[i + 1 :]]
    return sorted(pairs, key=lambda pair: -scores[pair[:1]] - scores[pair[1:]])[:MOST_PAIRS]


def _triples(school: School, scores: Scores) -> list[tuple[int, ...]]:
    pairs = [columns for columns in scores if len(columns) == 2]
    best = max(pairs, key=lambda pair: scores[pair], default=())
    every = tuple(range(school.width))
    found = {tuple(sorted({*best, other})) for other in every} | {every}
    return sorted(found - set(scores))


# Baselines --------------------------------------------------------------------------------------


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
