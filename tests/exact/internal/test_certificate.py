from fractions import Fraction
from itertools import combinations
from random import Random

import exact_rank
import numpy as np
import pytest
from exact.regions import Form
from exact_rank import Matrix, anti_hadamard, generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import (
    Certificate,
    Determined,
    IntegerRows,
    System,
    certify,
    certify_targets,
    tipping_equations,
)
from casemate.exact.determination import determine_in_blocks, determine_incrementally

seeds = st.integers(0, 2**32).map(Random)
HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]


def certificates(system: System, found: Determined) -> list[Certificate]:
    return list(certify(system, found.block, np.flatnonzero(found.determined).tolist()))


def adds_up(matrix: Matrix, certificate: Certificate) -> bool:
    """The check, in plain Python and apart from the code that is tested."""
    for j in range(len(matrix[0])):
        total = sum(weight * matrix[i][j] for i, weight in certificate.coefficients.items())
        if total != certificate.divisor * certificate.target.get(j, 0):
            return False
    return certificate.divisor != 0


@pytest.mark.theorem("002: Which records are exposed?")
def test_the_documents_example_is_query_1_minus_query_2_minus_query_3() -> None:
    answers = [Fraction("32.1"), Fraction("15.5"), Fraction("11.4")]
    system = System.of(HOSPITAL, answers)
    (found,) = certificates(system, determine_incrementally(system))
    assert (found.column, found.coefficients, found.divisor) == (1, {0: 1, 1: -1, 2: -1}, 1)
    assert found.value(answers) == Fraction("5.2")


@pytest.mark.parametrize("form", [determine_incrementally, determine_in_blocks])
def test_every_determined_column_of_many_systems_has_a_certificate(form: Form) -> None:
    rng = Random(17)
    for _ in range(50):
        matrix = generated(rng)
        system = System.of(matrix)
        found = certificates(system, form(system, rng.randbytes))
        assert sorted(each.column for each in found) == exact_rank.determined(matrix)
        assert all(adds_up(matrix, each) for each in found)


@given(seeds)
def test_no_proper_subset_of_a_certificate_determines_its_column(rng: Random) -> None:
    matrix = generated(rng)
    system = System.of(matrix)
    for each in certificates(system, determine_incrementally(system, rng.randbytes)):
        unit = [int(j == each.column) for j in range(system.columns)]
        for fewer in combinations(each.equations, len(each.coefficients) - 1):
            assert not exact_rank.follows([matrix[i] for i in fewer], unit)


@given(seeds)
def test_the_last_equation_of_a_certificate_tipped_its_column(rng: Random) -> None:
    matrix = generated(rng)
    system = System.of(matrix)
    found = determine_in_blocks(system, rng.randbytes)
    for each in certificates(system, found):
        tipped = each.equations[-1]
        assert each.column in exact_rank.determined(matrix[: tipped + 1])
        before = matrix[:tipped] or [[0] * system.columns]
        assert each.column not in exact_rank.determined(before)
        assert tipping_equations(found.block, [each.column]) == {each.column: tipped}


@given(seeds)
def test_the_value_is_the_one_that_the_answers_came_from(rng: Random) -> None:
    matrix = generated(rng)
    secret = [Fraction(rng.randint(-50, 50), rng.randint(1, 9)) for _ in matrix[0]]
    right = [sum((a * x for a, x in zip(row, secret, strict=True)), Fraction(0)) for row in matrix]
    system = System.of(matrix, right)
    for each in certificates(system, determine_incrementally(system, rng.randbytes)):
        assert each.value(right) == secret[each.column]


@pytest.mark.parametrize("form", [determine_incrementally, determine_in_blocks])
def test_coefficients_of_many_digits_are_exact(form: Form) -> None:
    matrix = anti_hadamard(70)
    system = System.of(matrix)
    found = certificates(system, form(system, None))
    assert len(found) == 70 and all(adds_up(matrix, each) for each in found)
    assert max(abs(weight) for each in found for weight in each.coefficients.values()) > 2**40


@given(seeds)
def test_a_combination_has_a_certificate_iff_it_follows(rng: Random) -> None:
    matrix = generated(rng)
    system = System.of(matrix)
    block = determine_incrementally(system, rng.randbytes).block
    for one, other in combinations(range(system.columns), 2):
        target = {one: rng.choice([1, 2**80]), other: rng.choice([1, -1])}
        row = [target.get(j, 0) for j in range(system.columns)]
        found = list(certify_targets(system, block, [target]))
        assert bool(found) == exact_rank.follows(matrix, row)
        assert all(adds_up(matrix, each) for each in found)


def test_a_column_that_is_not_determined_has_no_certificate() -> None:
    system = System.of(HOSPITAL)
    assert not list(certify(system, determine_incrementally(system).block, [0, 2, 3]))


@pytest.mark.parametrize(
    ("coefficients", "divisor"),
    [({0: 1, 1: -1, 2: -1}, 2), ({0: 1, 1: -1}, 1), ({}, 0), ({0: 2**60, 1: 1}, 2**60)],
)
def test_a_false_certificate_is_not_a_proof(coefficients: dict[int, int], divisor: int) -> None:
    lines = IntegerRows(System.of(HOSPITAL))
    assert not lines.proves(Certificate({1: 1}, coefficients, divisor))
    assert lines.proves(Certificate({1: 1}, {0: 1, 1: -1, 2: -1}, 1))
    assert lines.proves(Certificate({1: 1}, {0: -(2**70), 1: 2**70, 2: 2**70}, -(2**70)))
