"""Draws from tables of weights, in integers only, and the tables that the population is drawn from.

Each draw spends one 16-bit number, so a probability is a whole number of 65,536ths and every
distribution is known exactly. No floating-point number is used and the stream is the bit
generator's own, which NumPy keeps fixed: one seed gives one table, on every machine.
"""

import tomllib
from collections.abc import Sequence
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

UNIFORM_LEVELS = 1 << 16
AGE_LIMIT = 100  # ages are below this

PARAMETERS: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("population.toml").read_text(encoding="utf-8")
)
"""The weights, chances and amounts of the population, section by section."""

LABELS: dict[str, tuple[str, ...]] = {
    column: tuple(labels) for column, labels in PARAMETERS["labels"].items()
}
"""What the codes of each text column stand for, but for the regions."""

Codes = NDArray[Any]
"""An array of small integers, of whatever width."""

Nested = Sequence[int] | Sequence["Nested"]
"""Whole numbers in rows, in rows of rows, and so on."""


def numbers(random: Generator, *shape: int) -> NDArray[np.uint16]:
    """Independent uniform 16-bit numbers."""
    size = int(np.prod(shape))
    words = np.asarray(random.bit_generator.random_raw(-(-size // 4)), dtype="<u8")
    return words.view("<u2")[:size].reshape(shape)


def below(number: Codes, many: Codes) -> Codes:
    """A uniform whole number from 0 up to, not including, `many`."""
    return (number.astype(np.int32) * many) >> 16


def chance(number: Codes, thousandths: int | Codes) -> NDArray[np.bool_]:
    """True with the given probability in thousandths."""
    return number < np.asarray(thousandths, dtype=np.int32) * UNIFORM_LEVELS // 1000


def bands(*edges: int) -> Codes:
    """For every age, the number of edges at or below it."""
    return np.searchsorted(np.array(edges), np.arange(AGE_LIMIT), side="right").astype(np.uint8)


class Odds:
    """Weights of the outcomes 0, 1, 2 …; one row of weights per circumstance."""

    def __init__(self, weights: Nested) -> None:
        ends = np.cumsum(np.array(weights, dtype=np.int64), axis=-1)
        self.ends = ends * UNIFORM_LEVELS // ends[..., -1:]  # in each row, where each outcome ends
        self.outcomes = ends.shape[-1]
        self._lookup: Codes | None = None

    def draw(self, number: Codes, *given: Codes | int) -> Codes:
        """The outcome of each number, under its circumstance."""
        if self._lookup is None:  # 64 KB a row, so only when somebody draws
            self._lookup = self._table()
        outcome: Codes = self._lookup[(*given, number)]
        return outcome

    def _table(self) -> Codes:
        rows = self.ends.reshape(-1, self.outcomes)
        width = np.uint8 if self.outcomes <= 256 else np.uint16
        every = np.arange(UNIFORM_LEVELS)
        table = [np.searchsorted(row, every, side="right").astype(width) for row in rows]
        return np.array(table).reshape(*self.ends.shape[:-1], UNIFORM_LEVELS)


class QuantileCurve:
    """Quantile curves through (thousandths, value) knots, one curve per circumstance."""

    def __init__(self, *rows: Sequence[tuple[int, int]]) -> None:
        scaled = ([(at * UNIFORM_LEVELS // 1000, value) for at, value in row] for row in rows)
        self._lookup = np.array([interpolate(row, UNIFORM_LEVELS) for row in scaled])

    def draw(self, number: Codes, given: Codes | int = 0) -> Codes:
        """The value of each number, under its circumstance."""
        value: Codes = self._lookup[given, number]
        return value


def interpolate(knots: Sequence[tuple[int, int]], size: int) -> NDArray[np.int32]:
    """The values at 0, 1, … size - 1 of the line through the knots, rounded down."""
    table = np.empty(size, dtype=np.int32)
    for (start, low), (end, high) in pairwise(knots):
        steps = np.arange(min(end, size - 1) - start + 1)
        table[start : start + len(steps)] = low + (high - low) * steps // (end - start)
    return table
