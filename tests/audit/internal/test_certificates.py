"""Certificates of an audit: they add up, no term can be left out, and the first ones are short."""

from fractions import Fraction
from pathlib import Path
from random import Random

import exact_rank
import pytest
from audit.matrices import categories, sums, weighted
from exact_rank import Matrix, generated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.audit import Audit, AuditOptions, Exposed
from casemate.audit.checks import rank
from casemate.audit.result import Audited, Proof

CHAIN = [[int(j in (i, i + 1)) for j in range(5)] for i in range(5)]
DIRECT = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]]


def audited(matrix: Matrix, values: list[int], folder: Path, certificates: int = 20) -> Audited:
    with weighted(matrix, values, folder) as table:
        return Audit.of(sums(matrix), table, options=AuditOptions(certificates=certificates))


def assert_adds_up(matrix: Matrix, values: list[int], exposed: Exposed) -> None:
    """Each term is a whole multiple of an answer, and none of them can be left out."""
    certificate = exposed.certificate
    assert certificate is not None and certificate.divisor > 0
    answers = [sum(a * x for a, x in zip(row, values, strict=True)) for row in matrix]
    terms = [(term.place.query, term.coefficient) for term in certificate.terms]
    assert all(type(coefficient) is int and coefficient for _, coefficient in terms)
    total = sum(coefficient * answers[query - 1] for query, coefficient in terms)
    assert Fraction(total, certificate.divisor) == exposed.value
    rows = [matrix[query - 1] for query, _ in terms]
    target = [int(j + 1 == exposed.record) for j in range(len(values))]
    assert exact_rank.follows(rows, target)
    for place in range(len(rows)):
        rest = rows[:place] + rows[place + 1 :]
        assert not rest or not exact_rank.follows(rest, target)


@given(st.integers(0, 2**32).map(Random))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_certificate_adds_up_and_no_term_can_be_left_out(tmp_path: Path, rng: Random) -> None:
    matrix = [[v if abs(v) < 100 else 1 for v in row] for row in generated(rng)]
    values = [rng.randint(-9, 9) for _ in matrix[0]]
    found = audited(matrix, values, tmp_path, certificates=rng.choice([0, 1, 20]))
    determined = {j + 1 for j in exact_rank.determined(matrix)}
    assert {each.record for each in found.exposed} == determined
    for each in found.exposed:
        assert_adds_up(matrix, values, each)


def test_as_many_as_asked_for_are_short(tmp_path: Path) -> None:
    def lengths(certificates: int) -> list[int]:
        found = audited(CHAIN + DIRECT, [1, 2, 3, 4, 5], tmp_path, certificates)
        return [len(each.certificate.terms) for each in found.exposed if each.certificate]

    assert lengths(0) == [5, 4, 3, 2, 1]
    assert lengths(1) == [1, 4, 3, 2, 1]
    assert lengths(20) == [1, 1, 2, 2, 1]


def test_the_last_value_of_a_category_needs_all_others_to_be_nought(tmp_path: Path) -> None:
    """Record 3 alone is left out of the second pair of counts; both differences are 0."""
    declared, values = ("flu", "gout", "none"), ["flu", "gout", "none"]
    log = [
        f"SELECT COUNT(*) FROM t WHERE w{i} = 1 AND d = '{value}'"
        for i in range(2)
        for value in declared[:2]
    ]
    with categories([[1, 1, 1], [1, 1, 0]], values, declared, tmp_path) as table:
        found = Audit.of(log, table)
    (exposed,) = (each for each in found.exposed if each.record == 3)
    assert (exposed.value, exposed.proof) == ("none", Proof.RANK)
    assert exposed.certificate is not None
    terms = [(term.place.query, term.coefficient) for term in exposed.certificate.terms]
    assert terms == [(1, 1), (2, 1), (3, -1), (4, -1)]


def test_who_has_no_certificate_is_exposed_by_a_joint_proof_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arithmetic modulo a prime determines is a claim until it is proved in integers."""
    monkeypatch.setattr(rank, "certify", lambda *_: [])
    assert len(audited(CHAIN, [1, 2, 3, 4, 5], tmp_path).exposed) == 5
    monkeypatch.setattr(rank, "prove", lambda *_: None)
    left = audited(CHAIN, [1, 2, 3, 4, 5], tmp_path).exposed
    assert not [each for each in left if each.proof is Proof.RANK]
