"""Chains: records that one column puts in order, determined by ranges that grow at one end.

If no two records of a chain have the same value, ranges from either end that differ by one record
determine it. Ranges of fewer than `least` records are not asked: those from the other end, taken
from the whole, stand for them. A chain of s >= 2 least - 1 records takes s queries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.language import Box, Language
from casemate.attack.plan.sides import Sum

MOST_COLUMNS = 2
"""Columns that are held fixed along a chain."""


@dataclass(frozen=True)
class Chain:
    """Records in the order of their places on an axis, all of one box and all different there."""

    box: Box
    axis: int
    last: int
    records: tuple[int, ...]
    places: tuple[int, ...]

    def combinations(self, least: int) -> Iterator[tuple[int, Sum]]:
        """Each record, and what adds up to it."""
        for i, record in enumerate(self.records):
            if i >= least:
                yield record, [(1, self._up_to(i)), (-1, self._up_to(i - 1))]
            elif i < least - 1:
                yield record, [(1, self._from(i)), (-1, self._from(i + 1))]
            else:
                whole = self._up_to(len(self.records) - 1)
                yield record, [(1, self._up_to(i)), (1, self._from(i)), (-1, whole)]

    def _up_to(self, i: int) -> Box:
        return {**self.box, self.axis: (0, self.places[i])}

    def _from(self, i: int) -> Box:
        return {**self.box, self.axis: (self.places[i] if i else 0, self.last)}


def best_chains(language: Language, least: int) -> list[Chain]:
    """Chains along one axis with some others held fixed, those that contain most records."""
    best: list[Chain] = []
    covered = 0
    numbers = range(len(language.axes))
    for axis in (number for number in numbers if language.axes[number].ordered):
        others = [number for number in numbers if number != axis]
        for width in range(MOST_COLUMNS + 1):
            for fixed in combinations(others, width):
                groups = _groups(language, axis, fixed, 2 * least - 1)
                found = sum(map(len, groups))
                if found > covered:
                    covered = found
                    best = [_chain(language, axis, fixed, group) for group in groups]
    return best


def _groups(
    language: Language, axis: int, fixed: tuple[int, ...], least: int
) -> list[NDArray[np.int64]]:
    """Records that agree on the fixed axes and all differ on another, where they are enough."""
    places = language.axes[axis].places
    there = places >= 0
    coded = np.zeros(language.count, np.int64)
    for number in fixed:
        own = language.axes[number].places
        there &= own >= 0
        coded = coded * len(language.axes[number].values) + own
    records = np.flatnonzero(there)
    if not len(records):
        return []
    order = np.lexsort((places[records], coded[records]))
    sorted_, group = records[order], coded[records][order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    tied = (np.diff(group) == 0) & (np.diff(places[sorted_]) == 0)
    ties = np.add.reduceat(np.append(tied, False).astype(np.int64), starts)
    parts = np.split(sorted_, starts[1:])
    return [part for part, tie in zip(parts, ties, strict=True) if not tie and len(part) >= least]


def _chain(
    language: Language, axis: int, fixed: tuple[int, ...], records: NDArray[np.int64]
) -> Chain:
    first = int(records[0])
    own = {number: int(language.axes[number].places[first]) for number in fixed}
    return Chain(
        {number: (place, place) for number, place in own.items()},
        axis,
        language.axes[axis].last,
        tuple(records.tolist()),
        tuple(language.axes[axis].places[records].tolist()),
    )
