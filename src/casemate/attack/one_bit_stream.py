"""Streams of queries over groups: how much each group weighs in each.

Source  Source document 000, section 2: queries in [0, 1]^D. Theorem 2.1 is about streams near the
        directions of a basis, here nearly one group at a time.
"""

import math
from enum import StrEnum

import numpy as np

from casemate.solve.one_bit.protocol import Floats
from casemate.solve.one_bit.streams import WITHIN, angle

LIGHTEST = 0.5
"""The least weight of the group that a query near one group is about."""


class Weighting(StrEnum):
    """How the weights of a query are drawn."""

    EVEN = "even"  # every group by an even number between 0 and 1
    SUBSETS = "subsets"  # every group is taken or left, and at least one is taken
    SINGLE = "single"  # nearly one group a query: what OnlineBisection needs


def drawn_queries(
    kind: Weighting, reach: Floats, count: int, random: np.random.Generator
) -> Floats:
    """So many queries, one a row: weights times what each group can add."""
    if kind is Weighting.EVEN:
        return random.random((count, len(reach))) * reach
    if kind is Weighting.SUBSETS:
        return _subsets(len(reach), count, random) * reach
    return _single(reach, count, random)


def shortest_single(reach: Floats) -> float:
    """The least Euclidean length of a query near one group."""
    return LIGHTEST * float(reach.min())


def _subsets(groups: int, count: int, random: np.random.Generator) -> Floats:
    taken = random.random((count, groups)) < 0.5
    none = np.flatnonzero(~taken.any(axis=1))
    taken[none, random.integers(groups, size=none.size)] = True
    return taken.astype(np.float64)


def _single(reach: Floats, count: int, random: np.random.Generator) -> Floats:
    """One group each, and so little of the others that the angle to it stays below phi.

    A group too small to lean that far weighs at most 1, and the angle is smaller.
    """
    groups = len(reach)
    chosen, rows = random.integers(groups, size=count), np.arange(count)
    main = reach[chosen] * random.uniform(LIGHTEST, 1.0, count)
    found = np.abs(random.normal(size=(count, groups)))
    found[rows, chosen] = 0.0
    stray = WITHIN * math.tan(angle(groups)) * random.random(count) * main
    lengths = np.maximum(np.linalg.norm(found, axis=1), np.finfo(np.float64).tiny)
    found = np.minimum(found * (stray / lengths)[:, None], reach)
    found[rows, chosen] = main
    return np.asarray(found)
