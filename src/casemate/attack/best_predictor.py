"""The way to predict that is right most often, found by cross-validation over people.

The records of some people are predicted from those of all others, so that nobody's own rows help.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from casemate.attack.features import Features, Places, combined
from casemate.attack.predictor import (
    NEIGHBOURS,
    Cells,
    Forecast,
    Lesson,
    Neighbours,
    Predictor,
    Ridge,
    Split,
    nearest,
)
from casemate.attack.subjects import Bits
from casemate.solve.rows import Floats

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
        self._cells: dict[tuple[int, ...], Cells] = {}
        self.others: list[Predictor] = []
        design = features.design(places)
        if design.shape[1]:
            near = nearest(design, people)
            self.others += [Ridge(design), *(Neighbours(near, count) for count in NEIGHBOURS)]

    def cells(self, columns: tuple[int, ...], strength: float = 1.0) -> Cells:
        """The cells of some public columns together; of none, all records."""
        if columns not in self._cells:
            codes = combined([self._codes[i] for i in columns], len(self.folds))
            name = " x ".join(self._names[i] for i in columns) or "everybody"
            self._cells[columns] = Cells(codes, name=name)
        kept = self._cells[columns]
        return kept if strength == 1.0 else Cells(kept.codes, strength, kept.name)

    @property
    def width(self) -> int:
        """How many public columns put records together."""
        return len(self._codes)

    def splits(self, learn: Bits) -> list[Split]:
        """Each fold of the records learned from, to be predicted from the others."""
        folds = range(int(self.folds.max(initial=0)) + 1)
        own = [self.folds == fold for fold in folds]
        return [Split.of(learn & ~each, np.flatnonzero(learn & each)) for each in own]


def crossed(predictor: Predictor, lesson: Lesson, splits: Sequence[Split]) -> Forecast:
    """What each record would be predicted to be from the records of other folds."""
    shares = np.zeros((len(lesson.classes), lesson.count))
    means = np.zeros(len(lesson.classes))
    for split in splits:
        found = predictor.predict(lesson, split)
        shares[split.asked], means[split.asked] = found.shares, found.means
    return Forecast(shares, means)


Decision = Callable[[Forecast], Floats]
"""Makes a guess of each row of a forecast."""


@dataclass(frozen=True, eq=False)
class Mark:
    """A way to predict, how its forecasts are made guesses, and the fraction right of these."""

    fraction: float
    predictor: Predictor
    decide: Decision


Judge = Callable[[Forecast], tuple[float, Decision]]
"""Says by which decision a forecast is right most often, and how often that is."""

Scores = dict[tuple[int, ...], float]


def marks(school: School, lesson: Lesson, learn: Bits, judge: Judge) -> Iterator[Mark]:
    """Every way to predict, with its fraction right among the records learned from.

    Cells are tried for every single column, then for the pairs whose columns did best alone, then
    for the best pair with a third, and for all columns together.
    """

    splits = school.splits(learn)

    def mark(predictor: Predictor) -> Mark:
        fraction, decide = judge(crossed(predictor, lesson, splits))
        return Mark(fraction, predictor, decide)

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
