from collections import defaultdict
from fractions import Fraction
from random import Random

import numpy as np
from exact_rank import generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit.region.collapse import collapse
from casemate.exact import RandomBytes, System

seeds = st.integers(0, 2**32).map(Random)


@given(seeds)
def test_groups_are_the_columns_that_are_equal(rng: Random) -> None:
    matrix = generated(rng)
    small = collapse(System.of(matrix), rng.randbytes)
    by_entries = defaultdict(list)
    for j, column in enumerate(zip(*matrix, strict=True)):
        by_entries[column].append(j)
    found = [np.flatnonzero(small.group == g).tolist() for g in range(small.system.columns)]
    assert found == list(by_entries.values())
    assert small.sizes.tolist() == [len(members) for members in found]
    assert small.system.dense() == [[row[members[0]] for members in found] for row in matrix]


def test_columns_with_one_hash_are_told_apart() -> None:
    """The first keys drawn are all zero, which gives these columns one hash."""
    draws: list[RandomBytes] = [bytes, Random(1).randbytes]

    def draw(size: int) -> bytes:
        return draws.pop(0)(size)

    small = collapse(System.of([[1, 0, 0], [0, 1, 1]]), draw)
    assert small.group.tolist() == [0, 1, 1]
    assert not draws


def test_answers_and_huge_coefficients_stay() -> None:
    small = collapse(System.of([[2**70, 2**70, 1]], right=[5]))
    assert small.system.dense() == [[2**70, 1]]
    assert small.system.right == (Fraction(5),)
