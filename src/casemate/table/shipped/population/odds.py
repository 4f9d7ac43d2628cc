"""Draws from written tables, in integers only.

Each draw spends one 16-bit number, so a probability is a whole number of 65,536ths and every
distribution is known exactly. No floating-point number is used and the stream is the bit
generator's own, which NumPy keeps fixed: one seed gives one table, on every machine.

Where people live: twenty invented regions of unequal size, each cut into areas with a code.

Region number r holds the codes from 10000 + 1000 r to 10999 + 1000 r, so that equal bins of width
1,000 over the codes are the regions.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

LEVELS = 1 << 16
AGES = 100  # ages are below this

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
    return number < np.asarray(thousandths, dtype=np.int32) * LEVELS // 1000


def bands(*edges: int) -> Codes:
    """For every age, the number of edges at or below it."""
    return np.searchsorted(np.array(edges), np.arange(AGES), side="right").astype(np.uint8)


class Odds:
    """Weights of the outcomes 0, 1, 2 …; one row of weights per circumstance."""

    def __init__(self, weights: Nested) -> None:
        ends = np.cumsum(np.array(weights, dtype=np.int64), axis=-1)
        self.ends = ends * LEVELS // ends[..., -1:]  # in each row, where each outcome ends
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
        every = np.arange(LEVELS)
        table = [np.searchsorted(row, every, side="right").astype(width) for row in rows]
        return np.array(table).reshape(*self.ends.shape[:-1], LEVELS)


class QuantileCurve:
    """Quantile curves through (thousandths, value) knots, one curve per circumstance."""

    def __init__(self, *rows: Sequence[tuple[int, int]]) -> None:
        scaled = ([(at * LEVELS // 1000, value) for at, value in row] for row in rows)
        self._lookup = np.array([interpolate(row, LEVELS) for row in scaled])

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


# Places -----------------------------------------------------------------------------------------


CITY, TOWN, COUNTRY = 0, 1, 2
FIRST_CODE = 10_000
CODES_PER_REGION = 1_000


class HomeRegion(NamedTuple):
    """A region: its share of the households, its land, its level of pay, its number of areas."""

    name: str
    weight: int
    land: int
    pay: int  # in thousandths
    areas: int


REGIONS = (
    HomeRegion("Ambermouth", 168, CITY, 1190, 40),
    HomeRegion("Kingsholt", 112, CITY, 1110, 34),
    HomeRegion("Port Selwyn", 94, CITY, 1060, 32),
    HomeRegion("Ravensford", 78, TOWN, 1010, 28),
    HomeRegion("Upper Tarn", 66, TOWN, 980, 26),
    HomeRegion("Millbrae", 60, TOWN, 1000, 24),
    HomeRegion("Eastmarsh", 54, TOWN, 960, 24),
    HomeRegion("Corran Vale", 50, TOWN, 1030, 22),
    HomeRegion("Linden Hills", 46, CITY, 1150, 20),
    HomeRegion("Saltbury", 42, TOWN, 940, 20),
    HomeRegion("Northmoor", 38, COUNTRY, 880, 20),
    HomeRegion("Brackwater", 34, TOWN, 930, 18),
    HomeRegion("Thornley", 30, COUNTRY, 910, 16),
    HomeRegion("Fenwold", 27, COUNTRY, 870, 16),
    HomeRegion("Ashby Plain", 24, COUNTRY, 900, 14),
    HomeRegion("Westering", 21, COUNTRY, 890, 14),
    HomeRegion("Glen Harrow", 18, COUNTRY, 860, 12),
    HomeRegion("Stonehythe", 15, TOWN, 920, 10),
    HomeRegion("Long Islands", 13, COUNTRY, 850, 10),
    HomeRegion("High Cairn", 10, COUNTRY, 840, 8),
)


def _weights(region: HomeRegion) -> list[int]:
    """The areas of a region by falling size, with its own weight in all."""
    parts = [840_000 // (place + 6) for place in range(region.areas)]
    return [region.weight * part * 1_000 // sum(parts) for part in parts]


_PLACES = [(number, place) for number, r in enumerate(REGIONS) for place in range(r.areas)]

AREA = Odds([weight for region in REGIONS for weight in _weights(region)])
REGION_OF = np.array([number for number, _ in _PLACES], dtype=np.uint8)
CODE_OF = np.array(
    [FIRST_CODE + CODES_PER_REGION * number + 1 + 23 * place for number, place in _PLACES]
)
LAND_OF = np.array([REGIONS[number].land for number, _ in _PLACES], dtype=np.uint8)
PAY_OF = np.array(  # neighbourhoods of one region differ by up to a tenth
    [REGIONS[number].pay + 10 * (37 * place % 21 - 10) for number, place in _PLACES]
)
