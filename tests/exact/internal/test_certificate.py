"""Proofs in integers: single certificates, short ones, and one for all that is determined."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random

import exact_rank
import numpy as np
import pytest
from exact.regions import Form
from exact_rank import HOSPITAL, Matrix, anti_hadamard, generated, seeds
from hypothesis import given, settings

from casemate.exact import (
    Certificate,
    Determined,
    IntegerRows,
    System,
    certify,
    certify_targets,
    certify_with,
    determine,
    prove,
    short_certificates,
    tipping_equations,
)
from casemate.exact.determination import determine_in_blocks, determine_incrementally
from casemate.exact.proofs import JointProof

LONG_WAY = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [2, 1, 0, 1], [1, 1, 0, 1]]
forms = pytest.mark.parametrize("form", [determine_incrementally, determine_in_blocks])


def certificates(system: System, found: Determined) -> list[Certificate]:
    return list(certify(system, found.block, np.flatnonzero(found.determined).tolist()))


def adds_up(matrix: Matrix, certificate: Certificate) -> bool:
    """The check, in plain Python and apart from the code that is tested."""
    for j in range(len(matrix[0])):
        total = sum(weight * matrix[i][j] for i, weight in certificate.coefficients.items())
        if total != certificate.divisor * certificate.target.get(j, 0):
            return False
    return certificate.divisor != 0


def needs_every_equation(matrix: Matrix, certificate: Certificate) -> bool:
    """Whether no proper subset of its equations determines its column."""
    unit = [int(j == certificate.column) for j in range(len(matrix[0]))]
    return not any(
        exact_rank.follows([matrix[i] for i in fewer], unit)
        for fewer in combinations(certificate.equations, len(certificate.coefficients) - 1)
    )


@pytest.mark.theorem("002: Which records are exposed?")
def test_the_documents_example_is_query_1_minus_query_2_minus_query_3() -> None:
    answers = [Fraction("32.1"), Fraction("15.5"), Fraction("11.4")]
    system = System.of(HOSPITAL, answers)
    (found,) = certificates(system, determine_incrementally(system))
    assert (found.column, found.coefficients, found.divisor) == (1, {0: 1, 1: -1, 2: -1}, 1)
    assert found.value(answers) == Fraction("5.2")
    assert not list(certify(system, determine_incrementally(system).block, [0, 2, 3]))


@forms
@settings(max_examples=50)
@given(seeds)
def test_every_determined_column_has_a_certificate_that_needs_all_its_equations(
    form: Form, rng: Random
) -> None:
    """Its last equation tipped the column over, and its value is what the answers came from."""
    matrix = generated(rng)
    secret = [Fraction(rng.randint(-50, 50), rng.randint(1, 9)) for _ in matrix[0]]
    right = [sum((a * x for a, x in zip(row, secret, strict=True)), Fraction(0)) for row in matrix]
    system = System.of(matrix, right)
    decided = form(system, rng.randbytes)
    found = certificates(system, decided)
    assert sorted(each.column for each in found) == exact_rank.determined(matrix)
    for each in found:
        assert adds_up(matrix, each) and needs_every_equation(matrix, each)
        assert each.value(right) == secret[each.column]
        tipped = each.equations[-1]
        assert each.column in exact_rank.determined(matrix[: tipped + 1])
        before = matrix[:tipped] or [[0] * system.columns]
        assert each.column not in exact_rank.determined(before)
        assert tipping_equations(decided.block, [each.column]) == {each.column: tipped}


@forms
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


@pytest.mark.parametrize(
    ("coefficients", "divisor"),
    [({0: 1, 1: -1, 2: -1}, 2), ({0: 1, 1: -1}, 1), ({}, 0), ({0: 2**60, 1: 1}, 2**60)],
)
def test_a_false_certificate_is_not_a_proof(coefficients: dict[int, int], divisor: int) -> None:
    lines = IntegerRows(System.of(HOSPITAL))
    assert not lines.proves(Certificate({1: 1}, coefficients, divisor))
    assert lines.proves(Certificate({1: 1}, {0: 1, 1: -1, 2: -1}, 1))
    assert lines.proves(Certificate({1: 1}, {0: -(2**70), 1: 2**70, 2: 2**70}, -(2**70)))


# Short ones -----------------------------------------------------------------------------------


def shorten(
    system: System, long: Sequence[Certificate], seconds: float
) -> Iterator[tuple[Certificate, Certificate | None]]:
    """Each certificate, and a short one of the same unknown where the time allows it."""
    targets = [each.target for each in long]
    return zip(long, short_certificates(system, targets, seconds), strict=True)


def test_a_certificate_on_chosen_equations_uses_no_others_and_a_short_one_finds_them() -> None:
    system = System.of(LONG_WAY)
    long = next(certify(system, determine_incrementally(system).block, [0]))
    assert long.equations == (0, 1, 2, 3)
    shortest = Certificate({0: 1}, {4: 1, 5: -1}, 1)
    assert list(shorten(system, [long], seconds=10)) == [(long, shortest)]
    assert list(shorten(system, [long], seconds=0)) == [(long, None)]
    assert certify_with(system, [5, 4], {0: 1}) == shortest
    assert certify_with(system, [0, 1], {0: 1}) is None
    assert certify_with(system, [3], {0: 1}) is None
    (found,) = short_certificates(system, [{0: 1, 1: 1}], seconds=10)
    assert found == Certificate({0: 1, 1: 1}, {0: 1}, 1)


def test_a_short_certificate_proves_has_small_coefficients_and_needs_every_equation() -> None:
    rng = Random(7)
    for _ in range(30):
        matrix = generated(rng)
        system = System.of(matrix)
        found = certificates(system, determine_incrementally(system))
        for before, after in shorten(system, found, seconds=10):
            if after is None:
                assert system.value.dtype == object, "only larger integers are beyond doubles"
                continue
            assert after.column == before.column and IntegerRows(system).proves(after)
            assert total_weight(after) <= total_weight(before)
            assert needs_every_equation(matrix, after)


def total_weight(certificate: Certificate) -> Fraction:
    return Fraction(sum(map(abs, certificate.coefficients.values())), abs(certificate.divisor))


# One for all ----------------------------------------------------------------------------------


def proof_of(system: System, random: Random) -> JointProof:
    found = determine(system, random.randbytes)
    proof = prove(system, found.block.rows, found.determined, random.randbytes)
    assert proof is not None
    return proof


@settings(max_examples=100)
@given(seeds)
def test_everybody_determined_is_proved_together_and_nobody_else_can_be(rng: Random) -> None:
    matrix = generated(rng)
    system = System.of(matrix)
    proof = proof_of(system, rng)
    assert list(proof.columns) == exact_rank.determined(matrix)
    assert all(adds_up(matrix, each) for each in proof.derived)
    rows = [[each.target.get(j, 0) for j in proof.columns] for each in proof.derived]
    assert exact_rank.rank(rows) == len(proof.columns) == len(rows)
    found = determine(system, rng.randbytes)
    for column in np.flatnonzero(~found.determined).tolist():
        wrong = found.determined.copy()
        wrong[column] = True
        assert prove(system, found.block.rows, wrong, rng.randbytes) is None


def test_a_proof_with_a_wrong_or_missing_part_does_not_hold() -> None:
    system = System.of([[1, 1, 1], [0, 1, 1], [0, 0, 1]])
    proof = proof_of(system, Random(0))
    assert proof.holds(system)
    first, *others = proof.derived
    wrong = replace(first, coefficients={i: 2 * w for i, w in first.coefficients.items()})
    assert not JointProof(proof.columns, (wrong, *others)).holds(system)
    assert not JointProof(proof.columns, tuple(others)).holds(system)
    assert not JointProof(proof.columns[:-1], proof.derived).holds(system)
    assert not proof.holds(System.of([[1, 1, 1], [0, 1, 1], [0, 1, 1]]))


def test_a_hundred_and_thirty_jointly_determined_unknowns_are_proved() -> None:
    system = System.of(anti_hadamard(130))
    proof = proof_of(system, Random(0))
    assert len(proof.columns) == 130
    assert max(abs(w) for each in proof.derived for w in each.coefficients.values()) == 1
