"""Where to ask when the law of the noise is known, and what each bit then says about w . q.

A belief holds w . q to be normal with some deviation; everything here is in units of it, counted
from its mean. A bit at an offset from the mean is read by Bayes' rule: the chance that it is above,
and what the mean and the variance become. Letters: v the standardised w . q, H(v) the chance of
`above` given v, and the moments E[H], E[vH], E[v²H], from which all else follows.

Method     Uniform noise has closed forms for every offset; for any other law those of its table
           are looked up, and others read by quadrature. For each width of the belief the table has
           offsets tried over the whole law and, finely, at its edges; the best takes most off the
           expected variance. Far from an edge that is the median or, for a law with several humps,
           the steepest of them. Of the offsets that are nearly as good as the best, the one
           furthest inside is taken: more bits are hits there, so that a wrong law shows sooner.
Cost       About a second for the table of a law, once; then one look-up a query.
"""

import math
from functools import lru_cache

import numpy as np

from casemate.attack.one_bit.laws import Law, Uniform, effective_scale
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.scale_bank import SEARCH_RHO
from casemate.compiled import compiled

EDGE_RHO = 0.9
"""How much of the shrinking is believed at an edge: the likelihood has a corner there, and a normal
belief is too sure of it."""

ONE_EDGE_RHO = 0.7
"""The same where only one edge is asked at: no other one brings the belief back."""

LEARNED_EDGE_RHO = 0.85
"""The same where the place of the edge is learnt too."""

MEDIAN_SHARE = 0.15
"""The part of the thresholds that stand at the median while edges are learnt."""

LEAST_BIT_CHANCE = 1e-9
"""A bit of a smaller chance is not read: it says that the law is wrong, not where w . q is."""

NO_NOISE_RATIO = 1e-6
"""Noise narrower than this part of the deviation is read as none."""

NODES = np.linspace(-6.0, 6.0, 241)
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
_POWERS = np.stack([WEIGHTS, WEIGHTS * NODES, WEIGHTS * NODES**2])


BitMoments = tuple[float, float, float]
"""E[H], E[vH] and E[v²H]."""

Reading = tuple[float, float, float, float, float, bool]
"""A bit before it is known: the chance of `above`; the step of the mean and the shrinking of the
variance after each bit, `above` first; and whether the guard counts it."""


@compiled
def bit_reading(moments: BitMoments, rho: float, counted: bool) -> Reading:
    """Bayes' rule for both bits, from E[H], E[vH] and E[v²H]; rho of the shrinking is believed.

    A bit of too small a chance moves nothing.
    """
    chance, first, second = moments
    step_above, lost_above, step_below, lost_below = 0.0, 0.0, 0.0, 0.0
    if chance >= LEAST_BIT_CHANCE:
        step_above = first / chance
        lost_above = rho * (1.0 - (second / chance - step_above * step_above))
    if 1.0 - chance >= LEAST_BIT_CHANCE:
        step_below = -first / (1.0 - chance)
        lost_below = rho * (1.0 - ((1.0 - second) / (1.0 - chance) - step_below * step_below))
    return chance, step_above, lost_above, step_below, lost_below, counted


@compiled
def normal_cdf(x: float) -> float:
    """The chance of a standard normal below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@compiled
def normal_density(x: float) -> float:
    """The density of a standard normal at x."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


@compiled
def uniform_moments(bound: float, offset: float, deviation: float) -> BitMoments:
    """The three moments for noise uniform on [-bound, bound], in closed form.

    H is a difference of two ramps, (v + k)⁺ / (k₁ - k₂) at k₁ and k₂, whose moments are
    φ + kΦ, Φ and 2φ + kΦ.
    """
    if bound < NO_NOISE_RATIO * deviation:
        k = offset / deviation
        tail, height = normal_cdf(-k), normal_density(k)
        return tail, height, tail + k * height
    start, end = (bound - offset) / deviation, (-bound - offset) / deviation
    slope = deviation / (2.0 * bound)
    start_cdf, start_density = normal_cdf(start), normal_density(start)
    end_cdf, end_density = normal_cdf(end), normal_density(end)
    start_ramp, end_ramp = start * start_cdf, end * end_cdf
    chance = slope * ((start_density + start_ramp) - (end_density + end_ramp))
    second = slope * ((2.0 * start_density + start_ramp) - (2.0 * end_density + end_ramp))
    return chance, slope * (start_cdf - end_cdf), second


def law_moments(law: Law, offsets: Floats, deviation: float) -> Floats:
    """The three moments for any law, by quadrature: one row for each offset."""
    above = 1 - law.cdf(offsets[:, None] - deviation * NODES)
    found: Floats = above @ _POWERS.T
    return found


# The table of a law: the best offset for each width of the belief -------------------------------


TABLE_WIDTHS = 400
LEAST_WIDTH_SCALES, MOST_WIDTH_SCALES = 1e-8, 30.0
"""Deviations in the table, in units of the law's scale; others are read as the nearest."""

NEARLY_BEST_GAIN = 0.96
"""An offset with this part of the best gain is as good."""

EVEN_SIDES_RATIO = 0.9
"""Sides whose gains differ by no more are taken in turn, by chance."""

MOST_HIT_CHANCE = 0.4
"""Bits that are rarer than this on one side are hits: the guard counts them."""

OFFSET_COLUMN, UPPER_CHANCE_COLUMN = 6, 7
"""The columns of a row after its reading: the offset, and the chance of choosing the upper side."""


EdgeRule = tuple[float, float, float, Floats, bool]
"""Where to ask and how to read the bit: (bound, scale, noise, rows, learned).

The bound of uniform noise, 0 where there is a table; the scale of the law, and its squared
effective scale; the table, which for each width of the belief has a row for both sides (upper,
lower) of the median; and whether the places of the edges are learnt as well. A plain tuple, as all
that kernels take."""


def widths() -> Floats:
    """The deviations of the rows, in units of the scale."""
    return np.geomspace(LEAST_WIDTH_SCALES, MOST_WIDTH_SCALES, TABLE_WIDTHS)


@compiled
def table_row(width: float) -> int:
    """The nearest width, on a scale of logarithms."""
    step = math.log(MOST_WIDTH_SCALES / LEAST_WIDTH_SCALES) / (TABLE_WIDTHS - 1)
    row = round(math.log(max(width, LEAST_WIDTH_SCALES) / LEAST_WIDTH_SCALES) / step)
    return min(max(row, 0), TABLE_WIDTHS - 1)


@lru_cache(maxsize=32)
def edge_rule(law: Law, learned: bool = False) -> EdgeRule:
    """The closed form for uniform noise, otherwise a table; made once."""
    noise = effective_scale(law) ** 2
    if isinstance(law, Uniform):
        return law.scale, law.scale, noise, np.zeros((1, 2, 8)), learned
    return 0.0, law.scale, noise, edge_table(law), learned


def edge_table(law: Law) -> Floats:
    """The rows of a law for all widths of the belief."""
    return np.array([_row(law, width * law.scale) for width in widths()])


def _row(law: Law, deviation: float) -> Floats:
    """Both sides at one width of the belief."""
    sides = [_best_offset(law, deviation, upper) for upper in (True, False)]
    gains = [gain for _, gain in sides]
    upper_chance = _upper_chance(*gains)
    one_sided = upper_chance != 0.5
    return np.array(
        [
            [*law_reading(law, offset, deviation, one_sided=one_sided), offset, upper_chance]
            for offset, _ in sides
        ]
    )


def _upper_chance(upper: float, lower: float) -> float:
    if min(upper, lower) >= EVEN_SIDES_RATIO * max(upper, lower):
        return 0.5
    return 1.0 if upper > lower else 0.0


def _best_offset(law: Law, deviation: float, upper: bool) -> tuple[float, float]:
    """The offset to ask at on one side of the median, and the variance it is expected to take."""
    offsets = _candidates(law, deviation, upper)  # from the median outwards
    moments = law_moments(law, offsets, deviation)
    gains = moments[:, 1] ** 2 / np.maximum(moments[:, 0] * (1 - moments[:, 0]), 1e-300)
    gains[np.minimum(moments[:, 0], 1 - moments[:, 0]) < 1e-9] = 0.0
    chosen = int(np.argmax(gains >= NEARLY_BEST_GAIN * gains.max()))
    return float(offsets[chosen]), float(gains[chosen])


def _candidates(law: Law, deviation: float, upper: bool) -> Floats:
    body = _quantiles(law, upper)
    middle = body[0]
    edge = law.edges[1] if upper else law.edges[0]
    inward = -1.0 if upper else 1.0
    fine = inward * deviation * np.arange(-1.0, 6.0, 0.05)
    offsets = np.concatenate([body, edge + fine]) if math.isfinite(edge) else body
    own_side = offsets[(offsets >= middle) if upper else (offsets <= middle)]
    return np.asarray(own_side[np.argsort(np.abs(own_side - middle), kind="stable")])


@lru_cache(maxsize=64)
def _quantiles(law: Law, upper: bool) -> Floats:
    """Quantiles from the median to one end of the law."""
    return law.quantile(np.linspace(0.5, 0.995 if upper else 0.005, 60))


def law_reading(law: Law, offset: float, deviation: float, *, one_sided: bool = False) -> Reading:
    """What a bit at any offset says under a law."""
    moments = tuple(law_moments(law, np.array([offset]), deviation)[0].tolist())
    counted = min(moments[0], 1 - moments[0]) < MOST_HIT_CHANCE
    reading: Reading = bit_reading(moments, damping(law, deviation, offset, one_sided), counted)
    return reading


def damping(law: Law, deviation: float, offset: float, one_sided: bool) -> float:
    """How much of the shrinking is believed: less at an edge, and while the belief is wide."""
    from_edge = min(law.edges[1] - offset, offset - law.edges[0])
    from_middle = abs(offset - _quantiles(law, True)[0])
    if from_edge < 6 * deviation and from_middle > from_edge:
        return ONE_EDGE_RHO if one_sided else EDGE_RHO
    share = deviation**2 / (deviation**2 + effective_scale(law) ** 2)
    return 1 - (1 - SEARCH_RHO) * share


# The threshold for a belief, and how its bit is read: closed form or table ----------------------


WIDE_BELIEF_RATIO = 0.45
"""Deviations above this part of the bound ask at the median of uniform noise."""

INWARD_DEVIATIONS = (0.9, 0.7, 0.9)
"""How many deviations inside the edge to ask, as a polynomial of the deviation over the bound."""

_INSIDE, _SLOPE, _BEND = INWARD_DEVIATIONS


@compiled
def uniform_offset(bound: float, deviation: float, upper: bool) -> float:
    """Where to ask under uniform noise: at the median, or for a narrow belief inside an edge."""
    ratio = deviation / bound
    if ratio > WIDE_BELIEF_RATIO:
        return 0.0
    inside = deviation * (_INSIDE + ratio * (_SLOPE + ratio * _BEND))
    return bound - inside if upper else inside - bound


@compiled
def asks_median(draw: float) -> bool:
    """Whether a draw, near either end of the interval [0, 1), takes none of the learnt edges."""
    return min(draw, 1.0 - draw) < MEDIAN_SHARE / 2.0


@compiled
def uniform_reading(rule: EdgeRule, offset: float, deviation: float, draw: float) -> Reading:
    """What a bit at any offset says under uniform noise; of learnt edges the guard counts all."""
    bound, _, noise, _, learned = rule
    moments = uniform_moments(bound, offset, deviation)
    if learned:
        median = asks_median(draw)
        return bit_reading(moments, 1.0 if median else LEARNED_EDGE_RHO, not median)
    counted = min(moments[0], 1.0 - moments[0]) < MOST_HIT_CHANCE
    share = deviation * deviation / (deviation * deviation + noise)
    return bit_reading(moments, EDGE_RHO if counted else 1.0 - (1.0 - SEARCH_RHO) * share, counted)


@compiled
def place_threshold(rule: EdgeRule, deviation: float, draw: float) -> tuple[float, Reading]:
    """How far from the belief's mean to ask, and what the bit will say; a draw takes a side."""
    bound, scale, _, rows, learned = rule
    if bound > 0.0:
        offset = uniform_offset(bound, deviation, draw < 0.5)
        if learned and asks_median(draw):
            offset = 0.0
        return offset, uniform_reading(rule, offset, deviation, draw)
    sides = rows[table_row(deviation / scale)]
    row = sides[0 if draw < sides[0, UPPER_CHANCE_COLUMN] else 1]
    return row[OFFSET_COLUMN], (row[0], row[1], row[2], row[3], row[4], row[5] > 0.0)


def table_reading(law: Law, deviation: float, offset: float) -> Reading:
    """What a bit at any offset says: from the table of its law where that has the offset."""
    _, scale, _, rows, _ = edge_rule(law)
    for row in rows[table_row(deviation / scale)].tolist():
        if abs(row[OFFSET_COLUMN] - offset) <= 1e-6 * deviation:
            return row[0], row[1], row[2], row[3], row[4], row[5] > 0
    return law_reading(law, offset, deviation)
