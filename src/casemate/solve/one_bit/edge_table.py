"""Where to ask when the law of the noise is known, and what each bit then says: a table.

Method     For each width of the belief, offsets are tried over the whole law and, finely, at its
           edges; the best takes most off the expected variance. Far from an edge that is the median
           or, for a law with several humps, the steepest of them. Of the offsets that are nearly as
           good as the best, the one furthest inside is taken: more bits are hits there, so that a
           wrong law shows sooner.
Cost       About a second for a law, once; then one look-up a query.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from casemate.solve.one_bit.edge_reading import (
    EDGE_RHO,
    ONE_EDGE_RHO,
    SEARCH_RHO,
    Reading,
    law_moments,
    reading_of,
)
from casemate.solve.one_bit.laws import Law, effective_scale
from casemate.solve.one_bit.protocol import Floats

ROWS = 400
NARROWEST, WIDEST = 1e-8, 30.0
"""Deviations in the table, in units of the law's scale; others are read as the nearest."""

NEARLY = 0.96
"""An offset with this part of the best gain is as good."""

FAIR = 0.9
"""Sides whose gains differ by no more are taken in turn, by chance."""

FEWEST_HITS = 0.4
"""Bits that are rarer than this on one side are hits: the guard counts them."""

OFFSET, CHANCE, STEP_ABOVE, LOST_ABOVE, STEP_BELOW, LOST_BELOW, COUNTED, LEAN = range(8)
"""The columns of a row; `lean` is the chance of choosing the upper side."""


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Rows for each width of the belief and both sides (upper, lower) of the law's median."""

    scale: float
    rows: Floats  # widths x sides x columns

    def place(self, deviation: float) -> int:
        """The row for a deviation of the belief."""
        return int(place_of(deviation / self.scale))


def widths() -> Floats:
    """The deviations of the rows, in units of the scale."""
    return np.geomspace(NARROWEST, WIDEST, ROWS)


def place_of(width: float) -> int:
    """The nearest row, on a scale of logarithms."""
    step = math.log(WIDEST / NARROWEST) / (ROWS - 1)
    return min(max(round(math.log(max(width, NARROWEST) / NARROWEST) / step), 0), ROWS - 1)


@lru_cache(maxsize=32)
def edge_table(law: Law) -> EdgeTable:
    """The table of a law; made once."""
    rows = np.array([_row(law, width * law.scale) for width in widths()])
    return EdgeTable(law.scale, rows)


def _row(law: Law, deviation: float) -> Floats:
    """Both sides at one width of the belief."""
    sides = [_best(law, deviation, upper) for upper in (True, False)]
    gains = [gain for _, gain in sides]
    lean = _lean(*gains)
    return np.array([_columns(law, deviation, offset, lean) for offset, _ in sides])


def _lean(upper: float, lower: float) -> float:
    if min(upper, lower) >= FAIR * max(upper, lower):
        return 0.5
    return 1.0 if upper > lower else 0.0


def _best(law: Law, deviation: float, upper: bool) -> tuple[float, float]:
    """The offset to ask at on one side of the median, and the variance it is expected to take."""
    offsets = _candidates(law, deviation, upper)  # from the median outwards
    moments = law_moments(law, offsets, deviation)
    gains = moments[:, 1] ** 2 / np.maximum(moments[:, 0] * (1 - moments[:, 0]), 1e-300)
    gains[np.minimum(moments[:, 0], 1 - moments[:, 0]) < 1e-9] = 0.0
    chosen = int(np.argmax(gains >= NEARLY * gains.max()))
    return float(offsets[chosen]), float(gains[chosen])


def _candidates(law: Law, deviation: float, upper: bool) -> Floats:
    body = _body(law, upper)
    middle = body[0]
    edge = law.edges[1] if upper else law.edges[0]
    inward = -1.0 if upper else 1.0
    near = edge + inward * deviation * np.arange(-1.0, 6.0, 0.05) if math.isfinite(edge) else body
    offsets = np.concatenate([body, near])
    kept = offsets[(offsets >= middle) if upper else (offsets <= middle)]
    return np.asarray(kept[np.argsort(np.abs(kept - middle), kind="stable")])


@lru_cache(maxsize=64)
def _body(law: Law, upper: bool) -> Floats:
    """Quantiles from the median to one end of the law."""
    return law.quantile(np.linspace(0.5, 0.995 if upper else 0.005, 60))


def _columns(law: Law, deviation: float, offset: float, lean: float) -> list[float]:
    reading = law_reading(law, offset, deviation)
    part = damping(law, deviation, offset, one_sided=lean != 0.5)
    return [
        offset,
        reading.chance,
        reading.step_above,
        part * reading.shrink_above,
        reading.step_below,
        part * reading.shrink_below,
        float(is_counted(reading)),
        lean,
    ]


def law_reading(law: Law, offset: float, deviation: float) -> Reading:
    """What a bit at any offset says under a law."""
    chance, first, second = law_moments(law, np.array([offset]), deviation)[0].tolist()
    return reading_of((chance, first, second))


def is_counted(reading: Reading) -> bool:
    """Whether one of the two bits is rare enough to be counted as a hit."""
    return min(reading.chance, 1 - reading.chance) < FEWEST_HITS


def damping(law: Law, deviation: float, offset: float, one_sided: bool = False) -> float:
    """How much of the shrinking is believed: less at an edge, and while the belief is wide."""
    from_edge = min(law.edges[1] - offset, offset - law.edges[0])
    from_middle = abs(offset - _body(law, True)[0])
    if from_edge < 6 * deviation and from_middle > from_edge:
        return ONE_EDGE_RHO if one_sided else EDGE_RHO
    share = deviation**2 / (deviation**2 + effective_scale(law) ** 2)
    return 1 - (1 - SEARCH_RHO) * share
