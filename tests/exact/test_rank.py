from random import Random

import exact_rank
import numpy as np
import pytest
from exact_rank import anti_hadamard, generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import Added, Equation, RowSpace, System, equations, random_prime

seeds = st.integers(0, 2**32).map(Random)  # Hypothesis's own may be degenerate
HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]
MERSENNE = 2**61 - 1
TWO_ROWS = [[2**31, 1], [1, 2**30]]


def space_of(matrix: list[list[int]], **options: object) -> RowSpace:
    space = RowSpace(len(matrix[0]), **options)  # type: ignore[arg-type]  # named by the tests below
    for equation in equations(System.of(matrix)):
        space.add(equation)
    return space


# Exactly true --------------------------------------------------------------------------------


@pytest.mark.theorem("002: Which records are exposed?")
def test_the_documents_three_sums_determine_record_two_and_nobody_else() -> None:
    space = space_of(HOSPITAL)
    assert (space.rank, space.determined) == (3, (1,))


def test_rank_and_exposure_equal_those_in_fractions(rng: Random) -> None:
    """Two hundred systems: 0/1, weights, huge weights, repeated and empty equations."""
    for _ in range(200):
        matrix = generated(rng)
        space = space_of(matrix, random=rng.randbytes)
        assert space.rank == exact_rank.rank(matrix), matrix
        assert list(space.determined) == exact_rank.determined(matrix), matrix


@given(seeds)
def test_what_an_equation_would_determine_is_what_it_then_determines(rng: Random) -> None:
    matrix = generated(rng)
    space = RowSpace(len(matrix[0]), rng.randbytes)
    for position, equation in enumerate(equations(System.of(matrix))):
        before = space.determined
        announced = space.would_determine(equation)
        assert space.determined == before
        added = space.add(equation)
        assert added.determined == announced
        assert set(space.determined) == set(before) | set(announced)
        assert list(space.determined) == exact_rank.determined(matrix[: position + 1])


@pytest.mark.parametrize("size", [20, 130])
def test_a_copy_goes_its_own_way(size: int) -> None:
    """Below and above the size from which arithmetic is compiled."""
    matrix = anti_hadamard(size)
    space = space_of(matrix[:-2])
    twin = space.copy()
    for line in equations(System.of(matrix[-2:])):
        twin.add(line)
    assert (twin.rank, twin.determined) == (size, tuple(range(size)))
    assert (space.rank, space.determined) == (size - 2, ())
    assert space.add(Equation.of({size - 1: 1})).determined == (size - 1,)
    assert twin.determined == tuple(range(size))


def test_an_empty_equation_and_a_repeated_one_are_not_new() -> None:
    space = RowSpace(4)
    assert space.add(Equation.of({})) == Added(new=False, determined=())
    assert space.add(Equation.of({1: 2, 3: 1})).new
    assert space.add(Equation.of({1: -4, 3: -2})) == Added(new=False, determined=())
    assert space.kept_equations == [1]


def test_all_of_seventy_anti_hadamard_queries_are_found_and_only_by_the_last() -> None:
    matrix = anti_hadamard(70)
    space = space_of(matrix[:-1])
    assert space.determined == ()
    assert space.add(Equation.of({69: 1})).determined == tuple(range(70))


def test_a_float_rank_misses_what_the_anti_hadamard_queries_determine() -> None:
    """The twin of the test above: the document's numpy.linalg.matrix_rank."""
    matrix = np.array(anti_hadamard(70), float)
    full = np.linalg.matrix_rank(matrix)
    found = sum(np.linalg.matrix_rank(np.delete(matrix, j, axis=1)) < full for j in range(70))
    assert found < 70


def test_two_rows_with_determinant_a_mersenne_prime_determine_both() -> None:
    assert space_of(TWO_ROWS).determined == (0, 1)


def test_the_fixed_prime_itself_misses_them() -> None:
    """The twin of the test above: whoever knows the prime can write equations it cannot see."""
    assert space_of(TWO_ROWS, primes=(MERSENNE,)).determined == ()


def test_the_second_prime_confirms_what_the_first_misses() -> None:
    space = space_of(TWO_ROWS, primes=(MERSENNE, random_prime(61)))
    assert (space.rank, space.determined) == (2, (0, 1))


@pytest.mark.parametrize("kind", ["weights", "huge"])
def test_a_large_system_passes_from_small_to_compiled_arithmetic_unnoticed(kind: str) -> None:
    """A unit lower triangular system in scrambled columns: the last of each block determines it."""
    rng, size, block = Random(5), 150, 30
    largest = {"weights": 40, "huge": 2**80}[kind]
    order = rng.sample(range(size), size)
    space = RowSpace(size, rng.randbytes)
    for i in range(size):
        last = (i // block + 1) * block
        ahead = {order[j]: rng.randint(0, largest) for j in range(i + 1, last)}
        if i + 1 < last:
            ahead[order[i + 1]] = 1
        added = space.add(Equation.of({**ahead, order[i]: 1}))
        expected = sorted(order[last - block : last]) if i + 1 == last else []
        assert list(added.determined) == expected
    assert space.rank == size
