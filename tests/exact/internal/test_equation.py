from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import Equation, weighted_sum
from casemate.exact.system import KeptEquations, narrowest


@given(
    st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3), max_size=4),
    st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3),
)
def test_a_weighted_sum_is_exact(matrix: list[list[int]], weights: list[int]) -> None:
    given_matrix, given_weights = np.array(matrix, np.int64), np.array(weights, np.uint64)
    assert weighted_sum(given_matrix.reshape(-1, 3), given_weights) == [
        sum(a * b for a, b in zip(row, weights, strict=True)) for row in matrix
    ]


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=300))
def test_kept_equations_hold_every_coefficient(values: list[int]) -> None:
    kept = KeptEquations(3)
    for value in values:
        kept.append(Equation.of({1: value}))
    slots = np.arange(len(values))
    assert kept.at(1, slots).tolist() == values
    assert kept.at(1, slots[:-1]).tolist() == values[:-1]
    assert not kept.at(0, slots).any()


def test_an_equation_keeps_exact_coefficients() -> None:
    huge = Equation.of({0: 2**70, 3: 1, 2: 0})
    assert huge.columns.tolist() == [0, 3] and huge.values.tolist() == [2**70, 1]
    assert narrowest(huge.values).kind == "O"
    assert Fraction(huge.total(np.array([3, 1, 1, 5], np.uint64))) == 3 * 2**70 + 5
