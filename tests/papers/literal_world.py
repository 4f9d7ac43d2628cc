"""Tables, questions and analysts for the literal construction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.grid import Floats, MeasuredProduct, Origin, Product
from casemate.papers.accuracy import PromiseTerms
from casemate.papers.database_updates import MedianMechanism
from casemate.papers.online import (
    Counts,
    DatabaseUpdate,
    LiteralAnswer,
    LiteralConstruction,
    OnlineRecords,
    OnlineSetting,
)
from casemate.privacy.noise import Noise, discrete_laplace, seeded_bits
from casemate.privacy.noise.noise import silence

BETA = 1e-11  # so that a hundred runs without one failure are what a theorem promises


def seeded(seed: int) -> Noise:
    """The shipped noise on bits that can be drawn again."""
    return partial(discrete_laplace, bits=seeded_bits(seed))


def scripted(units: list[int], drawn: list[Fraction]) -> Noise:
    """Noise of so many halves of its scale, over and over; the scales are noted."""

    def noise(scale: Fraction, size: int) -> NDArray[Any]:
        values = []
        for _ in range(size):
            values.append(round(units[len(drawn) % len(units)] * scale / 2))
            drawn.append(scale)
        return np.array(values, np.int64)

    return noise


# A small one --------------------------------------------------------------------------------------

CELLS = 4
PEOPLE = 112  # few, so that noise matters; a multiple of all rows and steps, so floats are exact
TERMS = PromiseTerms(questions=14)
Chosen = frozenset[int]


def subset(chosen: Chosen | set[int]) -> Product:
    return Product((CELLS,), {0: np.isin(np.arange(CELLS), list(chosen))})


def database_update(name: str, cells: int, questions: int) -> DatabaseUpdate:
    if name == "median":
        return DatabaseUpdate.by_median(cells, questions=questions)
    named = {"weights": DatabaseUpdate.by_weights, "perceptron": DatabaseUpdate.by_perceptron}
    return named[name](cells)


def setting(name: str, alpha: float = 0.5, terms: PromiseTerms = TERMS) -> OnlineSetting:
    return OnlineSetting(database_update(name, CELLS, 14), terms, PEOPLE, alpha)


def constructed(
    made: OnlineSetting, counts: Any, noise: Noise = silence, records: OnlineRecords | None = None
) -> LiteralConstruction:
    kept = records or OnlineRecords.in_memory(made.terms)
    return LiteralConstruction(made, np.array(counts, np.int64), kept, noise=noise)


# Worlds -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A setting and the questions that may be asked, one a line, a weight from 0 to 1 a cell."""

    setting: OnlineSetting
    pool: Floats

    @property
    def cells(self) -> int:
        return int(self.pool.shape[1])

    def product(self, line: int) -> Product:
        return Product((self.cells,), {}, {0: self.pool[line]})

    def table(self, seed: int) -> Counts:
        """A table of so many people, most of them in few cells."""
        draw = np.random.default_rng([seed, 1])
        shares = draw.dirichlet(np.full(self.cells, 0.2))
        counts = np.floor(shares * self.setting.people).astype(np.int64)
        counts[int(draw.integers(self.cells))] += self.setting.people - counts.sum()
        return counts

    def construction(self, counts: Counts, noise: Noise) -> LiteralConstruction:
        records = OnlineRecords.in_memory(self.setting.terms)
        return LiteralConstruction(self.setting, counts, records, noise=noise)


def world(name: str, room: int = 1, delta: float = 0.0) -> World:
    """A world in which the theorem holds with 3 alpha of about .3; `room` times T runs."""
    questions, cells = (40, 3) if name == "median" else (60, 16)
    update = database_update(name, cells, questions)
    once = update.bound
    wider = replace(update, bound=lambda alpha: room * once(alpha))
    terms = PromiseTerms(questions, delta=delta, beta=BETA)
    people = {"weights": 4_000_000, "perceptron": 6_000_000, "median": 45_000}[name]
    if delta and name == "median":
        people = 300_000  # for few updates composition with delta is dearer than without
    setting = OnlineSetting.least(wider, terms, room * people)
    draw = np.random.default_rng(7)
    pool = draw.random((questions, cells))
    if name != "median":
        pool = np.where(draw.random((questions, 1)) < 0.7, pool < 0.5, pool).astype(np.float64)
    return World(setting, pool)


# Analysts -----------------------------------------------------------------------------------------


class Analyst:
    """Sees the answers, and from them keeps the very stand-in that is behind them."""

    def __init__(self, world: World, counts: Counts) -> None:
        self.world, self.truth = world, world.pool @ counts
        self.copy = world.setting.update.start(world.setting.alpha, world.setting.people)
        self.left = list(range(len(world.pool)))
        self._deviations: Floats | None = None

    def deviations(self) -> Floats:
        """How far the stand-in is off, in people: this analyst has the table, too."""
        if self._deviations is None:
            if isinstance(self.copy, MedianMechanism):
                products = [self.world.product(line) for line in range(len(self.world.pool))]
                believed = self.copy.answers(products)
            else:
                believed = self.world.pool @ self.copy.marginal((0,))
            self._deviations = np.abs(self.truth - believed)
        return self._deviations

    def see(self, line: int, answer: LiteralAnswer) -> None:
        self.left.remove(line)
        if answer.origin is Origin.MEASURED:
            self.copy.update(MeasuredProduct(self.world.product(line), answer.value, 0.0))
            self._deviations = None

    def choose(self) -> int:
        raise AssertionError("an analyst chooses")


class Fixed(Analyst):
    """Asks one question after the other, whatever the answers are."""

    def choose(self) -> int:
        return self.left[0]


class Worst(Analyst):
    """Asks what the stand-in gets most wrong."""

    def choose(self) -> int:
        return max(self.left, key=lambda line: float(self.deviations()[line]))


class Hiding(Analyst):
    """Asks what is most wrong without reaching the threshold; the worst if there is nothing."""

    def choose(self) -> int:
        off = self.deviations()
        hidden = [line for line in self.left if off[line] < self.world.setting.threshold]
        return max(hidden or self.left, key=lambda line: float(off[line]))


def stream(
    construction: LiteralConstruction, analyst: Analyst
) -> Iterator[tuple[LiteralAnswer, float]]:
    """Every answer, and how many people it is off."""
    for _ in range(len(analyst.world.pool)):
        line = analyst.choose()
        answer = construction.ask(analyst.world.product(line))
        analyst.see(line, answer)
        yield answer, abs(answer.value - float(analyst.truth[line]))


Choose = Callable[[World, Counts], Analyst]
