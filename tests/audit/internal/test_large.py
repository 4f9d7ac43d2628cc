"""Large audits against those that write their equations down, on tables small enough for both."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.statements import show
from query import world
from servers import PostgresServer

from casemate.audit import Audit, AuditOptions, large
from casemate.audit.result import Audited, Proof, Verdict
from casemate.audit.watch import IncrementalAudit
from casemate.published import Knowledge, Place, plain_sums
from casemate.query.parse import Logged, parse_statement
from casemate.table import Table, plain_source

CONDITIONS = [
    "age > 18", "age < 65", "sex = 'f'", "sex <> 'm'", "member", "area = 1", "weight >= 5",
    "age / 10 = 3", "note LIKE 'a%' OR area > 2", "TRUE",
]  # fmt: skip
SHOWN = ["SUM(income)", "AVG(income)", "3 * SUM(income) + 7", "SUM(income) / 4.0", "SUM(income)"]
predicates = st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3).map(
    lambda parts: " AND ".join(f"({part})" for part in parts)
)
sums = st.builds("SELECT {} FROM people WHERE {}".format, st.sampled_from(SHOWN), predicates)
tables = st.builds(
    "SELECT {0}, {1} FROM people WHERE {2} GROUP BY {0} {3}".format,
    st.sampled_from(["sex", "area, sex", "age", "member, weight"]),
    st.sampled_from(SHOWN),
    predicates,
    st.sampled_from(["", "HAVING COUNT(*) >= 3"]),
)
logs = st.lists(st.one_of(sums, sums, tables), min_size=1, max_size=12)


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(plain_sums, "MAX_STORED_ENTRIES", 0)
    return monkeypatch


def both_ways(log: Any, table: Table, knowledge: Knowledge | None = None) -> list[Audited]:
    """The audit that writes equations down, and the other."""
    with pytest.MonkeyPatch.context() as patch:
        found = [Audit.of(log, table, knowledge=knowledge)]
        patch.setattr(plain_sums, "MAX_STORED_ENTRIES", 0)
        return [*found, Audit.of(log, table, knowledge=knowledge)]


def by_rank(audited: Audited) -> dict[tuple[Any, str], tuple[Any, int | None]]:
    return {
        (each.record, each.column): (each.value, each.by)
        for each in audited.exposed
        if each.proof is Proof.RANK
    }


@given(logs)
@settings(max_examples=3)
def test_the_same_people_are_exposed_with_the_same_values(people: Table, log: list[str]) -> None:
    wide = Knowledge(Fraction(-(10**9)), Fraction(10**9))
    written, other = both_ways(log, people, wide)
    assert by_rank(other) == by_rank(written)
    assert (other.rank, other.records) == (written.rank, written.records)
    assert other.verdict in (Verdict.EXPOSED, Verdict.INCOMPLETE)
    assert all(each.certificate is not None for each in other.exposed)


@given(logs)
@settings(max_examples=3)
def test_certificates_add_up_to_the_value(people: Table, log: list[str]) -> None:
    """Multiples of the numbers as they are shown; an average has 28 digits of its own."""
    plain = [sql.replace(" + 7", "") for sql in log]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_sums, "MAX_STORED_ENTRIES", 0)
        found = Audit.of(plain, people)
    for each in found.exposed:
        assert each.certificate is not None and isinstance(each.value, Fraction)
        terms = each.certificate.terms
        total = sum(term.coefficient * published(plain, term.place, people) for term in terms)
        assert abs(total - each.certificate.divisor * each.value) < Fraction(1, 10**15)


def published(log: list[str], place: Place, table: Table) -> Fraction:
    """The number that a statement shows at a place."""
    answer = show(parse_statement(log[place.query - 1], table.policy), table.source)
    keys = [value for _, value in place.key or ()]
    (row,) = (row for row in answer.rows if list(row[:-1]) == keys)
    return Fraction(row[-1])  # type: ignore[arg-type]  # a number


# Verdicts ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table without a policy: any number is possible."""
    path = tmp_path_factory.mktemp("unbounded") / "people.csv"
    lines = [f"{i},{i % 7},{i % 5},{i * 3 % 11}" for i in range(200)]
    path.write_text("id,a,b,income\n" + "\n".join(lines) + "\n")
    with Table.open(path, private=["income"]) as table:
        yield table


def test_a_sum_about_nobody_does_not_keep_anybody_from_being_exposed(
    unbounded: Table, everything_is_large: object
) -> None:
    log = ["SELECT SUM(income) FROM t WHERE id = 3", "SELECT SUM(income) FROM t WHERE id < 0"]
    (exposed,) = Audit.of(log, unbounded).exposed
    assert (exposed.record, exposed.value, exposed.by) == (4, 9, 1)


def test_unbounded_values_are_decided_by_rank_alone(
    unbounded: Table, everything_is_large: object
) -> None:
    found = Audit.of(["SELECT a, SUM(income) FROM t GROUP BY a"], unbounded)
    assert (found.verdict, found.rank, found.equations) == (Verdict.NONE_EXPOSED, 7, 7)
    assert found.assumptions == (
        "income has no declared bounds, so any number was taken to be possible",
        "groups, insiders, dominance and approximate disclosure were not searched at this size",
    )


def test_bounds_that_were_not_used_make_the_audit_incomplete(
    unbounded: Table, everything_is_large: object
) -> None:
    log = ["SELECT a, SUM(income) FROM t GROUP BY a"]
    for knowledge in (Knowledge(low=Fraction(0)), Knowledge(known={1: (None, Fraction(3))})):
        found = Audit.of(log, unbounded, knowledge=knowledge)
        assert found.verdict is Verdict.INCOMPLETE
        assert any("was not checked for income of any of the 200 records" in each
                   for each in found.assumptions)  # fmt: skip
        assert found.unchecked == found.bounds == ()


def test_a_sum_over_nobody_is_no_part_of_a_certificate(
    unbounded: Table, everything_is_large: object
) -> None:
    nobody = "SELECT SUM(income) FROM t WHERE a = 9"
    found = Audit.of([nobody, "SELECT SUM(income) FROM t WHERE id = 3"], unbounded)
    assert [(each.record, each.value, each.by) for each in found.exposed] == [(4, 9, 2)]


def test_a_value_that_was_known_before_is_not_exposed(
    unbounded: Table, everything_is_large: object
) -> None:
    log = ["SELECT SUM(income) FROM t WHERE a = 3 AND b = 3 AND id < 9"]
    (exposed,) = Audit.of(log, unbounded).exposed
    assert (exposed.record, exposed.value) == (4, 9)
    known = Knowledge(known={4: (Fraction(9), Fraction(9))})
    assert Audit.of(log, unbounded, knowledge=known).exposed == ()


def test_answers_of_the_log_count_and_contradictions_are_noticed(
    unbounded: Table, everything_is_large: object, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "sql,answer\nSELECT SUM(income) FROM t,100\nSELECT SUM(income) FROM t WHERE id <> 5,90.5\n"
    )
    found = Audit.of(log, unbounded)
    assert found.consistent is True
    assert [(each.record, each.value) for each in found.exposed] == [(6, Fraction("9.5"))]
    log.write_text(log.read_text() + "SELECT 2 * SUM(income) FROM t,201\n")
    found = Audit.of(log, unbounded)
    assert found.consistent is False
    assert [(each.record, each.value) for each in found.exposed] == [(6, None)]


def test_what_is_not_a_plain_sum_is_written_down(
    people: Table, everything_is_large: pytest.MonkeyPatch
) -> None:
    """Weights, categories, extremes, joins, and numbers that may be missing."""
    for sql in (
        "SELECT SUM(weight * income) FROM people",
        "SELECT COUNT(*) FROM people WHERE diagnosis = 'flu'",
        "SELECT MAX(income) FROM people",
        "SELECT SUM(bonus) FROM people",
        "SELECT SUM(income) - SUM(income) FILTER (WHERE age > 9) FROM people",
        "SELECT SUM(income) FROM people JOIN areas ON people.area = areas.area",
    ):
        assert "at this size" not in " ".join(Audit.of([sql], people).assumptions)


@pytest.mark.postgres
def test_a_large_audit_runs_where_the_data_is(
    postgres_server: PostgresServer, tmp_path: Path, people: Table
) -> None:
    log = [
        "SELECT SUM(income) FROM people",
        "SELECT sex, area, SUM(income) FROM people GROUP BY 1, 2",
        *(f"SELECT AVG(income) FROM people WHERE age > {age}" for age in range(0, 90, 5)),
    ]
    written = Audit.of(log, people)
    with (
        postgres_server.database() as url,
        world.in_postgres(tmp_path, url, world.people()) as table,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(plain_sums, "MAX_STORED_ENTRIES", 0)
        other = Audit.of(log, table)
    assert by_rank(other) == by_rank(written) != {}
    assert other.rank == written.rank


@pytest.mark.usefixtures("everything_is_large")
def test_who_is_publicly_without_a_value_hides_nobody_and_is_not_exposed(tmp_path: Path) -> None:
    """Ben has no value, so what is said of him and Ana is hers, and nothing is said of him."""
    (tmp_path / "t.csv").write_text("name,pay\nana,3\nben,\ncem,5\ndora,7\n")
    log = [
        "SELECT SUM(pay) FROM t WHERE name IN ('ana', 'ben')",
        "SELECT SUM(pay) FROM t",
        "SELECT SUM(pay) FROM t WHERE name <> 'ben'",
    ]
    place = plain_source(str(tmp_path / "t.csv"), missing="public")
    with Table.open(place, private=["pay"]) as table:
        found = Audit.of(log, table)
        watched = IncrementalAudit(table, Knowledge(), AuditOptions(), "postgres")
        said = {each.record for sql in log for each in watched.add(Logged(sql, 1)).findings}
    assert "at this size" in " ".join(found.assumptions)
    assert {each.record: each.value for each in found.exposed} == {1: 3} and said == {0}


def test_too_many_numbers_are_written_down(
    unbounded: Table, everything_is_large: pytest.MonkeyPatch
) -> None:
    everything_is_large.setattr(large, "MAX_PUBLISHED_NUMBERS", 3)
    found = Audit.of(["SELECT a, SUM(income) FROM t GROUP BY a"], unbounded)
    assert (found.rank, "at this size" in " ".join(found.assumptions)) == (7, False)
