"""Small groups whose total is determined, found by bounded search.

A total is determined iff it vanishes on every null vector, so groups of k are solutions of a k-sum
problem over the undetermined unknowns: halves that cancel each other. Pairs are always searched in
full; each larger size within a budget of halves looked at, or it is reported as undecided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.exposure import Exposure
from casemate.solve.null_space import NullVectors

BUDGET = 1_000_000

_KEYS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # any odd numbers will do

Group = tuple[int, ...]
Halves = NDArray[np.int64]
"""Groups of one size, one a row, each ascending."""


@dataclass(frozen=True)
class Groups:
    """The minimal groups found, and the sizes that were too many to search."""

    found: tuple[Group, ...]
    undecided: tuple[int, ...]


def totals(
    exposed: Exposure,
    largest: int,
    weights: Sequence[int] | None = None,
    budget: int = BUDGET,
) -> Groups:
    """Groups of undetermined unknowns, at least two, whose total is determined.

    With `weights` an unknown counts as so many, and `largest` limits what a group's add up to.
    """
    null = next(null for null in exposed.null if null.rank == exposed.rank)
    heavy = np.ones(len(exposed.determined), np.int64) if weights is None else np.array(weights)
    found: dict[Group, None] = {}
    undecided: list[int] = []
    for size in range(2, largest + 1):
        fitting = ~exposed.determined & (heavy <= largest - size + 1)
        matches = _vanishing(null, np.flatnonzero(fitting), size, budget)
        if matches is None:
            undecided.append(size)
            continue
        some = matches[heavy[matches].sum(axis=1) <= largest]
        news = [group for group in map(tuple, some.tolist()) if _is_minimal(group, found)]
        found |= dict.fromkeys(news)
    return Groups(tuple(found), tuple(undecided))


def _is_minimal(group: Group, smaller: dict[Group, None]) -> bool:
    parts = chain.from_iterable(combinations(group, size) for size in range(2, len(group)))
    return not smaller or not any(part in smaller for part in parts)


def _vanishing(null: NullVectors, columns: Halves, size: int, budget: int) -> Halves | None:
    """Groups of one size whose null values add up to zero; None if they are too many to search."""
    half = size // 2
    if size > 2 and comb(len(columns), size - half) > budget:
        return None
    lower, upper = _subsets(columns, half), _subsets(columns, size - half)
    below, above = _sums(null, lower), _sums(null, upper)
    opposite = np.mod(-above, null.prime)
    keys, wanted = _hashed(below), _hashed(opposite)
    order = np.argsort(keys)
    first = np.searchsorted(keys[order], wanted, "left")
    many = np.searchsorted(keys[order], wanted, "right") - first
    if int(many.sum()) > max(budget, len(columns)) * size:
        return None
    theirs = np.repeat(np.arange(len(upper)), many)
    inside = np.arange(len(theirs)) - np.repeat(np.cumsum(many) - many, many)
    mine = order[first[theirs] + inside]
    apart = lower[mine, -1] < upper[theirs, 0]  # so that each group is met once
    same = (below[:, mine] == opposite[:, theirs]).all(axis=0)
    chosen = np.flatnonzero(apart & same)
    found = np.concatenate([lower[mine[chosen]], upper[theirs[chosen]]], axis=1)
    return found[np.lexsort(found.T[::-1])]


def _subsets(columns: Halves, size: int) -> Halves:
    """All subsets of one size."""
    if size == 1:
        return columns[:, None]
    if size == 2:
        places = np.triu_indices(len(columns), 1)
        return np.stack([columns[places[0]], columns[places[1]]], axis=1)
    flat: Iterator[Any] = chain.from_iterable(combinations(columns.tolist(), size))
    return np.fromiter(flat, np.int64).reshape(-1, size)


def _sums(null: NullVectors, groups: Halves) -> NDArray[np.int64]:
    """What the members of each group add up to in each null vector."""
    total = np.zeros((len(null.vectors), len(groups)), np.int64)
    for member in groups.T:
        total = np.mod(total + null.vectors[:, member], null.prime)
    return total


def _hashed(sums: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One key for the values in all vectors; two that share it by chance are told apart later."""
    total = np.zeros(sums.shape[1], np.uint64)
    for line, key in zip(sums.astype(np.uint64), _KEYS, strict=False):
        total += line * np.uint64(key)
    return total
