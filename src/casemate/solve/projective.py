"""Points modulo a prime: which are in one proportion, and which lie in the span of others.

An unknown is a point: what random null vectors have in its place. Whatever holds for all null
vectors holds for these few, and the other way round up to chance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NARROW = 2**31  # products of smaller residues fit in 64 bits

Point = Sequence[int]


def proportional(vectors: NDArray[Any], prime: int) -> NDArray[np.int64]:
    """A number for each column, equal for those in one proportion; -1 where all are zero.

    >>> proportional(np.array([[1, 2, 0, 3], [2, 4, 0, 5]]), 11).tolist()
    [0, 0, -1, 1]
    """
    labels = np.full(vectors.shape[1], -1, np.int64)
    some = np.flatnonzero(vectors.any(axis=0))
    if not len(some):
        return labels
    chosen = vectors[:, some]
    lead = chosen[(chosen != 0).argmax(axis=0), np.arange(len(some))]
    scale = np.array(inverses(lead.tolist(), prime), object)
    scaled = (wide(chosen, prime) * scale.astype(wide(lead, prime).dtype) % prime).astype(np.int64)
    _, first, inverse = np.unique(scaled, axis=1, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    labels[some] = rank[inverse.ravel()]
    return labels


def inverses(numbers: Sequence[int], prime: int) -> list[int]:
    """The inverse of each number modulo the prime, with one division for all of them."""
    running, product = [], 1
    for number in numbers:
        running.append(product)
        product = product * number % prime
    left, found = pow(product, -1, prime), [0] * len(numbers)
    for place in range(len(numbers) - 1, -1, -1):
        found[place] = left * running[place] % prime
        left = left * numbers[place] % prime
    return found


def wide(numbers: NDArray[Any], prime: int) -> NDArray[Any]:
    """The same residues in a type that holds the product of two."""
    return numbers.astype(np.int64 if prime < _NARROW else object)


def seen_from(vectors: NDArray[Any], known: Sequence[int], prime: int) -> NDArray[Any]:
    """The points modulo the span of some columns: what is left to whoever knows those."""
    lines = annihilator(vectors[:, list(known)].T.tolist(), len(vectors), prime)
    matrix = wide(np.array(lines, object).reshape(len(lines), len(vectors)), prime)
    total = np.zeros((len(lines), vectors.shape[1]), matrix.dtype)
    for place, line in enumerate(wide(vectors, prime)):
        total = (total + matrix[:, place, None] * line) % prime
    return total


def annihilator(points: Sequence[Point], width: int, prime: int) -> list[list[int]]:
    """A basis of the vectors orthogonal to all points."""
    lines, pivots = echelon(points, prime)
    found = []
    for free in (place for place in range(width) if place not in pivots):
        vector = [0] * width
        vector[free] = 1
        for line, pivot in zip(lines, pivots, strict=True):
            vector[pivot] = -line[free] % prime
        found.append(vector)
    return found


def echelon(points: Sequence[Point], prime: int) -> tuple[list[list[int]], list[int]]:
    """A basis of the span, reduced, and the place of each leading 1."""
    lines: list[list[int]] = []
    pivots: list[int] = []
    for point in points:
        rest = [int(value) % prime for value in point]
        for line, pivot in zip(lines, pivots, strict=True):
            rest = _less(rest, line, rest[pivot], prime)
        lead = next((place for place, value in enumerate(rest) if value), None)
        if lead is None:
            continue
        scale = pow(rest[lead], -1, prime)
        rest = [value * scale % prime for value in rest]
        lines = [*(_less(line, rest, line[lead], prime) for line in lines), rest]
        pivots.append(lead)
    return lines, pivots


def _less(one: Point, other: Point, factor: int, prime: int) -> list[int]:
    return [(a - factor * b) % prime for a, b in zip(one, other, strict=True)]


def shares(points: Sequence[Point], target: Point, prime: int) -> list[int] | None:
    """How much of each point adds up to the target, using a basis of them; None if it is outside.

    >>> shares([[1, 0, 2], [0, 1, 1], [1, 1, 3]], [2, 3, 7], 101)
    [2, 3, 0]
    """
    columns = [list(each) for each in zip(*points, target, strict=True)]
    lines, pivots = echelon(columns, prime)
    if len(points) in pivots:
        return None
    found = [0] * len(points)
    for line, pivot in zip(lines, pivots, strict=True):
        found[pivot] = line[-1]
    return found
