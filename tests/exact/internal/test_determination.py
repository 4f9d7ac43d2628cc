import subprocess
import sys
from random import Random

import exact_rank
import numpy as np
import pytest
from exact.regions import Form
from exact_rank import anti_hadamard, generated

from casemate.exact import (
    WIDE_PRIME_BITS,
    Determined,
    NullVectors,
    System,
    determine,
    determined_columns,
    random_prime,
)
from casemate.exact import determination as module
from casemate.exact.determination import annuls, determine_in_blocks, determine_incrementally
from casemate.exact.modular import NARROW_PRIME_BITS

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


def columns(found: Determined) -> list[int]:
    return np.flatnonzero(found.determined).tolist()


def test_incremental_and_blocked_and_fractions_agree(rng: Random) -> None:
    for _ in range(120):
        matrix = generated(rng)
        system, expected = System.of(matrix), exact_rank.determined(matrix)
        for found in (
            determine_incrementally(system, rng.randbytes),
            determine_in_blocks(system, rng.randbytes),
        ):
            assert columns(found) == expected, matrix
            assert found.rank == exact_rank.rank(matrix)
            for null in found.null:
                products = np.array(matrix, object) @ null.vectors.T.astype(object)
                assert not (products % null.prime).any()


def test_a_vector_that_is_not_annulled_is_noticed() -> None:
    system, prime = System.of([[1, 1]]), random_prime(NARROW_PRIME_BITS)
    assert annuls(system, NullVectors(prime, 1, np.array([[1, prime - 1]])))
    assert not annuls(system, NullVectors(prime, 1, np.array([[1, 1]])))


@pytest.mark.parametrize("form", [determine_incrementally, determine_in_blocks])
def test_both_forms_find_all_of_the_anti_hadamard_queries(form: Form) -> None:
    matrix = anti_hadamard(70)
    assert form(System.of(matrix), None).determined.all()
    assert not form(System.of(matrix[:-1]), None).determined.any()


@pytest.mark.parametrize("size", [60, 130])
def test_the_choice_of_form_does_not_change_the_answer(size: int) -> None:
    assert determined_columns(System.of(anti_hadamard(size))).all()


def test_a_system_too_large_for_its_dense_form_goes_equation_by_equation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_DENSE_ENTRIES", 100)
    found = determine(System.of(anti_hadamard(110)))
    assert found.determined.all() and found.block.prime.bit_length() == WIDE_PRIME_BITS


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
