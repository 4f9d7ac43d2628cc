"""How much one answer says about w . q: a bit at the best threshold, at the median, all of it.

Source     Source document 000 asks for the threshold at the middle of what is still possible. A bit
           at distance x from w . q carries f(x)^2 / (F(x) (1 - F(x))), 4 f(0)^2 at the median.
Guarantee  No threshold, adaptive or not, carries more than the largest of these; no K answers carry
           more than the largest sum of (f(b) - f(a))^2 / (F(b) - F(a)) over K cells from a to b.
Departure  The median is the best threshold for some laws only. The search is numerical: a grid of
           quantiles, then golden sections. At an edge where the density does not fall faster than
           in a straight line, the search is replaced by the exact answer: there is no largest one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from casemate.solve.one_bit.laws_protocol import Floats, Law

Kind = Literal["median", "supremum", "none"]

BODY = 2_000  # quantiles at even steps
TAIL = 1e-9  # the chance beyond which nothing is looked for, and the first step of the grid there
SAME = 1e-6  # a threshold that is better by less is not better
NEAR = 1e-6  # how near to an edge its shape is read, in scales
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class BitInformation:
    """What a bit carries, at the median and at the best threshold."""

    kind: Kind
    best: float  # infinite where the kind is none
    median: float  # 4 f(0)^2
    offset: float  # of the best threshold, from w . q plus the median of the noise


def information_at(law: Law, x: float) -> float:
    """What a bit carries whose threshold is x above w . q."""
    below = float(law.cdf(x))
    if not 0 < below < 1:
        return 0.0
    return float(law.density(x)) ** 2 / (below * (1 - below))


@lru_cache(maxsize=256)
def bit_information(law: Law) -> BitInformation:
    """The best threshold of a law, found numerically."""
    middle = float(law.quantile(0.5))
    median = 4 * law.density_at_median**2
    if (edge := open_edge(law, straight=False)) is not None:
        return BitInformation("none", math.inf, median, edge - middle)
    chances = quantile_grid(BODY)
    places = law.quantile(chances)
    best = int(np.argmax(law.density(places) ** 2 / (chances * (1 - chances))))
    around = float(places[max(best - 1, 0)]), float(places[min(best + 1, len(places) - 1)])
    candidates = float(places[best]), _top(lambda x: information_at(law, x), *around)
    largest, place = max((information_at(law, x), x) for x in candidates)
    if largest <= median * (1 + SAME):
        return BitInformation("median", median, median, 0.0)
    return BitInformation("supremum", largest, median, place - middle)


@lru_cache(maxsize=256)
def full_information(law: Law) -> float:
    """What the whole noisy answer carries: the Fisher information of the law's place."""
    if open_edge(law, straight=True) is not None:
        return math.inf
    coarse, fine = (_cells(law, quantile_grid(size)) for size in (BODY, 4 * BODY))
    return math.inf if fine > 1.2 * coarse else fine  # a jump inside: cells never stop gaining


def edge_pays_after(law: Law) -> float:
    """About how many queries a direction before thresholds at an edge beat those at the median.

    Near a jump of height c in the density, a threshold shrinks a variance s^2 by .686 c s^3; at the
    median by 4 f(0)^2 s^4. They cross where s = .1715 c / f(0)^2.
    """
    heights = [float(law.density(end)) for end in law.edges if math.isfinite(end)]
    height, middle = max(heights, default=0.0), law.density_at_median
    if height == 0:
        return math.inf
    return middle**2 / (4 * 0.1715**2 * height**2)


def quantile_grid(body: int) -> Floats:
    """Chances: even steps, and steps that shrink with the chance in both tails."""
    ends = np.geomspace(TAIL, 1 / body, body // 4, endpoint=False)
    return np.concatenate((ends, np.linspace(0, 1, body + 1)[1:-1], 1 - ends[::-1]))


def open_edge(law: Law, *, straight: bool) -> float | None:
    """An edge without a bound on what is carried there; at most on a `straight` line, or less.

    With a density of x^a at distance x, the bit there carries x^(a - 1), the whole answer the
    integral of x^(a - 2): without bound where a < 1, and where a <= 1.
    """
    bound = 1.05 if straight else 0.95
    step = NEAR * min(law.scale, law.edges[1] - law.edges[0])
    for end, inward in zip(law.edges, (step, -step), strict=True):
        if math.isfinite(end) and _power(law, end, inward) < bound:
            return end
    return None


def _power(law: Law, end: float, step: float) -> float:
    """The power a with which the density grows away from an edge."""
    near, far = float(law.density(end + step)), float(law.density(end + 2 * step))
    return math.log2(far / near) if near > 0 and far > 0 else math.inf


def _cells(law: Law, chances: Floats) -> float:
    """What is carried by the cell between two of these quantiles in which the answer lies."""
    heights = np.concatenate(([0.0], law.density(law.quantile(chances)), [0.0]))
    widths = np.diff(np.concatenate(([0.0], chances, [1.0])))
    return float(np.sum(np.diff(heights) ** 2 / widths))


def _top(height: Callable[[float], float], low: float, high: float) -> float:
    """The highest place of a hill with one top, by golden sections."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    heights = height(left), height(right)
    for _ in range(60):
        if heights[0] > heights[1]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
            heights = height(left), heights[0]
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
            heights = heights[1], height(right)
    return left if heights[0] > heights[1] else right
