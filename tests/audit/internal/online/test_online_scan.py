"""Decisions by scans, against those by the records behind each question."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from audit.staff import EVERYTHING, PAY, PRIVATE, TEAMS, of, written
from audit.test_online_refusals import Watched
from oracles.statements import show
from query import world
from servers import PostgresServer

from casemate.audit.online import OnlineAuditor
from casemate.audit.online import sums as online_fingerprints
from casemate.audit.online import sums as online_summed
from casemate.audit.online.auditor import MIXED
from casemate.audit.online.scan import ridden_columns
from casemate.errors import Misconfigured, Refused
from casemate.query.parse import parse_statement
from casemate.table import Table

ALWAYS, NEVER = 0, 10**9


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with Table.open(written(tmp_path), private=PRIVATE) as opened:
        yield opened


def statement(rng: Random, size: int) -> str:
    """A statement about some people: sums and averages, plain and weighted, alone and in cells."""
    who = rng.sample(range(1, size + 1), rng.randint(1, size))
    few = rng.sample(who, rng.randint(1, len(who)))
    filtered = f"FILTER (WHERE n IN ({', '.join(map(str, few))}))"
    shown = rng.choice(
        [
            *("SUM(pay)", "SUM(pay)", "AVG(pay)", "SUM(pay), AVG(pay), COUNT(*)", "SUM(bonus)"),
            *("SUM(pay), SUM(bonus)", "SUM(pay) - SUM(bonus)", "SUM(pay * n)", "SUM(pay + 3) / 2"),
            *(f"SUM(pay) {filtered}", f"SUM(pay), SUM(pay) {filtered}", "MIN(age), SUM(pay)"),
            f"AVG(pay) - AVG(pay) {filtered}",
        ]
    )
    cells = rng.choice(["", "", "", " GROUP BY team", " GROUP BY team HAVING COUNT(*) > 1"])
    return f"{of(shown, *who)}{cells}"


@pytest.mark.parametrize("sample", [1, 3, 4096])
def test_both_forms_take_the_same_decisions_and_give_the_same_answers(
    sample: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With samples so small that pivots are looked for in windows of the table, too."""
    monkeypatch.setattr(online_fingerprints, "SAMPLE_RECORDS", sample)
    monkeypatch.setattr(online_summed, "WINDOW_RECORDS", 6)
    rng, answered, refused = Random(0), 0, 0
    size = 11
    path = written(
        tmp_path, rng.sample(range(90), size), [rng.choice(["a", "b", ""]) for _ in range(size)]
    )
    with Table.open(path, private=PRIVATE) as table:
        by_scans = OnlineAuditor(table, scans_from=ALWAYS, random=rng.randbytes)
        by_records = OnlineAuditor(table, scans_from=NEVER, random=rng.randbytes)
        for _ in range(12):
            sql = statement(rng, size)
            decision = by_records.would_expose(sql)
            if rng.random() < 0.3:
                assert by_scans.would_expose(sql) == decision, sql
            if not decision.allowed:
                with pytest.raises(Refused, match="must not be answered"):
                    by_scans.ask(sql)
                refused += 1
                continue
            given = by_scans.ask(sql)
            assert sorted(map(str, given.rows)) == sorted(map(str, by_records.ask(sql).rows)), sql
            answered += 1
        assert by_scans.history == by_records.history
    assert answered > 1
    assert refused > 1


def test_counts_beside_an_average_are_their_own(table: Table) -> None:
    counts = "COUNT(*), COUNT(pay), COUNT(CASE WHEN n > 3 THEN 1 END), AVG(age)"
    sql = f"SELECT {counts}, AVG(pay), SUM(pay) FROM staff WHERE n < 8"
    (row,) = OnlineAuditor(table, scans_from=ALWAYS).ask(sql).rows
    assert (row,) == show(parse_statement(sql, table.policy), table.source).rows
    assert row[:3] == (7, 7, 4)


def test_a_question_that_was_refused_leaves_nothing_behind(table: Table) -> None:
    auditor = OnlineAuditor(table, scans_from=ALWAYS)
    auditor.ask("SELECT SUM(pay) FROM staff")
    for _ in range(2):
        with pytest.raises(Refused, match="would determine a value"):
            auditor.ask("SELECT SUM(pay) FROM staff WHERE n <> 3")
    with pytest.raises(Refused, match="nothing is aggregated"):
        auditor.ask("SELECT pay FROM staff")
    assert [each.sql for each in auditor.history] == ["SELECT SUM(pay) FROM staff"]
    assert auditor.ask(of("SUM(pay)", 1, 2)).rows == ((PAY[0] + PAY[1],),)


def test_a_sum_by_scans_links_all_records(table: Table) -> None:
    """By the records behind them, people 3 and 4 would be linked to nobody."""
    auditor = OnlineAuditor(table, scans_from=ALWAYS)
    auditor.ask(of("SUM(pay)", 1, 2))
    assert auditor.would_expose(of("MAX(pay)", 3, 4)).reason == MIXED
    assert auditor.would_expose(of("MAX(bonus)", 3, 4)).allowed


def test_sums_beside_extremes_are_decided_by_the_records_behind_them(table: Table) -> None:
    auditor = OnlineAuditor(table, scans_from=ALWAYS)
    assert auditor.ask(of("MAX(pay)", 3, 4)).rows == ((max(PAY[2:4]),),)
    assert auditor.would_expose(of("SUM(pay)", 2, 3)).reason == MIXED
    auditor.ask(of("SUM(pay)", 1, 2))
    assert auditor.would_expose(of("MAX(pay)", 5, 6)).allowed
    assert auditor.would_expose(of("MAX(pay)", 2, 5)).reason == MIXED


def test_nothing_private_is_read_to_decide_and_one_scan_answers(table: Table) -> None:
    watched = Watched(table.source)
    auditor = OnlineAuditor(Table(table.policy, watched), scans_from=ALWAYS)
    for sql in EVERYTHING:
        watched.sent.clear()
        decision = auditor.would_expose(sql)
        assert not any(name in sent for sent in watched.sent for name in ("pay", "bonus"))
        if decision.allowed:
            auditor.record(sql)
    another = OnlineAuditor(Table(table.policy, watched), scans_from=ALWAYS)
    watched.sent.clear()
    another.ask(of("SUM(bonus)", 1, 4, 5))
    (with_values,) = (sent for sent in watched.sent if "bonus" in sent)
    assert "hash" in with_values


def test_statements_that_one_scan_cannot_decide_are_written_out(table: Table) -> None:
    def rides(sql: str) -> bool:
        return ridden_columns(parse_statement(sql, table.policy), PRIVATE) is not None

    assert rides("SELECT team, SUM(pay), AVG(bonus + 1) FROM staff WHERE age > 21 GROUP BY team")
    assert not rides("SELECT SUM(pay * n) FROM staff")
    assert not rides("SELECT SUM(pay) - SUM(bonus) FROM staff")
    assert not rides("SELECT COUNT(*) FROM staff")
    assert not rides("SELECT MAX(pay) FROM staff")


def test_records_that_come_end_the_audit(tmp_path: Path, table: Table) -> None:
    with Table.open(written(tmp_path, [*PAY, 1], [*TEAMS, "c"]), private=PRIVATE) as later:
        auditor = OnlineAuditor(table, scans_from=ALWAYS)
        auditor._sums.table.source = later.source  # type: ignore[union-attr]  # a table that changes
        with pytest.raises(Misconfigured, match="start a new one"):
            auditor.ask("SELECT team, SUM(pay) FROM staff GROUP BY team")


def test_records_may_be_named_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_fingerprints, "SAMPLE_RECORDS", 2)
    rows = "".join(f"p{n},{n},{n * n}\n" for n in range(8))
    (tmp_path / "staff.csv").write_text(f"name,n,pay\n{rows}")
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[table]\nsource = "staff.csv"\nkey = "name"\n[columns.name]\nrole = "identifier"\n'
        '[columns.n]\nrole = "public"\n[columns.pay]\nrole = "private"\nunbounded = true\n'
    )
    with Table.open(policy) as table:
        auditor = OnlineAuditor(table, scans_from=ALWAYS)
        for least in (0, 2, 4):
            auditor.ask(f"SELECT SUM(pay) FROM staff WHERE n >= {least}")
        for least in (1, 3, 5, 7):
            with pytest.raises(Refused, match="would determine a value"):
                auditor.ask(f"SELECT SUM(pay) FROM staff WHERE n >= {least}")
        assert auditor.ask("SELECT SUM(pay) FROM staff WHERE n < 4").rows == ((14,),)


def test_scans_that_were_seen_before_are_not_repeated_and_the_oldest_are_forgotten(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online_fingerprints, "MAX_SCANS_REMEMBERED", 2)
    watched = Watched(table.source)
    auditor = OnlineAuditor(Table(table.policy, watched), scans_from=ALWAYS)
    hashed = []
    for who in ((1, 2), (1, 2), (3, 4), (5, 6), (1, 2)):
        watched.sent.clear()
        auditor.ask(of("SUM(pay)", *who))
        hashed.append(any("hash" in sent for sent in watched.sent))
    assert hashed == [True, False, True, True, True]


@pytest.mark.postgres
def test_scans_run_where_the_data_is(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same decisions and answers on PostgreSQL, by the portable hash."""
    monkeypatch.setattr(online_fingerprints, "SAMPLE_RECORDS", 5)
    monkeypatch.setattr(online_summed, "WINDOW_RECORDS", 20)
    log = [
        "SELECT SUM(income) FROM people",
        "SELECT sex, SUM(income), COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 2",
        *(f"SELECT AVG(income) FROM people WHERE age > {age}" for age in range(0, 90, 9)),
        *(f"SELECT sex, SUM(income) FROM people WHERE age = {age} GROUP BY sex" for age in (7, 90)),
    ]
    with (
        postgres_server.database() as url,
        world.in_postgres(tmp_path, url, world.people()) as opened,
    ):
        table = without_bounds(opened)
        by_scans = OnlineAuditor(table, private="income", scans_from=ALWAYS)
        by_records = OnlineAuditor(table, private="income", scans_from=NEVER)
        for sql in log:
            allowed = by_records.would_expose(sql).allowed
            assert by_scans.would_expose(sql).allowed is allowed
            if allowed:
                assert set(by_scans.ask(sql).rows) == set(by_records.ask(sql).rows)
        assert 2 < len(by_scans.history) < len(log)


def without_bounds(table: Table) -> Table:
    columns = [
        replace(each, low=None, high=None) if each.name == "income" else each
        for each in table.policy.columns
    ]
    return Table(replace(table.policy, columns=tuple(columns)), table.source)
