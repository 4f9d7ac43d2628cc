from fractions import Fraction
from itertools import combinations
from random import Random

import exact_rank
import pytest
from exact_rank import Matrix, generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit.checks.contradiction import consistent, contradiction
from casemate.exact import System

seeds = st.integers(0, 2**32).map(Random)


def contradicts(matrix: Matrix, right: list[Fraction]) -> bool:
    """rank([A | b]) > rank(A), the document's first condition."""
    wide = [[*row, 0] for row in matrix]
    scaled = [[*(a * b.denominator for a in row), b.numerator] for row, b in _pairs(matrix, right)]
    return exact_rank.rank(scaled) > exact_rank.rank(wide)


def _pairs(matrix: Matrix, right: list[Fraction]) -> list[tuple[list[int], Fraction]]:
    return list(zip(matrix, right, strict=True))


@pytest.mark.theorem("002: Which records are exposed?")
@given(seeds)
def test_consistency_equals_the_documents_condition(rng: Random) -> None:
    matrix = generated(rng)
    secret = [Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in matrix[0]]
    right = [sum((a * x for a, x in zip(row, secret, strict=True)), Fraction(0)) for row in matrix]
    assert consistent(System.of(matrix, right), rng.randbytes)
    right[rng.randrange(len(right))] += Fraction(1, 3)
    assert consistent(System.of(matrix, right), rng.randbytes) != contradicts(matrix, right)


@given(seeds)
def test_the_contradictory_set_is_minimal(rng: Random) -> None:
    matrix = generated(rng)
    right = [Fraction(rng.randint(-3, 3)) for _ in matrix]
    found = contradiction(System.of(matrix, right), rng.randbytes)
    if found is None:
        assert not contradicts(matrix, right)
        return
    parts = [(matrix[i], right[i]) for i in found.equations]
    assert contradicts([row for row, _ in parts], [answer for _, answer in parts])
    for fewer in combinations(parts, len(parts) - 1):
        if fewer:
            assert not contradicts([row for row, _ in fewer], [answer for _, answer in fewer])


def test_answers_too_large_for_a_machine_word_are_exact() -> None:
    assert consistent(System.of([[1], [2]], right=[2**90, 2**91]))
    assert not consistent(System.of([[1], [2]], right=[2**90, 2**91 + 1]))
