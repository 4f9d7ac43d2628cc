"""How much one of K answers says about w . q, at the best K - 1 thresholds.

Guarantee  K answers that tell the cells between thresholds apart carry the sum of
           (f(b) - f(a))^2 / (F(b) - F(a)) over the cells from a to b.
Cost       K tables of 400 x 400 cells, then of 21 x 21.
Departure  The source has two answers. The search is exact on a grid of quantiles, one cell after
           the other, and again on finer and finer grids around each threshold found.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from casemate.solve.one_bit.laws_protocol import Floats, Law
from casemate.solve.one_bit.limit_information import open_edge, quantile_grid

CANDIDATES = 270  # even quantiles of the first grid; half as many more lie in the tails
FINER = np.linspace(-1, 1, 21)
ROUNDS = 14
SHRINK = 0.4


@dataclass(frozen=True)
class LevelInformation:
    """What one of several answers carries, and the thresholds between them."""

    best: float  # infinite where there is no best
    thresholds: tuple[float, ...]  # from w . q; empty where there is no best


@lru_cache(maxsize=256)
def level_information(law: Law, levels: int) -> LevelInformation:
    """The best thresholds of an oracle with several answers, found numerically."""
    if levels < 2:
        raise ValueError(f"need an oracle with at least 2 answers, got {levels}")
    if open_edge(law, straight=False) is not None:
        return LevelInformation(math.inf, ())
    grid = law.quantile(quantile_grid(CANDIDATES))
    places = _chosen(law, [grid] * (levels - 1))
    reach = np.maximum(*_gaps(grid, places))
    for _ in range(ROUNDS):
        places = _chosen(law, [x + h * FINER for x, h in zip(places, reach, strict=True)])
        reach = SHRINK * reach
    return LevelInformation(cells_information(law, places), tuple(places.tolist()))


def cells_information(law: Law, thresholds: Floats) -> float:
    """What is carried by an answer that says between which of these thresholds it lies."""
    below = np.concatenate(([0.0], law.cdf(thresholds), [1.0]))
    heights = np.concatenate(([0.0], law.density(thresholds), [0.0]))
    return float(np.sum(_cell(np.diff(heights), np.diff(below)), where=np.diff(below) > 0))


def _chosen(law: Law, candidates: list[Floats]) -> Floats:
    """The best of the candidates for each threshold, all at once: one cell more at a time."""
    below, heights = (
        [np.zeros(1), *(read(x) for x in candidates), np.full(1, end)]
        for read, end in ((law.cdf, 1.0), (law.density, 0.0))
    )
    value, steps = np.zeros(1), []
    for place in range(len(candidates) + 1):
        rise = heights[place + 1][None, :] - heights[place][:, None]
        sums = value[:, None] + _cell(rise, below[place + 1][None, :] - below[place][:, None])
        steps.append(np.argmax(sums, axis=0))
        value = np.max(sums, axis=0)
    chosen = [0]
    for step in reversed(steps[1:]):
        chosen.append(int(step[chosen[-1]]))
    return np.asarray([x[i] for x, i in zip(candidates, chosen[:0:-1], strict=True)])


def _cell(rise: Floats, chance: Floats) -> Floats:
    """What cells of these chances carry; a cell without a chance is no cell."""
    width = np.where(chance > 0, chance, 1.0)
    return np.where(chance > 0, rise**2 / width, -np.inf)


def _gaps(grid: Floats, places: Floats) -> tuple[Floats, Floats]:
    """How far the neighbours of these places are in the grid, on both sides."""
    spots = np.searchsorted(grid, places)
    left, right = np.maximum(spots - 1, 0), np.minimum(spots + 1, len(grid) - 1)
    return places - grid[left], grid[right] - places
