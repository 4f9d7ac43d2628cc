"""Audits against slow, independent ones; and the examples everybody should know."""

from fractions import Fraction
from typing import Any

import pytest

from casemate.audit import Audit
from casemate.audit.result import Audited, Proof, Verdict
from casemate.published import Knowledge
from casemate.table import Table

HOSPITAL = (
    'SELECT SUM("Blood sugar") FROM Dataset',
    "SELECT SUM(\"Blood sugar\") FROM Dataset WHERE Gender = 'Female'",
    "SELECT SUM(\"Blood sugar\") FROM Dataset WHERE ZIP / 1000 IN (32, 33) AND Gender = 'Male'",
)


def hospital(*queries: str, knowledge: Knowledge | None = None) -> Audited:
    with Table.open("hospital") as table:
        return Audit.of(queries or HOSPITAL, table, knowledge=knowledge)


@pytest.mark.theorem("002: Which records are exposed?")
def test_the_documents_example_exposes_record_2_by_three_queries() -> None:
    found = hospital()
    (exposed,) = found.exposed
    assert (found.verdict, found.rank, found.equations) == (Verdict.EXPOSED, 3, 3)
    assert (exposed.record, exposed.value, exposed.by) == (2, Fraction("5.2"), 3)
    assert exposed.proof is Proof.RANK
    assert exposed.certificate is not None
    terms = exposed.certificate.terms
    assert [(term.place.query, term.coefficient) for term in terms] == [(1, 1), (2, -1), (3, -1)]
    assert exposed.certificate.divisor == 1


@pytest.mark.theorem("002: Solving with constraints")
def test_bounds_give_the_exact_intervals() -> None:
    """x1 <= 5 and all >= 3: x5 is 11.4 less something in [3, 5], and the women share 15.5."""
    known = Knowledge(Fraction(3), Fraction(100), known={1: (None, Fraction(5))})
    found = {each.record: (each.low, each.high) for each in hospital(knowledge=known).bounds}
    assert found == {
        1: (Fraction(3), Fraction(5)),
        2: (Fraction("5.2"), Fraction("5.2")),
        3: (Fraction(3), Fraction("9.5")),
        4: (Fraction(3), Fraction("9.5")),
        5: (Fraction("6.4"), Fraction("8.4")),
        6: (Fraction(3), Fraction("9.5")),
    }


def test_what_was_refused_makes_the_audit_incomplete() -> None:
    found = hospital(HOSPITAL[0], 'SELECT SUM("Blood sugar") FROM t WHERE Gender = "Male"')
    assert found.verdict is Verdict.INCOMPLETE
    assert "single quotation marks" in found.refused[0].reason


@pytest.mark.parametrize(
    "quantile",
    [
        'percentile_cont(0.25) WITHIN GROUP (ORDER BY "Blood sugar")',
        'percentile_disc(0.5) WITHIN GROUP (ORDER BY "Blood sugar")',
        '2 * quantile_cont("Blood sugar", 0.9)',
    ],
)
def test_a_quantile_that_is_no_median_makes_the_audit_incomplete(quantile: str) -> None:
    found = hospital(HOSPITAL[0], f"SELECT {quantile} AS q FROM t WHERE ZIP < 40000")
    assert found.verdict is Verdict.INCOMPLETE
    (refused,) = found.refused
    assert refused.reason == (
        "the column q: of quantiles of something secret only median(x) is read"
    )


@pytest.mark.theorem("002: Beyond linear queries (an audit)")
def test_extremes_expose_what_sums_do_not(people: Table, records: list[dict[str, Any]]) -> None:
    """The maximum of a pair beside its sum gives both away, if anybody can tell them apart."""
    log = ["SELECT area, SUM(income) FROM people GROUP BY area"]
    alone = Audit.of(log, people)
    both = Audit.of(
        [*log, "SELECT area, sex, MAX(income), MIN(income) FROM people GROUP BY 1, 2"], people
    )
    assert not alone.exposed
    shown = {each.record: each for each in both.exposed}
    true = {each["id"]: each["income"] for each in records}
    assert shown and all(each.value == true[record] for record, each in shown.items())
    assert {each.proof for each in both.exposed} <= {Proof.ORDER, Proof.INTEGER, Proof.BOUNDS}
    assert both.verdict is Verdict.EXPOSED


def test_a_group_of_one_is_exposed_by_its_median() -> None:
    found = hospital('SELECT ZIP / 10000, MEDIAN("Blood sugar") FROM t GROUP BY 1')
    assert [(each.record, each.value, each.proof) for each in found.exposed] == [
        (6, Fraction("6.2"), Proof.ORDER)
    ]
