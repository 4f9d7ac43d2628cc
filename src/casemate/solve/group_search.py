"""Small groups whose total is determined, and pairs of insiders: found by bounded search.

A total is determined iff it vanishes on every null vector, so groups of k are solutions of a k-sum
problem over the undetermined unknowns. Each size is searched in full within a budget of subsets
looked at, or it is reported as undecided.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from casemate.solve.exposure import Exposure
from casemate.solve.null_space import VECTORS, NullVectors

BUDGET = 1_000_000

Group = tuple[int, ...]


@dataclass(frozen=True)
class Groups:
    """The minimal groups found, and the sizes that were too many to search."""

    found: tuple[Group, ...]
    undecided: tuple[int, ...]


def totals(exposed: Exposure, largest: int, budget: int = BUDGET) -> Groups:
    """Groups of 2 to `largest` undetermined unknowns whose total is determined."""
    null = _sound(exposed)
    columns = np.flatnonzero(~exposed.determined).tolist()
    found: list[Group] = []
    undecided: list[int] = []
    for size in range(2, largest + 1):
        if comb(len(columns), -(-size // 2)) > budget:
            undecided.append(size)
            continue
        smaller = [set(group) for group in found]
        matches = _vanishing(null, columns, size)
        found += [group for group in matches if not any(each < set(group) for each in smaller)]
    return Groups(tuple(found), tuple(undecided))


def _vanishing(null: NullVectors, columns: Sequence[int], size: int) -> Iterator[Group]:
    """Groups of one size whose null values add up to zero: halves that cancel each other."""
    half = size // 2
    lower = defaultdict(list)
    for group in combinations(columns, half):
        lower[_sum(null, group)].append(group)
    for upper in combinations(columns, size - half):
        opposite = tuple(-value % null.prime for value in _sum(null, upper))
        for group in lower.get(opposite, ()):
            if group[-1] < upper[0]:
                yield (*group, *upper)


def _sum(null: NullVectors, group: Group) -> tuple[int, ...]:
    added = null.vectors[:, list(group)].sum(axis=1, dtype=object) % null.prime
    return tuple(added.tolist())


def insiders(exposed: Exposure, most: int, budget: int = BUDGET) -> Groups:
    """Groups of 3 to most + 1 unknowns in which all but one, knowing theirs, learn the last.

    Pairs (a single insider) are `kinship`'s; a group that contains one is left out.
    """
    null = _sound(exposed)
    columns = np.flatnonzero(~exposed.determined & ~null.zero()).tolist()
    sizes = range(3, most + 2)
    undecided = [size for size in sizes if size > VECTORS or len(columns) ** 2 > budget]
    found = _collinear(null, columns) if 3 in sizes and 3 not in undecided else []
    return Groups(tuple(found), tuple(undecided))


def _collinear(null: NullVectors, columns: Sequence[int]) -> list[Group]:
    """Triples of points, no two the same, on one line: seen from one, the others coincide."""
    points = {j: tuple(null.vectors[:, j].tolist()) for j in columns}
    found: list[Group] = []
    for place, eye in enumerate(columns):
        lines = defaultdict(list)
        for other in columns[place + 1 :]:
            lines[_seen(points[eye], points[other], null.prime)].append(other)
        lines.pop((), None)
        for members in lines.values():
            found += [
                (eye, *pair)
                for pair in combinations(members, 2)
                if _seen(points[pair[0]], points[pair[1]], null.prime)
            ]
    return found


def _seen(eye: Sequence[int], other: Sequence[int], prime: int) -> tuple[int, ...]:
    """The line through two points, scaled; empty where they are one point."""
    (a, b, c), (d, e, f) = eye, other
    line = [(b * f - c * e) % prime, (c * d - a * f) % prime, (a * e - b * d) % prime]
    lead = next((value for value in line if value), 0)
    if not lead:
        return ()
    scale = pow(lead, -1, prime)
    return tuple(value * scale % prime for value in line)


def _sound(exposed: Exposure) -> NullVectors:
    return next(null for null in exposed.null if null.rank == exposed.rank)
