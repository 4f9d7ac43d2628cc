"""The three database update algorithms written down slowly, one cell after the other."""

from collections.abc import Collection
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Protocol

import numpy as np

Cells = Collection[int]
"""A question: how many people are in these cells."""


class SlowStandIn(Protocol):
    def answer(self, chosen: Cells) -> Fraction: ...
    def update(self, chosen: Cells, value: int) -> None: ...


class SlowPerceptron:
    """Shares in fractions."""

    def __init__(self, cells: int, total: int, alpha: Fraction) -> None:
        self.shares, self.total, self.length = [Fraction(0)] * cells, total, alpha / cells

    def answer(self, chosen: Cells) -> Fraction:
        return self.total * sum((self.shares[cell] for cell in chosen), Fraction(0))

    def update(self, chosen: Cells, value: int) -> None:
        believed = self.answer(chosen)
        for cell in chosen:
            self.shares[cell] += self.length * ((value > believed) - (value < believed))


class SlowMedian:
    """Databases as tuples of cells, counted one by one in fractions."""

    def __init__(self, cells: int, total: int, rows: int) -> None:
        self.left = list(combinations_with_replacement(range(cells), rows))
        self.each = Fraction(total, rows)

    def value(self, database: tuple[int, ...], chosen: Cells) -> Fraction:
        return self.each * sum(cell in chosen for cell in database)

    def answer(self, chosen: Cells) -> Fraction:
        values = sorted(self.value(database, chosen) for database in self.left)
        return values[(len(values) - 1) // 2]

    def update(self, chosen: Cells, value: int) -> None:
        middle = self.answer(chosen)
        valued = [(database, self.value(database, chosen)) for database in self.left]
        side = [d for d, v in valued if (v > middle if value >= middle else v < middle)]
        self.left = side or self.left


class SlowWeights:
    """Shares as they come out when exponents are added up and everything is normalised anew."""

    def __init__(self, cells: int, total: int, alpha: float) -> None:
        self.exponents, self.total = np.zeros(cells, np.longdouble), total
        self.step = np.longdouble(alpha) / 2

    def answer(self, chosen: Cells) -> Fraction:
        weights = np.exp(self.exponents)
        inside = sum((weights[cell] for cell in sorted(chosen)), np.longdouble(0))
        return Fraction(float(self.total * inside / weights.sum()))

    def update(self, chosen: Cells, value: int) -> None:
        up = value >= self.answer(chosen)
        for cell in chosen:
            self.exponents[cell] += self.step if up else -self.step
