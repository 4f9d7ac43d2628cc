"""Audits against slow, independent ones; and the examples everybody should know."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from exact_rank import determined
from hypothesis import given, settings
from hypothesis import strategies as st
from query import slow

from casemate.audit import Audit
from casemate.audit.result import Audited, Proof, Verdict
from casemate.published import Knowledge
from casemate.query.parse import parse
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


def test_small_groups_come_with_their_totals() -> None:
    assert {(each.records, each.total) for each in hospital().groups} == {
        ((1, 5), Fraction("11.4")),
        ((3, 4, 6), Fraction("15.5")),
    }


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


def test_nobody_is_exposed_by_one_sum_over_everybody() -> None:
    found = hospital(HOSPITAL[0])
    assert (found.verdict, found.exposed) == (Verdict.NONE_EXPOSED, ())


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


def test_a_quantile_of_what_everybody_knows_is_audited() -> None:
    quantile = "SELECT Gender, quantile_disc(ZIP, 0.25) FROM t GROUP BY Gender"
    assert hospital(HOSPITAL[0], quantile).verdict is Verdict.NONE_EXPOSED


def test_a_query_that_matches_nobody_exposes_nobody() -> None:
    found = hospital('SELECT SUM("Blood sugar") FROM t WHERE ZIP < 0')
    assert (found.verdict, found.equations) == (Verdict.NONE_EXPOSED, 0)


def test_types_expose_what_the_rank_does_not(people: Table) -> None:
    """A count of nobody, or of everybody, says everything about a category."""
    sql = "SELECT diagnosis, COUNT(*) FROM people WHERE age = 64 AND sex = 'm' GROUP BY diagnosis"
    found = Audit.of([sql], people)
    members = [each for each in found.exposed if each.proof is Proof.BOUNDS]
    assert found.rank <= 2
    assert found.verdict in (Verdict.EXPOSED, Verdict.NONE_EXPOSED)
    assert all(each.column == "diagnosis" for each in members)


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


def test_contradictory_answers_are_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text('sql,answer\n"SELECT SUM(""Blood sugar"") FROM t",32.1\n')
    with Table.open("hospital") as table:
        assert Audit.of(log, table).consistent is True
        log.write_text(log.read_text() + '"SELECT SUM(""Blood sugar"") FROM t",33\n')
        assert Audit.of(log, table).consistent is False


conditions = st.sampled_from(
    ["age > 18", "age < 65", "sex = 'f'", "sex <> 'm'", "member", "area = 1", "weight >= 5", "TRUE"]
)
predicates = st.lists(conditions, min_size=1, max_size=3).map(" AND ".join)
sums = st.one_of(
    predicates.map("SELECT SUM(income) FROM people WHERE {}".format),
    predicates.map("SELECT SUM(weight * income) FROM people WHERE {}".format),
    predicates.map("SELECT AVG(income) FROM people WHERE {}".format),
    predicates.map("SELECT sex, area, SUM(income) FROM people WHERE {} GROUP BY 1, 2".format),
    predicates.map("SELECT age, COUNT(*), SUM(income) FROM people WHERE {} GROUP BY 1".format),
)


@given(st.lists(sums, min_size=1, max_size=6))
@settings(max_examples=25)
def test_exactly_those_are_exposed_whose_column_is_determined(
    people: Table, records: list[dict[str, Any]], log: list[str]
) -> None:
    """Against ranks in fractions, column by column, over rows found by the slow interpreter."""
    found = Audit.of(log, people, knowledge=Knowledge(Fraction(-(10**9)), Fraction(10**9)))
    rows = [row for sql in log for row in slow_rows(sql, people, records)]
    expected = {records[j]["id"] for j in determined(rows)} if rows else set()
    shown = {each.record: each.value for each in found.exposed if each.proof is Proof.RANK}
    assert shown.keys() == expected
    true = {each["id"]: each["income"] for each in records}
    assert all(value == true[record] for record, value in shown.items())


def slow_rows(sql: str, table: Table, records: list[dict[str, Any]]) -> list[list[int]]:
    """The coefficients of every cell of a statement's sums of income."""
    rows = []
    for aggregate in parse(sql, table.policy):
        if "income" not in aggregate.private_argument:
            continue
        cells: dict[Any, list[int]] = {}
        for position, row in slow.selected(aggregate, records):
            key = tuple(slow.value(each, row) for each in aggregate.keys)
            weight = records[position]["weight"] if "weight *" in sql else 1
            cells.setdefault(key, [0] * len(records))[position] += weight
        rows += list(cells.values())
    return rows
