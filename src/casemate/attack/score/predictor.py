"""Predicting a secret from public columns: when a guess is right, and which guesses there are.

Each way to predict (cells, a linear form, neighbours) gives, for every record asked about, how
likely each of some guesses is to be right, and what number is to be expected, learned from the
records it may learn from and no others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.attack.features import Features, Places, combine_codes
from casemate.attack.reconstruct.problem import Problem
from casemate.attack.subjects import Bits, Subjects
from casemate.exact import Floats

RELATIVE_SLACK = 1e-9
"""A tolerance is stretched by this share, so that rounding in its last digits decides nothing."""


@dataclass(frozen=True, eq=False)
class Rule:
    """When a guess is right: which of a secret's numbers are whole, how far the others may be off.

    A whole number is right when it is exactly that after rounding, any other number when it is
    within the tolerance. A secret of several numbers is right when all of them are.

    >>> rule = Rule(np.array([True]), 0.0)
    >>> rule.right(np.array([[2.4], [1.5]]), np.array([[2.0], [1.0]])).tolist()
    [True, False]
    """

    whole: NDArray[np.bool_]
    tolerance: float

    def __post_init__(self) -> None:
        """Refuse what cannot be judged."""
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError("the tolerance must be a finite number, 0 or above")
        if (~self.whole).sum() > 1:
            raise ValueError("a secret with several numbers that are not whole cannot be scored")

    @property
    def reach(self) -> float:
        """How far apart a guess and the truth may be, with room for rounding."""
        return self.tolerance * (1 + RELATIVE_SLACK)

    def round_whole(self, values: Floats) -> Floats:
        """The values as they are judged: whole ones rounded."""
        return np.where(self.whole, np.rint(values), values)

    def right(self, guesses: Floats, truth: Floats) -> NDArray[np.bool_]:
        """Which guesses are right; a row for each secret."""
        apart = np.abs(self.round_whole(guesses) - self.round_whole(truth))
        return np.asarray((apart <= np.where(self.whole, 0.0, self.reach)).all(axis=1))

    def frequency(self, values: Floats) -> Floats:
        """Of how many of the values each of them would be the right guess, itself included."""
        groups, number = self._parts(values)
        order = np.lexsort((number, groups))
        place = _separate_groups(groups, number, order, self.reach)
        first = np.searchsorted(place, place - self.reach, side="left")
        last = np.searchsorted(place, place + self.reach, side="right")
        found = np.empty(len(values))
        found[order] = last - first
        return found

    def guesses(self, values: Floats, most: int) -> tuple[Floats, Places]:
        """The single guesses that are right most often, and which of them is right for each value.

        Each is the best for the values that those before it missed; a value that none of `most`
        guesses hits has their number.
        """
        groups, number = self._parts(values)
        if self.whole.all():
            found, classes = _commonest(groups, most)
            return self.round_whole(values)[found], classes
        return self._windows(groups, number, values, most)

    def _parts(self, values: Floats) -> tuple[Places, Floats]:
        """A code for the whole numbers together, and the one that is not whole (0: none)."""
        round_whole = self.round_whole(values)
        whole = [np.unique(each, return_inverse=True)[1] for each in round_whole[:, self.whole].T]
        rest = round_whole[:, ~self.whole]
        number = rest[:, 0] if rest.shape[1] else np.zeros(len(values))
        return combine_codes([each.astype(np.int64) for each in whole], len(values)), number

    def _windows(
        self, groups: Places, number: Floats, values: Floats, most: int
    ) -> tuple[Floats, Places]:
        """Again and again the window, twice the tolerance wide, that holds most of what is left."""
        order = np.lexsort((number, groups))
        place, left = _separate_groups(groups, number, order, self.reach), order
        classes = np.full(len(values), most, np.int64)
        found: list[Floats] = []
        while len(left) and len(found) < most:
            ends = np.searchsorted(place, place + 2 * self.reach, side="right")
            start = int(np.argmax(ends - np.arange(len(place))))
            held = left[start : ends[start]]
            guess = self.round_whole(values[held[0]])
            guess[~self.whole] = (number[held[0]] + number[held[-1]]) / 2
            classes[held] = len(found)
            found.append(guess)
            rest = np.r_[:start, ends[start] : len(left)]
            left, place = left[rest], place[rest]
        classes[classes == most] = len(found)
        return np.array(found).reshape(-1, values.shape[1]), classes


def _commonest(groups: Places, most: int) -> tuple[Places, Places]:
    """One member of each of the largest groups, and which of these each record is in."""
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    ranked = np.argsort(-sizes, kind="stable")[:most]
    number = np.full(len(sizes), len(ranked), np.int64)
    number[ranked] = np.arange(len(ranked))
    return first[ranked].astype(np.int64), number[groups]


def _separate_groups(groups: Places, number: Floats, order: Places, reach: float) -> Floats:
    """The numbers in order, moved so far apart that no window holds two groups."""
    ordered = number[order]
    gap = float(np.ptp(number)) + 4 * reach + 1 if len(number) else 0.0
    return np.asarray((ordered - ordered.min(initial=np.inf)) + gap * groups[order])


# Ways to predict --------------------------------------------------------------------------------


RIDGE_PENALTY = 0.01
"""Of squared coefficients, for each record."""

NEIGHBOUR_COUNTS = (1, 5, 20)
NEIGHBOUR_SHRINKAGE = 1e-6
"""How many records like the average stand in where there is no neighbour to learn from."""

STORED_NEIGHBOURS = 48
"""How many of a record's neighbours are remembered: some of them may not be learned from."""

RECORDS_PER_BLOCK = 512


@dataclass(frozen=True, eq=False)
class LearningTask:
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

    def predict(self, lesson: LearningTask, split: Split) -> GuessForecast:
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

    def predict(self, lesson: LearningTask, split: Split) -> GuessForecast:
        """The shares and the mean of each record's cell, drawn towards those of all."""
        found = _shrink_to_average(
            lesson, split.held, self.codes[split.held], self.size, self.strength
        )
        asked = self.codes[split.asked]
        return GuessForecast(found.shares[asked], found.means[asked])


def _shrink_to_average(
    lesson: LearningTask, held: Places, cells: Places, size: int, strength: float
) -> GuessForecast:
    """Shares and means of cells, to which `strength` records like the average are added."""
    width, total = lesson.count + 1, max(1, len(held))
    places = cells * width + lesson.classes[held]
    table = np.bincount(places, minlength=size * width).reshape(size, width)
    sums = np.bincount(cells, weights=lesson.numbers[held], minlength=size)
    weights = table.sum(axis=1) + strength
    shares = (table + strength * (table.sum(axis=0) / total)) / weights[:, None]
    means = (sums + strength * (sums.sum() / total)) / weights
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

    def predict(self, lesson: LearningTask, split: Split) -> GuessForecast:
        """What the linear form comes to; each guess has one of its own."""
        held, other = split.held, self.design[~split.learn]
        right = np.zeros((len(held), lesson.count + 1))
        right[:, -1] = lesson.numbers[held]
        inside = np.flatnonzero(lesson.classes[held] < lesson.count)
        right[inside, lesson.classes[held[inside]]] = 1.0
        level = right.mean(axis=0) if len(held) else right.sum(axis=0)
        squares = self.squares - other.T @ other
        squares[np.diag_indices_from(squares)] += RIDGE_PENALTY * max(1, len(held))
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

    def predict(self, lesson: LearningTask, split: Split) -> GuessForecast:
        """The shares and the mean of the nearest that may be learned from."""
        near = self.near[split.asked]
        there = split.learn[near]
        place, which = np.nonzero(there & (np.cumsum(there, axis=1) <= self.count))
        return _shrink_to_average(lesson, near[place, which], place, len(near), NEIGHBOUR_SHRINKAGE)


def nearest(design: Floats, people: Places, kept: int = STORED_NEIGHBOURS) -> Places:
    """The nearest records of other people, the nearest first, of each record."""
    lengths, count = (design**2).sum(axis=1), len(design)
    found = [np.zeros((0, min(kept, count)), np.int64)]
    for start in range(0, count, RECORDS_PER_BLOCK):
        block = slice(start, start + RECORDS_PER_BLOCK)
        apart = lengths[block, None] + lengths - 2 * design[block] @ design.T
        apart[people[block, None] == people] = np.inf
        part = np.argpartition(apart, min(kept, count) - 1, axis=1)[:, :kept]
        own = np.take_along_axis(apart, part, axis=1)
        order = np.lexsort((part, own), axis=1)
        found.append(np.take_along_axis(part, order, axis=1))
    return np.concatenate(found)


# The way that is right most often, found by cross-validation over people ------------------------
#
# The records of some people are predicted from those of all others, so that nobody's own rows
# help.


CELL_SHRINKAGES = (0.01, 10.0)
"""How many records of the whole table are mixed into the best cells, beside 1."""

MOST_PAIRS = 16
"""How many pairs of columns are tried."""


class PublicDesign:
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
            self.others += [
                Ridge(design),
                *(NearestRecords(near, count) for count in NEIGHBOUR_COUNTS),
            ]

    def cells(self, columns: tuple[int, ...], strength: float = 1.0) -> CellPredictor:
        """The cells of some public columns together; of none, all records."""
        if columns not in self._cells:
            codes = combine_codes([self._codes[i] for i in columns], len(self.folds))
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


def cross_validate(
    predictor: Predictor, lesson: LearningTask, splits: Sequence[Split]
) -> GuessForecast:
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


def marks(
    school: PublicDesign, lesson: LearningTask, learn: Bits, judge: Judge
) -> Iterator[PredictorMark]:
    """Every way to predict, with its fraction right among the records learned from.

    Cells are tried for every single column, then for the pairs whose columns did best alone, then
    for the best pair with a third, and for all columns together.
    """

    splits = school.splits(learn)

    def mark(predictor: Predictor) -> PredictorMark:
        fraction, decide = judge(cross_validate(predictor, lesson, splits))
        return PredictorMark(fraction, predictor, decide)

    scores: Scores = {}
    for wider in (_singles, _pairs, _triples):
        for columns in wider(school, scores):
            yield (found := mark(school.cells(columns)))
            scores[columns] = found.fraction
    best = max(scores, key=lambda columns: scores[columns])
    for strength in CELL_SHRINKAGES:
        yield mark(school.cells(best, strength))
    yield from map(mark, school.others)


def _singles(school: PublicDesign, _: Scores) -> list[tuple[int, ...]]:
    """No column at all, and every single one."""
    return [(), *((i,) for i in range(school.width))]


def _pairs(_: PublicDesign, scores: Scores) -> list[tuple[int, ...]]:
    single = [columns[0] for columns in scores if columns]
    pairs: list[tuple[int, ...]] = [(a, b) for i, a in enumerate(single) for b in single[i + 1 :]]
    return sorted(pairs, key=lambda pair: -scores[pair[:1]] - scores[pair[1:]])[:MOST_PAIRS]


def _triples(school: PublicDesign, scores: Scores) -> list[tuple[int, ...]]:
    pairs = [columns for columns in scores if len(columns) == 2]
    best = max(pairs, key=lambda pair: scores[pair], default=())
    every = tuple(range(school.width))
    found = {tuple(sorted({*best, other})) for other in every} | {every}
    return sorted(found - set(scores))


# What somebody gets right who never saw the release: three guesses ------------------------------


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
