from fractions import Fraction
from random import Random

import numpy as np
import pytest

from casemate.exact import nearest_fractions
from casemate.exact.lifting import SquareSystem


def square(dense: list[list[int]]) -> SquareSystem:
    kind = object if max(abs(a) for line in dense for a in line) >= 2**63 else np.int64
    matrix = np.array(dense, kind)
    row, column = np.nonzero(matrix)
    return SquareSystem(len(dense), row, column, matrix[row, column])


@pytest.mark.parametrize("case", range(30))
def test_the_solution_satisfies_every_equation_exactly(case: int, seed: int) -> None:
    rng = Random(f"{seed} {case}")
    size, largest = rng.randint(1, 30), rng.choice([1, 3, 1000, 10**9])
    dense = [[rng.randint(-largest, largest) for _ in range(size)] for _ in range(size)]
    right = [rng.randint(-(10**12), 10**12) for _ in range(size)]
    found = square(dense).solve(right)
    if found is None:
        assert np.linalg.matrix_rank(np.array(dense, float)) < size
    else:
        assert [sum(a * x for a, x in zip(line, found, strict=True)) for line in dense] == right


def test_the_inverse_of_an_anti_hadamard_matrix_is_read_off_exactly() -> None:
    """Determinant 1 and entries of the inverse as large as Fibonacci numbers: floats lose it."""
    size = 40
    dense = [
        [int(j == i or (j > i and (j - i) % 2 == 1)) for j in range(size)] for i in range(size)
    ]
    found = square(dense).solve([0] * (size - 1) + [1])
    assert found is not None
    assert abs(found[0]) == 63245986
    assert all(value.denominator == 1 for value in found)


def test_a_singular_matrix_has_no_solution() -> None:
    assert square([[1, 2], [2, 4]]).solve([1, 1]) is None


def test_simple_fractions_are_the_nearest() -> None:
    assert nearest_fractions(np.array([0.3333333333, -2.0]), 10) == [Fraction(1, 3), Fraction(-2)]
