"""Every selection and the shortest plan, the slow obvious way: sets, and one rank for each choice.

Nothing of the planner is used here. Ranks of matrices this small are safe in floating point.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb
from random import Random
from typing import Any

import numpy as np

Column = tuple[bool, Sequence[Any]]
"""Whether a column is ordered, and the value of each record."""

MOST = 400_000


def selections(columns: Sequence[Column], least: int) -> list[frozenset[int]]:
    """Every set of at least so many records that a conjunction of conditions selects."""
    count = len(columns[0][1])
    found = {frozenset(range(count))}
    for ordered, values in columns:
        conditions = set(_conditions(ordered, values))
        found |= {one & other for one in found for other in conditions}
    return sorted((each for each in found if len(each) >= max(1, least)), key=sorted)


def _conditions(ordered: bool, values: Sequence[Any]) -> Iterator[frozenset[int]]:
    there = sorted({value for value in values if value is not None})
    pairs = combinations([*there, *there], 2) if ordered else ((each, each) for each in there)
    for low, high in {(min(pair), max(pair)) for pair in pairs} | {(v, v) for v in there}:
        yield frozenset(i for i, v in enumerate(values) if v is not None and low <= v <= high)


def as_matrix(sets: Sequence[frozenset[int]], count: int) -> Any:
    matrix = np.zeros((len(sets), count))
    for row, members in enumerate(sets):
        matrix[row, sorted(members)] = 1
    return matrix


def determined(sets: Sequence[frozenset[int]], count: int, target: int) -> bool:
    """Whether all selections together determine the target."""
    if not sets:
        return False
    matrix, unit = as_matrix(sets, count), np.eye(count)[target]
    return bool(np.linalg.matrix_rank(np.vstack([matrix, unit])) == np.linalg.matrix_rank(matrix))


def shortest(
    sets: Sequence[frozenset[int]], count: int, target: int, most: int = MOST
) -> int | None:
    """The length of the shortest plan; None if there is none, or too many have to be tried."""
    if not determined(sets, count, target):
        return None
    matrix, unit = as_matrix(sets, count), np.eye(count)[target]
    for length in range(1, len(sets) + 1):
        if comb(len(sets), length) > most:
            return None
        if any(_plans(matrix[list(some)], unit) for some in _chunks(len(sets), length)):
            return length
    raise AssertionError("all selections together determine it")


def _chunks(count: int, length: int) -> Iterator[list[tuple[int, ...]]]:
    choices = combinations(range(count), length)
    while some := list(islice(choices, 20_000)):
        yield some


def _plans(matrices: Any, unit: Any) -> bool:
    units = np.broadcast_to(unit, (len(matrices), 1, len(unit)))
    with_unit = np.linalg.matrix_rank(np.concatenate([matrices, units], axis=1))
    return bool((with_unit == np.linalg.matrix_rank(matrices)).any())


# Small tables -----------------------------------------------------------------------------------


def small_columns(rng: Random) -> list[Column]:
    """Two or three columns of a few records, with ties, sometimes with NULLs."""
    count, columns = rng.randint(3, 8), list[Column]()
    for number in range(rng.randint(2, 3)):
        ordered, width = number == 0 or rng.random() < 0.5, rng.randint(2, count)
        values: list[Any] = [rng.randrange(width if ordered else 3) for _ in range(count)]
        if rng.random() < 0.3:
            values[rng.randrange(count)] = None
        columns.append((ordered, values if ordered else [_letter(each) for each in values]))
    return columns


def _letter(value: int | None) -> str | None:
    return None if value is None else "abc"[value]


def as_csv(columns: Sequence[Column], secrets: Sequence[Any]) -> str:
    """The columns as c0, c1, ... and the secret as s; NULL is an empty field."""
    names = [*(f"c{i}" for i in range(len(columns))), "s"]
    rows = zip(*(values for _, values in columns), secrets, strict=True)
    lines = [",".join("" if each is None else str(each) for each in row) for row in rows]
    return "\n".join([",".join(names), *lines]) + "\n"
