from fractions import Fraction
from math import isqrt
from random import Random

import numpy as np
import pytest
from exact_rank import Matrix, anti_hadamard
from hypothesis import assume, given
from hypothesis import strategies as st

from casemate.exact import System, nearest_fractions, random_prime, reconstruct_rational
from casemate.exact.elimination import eliminate
from casemate.exact.lifting import (
    Solution,
    SquareSystem,
    common_denominator,
    lift,
    product,
)
from casemate.exact.modular import NARROW_PRIME_BITS


@given(st.integers(-1000, 1000), st.integers(1, 1000))
def test_a_small_rational_is_recovered_from_its_residue(n: int, d: int) -> None:
    prime = random_prime(NARROW_PRIME_BITS)
    wanted, bound = Fraction(n, d), isqrt(prime // 2)
    residue = n * pow(d, -1, prime) % prime
    assert reconstruct_rational(residue, prime, bound) == (wanted.numerator, wanted.denominator)


@given(st.lists(st.fractions(-999, 999, max_denominator=9), min_size=1, max_size=5))
def test_a_vector_gets_its_common_denominator(numbers: list[Fraction]) -> None:
    modulus = random_prime(61)
    residues = [n.numerator * pow(n.denominator, -1, modulus) % modulus for n in numbers]
    found = common_denominator(residues, modulus)
    assert found is not None
    assert [Fraction(number, found[1]) for number in found[0]] == numbers


def test_too_few_digits_recover_nothing() -> None:
    assert common_denominator([12345, 54321, 33333], 65537) is None


@given(st.integers(0, 2**32))
def test_lifted_solutions_are_exact(seed: int) -> None:
    rng = Random(seed)
    size = rng.randint(1, 7)
    reach = rng.choice([1, 5, 2**70])
    matrix = [[rng.randint(-reach, reach) for _ in range(size)] for _ in range(size)]
    found = eliminate(System.of(matrix), random_prime(NARROW_PRIME_BITS, rng.randbytes))
    assume(found.rank == size)
    ordered = np.array(matrix, object)[:, found.pivots]
    narrow = ordered.astype(np.int64) if reach < 2**60 else ordered
    targets = np.eye(size, dtype=np.int64)

    def check(solution: Solution) -> bool:
        made = sum(ordered[i] * weight for i, weight in solution.numerators.items())
        return bool((made == solution.divisor * targets[solution.target].astype(object)).all())

    solutions = list(lift(narrow, found, targets, 128, check))
    assert sorted(each.target for each in solutions) == list(range(size))
    assert all(check(each) for each in solutions)


def test_a_solution_with_more_digits_than_asked_for_is_left_out() -> None:
    found = eliminate(System.of([[10**40 + 1]]), 101)
    matrix = np.array([[10**40 + 1]], object)
    assert not list(lift(matrix, found, np.array([[1]]), 3, lambda each: each.divisor > 10**40))


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_products_are_exact_whatever_their_size(a: int, b: int) -> None:
    assert product(np.array([[a, 1]]), np.array([[b], [a]])).tolist() == [[a * b + a]]


# From an inverse in doubles -------------------------------------------------------------------


def square(dense: Matrix) -> SquareSystem:
    matrix = np.array(dense, np.int64)
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
    found = square(anti_hadamard(40)).solve([0] * 39 + [1])
    assert found is not None
    assert abs(found[0]) == 63245986
    assert all(value.denominator == 1 for value in found)
    assert square([[1, 2], [2, 4]]).solve([1, 1]) is None, "a singular matrix has no solution"


def test_simple_fractions_are_the_nearest() -> None:
    assert nearest_fractions(np.array([0.3333333333, -2.0]), 10) == [Fraction(1, 3), Fraction(-2)]
