"""Audits across releases: two or three versions of a table, and who follows from them together.

The slow version writes down every assignment of small numbers to the unknowns, a value that a
person kept being one of them, and keeps those that give the published answers; whoever has the same
value in all of them, and nobody else, is exposed.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import duckdb
import pytest

from casemate import Table, audit_releases
from casemate.audit import AuditOptions
from casemate.audit.result import Audited, Verdict
from casemate.cli.main import exit_code
from casemate.errors import Misconfigured
from casemate.published import Knowledge

POLICY = """
[table]
source = "{source}"
key = "id"
{more}
[columns.id]
role = "identifier"
[columns.team]
[columns.pay]
role = "private"
type = "integer"
min = 0
max = {most}
{pay}
[columns.sick]
role = "private"
values = [0, 1]
{sick}
"""
DEFAULT = {"more": "", "most": 3, "pay": "", "sick": ""}

Row = tuple[int, str, int, int]
"""id, team, pay, sick."""


def write(folder: Path, name: str, rows: Sequence[Row], **said: Any) -> Path:
    """One version of the table as a file with its policy."""
    lines = ["id,team,pay,sick", *(",".join(map(str, row)) for row in rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    path = folder / f"{name}.toml"
    path.write_text(POLICY.format(source=f"{name}.csv", **(DEFAULT | said)))
    return path


def found_in(found: Audited) -> dict[tuple[str, str], Any]:
    return {(str(each.record), each.column): each.value for each in found.exposed}


# Every assignment there is ----------------------------------------------------------------------


Values = list[int]
SHOWN: dict[str, tuple[str, Callable[[Values], Any]]] = {
    "SUM(pay)": ("pay", lambda pay: sum(pay) if pay else None),
    "AVG(pay)": ("pay", lambda pay: Fraction(sum(pay), len(pay)) if pay else None),
    "MAX(pay)": ("pay", lambda pay: max(pay, default=None)),
    "MIN(pay)": ("pay", lambda pay: min(pay, default=None)),
    "MEDIAN(pay)": ("pay", lambda pay: median(pay) if pay else None),
    "SUM(CASE WHEN pay > 1 THEN 1 ELSE 0 END)": ("pay", lambda pay: sum(p > 1 for p in pay)),
    "SUM(sick)": ("sick", lambda sick: sum(sick) if sick else None),
}
DOMAIN = {"pay": range(4), "sick": range(2)}


@dataclass(frozen=True)
class Asked:
    """One statement: what it shows, of which team, or of every team."""

    shown: str
    team: str | None
    grouped: bool

    @property
    def sql(self) -> str:
        where = "" if self.team is None else f" WHERE team = '{self.team}'"
        if self.grouped:
            return f"SELECT team, {self.shown} FROM staff{where} GROUP BY team"
        return f"SELECT {self.shown} FROM staff{where}"

    def answers(self, teams: Sequence[str], values: Values) -> list[Any]:
        chosen = sorted(set(teams)) if self.grouped else [None]
        rows = [(t, v) for t, v in zip(teams, values, strict=True) if self.team in (None, t)]
        groups = [[v for t, v in rows if each in (None, t)] for each in chosen]
        return [SHOWN[self.shown][1](group) for group in groups if group or not self.grouped]


def names_of(releases: Sequence[Sequence[Row]], column: int) -> list[list[str]]:
    """The unknown that each row of each release has: one for each value of a person."""
    known: dict[tuple[int, int | str], str] = {}
    return [
        [
            known.setdefault(
                (row[0], row[column]), f"{row[0]} in old{n}.toml" if n else f"{row[0]}"
            )
            for row in rows
        ]
        for n, rows in enumerate(releases)
    ]


def constant(
    releases: Sequence[Sequence[Row]], logs: Sequence[Sequence[Asked]], column: str
) -> dict[tuple[str, str], int]:
    """The unknowns of a column that are the same wherever the answers are."""
    at = 2 if column == "pay" else 3
    names = names_of(releases, at)
    teams = [[row[1] for row in rows] for rows in releases]
    truth = {
        name: int(row[at])
        for named, rows in zip(names, releases, strict=True)
        for name, row in zip(named, rows, strict=True)
    }

    def answers(world: dict[str, int]) -> list[Any]:
        return [
            asked.answers(team, [world[name] for name in named])
            for team, named, log in zip(teams, names, logs, strict=True)
            for asked in log
            if SHOWN[asked.shown][0] == column
        ]

    published, unknowns = answers(truth), list(truth)
    worlds = (
        dict(zip(unknowns, values, strict=True))
        for values in product(DOMAIN[column], repeat=len(unknowns))
    )
    possible = [world for world in worlds if answers(world) == published]
    assert truth in possible
    return {
        (name, column): truth[name]
        for name in unknowns
        if len({world[name] for world in possible}) == 1
    }


def random_releases(rng: Random) -> list[list[Row]]:
    """A version, and one or two others in which people are gone, new, moved or changed."""

    def row(person: int) -> Row:
        return person, rng.choice("AB"), rng.randrange(4), rng.randrange(2)

    def later(rows: list[Row]) -> list[Row]:
        stayed = [each for each in rows if rng.random() < 0.8]
        moved = [
            (p, rng.choice([t, "A", "B"]), rng.choice([v, v, v, rng.randrange(4)]), s)
            for p, t, v, s in stayed
        ]
        return [*moved, *(row(p) for p in rng.sample(range(10, 20), rng.randrange(2)))]

    newest = [row(person) for person in range(1, rng.randrange(3, 5))]
    return [newest, *(later(newest) or newest for _ in range(rng.choice([1, 1, 2])))]


def check(rng: Random, folder: Path) -> tuple[int, int]:
    """Audit random releases; how many values are exposed, and how many only across."""
    releases = random_releases(rng)
    logs = [
        [
            Asked(rng.choice(list(SHOWN)), rng.choice([None, None, "A"]), rng.random() < 0.3)
            for _ in range(rng.randrange(1, 4))
        ]
        for _ in releases
    ]
    paths = [write(folder, f"old{n}" if n else "new", rows) for n, rows in enumerate(releases)]
    texts = [[asked.sql for asked in log] for log in logs]
    found = audit_releases(texts[0], paths[0], list(zip(paths[1:], texts[1:], strict=True)))
    assert (found.refused, found.undecided, found.unchecked) == ((), (), ()), (releases, texts)
    expected = {k: v for c in DOMAIN for k, v in constant(releases, logs, c).items()}
    assert found_in(found) == expected, (releases, texts)
    silent = [
        [log if place == n else [] for place, log in enumerate(logs)] for n in range(len(logs))
    ]
    alone = {key for one in silent for c in DOMAIN for key in constant(releases, one, c)}
    across = {(str(each.record), each.column) for each in found.exposed if each.across}
    assert across == expected.keys() - alone, (releases, texts)
    return len(expected), len(across)


@pytest.mark.parametrize("part", range(1))
def test_exactly_those_are_exposed_who_are_the_same_in_every_pair_of_tables(
    part: int, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"{seed} {part}")
    seen = [check(rng, tmp_path) for _ in range(12)]
    assert sum(exposed for exposed, _ in seen) > 5
    assert sum(across for _, across in seen) > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_exactly_those_are_exposed_in_many_more_releases(
    part: int, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"long {seed} {part}")
    for _ in range(100):
        check(rng, tmp_path)


# People who join, leave, stay and change --------------------------------------------------------


OLD: list[Row] = [(1, "A", 10, 0), (2, "A", 20, 1), (3, "A", 30, 0), (4, "B", 15, 1)]
JOINED: Row = (7, "A", 40, 1)
AVERAGE = ["SELECT team, COUNT(*), AVG(pay) FROM staff WHERE team = 'A' GROUP BY team"]


def audited(
    folder: Path, new: Sequence[Row], old: Sequence[Row] = OLD, queries: Sequence[str] = AVERAGE
) -> Audited:
    paths = write(folder, "new", new, most=100), write(folder, "old", old, most=100)
    return audit_releases(queries, paths[0], [(paths[1], queries)])


def test_whoever_joins_is_the_difference_of_two_harmless_averages(tmp_path: Path) -> None:
    found = audited(tmp_path, [*OLD, JOINED])
    assert found_in(found) == {("7", "pay"): 40}
    (exposed,) = found.exposed
    assert exposed.across and exposed.certificate is not None
    assert [str(term.place.query) for term in exposed.certificate.terms] == ["1", "1 of old.toml"]
    assert [int(term.place.query) for term in exposed.certificate.terms] == [1, 2]
    assert vars(found.across or object()) == {"joined": 1, "left": 0, "stayed": 0}


def test_whoever_leaves_is_named_in_the_release_they_were_in(tmp_path: Path) -> None:
    found = audited(tmp_path, [row for row in OLD if row[0] != 2])
    assert found_in(found) == {("2 in old.toml", "pay"): 20}
    assert vars(found.across or object()) == {"joined": 0, "left": 1, "stayed": 0}
    assert [(each.joined, each.left, each.changed) for each in found.releases] == [
        (None, None, None),
        (0, 1, 0),
    ]


def test_whoever_moves_to_another_team_is_exposed_and_stayed(tmp_path: Path) -> None:
    moved = [(p, "B" if p == 3 else team, pay, sick) for p, team, pay, sick in OLD]
    found = audited(tmp_path, moved)
    assert found_in(found) == {("3", "pay"): 30}
    assert vars(found.across or object()) == {"joined": 0, "left": 0, "stayed": 1}


def test_a_value_that_changed_is_two_and_another_of_that_person_is_one(tmp_path: Path) -> None:
    raised = [(p, team, 35 if p == 3 else pay, sick) for p, team, pay, sick in OLD]
    sums = ["SELECT SUM(pay), SUM(sick) FROM staff WHERE team = 'A'"]
    found = audited(tmp_path, raised, queries=sums)
    assert not found.exposed  # the raise follows, and neither value does
    assert found.releases[1].changed == 1
    assert "values that changed, and count as separate: 1" in found.assumptions[-1]
    moved = [(p, "B" if p == 3 else team, pay, sick) for p, team, pay, sick in raised]
    exposed = found_in(audited(tmp_path, moved, queries=sums))
    assert exposed == {("3", "sick"): 0, ("3 in old.toml", "pay"): 30}


def test_what_one_release_gives_away_alone_is_not_across(tmp_path: Path) -> None:
    alone = [*AVERAGE, "SELECT SUM(pay) FROM staff WHERE team = 'B'"]
    found = audited(tmp_path, [*OLD, JOINED], queries=alone)
    assert {each.record: each.across for each in found.exposed} == {"4": False, "7": True}


def test_what_is_known_of_a_person_is_known_in_every_release(tmp_path: Path) -> None:
    paths = [write(tmp_path, "new", OLD, most=100), write(tmp_path, "old", OLD[:3], most=100)]
    sums = ["SELECT SUM(pay) FROM staff WHERE team = 'A'"]
    known = Knowledge(known={1: (Fraction(10), Fraction(10)), 2: (Fraction(20), Fraction(20))})
    found = audit_releases([], paths[0], [(paths[1], sums)], knowledge=known)
    assert found_in(found) == {("3", "pay"): 30}
    assert (found.releases[0].queries, found.releases[1].queries) == ((), (1,))


def test_second_tables_of_releases_can_be_checked(tmp_path: Path) -> None:
    paths = write(tmp_path, "new", [*OLD, JOINED], most=100), write(tmp_path, "old", OLD, most=100)
    medians = [*AVERAGE, "SELECT MEDIAN(pay) FROM staff"]
    published = [(paths[1], medians)]
    found = audit_releases(medians, paths[0], published, options=AuditOptions(witness=True))
    assert found.witness is not None and found.witness.check()
    assert found.witness.covered + len(found.exposed) >= 4


# Several rows, other columns, other places ------------------------------------------------------


CONSTANT = {"pay": 'per_person = "constant"', "sick": 'per_person = "constant"'}


def with_people(rows: Sequence[tuple[int, int, str, int, int]], path: Path) -> None:
    """A file in which another column says whose row it is."""
    lines = ["id,who,team,pay,sick", *(",".join(map(str, row)) for row in rows)]
    path.with_suffix(".csv").write_text("\n".join(lines) + "\n")


def test_people_with_several_rows_are_found_again_where_their_values_are_constant(
    tmp_path: Path,
) -> None:
    said = {"more": 'person = "who"\nrows_per_person = 2', "most": 100, **CONSTANT}
    new, old = (write(tmp_path, name, [], **said) for name in ("new", "old"))
    with_people([(1, 1, "A", 10, 0), (2, 1, "A", 10, 0), (3, 2, "A", 20, 1)], new)
    with_people([(8, 1, "A", 10, 0), (9, 2, "A", 20, 1)], old)
    sums = ["SELECT SUM(pay) FROM staff"]
    found = audit_releases(sums, new, [(old, sums)])
    assert found_in(found) == {("1", "pay"): 10, ("3", "pay"): 20}
    assert all(each.across for each in found.exposed)
    with_people([(8, 1, "A", 10, 0), (9, 1, "A", 11, 0)], old)
    with pytest.raises(Misconfigured, match="constant for each person"):
        audit_releases(sums, new, [(old, sums)])


def test_people_with_several_rows_that_vary_are_refused(tmp_path: Path) -> None:
    said = {"more": 'person = "who"\nrows_per_person = 2', "most": 100}
    new, old = (write(tmp_path, name, [], **said) for name in ("new", "old"))
    for path in (new, old):
        with_people([(1, 1, "A", 10, 0), (2, 1, "A", 30, 0)], path)
    with pytest.raises(Misconfigured, match="several rows, in which pay may vary"):
        audit_releases(AVERAGE, new, [(old, AVERAGE)])


def test_public_columns_may_differ_and_come_from_another_database(tmp_path: Path) -> None:
    new = write(tmp_path, "new", [*OLD, JOINED], most=100)
    with duckdb.connect(str(tmp_path / "old.db")) as database:
        database.execute("CREATE TABLE staff (id BIGINT, team INTEGER, pay BIGINT, sick BIGINT)")
        database.executemany(
            "INSERT INTO staff VALUES (?, ?, ?, ?)",
            [(p, 1 if team == "A" else 2, pay, sick) for p, team, pay, sick in OLD],
        )
    old = tmp_path / "old.toml"
    old.write_text(POLICY.format(**(DEFAULT | {"source": "duckdb:///old.db#staff", "most": 100})))
    log = ["SELECT SUM(pay) FROM staff WHERE team + 0 = 1"]
    found = audit_releases(AVERAGE, new, [(old, log)])
    assert found_in(found) == {("7", "pay"): 40}
    assert not found.refused


def test_each_release_joins_its_own_public_tables(tmp_path: Path) -> None:
    table = '\n[public.teams]\nsource = "{}_teams.csv"\nkey = "team"\n'
    paths = []
    for name, rows, weight in (("new", [*OLD, JOINED], 2), ("old", OLD, 3)):
        path = write(tmp_path, name, rows, most=100)
        path.write_text(path.read_text() + table.format(name))
        (tmp_path / f"{name}_teams.csv").write_text(f"team,weight\nA,{weight}\n")
        paths.append(path)
    log = ["SELECT SUM(pay * weight) FROM staff JOIN teams ON staff.team = teams.team"]
    found = audit_releases(log, paths[0], [(paths[1], log)])
    assert found_in(found) == {("7", "pay"): 40}


def test_open_tables_are_left_open(tmp_path: Path) -> None:
    new, old = (
        write(tmp_path, "new", [*OLD, JOINED], most=100),
        write(tmp_path, "old", OLD, most=100),
    )
    with Table.open(new) as this, Table.open(old) as last:
        first = audit_releases(AVERAGE, this, [(last, AVERAGE)])
        assert found_in(audit_releases(AVERAGE, this, [(last, AVERAGE)])) == found_in(first)


# What is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace('key = "id"', ""), "old.toml has no `key`"),
        (
            lambda text: text.replace("[columns.sick]\nrole", "[columns.sick]\n#role"),
            "new.toml protects pay and sick, and old.toml pay",
        ),
        (lambda text: text.replace("max = 100", "max = 99"), r"pay alike \(max\)"),
        (lambda text: text.replace('"integer"', '"decimal"'), r"pay alike \(type\)"),
        (
            lambda text: text.replace(
                'key = "id"', 'key = "id"\nperson = "id"\nrows_per_person = 1'
            ),
            "declares `person`",
        ),
        (
            lambda text: text.replace('role = "identifier"', 'role = "identifier"\ntype = "text"'),
            "of different types",
        ),
    ],
)
def test_versions_that_do_not_go_together_are_refused_in_one_sentence(
    change: Callable[[str], str], sentence: str, tmp_path: Path
) -> None:
    new, old = write(tmp_path, "new", OLD, most=100), write(tmp_path, "old", OLD, most=100)
    old.write_text(change(old.read_text()))
    with pytest.raises(Misconfigured, match=sentence):
        audit_releases(AVERAGE, new, [(old, AVERAGE)])


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "new", [*OLD, JOINED], most=100)
    write(tmp_path, "old", OLD, most=100)
    for name in ("new", "old"):
        (tmp_path / f"{name}.sql").write_text(f"{AVERAGE[0]};\nSELECT VARIANCE(pay) FROM staff;\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ARGUMENTS = ["audit", "new.sql", "--table", "new.toml", "--against", "old.toml"]


def run(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = exit_code([*ARGUMENTS, *more])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_report_begins_with_the_difference_and_names_each_log(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, _ = run(capsys, "--against-queries", "old.sql")
    assert code == 0
    assert text.splitlines()[1] == "exposed by the difference: 1 person (1 joined)"
    assert "\n  record 5: pay = •" in text
    assert "4 * query 1 [team = A] - 3 * query 1 of old.sql [team = A]" in text
    assert "query 2 of old.sql (line 2): " in text and "\n  query 2 (line 2): " in text


def test_json_numbers_statements_through_and_lists_the_releases(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text, _ = run(capsys, "--against-queries", "old.sql", "--format", "json", "--reveal")
    found = json.loads(text)
    assert [each["query"] for each in found["refused"]] == [2, 4]
    assert [(each["record"], each["across"]) for each in found["exposed"]] == [("7", True)]
    assert found["releases"] == [
        {
            "file": "new.toml",
            "log": None,
            "queries": {"from": 1, "to": 2},
            "records": 5,
            "joined": None,
            "left": None,
            "changed": None,
        },
        {
            "file": "old.toml",
            "log": "old.sql",
            "queries": {"from": 3, "to": 4},
            "records": 4,
            "joined": 1,
            "left": 0,
            "changed": 0,
        },
    ]


def test_a_page_links_each_query_to_its_statement(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "--against-queries", "old.sql", "--format", "html", "--output", "page.html")
    page = (office / "page.html").read_text()
    assert 'id="query-3"' in page and 'href="#query-3"' in page
    assert "query 1 of old.sql" in page


@pytest.mark.parametrize("shown", ["id, pay", "*", "team, pay", "id, pay + 1"])
def test_rows_that_one_release_shows_are_of_its_own_people(shown: str, tmp_path: Path) -> None:
    new = write(tmp_path, "new", [(1, "A", 5, 0), (2, "B", 6, 0), (9, "B", 7, 0)], most=100)
    old = write(tmp_path, "old", [(1, "A", 5, 0), (2, "B", 4, 0)], most=100)
    found = audit_releases(
        ["SELECT SUM(pay) FROM staff"], new, [(old, [f"SELECT {shown} FROM staff"])]
    )
    pay = [each for each in found.exposed if each.column == "pay" and each.proof == "read"]
    assert [(each.record, each.value, each.across) for each in pay] == [
        ("1", 5, False),
        ("2 in old.toml", 4, False),
    ]
    assert {str(each.by) for each in pay} == {"1 of old.toml"}


def test_rows_chosen_by_an_identifier_of_one_release_are_not_read(tmp_path: Path) -> None:
    new = write(tmp_path, "new", [(1, "A", 5, 0), (2, "B", 6, 0)], most=100)
    old = write(tmp_path, "old", [(1, "A", 5, 0), (2, "B", 4, 0)], most=100)
    log = ["SELECT pay FROM staff WHERE id = 2"]
    found = audit_releases(["SELECT SUM(pay) FROM staff"], new, [(old, log)])
    assert found.verdict is Verdict.INCOMPLETE and [each.query for each in found.refused] == [2]


def test_a_saved_audit_across_releases_reads_as_it_read_when_it_was_made(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text, _ = run(capsys, "--against-queries", "old.sql", "--json", "saved.json")
    assert exit_code(["report", "saved.json"]) == 0
    assert capsys.readouterr().out == text
    assert "query 1 of old.sql [team = A]" in text
    assert "--against old.toml --against-queries old.sql" in text
    saved = json.loads((office / "saved.json").read_text())
    assert saved["across"] == {"joined": 1, "left": 0, "stayed": 0}
    assert "query 1 of old.sql [team = A]" in saved["exposed_groups"][0]["text"]


def test_options_that_say_how_a_table_is_read_hold_for_every_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["id,pay", *(f"p{place},{place}" for place in range(1, 6)), "p6,N"]
    (tmp_path / "old.csv").write_text("\n".join([*rows, ""]))
    (tmp_path / "new.csv").write_text("\n".join([*rows, "p7,70", ""]))
    (tmp_path / "q.sql").write_text("SELECT SUM(pay) FROM t;\n")
    read = ["--private", "pay", "--key", "id", "--missing-marker", "N", "--missing", "public"]
    older = ["--against", "old.csv", "--against-queries", "q.sql", "--format", "json"]
    assert exit_code(["audit", "q.sql", "--table", "new.csv", *read, *older]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["record"] for each in found["exposed"]] == [7]


def test_options_that_do_not_come_in_pairs_are_refused(
    office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, error = run(capsys)
    assert (code, text) == (2, "")
    assert "give one of each for every older release" in error
    code, _, error = run(capsys, "--against-queries", "old.sql", "--repair", "repaired.sql")
    assert code == 2 and "--repair does not look at older releases" in error


# Missing values, and people with several rows -----------------------------------------------------


def write_pay(folder: Path, name: str, rows: Sequence[tuple[Any, ...]], more: str = "") -> Path:
    """A version with rows of id, who and pay."""
    lines = ["id,who,pay", *(",".join(map(str, row)) for row in rows)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    path = folder / f"{name}.toml"
    path.write_text(
        f'[table]\nsource = "{name}.csv"\nkey = "id"\nperson = "who"\nrows_per_person = 2\n'
        '[columns.id]\nrole = "identifier"\n[columns.who]\nrole = "identifier"\n'
        '[columns.pay]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 9\n'
        f'per_person = "constant"\n{more}'
    )
    return path


def test_somebody_known_to_be_missing_by_the_difference_is_said_to_be(tmp_path: Path) -> None:
    more = 'missing = "secret"\n'
    rows: list[tuple[Any, ...]] = [(1, "ana", 5), (2, "ben", 3)]
    old = write_pay(tmp_path, "old", rows, more)
    new = write_pay(tmp_path, "new", [*rows, (3, "cem", "")], more)
    log = ["SELECT COUNT(pay) FROM t"]
    found = audit_releases(log, new, [(old, log)])
    assert [(each.record, each.across) for each in found.missing] == [("3", True)]
    assert found.across is not None and found.across.joined == 1


def test_whoever_counts_twice_in_a_median_is_the_same_in_one_release_only(tmp_path: Path) -> None:
    others: list[tuple[Any, ...]] = [(3, "ben", 3), (4, "cem", 7)]
    old = write_pay(tmp_path, "old", [(1, "ana", 6), (2, "ana", 6), *others])
    new = write_pay(tmp_path, "new", [(1, "ana", 5), (2, "ana", 5), *others, (5, "dora", 4)])
    found = audit_releases(
        ["SELECT MEDIAN(pay) FROM t", "SELECT SUM(pay) FROM t"],
        new,
        [(old, ["SELECT MEDIAN(pay) FROM t"])],
        options=AuditOptions(witness=True),
    )
    assert found.witness is not None and found.witness.check()
    assert found.verdict is Verdict.NONE_EXPOSED and found.witness.uncovered == ()
