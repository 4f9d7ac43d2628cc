"""Predicting a secret from public columns: cells, a linear form, neighbours.

Each way gives, for every record asked about, how likely each of some guesses is to be right, and
what number is to be expected, learned from the records it may learn from and no others.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from casemate.attack.features import Places
from casemate.attack.subjects import Bits
from casemate.solve.rows import Floats

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
class Forecast:
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

    def predict(self, lesson: Lesson, split: Split) -> Forecast:
        """What to expect of the records asked about, having learned from the others."""


# Cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cells:
    """The records with the same public values, and a little of all others."""

    codes: Places
    strength: float = 1.0
    name: str = "cells"

    @cached_property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.codes.max(initial=0)) + 1

    def predict(self, lesson: Lesson, split: Split) -> Forecast:
        """The shares and the mean of each record's cell, drawn towards those of all."""
        cells = _Grouping(self.codes[split.held], self.codes[split.asked], self.size)
        return _mixed(lesson, split.held, cells, self.strength)


@dataclass(frozen=True, eq=False)
class _Grouping:
    """The cell of each record learned from and asked about, and how many cells there are."""

    learned: Places
    asked: Places
    size: int


def _mixed(lesson: Lesson, held: Places, cells: _Grouping, strength: float) -> Forecast:
    """Shares and means of cells, to which `strength` records like the average are added."""
    width, asked = lesson.count + 1, cells.asked
    places = cells.learned * width + lesson.classes[held]
    table = np.bincount(places, minlength=cells.size * width).reshape(cells.size, width)
    sums = np.bincount(cells.learned, weights=lesson.numbers[held], minlength=cells.size)
    total = max(1, len(held))
    weights = table.sum(axis=1)[asked] + strength
    shares = (table[asked] + strength * (table.sum(axis=0) / total)) / weights[:, None]
    means = (sums[asked] + strength * (sums.sum() / total)) / weights
    return Forecast(shares[:, :-1], means)


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

    def predict(self, lesson: Lesson, split: Split) -> Forecast:
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
        return Forecast(found[:, :-1], found[:, -1])


# Neighbours -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The records whose public columns are nearest."""

    near: Places
    count: int
    name: str = "neighbours"

    def predict(self, lesson: Lesson, split: Split) -> Forecast:
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
