"""Repairs: what is left exposes nobody, says an independent search of every possible table."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, islice
from pathlib import Path
from random import Random

import pytest
from audit.every_world import consistent, exposed
from audit.small_world import World, opened, random_log, random_world

from casemate import Audit, repair
from casemate.audit import AuditOptions
from casemate.audit.case import Case
from casemate.audit.classes.changes import ClassChange
from casemate.audit.decide_exposure import audit_opened
from casemate.audit.repair.stakes import swappable
from casemate.audit.repair.statements import AuditedStatements, LoggedStatement, rows_shown
from casemate.audit.result import Repaired, Verdict, Withheld
from casemate.cli.main import exit_code
from casemate.published import Knowledge, equations, evidence_of
from casemate.query.parse import DIALECT, Logged, Unread, parse_statement, split
from casemate.table import Table

TOTAL = 'SELECT SUM("Blood sugar") FROM t'
OTHERS = 'SELECT Gender, SUM("Blood sugar") FROM t WHERE ZIP <> 43813 GROUP BY Gender'


def cells(found: Repaired) -> list[tuple[int, dict[str, object] | None]]:
    return [(each.query, None if each.cell is None else dict(each.cell)) for each in found.withheld]


def people_of(values: str, folder: Path) -> Path:
    """A table of people in groups, each with a private number."""
    path = folder / "people.csv"
    path.write_text("team,floor,pay\n" + "".join(f"{line}\n" for line in values.split()))
    return path


# Exactly true -------------------------------------------------------------------------------------


def test_the_smallest_row_of_a_certificate_is_withheld() -> None:
    found = repair([TOTAL, OTHERS], "hospital")
    assert cells(found) == [(2, {"Gender": "Male"})]
    assert (found.cells_before, found.cells_after, found.dropped) == (3, 2, ())
    assert found.is_safe and split(found.sql)[1].endswith("HAVING NOT (Gender = 'Male')")


def test_what_is_safe_stays_as_it_is() -> None:
    found = repair([f"{TOTAL}\n -- everybody"], "hospital")
    assert (found.withheld, split(found.sql)) == ((), [TOTAL])


def test_a_statement_without_keys_is_left_out_with_a_comment() -> None:
    found = repair([TOTAL, f"{TOTAL} WHERE ZIP <> 43813"], "hospital")
    assert (cells(found), found.dropped, split(found.sql)) == ([(2, None)], (2,), [TOTAL])
    assert "-- query 2 is left out: with it somebody would be exposed" in found.sql


def test_titles_stay_with_their_statements(tmp_path: Path) -> None:
    """And no note of a repair becomes the title of one that has none."""
    log = (
        "-- Everybody\nSELECT SUM(pay) FROM t;\n"
        "SELECT team, SUM(pay) FROM t GROUP BY team;\n"
        "-- Floors\nSELECT floor, COUNT(*) FROM t GROUP BY floor;\n"
        "-- All but the last\nSELECT SUM(pay) FROM t WHERE floor < 3;\n"
    )
    (tmp_path / "log.sql").write_text(log)
    path = people_of("a,1,1 a,1,2 b,2,3 b,2,4 c,3,5", tmp_path)
    with Table.open(path, private=["pay"]) as table:
        found = repair(tmp_path / "log.sql", table)
        (tmp_path / "repaired.sql").write_text(found.sql)
        audited = Audit.of(tmp_path / "repaired.sql", table)
    titles = ["Everybody", None, "Floors", "All but the last"]
    dropped = set(found.dropped)
    left = [title for query, title in enumerate(titles, start=1) if query not in dropped]
    assert found.withheld and list(audited.titles) == left


def test_what_cannot_be_audited_stays_out_and_the_rest_has_its_own_verdict() -> None:
    wrong = 'SELECT SUM("Blood sugar") FROM t WHERE Gender = "Male"'
    log: list[str | Logged | Unread] = [wrong, TOTAL, Unread("SELECT $1", 3, "lost")]
    found = repair(log, "hospital")
    assert (found.dropped, found.audited.verdict) == ((1, 3), Verdict.NONE_EXPOSED)
    assert "-- query 1 is left out: it could not be audited (there is no column" in found.sql
    assert split(found.sql) == [TOTAL]


def test_nothing_may_be_left_at_all() -> None:
    alone = 'SELECT SUM("Blood sugar") FROM t WHERE ZIP = 43813'
    found = repair([alone], "hospital")
    assert (found.dropped, split(found.sql), found.is_safe) == ((1,), [], True)


def test_answers_that_a_log_gives_are_not_used() -> None:
    given = [
        Logged(TOTAL, 1, Decimal("0")),
        Logged(f"{TOTAL} WHERE Gender = 'Male'", 2, Decimal(9)),
    ]
    assert repair(given, "hospital").withheld == ()


def test_a_row_goes_with_all_of_its_columns(tmp_path: Path) -> None:
    """The sum and the weighted sum of two people together say both."""
    table = people_of("a,1,10 a,2,20 b,1,5 b,2,6 b,3,7", tmp_path)
    log = ["SELECT team, SUM(pay), SUM(floor * pay) FROM t GROUP BY team"]
    found = repair(log, table, private="pay")
    assert cells(found) == [(1, {"team": "a"})]


def test_bounds_enter_by_themselves(tmp_path: Path) -> None:
    """Nobody earns less than nothing, so a team that earns nothing says what all of it earn."""
    table = people_of("a,1,0 a,2,0 b,1,5 b,2,6", tmp_path)
    log = ["SELECT team, SUM(pay) FROM t GROUP BY team"]
    assert repair(log, table, private="pay").withheld == ()
    found = repair(log, table, private="pay", knowledge=Knowledge(low=Fraction(0)))
    assert cells(found) == [(1, {"team": "a"})]


def test_extremes_are_repaired_as_sums_are(tmp_path: Path) -> None:
    """The sum and the maximum of two people say both values, though not whose is whose: of one."""
    table = people_of("a,1,10 a,2,20 a,3,30 b,1,5 b,2,6", tmp_path)
    log = [
        "SELECT MAX(pay), MIN(pay) FROM t WHERE team = 'a'",
        "SELECT floor, MAX(pay) FROM t WHERE team = 'a' AND floor < 3 GROUP BY floor",
    ]
    found = repair(log, table, private="pay")
    assert found.is_safe and {each.query for each in found.withheld} == {2}


def test_a_statement_whose_rows_cannot_be_told_apart_is_kept_or_left_out_whole(
    tmp_path: Path,
) -> None:
    table = people_of("a,1,10 b,1,5 b,2,6", tmp_path)
    sql = "SELECT 1, SUM(pay) FROM t WHERE team = 'a' GROUP BY 1"
    with Table.open(table, private=["pay"]) as opened_table:
        statement = LoggedStatement(1, sql, opened_table.policy, opened_table.source, "postgres")
        found = repair([sql], opened_table)
        assert statement.without([]) == [sql] and statement.without(found.withheld) == []
    assert (cells(found), found.dropped) == ([(1, None)], (1,))


def test_grouping_sets_lose_single_rows(tmp_path: Path) -> None:
    table = people_of("a,1,10 a,2,20 a,2,1 b,1,5 b,1,6 b,1,7", tmp_path)
    log = ["SELECT team, floor, SUM(pay) FROM t GROUP BY ROLLUP (team, floor)"]
    found = repair(log, table, private="pay")
    assert found.is_safe and 0 < len(found.withheld) < found.cells_before
    assert split(found.sql)[0].startswith(f"{log[0]} HAVING NOT (team IS NOT DISTINCT FROM 'a'")


def test_records_that_every_row_treats_alike_hide_each_other(tmp_path: Path) -> None:
    """What the repair falls back to: rows after which everybody could have another's value."""
    log = [f"SELECT {by}, SUM(pay), MAX(pay) FROM t GROUP BY {by}" for by in ("team", "floor")]
    path = people_of("a,1,1 a,1,2 b,1,3 b,2,3", tmp_path)
    with Table.open(path, private=["pay"]) as table:
        case, statements = read_log(log, table)
        rows = rows_shown(case, statements)
        kept = swappable(case, rows)
    assert len(rows) == 8
    assert {(row.query, row.cell) for row in kept} == {(1, (("team", "a"),))} and len(kept) == 2


def read_log(log: list[str], table: Table) -> tuple[Case, AuditedStatements]:
    source, entries = table.source, [Logged(sql, 1) for sql in log]
    read = evidence_of(entries, table.policy, Knowledge(), source)
    found, policy = read.publication, read.policy
    system = equations(found.columns, policy, source, found.there)
    listed = {n: LoggedStatement(n, sql, policy, source, DIALECT) for n, sql in enumerate(log, 1)}
    return Case(system, policy, Knowledge(), found, source), AuditedStatements(listed, {})


# The fewest numbers -------------------------------------------------------------------------------


def test_an_extreme_goes_alone_and_its_statement_is_written_in_parts(tmp_path: Path) -> None:
    """The first has the maximum of team a, as floor 2 shows, and of floor 1, as team b shows."""
    people = "a,1,90 a,2,20 a,2,30 b,1,5 b,1,6 b,2,7 b,2,8 c,3,1 c,3,2 c,3,3"
    shown = "COUNT(*), SUM(pay), MAX(pay)"
    log = [f"SELECT {by}, {shown} FROM t GROUP BY {by}" for by in ("team", "floor")]
    found = repair(log, people_of(people, tmp_path), private="pay")
    assert found.is_safe and {each.column for each in found.withheld} == {"max"}
    assert all(each.cell is not None for each in found.withheld) and found.cells_after == 6
    parts = [each for each in split(found.sql) if each not in log]
    assert {"MAX" in each for each in parts} == {True, False}
    assert all(("NOT (" in each) == ("MAX" in each) for each in parts)


def fewest(log: list[str], table: Table, most: int) -> int:
    """The fewest numbers without which nobody is exposed, by trying all sets, up to so many."""
    case, statements = read_log(log, table)
    units = list(rows_shown(case, statements))
    for size in range(most):
        for some in combinations(units, size):
            texts = statements.texts(statements.joined(some, units)).values()
            left = [text for parts in texts for text in parts]
            if Audit.of(left, table).verdict is Verdict.NONE_EXPOSED:
                return size
    return most


def numbers(found: Repaired, log: list[str], table: Table) -> int:
    """How many numbers about the private column the repaired file is without."""
    units = list(rows_shown(*read_log(log, table)))
    gone = {(each.query, each.row, each.column) for each in found.withheld}
    return sum(
        bool(gone & {(u.query, u.row, None), (u.query, None, u.column), (u.query, u.row, u.column)})
        for u in units
    )


def check_fewest(rng: Random, cases: int, folder: Path) -> int:
    """Random logs of extremes and sums: no set of fewer numbers would do; how many needed some."""
    hurt = 0
    for _ in range(cases):
        lines = (f"{rng.choice('ab')},{rng.randint(1, 3)},{rng.randint(0, 9)}" for _ in range(7))
        path = people_of(" ".join(lines), folder)
        shown = rng.choice(["MAX(pay)", "SUM(pay), MAX(pay)", "MIN(pay), MAX(pay)"])
        log = [
            f"SELECT {by}, {shown} FROM t GROUP BY {by} HAVING COUNT(*) > 1"
            for by in ("team", "floor")
        ]
        with Table.open(path, private=["pay"]) as table:
            found = repair(log, table)
            size = numbers(found, log, table)
            assert found.is_safe and size == fewest(log, table, size), (log, path.read_text())
            hurt += size > 0
    return hurt


def test_no_fewer_numbers_would_do_in_small_tables(rng: Random, tmp_path: Path) -> None:
    assert check_fewest(rng, 4, tmp_path) >= 1


@pytest.mark.slow
def test_no_fewer_numbers_would_do_in_many_small_tables(rng: Random, tmp_path: Path) -> None:
    assert check_fewest(rng, 60, tmp_path) >= 20


# Second tables of other audits --------------------------------------------------------------------


def test_changes_of_other_audits_and_false_ones_free_nobody_who_is_exposed(
    rng: Random, tmp_path: Path
) -> None:
    """Each is checked against what is published now: what is known beforehand changes nothing."""
    hurt = 0
    for _ in range(6):
        lines = [f"{rng.choice('abc')},{rng.randint(1, 3)},{rng.randint(0, 9)}" for _ in range(8)]
        shown = rng.choice(["MAX(pay)", "AVG(pay), MAX(pay)", "MEDIAN(pay), MIN(pay)"])
        first = f"SELECT team, {shown} FROM t GROUP BY team"
        second = f"SELECT floor, {shown} FROM t WHERE team <> 'a' GROUP BY floor"
        with Table.open(people_of(" ".join(lines), tmp_path), private=["pay"]) as table:
            places = rng.sample(range(8), 3)
            false = ClassChange.of({place: Fraction(rng.randint(0, 9)) for place in places}, 1)
            known = {"pay": [false]}
            for log in ([first], [first, second], [second]):
                fresh = Audit.of(log, table)
                options = AuditOptions()
                found = audit_opened(log, table, Knowledge(), options, DIALECT, known=known)
                assert found.verdict is fresh.verdict
                assert [e.record for e in found.exposed] == [e.record for e in fresh.exposed]
                hurt += bool(fresh.exposed)
    assert hurt > 1


# Against every possible table ---------------------------------------------------------------------


def random_case(rng: Random) -> tuple[World, list[str]]:
    world = random_world(rng)
    return world, random_log(rng, world, accepted=bool)


def left_exposed(world: World, table: Table, sql: str) -> int:
    """How many values the repaired file gives away, by trying every possible table."""
    statements = [parse_statement(each, table.policy) for each in split(sql)]
    return len(exposed(world, consistent(world, statements)))


def check(rng: Random, cases: int, folder: Path) -> tuple[int, int]:
    """Repair random logs; how many of them had to be, and in how many a row was kept."""
    hurt = kept = 0
    for _ in range(cases):
        world, log = random_case(rng)
        with opened(world, folder) as table:
            found = repair(log, table)
            assert found.is_safe
            assert left_exposed(world, table, found.sql) == 0, (world, log, found.sql)
            assert found.cells_after >= 0 and len(found.withheld) <= found.cells_before
            hurt += bool(found.withheld)
            kept += bool(found.withheld) and found.cells_after > 0
    return hurt, kept


def test_a_repaired_log_exposes_nobody(rng: Random, tmp_path: Path) -> None:
    hurt, _ = check(rng, 5, tmp_path)
    assert hurt >= 1, "hardly any log had to be repaired"


@pytest.mark.slow
def test_hundreds_of_repaired_logs_expose_nobody(rng: Random, tmp_path: Path) -> None:
    hurt, _ = check(rng, 400, tmp_path)
    assert hurt >= 100


def test_the_search_would_notice_a_log_that_is_not_repaired(rng: Random, tmp_path: Path) -> None:
    found = 0
    for _ in range(8):
        world, log = random_case(rng)
        with opened(world, tmp_path) as table:
            found += left_exposed(world, table, ";\n".join(log)) > 0
    assert found >= 1


def test_no_withheld_row_of_sums_could_be_given_back(rng: Random, tmp_path: Path) -> None:
    """Of numbers without bounds: with any single one of them somebody is exposed again."""
    tried = 0
    for _ in range(3):
        lines = (f"{rng.choice('abc')},{rng.randint(1, 3)},{rng.randint(0, 99)}" for _ in range(9))
        table = people_of(" ".join(lines), tmp_path)
        keys = [rng.choice(["team", "floor", "team, floor", "floor > 1"]) for _ in range(3)]
        log = [f"SELECT {by}, SUM(pay) FROM t GROUP BY {by}" for by in keys]
        with Table.open(table, private=["pay"]) as people:
            found = repair(log, people)
            for row in islice(found.withheld, 4):
                texts = rewritten(log, people, [each for each in found.withheld if each != row])
                assert Audit.of(texts, people).verdict is Verdict.EXPOSED
                tried += 1
    assert tried > 1


def test_no_withheld_row_of_extremes_could_be_given_back(rng: Random, tmp_path: Path) -> None:
    """Sums, extremes and counts together: with any single row somebody is exposed again."""
    tried = 0
    for _ in range(3):
        lines = (f"{rng.choice('abc')},{rng.randint(1, 3)},{rng.randint(0, 99)}" for _ in range(9))
        table = people_of(" ".join(lines), tmp_path)
        shown = "AVG(pay), MIN(pay), MAX(pay)"
        log = [f"SELECT {by}, {shown} FROM t GROUP BY {by}" for by in ("team", "floor")]
        with Table.open(table, private=["pay"]) as people:
            found = repair(log, people)
            assert found.is_safe
            for row in islice(found.withheld, 4):
                texts = rewritten(log, people, [each for each in found.withheld if each != row])
                assert Audit.of(texts, people).verdict is Verdict.EXPOSED
                tried += 1
    assert tried > 1


def test_one_row_goes_for_each_way_that_leads_to_a_maximum(tmp_path: Path) -> None:
    """The first has the maximum of team a, as floor 2 shows, and of floor 1, as team b shows."""
    table = people_of("a,1,90 a,2,20 a,2,30 b,1,5 b,1,6 b,2,7 b,2,8", tmp_path)
    log = ["SELECT team, MAX(pay) FROM t GROUP BY team", "SELECT floor, MAX(pay) FROM t GROUP BY 1"]
    found = repair(log, table, private="pay")
    assert found.is_safe and len(found.withheld) == 2 and found.dropped == ()


def test_a_column_goes_where_that_loses_less_than_the_statement(tmp_path: Path) -> None:
    """The sum and the weighted sum of two people say both values."""
    table = people_of("a,1,10 a,2,20 b,1,5 b,2,6 b,2,7", tmp_path)
    start = "SELECT COUNT(*), SUM(pay) AS paid"
    found = repair(
        [f"{start}, SUM(floor * pay) AS w FROM t WHERE team = 'a'"], table, private="pay"
    )
    assert found.is_safe and found.dropped == () and found.cells_after == found.cells_before == 1
    assert [(each.query, each.column) for each in found.withheld] == [(1, "w")]
    assert split(found.sql) == [f"{start} FROM t WHERE team = 'a'"]
    assert "-- query 1, column w withheld" in found.sql


def test_a_statement_that_is_sorted_by_a_column_loses_whole_rows(tmp_path: Path) -> None:
    table = people_of("a,1,10 b,1,20 b,2,30", tmp_path)
    sql = "SELECT team, MIN(pay) AS low, MAX(pay) AS high FROM t GROUP BY 1 ORDER BY high"
    with Table.open(table, private=["pay"]) as people:
        statement = LoggedStatement(1, sql, people.policy, people.source, "postgres")
        assert statement.columns == ()
        found = repair([sql], people)
    assert found.is_safe and [each.column for each in found.withheld] == [None]


def test_who_is_known_to_be_missing_is_repaired_as_well(tmp_path: Path) -> None:
    path, policy = tmp_path / "people.csv", tmp_path / "people.toml"
    rows = "a,1,10 a,2,20 a,1,30 a,2, b,1, b,2,"
    path.write_text("team,floor,pay\n" + "".join(f"{row}\n" for row in rows.split()))
    policy.write_text(MISSING_IS_SECRET)
    found = repair(["SELECT team, COUNT(pay) FROM t GROUP BY team"], policy)
    assert found.is_safe and cells(found) == [(1, {"team": "b"})]


MISSING_IS_SECRET = """
[table]
source = "people.csv"
[columns]
team = { role = "public", type = "text" }
floor = { role = "public", type = "integer" }
pay = { role = "private", type = "integer", missing = "secret", unbounded = true }
"""


def rewritten(log: list[str], table: Table, withheld: list[Withheld]) -> list[str]:
    texts: list[str] = []
    for number, sql in enumerate(log, start=1):
        statement = LoggedStatement(number, sql, table.policy, table.source, "postgres")
        texts += statement.without([each for each in withheld if each.query == number])
    return texts


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.sql"
    path.write_text(f"{TOTAL};\n{OTHERS};\n")
    return path


def test_the_command_writes_the_file_that_was_audited(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = log.parent / "repaired.sql"
    command = ["audit", str(log), "--table", "hospital", "--repair", str(file)]
    assert exit_code([*command, "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)["repair"]
    assert shown == {
        "file": str(file),
        "withheld": [{"query": 2, "cell": {"Gender": "Male"}}],
        "dropped": [],
        "verdict": "none-exposed",
        "cells_before": 3,
        "cells_after": 2,
        "sql": file.read_text(),
    }
    assert exit_code(["audit", str(file), "--table", "hospital", "--fail-on", "exposed"]) == 0
    assert exit_code(command) == 0
    printed = capsys.readouterr().out
    assert "expose nobody, with 1 of 3 rows withheld\n  query 2 [Gender = Male]" in printed


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("log.sql", "is the log itself"),
        ("x.csv", "SQL in a CSV"),
        ("no/x.sql", "folder that exists"),
    ],
)
def test_a_file_that_cannot_be_the_repair_is_refused_at_once(
    name: str, reason: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", str(log), "--table", "hospital", "--repair", str(log.parent / name)]
    before = log.read_text()
    assert exit_code(command) == 2
    assert reason in capsys.readouterr().err
    assert log.read_text() == before


def test_nothing_is_written_that_its_audit_does_not_clear(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from casemate.audit.commands import write_repair
    from casemate.audit.report import audit_report
    from casemate.report import as_text
    from casemate.report.terminal import OutputOptions

    with Table.open("hospital") as table:
        found = Audit.of(log, table)
        unsafe = Repaired((), (), TOTAL, found, 3)
    file = log.parent / "repaired.sql"
    assert write_repair(unsafe, file, OutputOptions()).file is None and not file.exists()
    text = as_text(audit_report(replace(found, repair=unsafe)))
    assert "repair: nothing was written, since what is left without 0 of 3 rows is exposed" in text


def test_a_limit_is_kept_and_what_is_not_decided_counts_as_exposed(tmp_path: Path) -> None:
    """With no time for bounds nothing about a bounded number can be cleared: nothing is left."""
    table = people_of("a,1,1 a,2,2 b,1,5 b,2,6", tmp_path)
    knowledge = Knowledge(Fraction(0), Fraction(9))
    sql = "SELECT SUM(pay) FROM t"
    found = repair(
        [sql], table, private="pay", knowledge=knowledge, options=AuditOptions(seconds=1e-9)
    )
    assert found.is_safe and split(found.sql) in ([], [sql])
