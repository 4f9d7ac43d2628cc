"""Every way to decide what equations determine, against one rank in fractions for each column."""

import subprocess
import sys
from collections.abc import Callable
from random import Random

import exact_rank
import numpy as np
import pytest
from exact.regions import Form
from exact_rank import HOSPITAL, Matrix, anti_hadamard, generated, seeds
from hypothesis import given
from written_records import SketchedRecords, WrittenRecords

from casemate.exact import (
    WIDE_PRIME_BITS,
    Added,
    Equation,
    NullVectors,
    Pivot,
    PivotBasis,
    RowSpace,
    System,
    determine,
    determine_sketched,
    determined_columns,
    equations,
    random_prime,
)
from casemate.exact import determination as module
from casemate.exact.determination import annuls, determine_in_blocks, determine_incrementally
from casemate.exact.modular import NARROW_PRIME_BITS

Decided = tuple[int, list[int]]  # the rank, and the columns that are determined
Way = Callable[[Matrix, Random], Decided]
MERSENNE = 2**61 - 1
TWO_ROWS = [[2**31, 1], [1, 2**30]]
SMALL_QUESTION = """
import sys
from casemate.exact.certificate import certify
from casemate.exact.determination import determine
from casemate.exact.system import System
system = System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]])
found = list(certify(system, determine(system).block, [1]))
assert len(found) == 1
assert not {"numba", "scipy", "highspy"} & set(sys.modules)
"""


def space_of(matrix: Matrix, **options: object) -> RowSpace:
    space = RowSpace(len(matrix[0]), **options)  # type: ignore[arg-type]  # named by the tests below
    for equation in equations(System.of(matrix)):
        space.add(equation)
    return space


def one_at_a_time(matrix: Matrix, rng: Random) -> Decided:
    space = space_of(matrix, random=rng.randbytes)
    return space.rank, list(space.determined)


def all_at_once(form: Form) -> Way:
    def decide(matrix: Matrix, rng: Random) -> Decided:
        found = form(System.of(matrix), rng.randbytes)
        for null in found.null:
            products = np.array(matrix, object) @ null.vectors.T.astype(object)
            assert not (products % null.prime).any()
        return found.rank, np.flatnonzero(found.determined).tolist()

    return decide


def by_a_few_records(records: type[WrittenRecords]) -> Way:
    def decide(matrix: Matrix, rng: Random) -> Decided:
        found = determine_sketched(records(matrix, rng, sampled=10))
        assert found.by.keys() == found.certificates.keys()
        return found.rank, sorted(found.by)

    return decide


STORED: dict[str, Way] = {
    "one at a time": one_at_a_time,
    "incrementally": all_at_once(determine_incrementally),
    "in blocks": all_at_once(determine_in_blocks),
    "by size": all_at_once(determine),
}
OF_ZEROS_AND_ONES: dict[str, Way] = {
    "a sample": by_a_few_records(WrittenRecords),
    "sketches": by_a_few_records(SketchedRecords),
}


# Every way ------------------------------------------------------------------------------------


def test_rank_and_exposure_equal_those_in_fractions(rng: Random) -> None:
    """Two hundred systems: 0/1, weights, huge weights, repeated and empty equations."""
    for _ in range(200):
        matrix = generated(rng)
        expected = exact_rank.rank(matrix), exact_rank.determined(matrix)
        for name, way in STORED.items():
            assert way(matrix, rng) == expected, (name, matrix)


@pytest.mark.parametrize("name", STORED | OF_ZEROS_AND_ONES)
def test_all_of_seventy_anti_hadamard_queries_are_found_and_only_by_the_last(
    name: str, rng: Random
) -> None:
    """Multiples of up to 48 bits, which floating point cannot see through."""
    decide, matrix = (STORED | OF_ZEROS_AND_ONES)[name], anti_hadamard(70)
    assert decide(matrix, rng) == (70, list(range(70)))
    assert decide(matrix[:-1], rng) == (69, [])


def test_a_float_rank_misses_what_the_anti_hadamard_queries_determine() -> None:
    """The twin of the test above: the document's numpy.linalg.matrix_rank."""
    matrix = np.array(anti_hadamard(70), float)
    full = np.linalg.matrix_rank(matrix)
    found = sum(np.linalg.matrix_rank(np.delete(matrix, j, axis=1)) < full for j in range(70))
    assert found < 70


@pytest.mark.theorem("002: Which records are exposed?")
@pytest.mark.parametrize("name", STORED | OF_ZEROS_AND_ONES)
def test_the_documents_three_sums_determine_record_two_and_nobody_else(
    name: str, rng: Random
) -> None:
    assert (STORED | OF_ZEROS_AND_ONES)[name](HOSPITAL, rng) == (3, [1])


# One at a time --------------------------------------------------------------------------------


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


def test_two_rows_with_determinant_a_mersenne_prime_determine_both() -> None:
    """The twin: whoever knows a fixed prime can write equations that it cannot see."""
    assert space_of(TWO_ROWS).determined == (0, 1)
    assert space_of(TWO_ROWS, primes=(MERSENNE,)).determined == ()
    confirmed = space_of(TWO_ROWS, primes=(MERSENNE, random_prime(61)))
    assert (confirmed.rank, confirmed.determined) == (2, (0, 1))


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


def test_a_wrong_column_from_the_caller_and_a_stale_step_are_refused() -> None:
    basis = PivotBasis(random_prime(61))
    with pytest.raises(ValueError, match="not one in which"):
        basis.consider(5, [], lambda _: Pivot(column=0, fingerprint=5, coefficient=0, kept=[]))
    right = Pivot(column=0, fingerprint=5, coefficient=1, kept=[])
    first, second = (basis.consider(total, [], lambda _: right) for total in (5, 10))
    basis.commit(first)
    with pytest.raises(ValueError, match="before another equation"):
        basis.commit(second)


# All at once ----------------------------------------------------------------------------------


def test_a_vector_that_is_not_annulled_is_noticed() -> None:
    system, prime = System.of([[1, 1]]), random_prime(NARROW_PRIME_BITS)
    assert annuls(system, NullVectors(prime, 1, np.array([[1, prime - 1]])))
    assert not annuls(system, NullVectors(prime, 1, np.array([[1, 1]])))


def test_a_system_too_large_for_its_dense_form_goes_equation_by_equation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = System.of(anti_hadamard(110))
    dense = determine(system)
    monkeypatch.setattr(module, "MOST_DENSE_ENTRIES", 100)
    stored = determine(system)
    assert dense.determined.all() and stored.determined.all()
    primes = [found.block.prime.bit_length() for found in (dense, stored)]
    assert primes == [NARROW_PRIME_BITS, WIDE_PRIME_BITS]


def test_another_prime_corrects_an_unlucky_one() -> None:
    """Modulo 7 the two rows are the same; modulo others they determine both unknowns."""
    system = System.of([[1, 1], [1, 8]])
    assert not determine_in_blocks(system, primes=(7,)).determined.any()
    assert determine_in_blocks(system, primes=(7, 101)).determined.all()
    assert determine_in_blocks(system, primes=(101, 7)).determined.all()


def test_a_system_without_equations_determines_nothing() -> None:
    empty = np.zeros(0, np.int64)
    assert determined_columns(System(0, 3, empty, empty, empty)).tolist() == [False] * 3


def test_a_small_question_never_waits_for_a_compiler() -> None:
    subprocess.run([sys.executable, "-c", SMALL_QUESTION], check=True)
