"""Combinations of unknowns: against ranks in fractions, and against a plain linear program."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact_rank import follows, generated
from scipy.optimize import linprog

from casemate.audit.region.bounds import bounds
from casemate.audit.region.collapse import collapse
from casemate.audit.region.groups import Combinations, in_row_space, single_values
from casemate.exact import Box, Region, System, determine


def drawn(rng: Random, columns: int) -> dict[int, int]:
    chosen = rng.sample(range(columns), rng.randint(1, columns))
    return {column: rng.choice([-1, 1, 1, 2]) for column in chosen}


def test_a_combination_is_spanned_iff_it_follows_from_the_equations(rng: Random) -> None:
    for _ in range(50):
        matrix = generated(rng)
        columns = len(matrix[0])
        targets = [drawn(rng, columns) for _ in range(4)]
        targets += [{j: value for j, value in enumerate(rng.choice(matrix)) if abs(value) < 2**60}]
        small = collapse(System.of(matrix))
        _, found = in_row_space(Combinations.of(targets), small, determine(small.system))
        dense = [[target.get(j, 0) for j in range(columns)] for target in targets]
        assert found.tolist() == [follows(matrix, line) for line in dense]


def region_of(rng: Random) -> tuple[Region, list[list[int]]]:
    """A small region around a point that is often at its bounds, so that they matter."""
    columns, rows = rng.randint(2, 6), rng.randint(1, 3)
    matrix = [[rng.choice([0, 1, 1, 2]) for _ in range(columns)] for _ in range(rows)]
    point = [rng.choice([0, 0, 1, 3, 3]) for _ in range(columns)]
    right = [Fraction(sum(a * x for a, x in zip(row, point, strict=True))) for row in matrix]
    slack = Fraction(rng.choice([0, 0, 1]), 4)
    return Region.of(System.of(matrix, right), Box.of(columns, 0, 3), slack), matrix


def test_a_combination_has_one_value_iff_its_least_is_its_greatest(seed: int) -> None:
    rng = Random(f"combinations {seed}")
    fixed = 0
    for _ in range(20):
        region, matrix = region_of(rng)
        targets = [drawn(rng, len(matrix[0])) for _ in range(4)]
        left = bounds(region)
        narrow = region.within(Box(left.low, left.high, region.box.integer))
        values, undecided = single_values(narrow, Combinations.of(targets))
        assert not undecided
        for which, target in enumerate(targets):
            low, high = extent(region, matrix, target)
            assert (which in values) == (high - low < 1e-7)
            if which in values:
                fixed += 1
                assert float(values[which]) == pytest.approx(low, abs=1e-7)
    assert fixed > 1, "the test above says nothing"


def extent(region: Region, matrix: list[list[int]], target: dict[int, int]) -> tuple[float, float]:
    """The least and the greatest value of a combination, by a plain linear program each."""
    sides = np.array(
        [[float(a or 0), float(b or 0)] for a, b in zip(region.low, region.high, strict=True)]
    )
    lines = np.array(matrix, float)
    cost = np.array([target.get(j, 0) for j in range(lines.shape[1])], float)
    ends = [
        linprog(
            sign * cost,
            A_ub=np.vstack([lines, -lines]),
            b_ub=np.concatenate([sides[:, 1], -sides[:, 0]]),
            bounds=[(0, 3)] * len(cost),
        )["fun"]
        for sign in (1, -1)
    ]
    return ends[0], -ends[1]
