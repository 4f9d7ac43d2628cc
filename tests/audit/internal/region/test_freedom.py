"""Directions in which a solution can move, against a program that is solved anew each time."""

from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from casemate.audit.region.second import Freedom, HeldSum

Line = tuple[NDArray[np.float64], float, float]


def exists(low: NDArray[np.float64], high: NDArray[np.float64], lines: list[Line]) -> bool:
    """Whether some direction between its ends keeps all sums between theirs."""
    above = [(line, end) for line, _, end in lines if np.isfinite(end)]
    below = [(-line, -end) for line, end, _ in lines if np.isfinite(end)]
    rows = [line for line, _ in (*above, *below)]
    found = linprog(
        np.zeros(len(low)),
        A_ub=np.array(rows) if rows else None,
        b_ub=[end for _, end in (*above, *below)] if rows else None,
        bounds=list(zip(low, high, strict=True)),
    )
    return bool(found.status == 0)


def held(line: NDArray[np.float64], low: float, high: float) -> HeldSum:
    columns = np.flatnonzero(line)
    return HeldSum(columns, line[columns], low, high)


def random_ends(rng: Random, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    kinds = [(1.0, np.inf), (-np.inf, -1.0), (0.0, np.inf), (-np.inf, 0.0), (-np.inf, np.inf)]
    chosen = [rng.choice([*kinds, (0.0, 0.0)]) for _ in range(size)]
    return np.array([a for a, _ in chosen]), np.array([b for _, b in chosen])


def random_line(rng: Random, size: int) -> Line:
    line = np.array([float(rng.choice([0, 0, 1, 1, -1, 3])) for _ in range(size)])
    return line, *rng.choice([(0.0, 0.0), (0.0, 0.0), (0.0, np.inf), (-np.inf, 0.0), (1.0, np.inf)])


def test_a_sum_is_admitted_iff_a_direction_is_left(rng: Random) -> None:
    refused = 0
    for _ in range(30):
        size = rng.randint(2, 7)
        low, high = random_ends(rng, size)
        free, kept = Freedom(low, high), list[Line]()
        for _ in range(rng.randint(1, 8)):
            line = random_line(rng, size)
            admitted = free.admit([held(*line)])
            assert admitted == exists(low, high, [*kept, line])
            kept += [line] if admitted else []
            refused += not admitted
    assert refused > 15, "the cases were all alike"


def test_sums_that_come_together_are_admitted_together_or_not_at_all() -> None:
    up = np.ones(3)
    first, second = (
        HeldSum(np.array([0, 1]), np.array([1.0, -1.0])),
        HeldSum(np.array([2]), np.ones(1)),
    )
    free = Freedom(up, np.full(3, np.inf))
    assert not free.admit([first, second])
    assert free.admit([HeldSum(np.array([0, 1]), np.array([1.0, -2.0]))])
    assert free.admit([first]) is False


@pytest.mark.parametrize("size", [1e-6, 1e12])
def test_the_size_of_the_weights_does_not_matter(size: float) -> None:
    free = Freedom(np.array([1.0, -np.inf]), np.array([np.inf, -1.0]))
    assert free.admit([HeldSum(np.array([0, 1]), size * np.ones(2))])
    assert not free.admit([HeldSum(np.array([0]), size * np.ones(1))])
