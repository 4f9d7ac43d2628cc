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

Even noise has closed forms for every offset; for any other law the offsets of its table are looked
up, and others read by quadrature.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from casemate.attack.one_bit.laws import Law, Uniform, effective_scale
from casemate.attack.one_bit.oracle import Floats
from casemate.compiled import compiled

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


Reading = tuple[float, float, float, float, float, bool]
"""A bit before it is known: the chance of `above`; the step of the mean and the shrinking of the
variance after each bit, `above` first; and whether the guard counts it."""


@compiled
def bit_reading(moments: Any, part: Any, counted: Any) -> Any:
    """Bayes' rule for both bits, from E[H], E[vH] and E[v²H]; a part of the shrinking is believed.

    A bit of too small a chance moves nothing.
    """
    chance, first, second = moments
    step_above, lost_above, step_below, lost_below = 0.0, 0.0, 0.0, 0.0
    if chance >= RAREST:
        step_above = first / chance
        lost_above = part * (1.0 - (second / chance - step_above * step_above))
    if 1.0 - chance >= RAREST:
        step_below = -first / (1.0 - chance)
        lost_below = part * (1.0 - ((1.0 - second) / (1.0 - chance) - step_below * step_below))
    return chance, step_above, lost_above, step_below, lost_below, counted


@compiled
def normal_cdf(x: Any) -> Any:
    """The chance of a standard normal below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@compiled
def normal_density(x: Any) -> Any:
    """The height of the bell."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


@compiled
def uniform_moments(bound: Any, offset: Any, deviation: Any) -> Any:
    """The three moments for noise even on [-bound, bound], in closed form.

    H is a difference of two ramps, (v + k)⁺ / (k₁ - k₂) at k₁ and k₂, whose moments are
    φ + kΦ, Φ and 2φ + kΦ.
    """
    if bound < SHARP * deviation:
        k = offset / deviation
        tail, height = normal_cdf(-k), normal_density(k)
        return tail, height, tail + k * height
    start, end = (bound - offset) / deviation, (-bound - offset) / deviation
    slope = deviation / (2.0 * bound)
    below, height = normal_cdf(start), normal_density(start)
    under, rise = normal_cdf(end), normal_density(end)
    chance = slope * ((height + start * below) - (rise + end * under))
    second = slope * ((2.0 * height + start * below) - (2.0 * rise + end * under))
    return chance, slope * (below - under), second


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

OFFSET, LEAN = 6, 7
"""The columns of a row after its reading; `lean` is the chance of choosing the upper side."""


class EdgeRule(NamedTuple):
    """Where to ask and how to read the bit: a bound, or else a table.

    Compiled steps take it as a plain tuple: an interrupt in one leaks what it was given, and a
    class would hold its module, and with it DuckDB, until after the end.

    The table has rows for each width of the belief and both sides (upper, lower) of the median.
    """

    bound: float  # of even noise; 0 where there is a table
    scale: float  # of the law
    noise: float  # the squared effective scale
    rows: Floats  # widths x sides x columns


def widths() -> Floats:
    """The deviations of the rows, in units of the scale."""
    return np.geomspace(NARROWEST, WIDEST, ROWS)


@compiled
def row_of(width: Any) -> Any:
    """The nearest row, on a scale of logarithms."""
    step = math.log(WIDEST / NARROWEST) / (ROWS - 1)
    return min(max(round(math.log(max(width, NARROWEST) / NARROWEST) / step), 0), ROWS - 1)


@lru_cache(maxsize=32)
def edge_rule(law: Law) -> EdgeRule:
    """The closed form for even noise, otherwise a table; made once."""
    noise = effective_scale(law) ** 2
    if isinstance(law, Uniform):
        return EdgeRule(law.scale, law.scale, noise, np.zeros((1, 2, 8)))
    return EdgeRule(0.0, law.scale, noise, edge_table(law))


def edge_table(law: Law) -> Floats:
    """The rows of a law for all widths of the belief."""
    return np.array([_row(law, width * law.scale) for width in widths()])


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
    return [*law_reading(law, offset, deviation, one_sided=lean != 0.5), offset, lean]


def law_reading(law: Law, offset: float, deviation: float, *, one_sided: bool = False) -> Reading:
    """What a bit at any offset says under a law."""
    moments = tuple(law_moments(law, np.array([offset]), deviation)[0].tolist())
    counted = min(moments[0], 1 - moments[0]) < FEWEST_HITS
    reading: Reading = bit_reading(moments, damping(law, deviation, offset, one_sided), counted)
    return reading


def damping(law: Law, deviation: float, offset: float, one_sided: bool) -> float:
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

_INSIDE, _SLOPE, _BEND = INWARD


@compiled
def uniform_offset(bound: Any, deviation: Any, upper: Any) -> Any:
    """Where to ask under even noise: the median for a wide belief, else a little inside an edge."""
    ratio = deviation / bound
    if ratio > WIDE:
        return 0.0
    inside = deviation * (_INSIDE + ratio * (_SLOPE + ratio * _BEND))
    return bound - inside if upper else inside - bound


@compiled
def uniform_reading(rule: Any, offset: Any, deviation: Any) -> Any:
    """What a bit at any offset says under even noise."""
    bound, _, noise, _ = rule
    moments = uniform_moments(bound, offset, deviation)
    counted = min(moments[0], 1.0 - moments[0]) < FEWEST_HITS
    share = deviation * deviation / (deviation * deviation + noise)
    return bit_reading(moments, EDGE_RHO if counted else 1.0 - (1.0 - SEARCH_RHO) * share, counted)


@compiled
def place_threshold(rule: Any, deviation: Any, draw: Any) -> Any:
    """How far from the belief's mean to ask, and what the bit will say; a draw takes a side."""
    bound, scale, _, rows = rule
    if bound > 0.0:
        offset = uniform_offset(bound, deviation, draw < 0.5)
        return offset, uniform_reading(rule, offset, deviation)
    sides = rows[row_of(deviation / scale)]
    row = sides[0 if draw < sides[0, LEAN] else 1]
    return row[OFFSET], (row[0], row[1], row[2], row[3], row[4], row[5] > 0.0)


def reading_at(law: Law, deviation: float, offset: float) -> Reading:
    """What a bit at any offset says: in closed form, or from the table where it has the offset."""
    rule = edge_rule(law)
    if rule.bound > 0:
        found: Reading = uniform_reading(tuple(rule), offset, deviation)
        return found
    for row in rule.rows[row_of(deviation / rule.scale)].tolist():
        if abs(row[OFFSET] - offset) <= 1e-6 * deviation:
            return row[0], row[1], row[2], row[3], row[4], row[5] > 0
    return law_reading(law, offset, deviation)
