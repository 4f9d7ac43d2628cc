"""Where to ask when the law of the noise is known, and what each bit then says: a table.

Method     For each width of the belief, offsets are tried over the whole law and, finely, at its
           edges; the best takes most off the expected variance. Far from an edge that is the median
           or, for a law with several humps, the steepest of them. Of the offsets that are nearly as
           good as the best, the one furthest inside is taken: more bits are hits there, so that a
           wrong law shows sooner.
Cost       About a second for a law, once; then one look-up a query.

What one bit says about w . q when the law of the noise is known: chances and moments.

A belief holds w . q to be normal with some deviation; everything here is in units of it, counted
from its mean. A bit at an offset from the mean is read by Bayes' rule: the chance that it is above,
and what the mean and the variance become. Letters: v the standardised w . q, H(v) the chance of
`above` given v, and the moments E[H], E[vH], E[v²H], from which all else follows.

Where to put the threshold for a belief of some width, and how to read the bit: by law.

A rule holds no state. `UniformRule` has closed forms for every offset; `TableRule` looks its own
offsets up, and reads any other by quadrature.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from casemate.attack.one_bit.laws import Law, Uniform, effective_scale
from casemate.attack.one_bit.oracle import Floats

SEARCH_RHO = 0.7
"""How much of a step is taken while the belief is wide beside the noise, as in the plain filter."""

EDGE_RHO = 0.9
"""The same at an edge: the likelihood has a corner there, and a normal belief is too sure of it."""

ONE_EDGE_RHO = 0.7
"""The same where only one edge is asked at: no other one brings the belief back."""

RAREST = 1e-9
"""A bit of a smaller chance is not read: it says that the law is wrong, not where w . q is."""

SHARP = 1e-6
"""Noise narrower than this part of the deviation is read as none."""

NODES = np.linspace(-6.0, 6.0, 241)
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
_POWERS = np.stack([WEIGHTS, WEIGHTS * NODES, WEIGHTS * NODES**2])


@dataclass(frozen=True)
class BitReading:
    """One bit, before it is known: the chance of `above`, and each bit's step and shrinking."""

    chance: float
    step_above: float
    shrink_above: float  # one minus the variance that is left
    step_below: float
    shrink_below: float

    def after(self, above: bool) -> tuple[float, float]:
        """The step of the mean and the shrinking of the variance; none where it cannot happen."""
        if (self.chance if above else 1 - self.chance) < RAREST:
            return 0.0, 0.0
        if above:
            return self.step_above, self.shrink_above
        return self.step_below, self.shrink_below


def reading_of(moments: tuple[float, float, float]) -> BitReading:
    """Bayes' rule for both bits, from E[H], E[vH] and E[v²H]."""
    chance, first, second = moments
    above, below = max(chance, RAREST), max(1 - chance, RAREST)
    up, down = first / above, -first / below
    left_above, left_below = second / above - up * up, (1 - second) / below - down * down
    return BitReading(chance, up, 1 - left_above, down, 1 - left_below)


def uniform_moments(bound: float, offset: float, deviation: float) -> tuple[float, float, float]:
    """The three moments for noise even on [-bound, bound], in closed form.

    H is a difference of two ramps, (v + k)⁺ / (k₁ - k₂) at k₁ and k₂, whose moments are
    φ + kΦ, Φ and 2φ + kΦ.
    """
    if bound < SHARP * deviation:
        k = offset / deviation
        tail, height = _normal_cdf(-k), _normal_density(k)
        return tail, height, tail + k * height
    start, end = (bound - offset) / deviation, (-bound - offset) / deviation
    slope = deviation / (2 * bound)
    ramps = zip(_ramp(start), _ramp(end), strict=True)
    chance, first, second = (slope * (high - low) for high, low in ramps)
    return chance, first, second


def _ramp(k: float) -> tuple[float, float, float]:
    below, height = _normal_cdf(k), _normal_density(k)
    return height + k * below, below, 2 * height + k * below


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _normal_density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def law_moments(law: Law, offsets: Floats, deviation: float) -> Floats:
    """The three moments for any law, by quadrature: one row for each offset."""
    above = 1 - law.cdf(offsets[:, None] - deviation * NODES)
    found: Floats = above @ _POWERS.T
    return found


# Edge table -------------------------------------------------------------------------------------


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


def law_reading(law: Law, offset: float, deviation: float) -> BitReading:
    """What a bit at any offset says under a law."""
    chance, first, second = law_moments(law, np.array([offset]), deviation)[0].tolist()
    return reading_of((chance, first, second))


def is_counted(reading: BitReading) -> bool:
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


# Edge rule --------------------------------------------------------------------------------------


WIDE = 0.45
"""Deviations above this part of the bound ask at the median of uniform noise."""

INWARD = (0.9, 0.7, 0.9)
"""How many deviations inside the edge to ask, as a polynomial of the deviation over the bound."""

Compiled = tuple[float, float, float, Floats]
"""What compiled steps take from a rule: bound (0: none), squared scale, table scale, table rows."""


class EdgeRule(Protocol):
    """Thresholds and readings for one law."""

    def lean(self, deviation: float) -> float:
        """The chance with which the upper side of the law is asked."""
        ...

    def offset(self, deviation: float, upper: bool) -> float:
        """Where to ask on one side, counted from the mean of the belief."""
        ...

    def read(self, deviation: float, offset: float) -> tuple[BitReading, float, bool]:
        """The reading, the part of its shrinking to believe, and whether a guard counts it."""
        ...

    @property
    def compiled(self) -> Compiled:
        """The same for compiled steps."""
        ...


def rule_for(law: Law) -> EdgeRule:
    """The closed form where there is one, otherwise a table."""
    return UniformRule(law.scale) if isinstance(law, Uniform) else TableRule(law)


@dataclass(frozen=True)
class UniformRule:
    """Noise even on [-bound, bound]."""

    bound: float

    def lean(self, deviation: float) -> float:  # noqa: ARG002 - as the protocol has it
        """Either side alike."""
        return 0.5

    def offset(self, deviation: float, upper: bool) -> float:
        """The middle for a wide belief; for a narrow one a little inside an edge."""
        ratio = deviation / self.bound
        if ratio > WIDE:
            return 0.0
        inside = deviation * (INWARD[0] + ratio * (INWARD[1] + ratio * INWARD[2]))
        return self.bound - inside if upper else inside - self.bound

    def read(self, deviation: float, offset: float) -> tuple[BitReading, float, bool]:
        """By the closed form."""
        reading = reading_of(uniform_moments(self.bound, offset, deviation))
        counted = is_counted(reading)
        if counted:
            return reading, EDGE_RHO, True
        share = deviation**2 / (deviation**2 + effective_scale(Uniform(self.bound)) ** 2)
        return reading, 1 - (1 - SEARCH_RHO) * share, False

    @property
    def compiled(self) -> Compiled:
        """The bound; no table."""
        squared = effective_scale(Uniform(self.bound)) ** 2
        return self.bound, squared, 1.0, np.zeros((1, 2, 8))


@dataclass(frozen=True)
class TableRule:
    """Noise of any law."""

    law: Law

    @cached_property
    def table(self) -> EdgeTable:
        """The law's table, made when it is first needed."""
        return edge_table(self.law)

    def lean(self, deviation: float) -> float:
        """The side with the larger gain; either where they are alike."""
        return float(self.table.rows[self.table.place(deviation), 0, LEAN])

    def offset(self, deviation: float, upper: bool) -> float:
        """From the table."""
        return float(self.table.rows[self.table.place(deviation), 0 if upper else 1, OFFSET])

    def read(self, deviation: float, offset: float) -> tuple[BitReading, float, bool]:
        """From the table if it is one of its offsets, otherwise by quadrature."""
        for row in self.table.rows[self.table.place(deviation)]:
            if abs(row[OFFSET] - offset) <= 1e-6 * deviation:
                return BitReading(*row[1:6].tolist()), 1.0, bool(row[COUNTED])
        reading = law_reading(self.law, offset, deviation)
        return reading, damping(self.law, deviation, offset), is_counted(reading)

    @property
    def compiled(self) -> Compiled:
        """The table; no bound."""
        return 0.0, 0.0, self.table.scale, self.table.rows
