"""Names of columns and tables are only names: whatever they are, everything is as with plain ones.

Each table is the same table under other names, so every verdict, answer and decision must be the
same, from files in DuckDB and from PostgreSQL.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from table.stored import store

from casemate import Audit, CasemateError, Misconfigured, OnlineAuditor, Session, Table, repair
from casemate.table.sources.source import quote_name

PLAIN = ("pay", "team", "region", "code", "rank", "whose")
OURS = (  # names that casemate's own SQL uses
    *("t", "q", "r", "k0", "a0", "c0", "e0", "n", "n0", "f0", "v", "h", "x", "a", "b", "s0", "b0"),
    *("r0", "j1", "v0", "m0", "filled", "different", "rowid"),
)
WORDS = ("select", "from", "null", "true", "lambda", "struct", "count", "user", "current_date")
SIGNS = (
    *('a"b', '"', '""', "a;b", ";", "a--b", "--", "a/*b*/", "*/", "*", "a'b", "'", "a.b", ".", "?"),
    *("{}", "{0}", "%s", "%", "$1", ":x", "a b", " a", "a ", "\\", 'a\\"b', "a\tb", "a\nb"),
    *('t"."pay', '"t"."pay"', "x); DROP TABLE t; --"),
)
LETTERS = (
    *("раy", "ｐay", "PAY", "ſ", "İ", "\u212a", "straße", "e\u0301", "\u200b", "日本", "x" * 60),
)
HOSTILE = (*OURS, *WORDS, *SIGNS, *LETTERS)
STAFF = [
    ("red", 31, 1),
    ("red", 20, 1),
    ("red", 49, 2),
    ("blue", 52, 3),
    ("blue", 33, 4),
    ("blue", 28, 4),
    ("blue", 39, 5),
]
REGIONS = [("red", 1), ("blue", 2)]


def statements(names: Sequence[str]) -> list[str]:
    pay, team, region, code, rank, _ = (quote_name(each) for each in names)
    return [
        f"SELECT SUM({pay}) FROM staff",
        f"SELECT {team}, SUM({pay}) AS {pay} FROM staff GROUP BY {team}",
        f"SELECT {region}.{rank}, AVG(staff.{pay}) FROM staff "
        f"JOIN {region} ON staff.{team} = {region}.{code} GROUP BY {region}.{rank}",
        f"SELECT SUM({pay} * {rank}) FROM staff AS {team} "
        f"JOIN {region} AS {pay} ON {team}.{team} = {pay}.{code}",
        f"WITH {region} AS (SELECT {team}, {pay} FROM staff WHERE {pay} > 30) "
        f"SELECT {team}, COUNT(*) FROM {region} GROUP BY {team}",
        f"SELECT SUM(CASE WHEN {team} = 'red' THEN {pay} ELSE 0 END), SUM(NULLIF({pay}, 0)) "
        f"FROM staff",
        f"SELECT SUM({pay}) FROM staff WHERE {pay} <> 52",
    ]


BOUNDED = 'type = "integer"\nmin = 0\nmax = 100'


def written(
    folder: Path, names: Sequence[str], postgres: str | None = None, table: str = "t"
) -> Path:
    """The table under these names, and its policies `unbounded`, `bounded` and `several`."""
    pay, team, region, code, rank, whose = names
    folder.mkdir()
    kind = "csv" if postgres is None else "postgres"
    staff = {"the id": "int", team: "text", pay: "int", whose: "int"}
    people = [(place, *row) for place, row in enumerate(STAFF)]
    source = store(kind, folder, staff, people, name=table, postgres=postgres)
    regions = {code: "text", rank: "int"}
    beside = store(kind, folder, regions, REGIONS, name=f"{table}2", postgres=postgres)
    key = "" if postgres is None else 'key = "the id"'
    pay, team, region, code, whose = (
        json.dumps(each, ensure_ascii=False) for each in (pay, team, region, code, whose)
    )
    for name, about_pay, about_people in (
        ("unbounded", "unbounded = true", ""),
        ("bounded", BOUNDED, ""),
        ("several", BOUNDED, f"person = {whose}\nrows_per_person = 2"),
    ):
        text = f"""
[table]
source = "{source}"
{key}
{about_people}
[columns.{team}]
values = ["red", "blue"]
[columns.{whose}]
[columns.{pay}]
role = "private"
{about_pay}
[public.{region}]
source = "{beside if postgres is None else f"#{table}2"}"
key = {code}
[budget]
epsilon = 1
"""
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def audited(where: Path, asked: Sequence[str]) -> object:
    found = Audit.of(asked, where)
    exposed = sorted((each.record, each.value) for each in found.exposed)
    return found.verdict, exposed, found.rank, [each.query for each in found.refused]


def decided(where: Path, asked: Sequence[str], **options: Any) -> object:
    with OnlineAuditor(where, **options) as auditor:
        allowed = [auditor.would_expose(each).allowed for each in asked]
        return allowed, *(sorted(auditor.ask(each).rows) for each in asked[1:3])


def answered(where: Path, asked: Sequence[str]) -> list[object]:
    """What a session with fixed noise answers, or how it refuses."""
    shown: list[object] = []
    with Session.simulated(where, 5) as session:
        for sql, measure in ((asked[1], False), (asked[2], True), (asked[4], True)):
            try:
                shown.append(session.query(sql, measure=measure).rows)
            except CasemateError as refused:
                shown.append(type(refused))
    return shown


def outcome(folder: Path, names: Sequence[str]) -> list[object]:
    asked = statements(names)
    unbounded, bounded = folder / "unbounded.toml", folder / "bounded.toml"
    repaired = repair(asked[:3], unbounded)
    return [
        audited(unbounded, asked),
        audited(bounded, asked),
        (repaired.is_safe, len(repaired.withheld), repaired.dropped),
        decided(unbounded, asked),
        decided(unbounded, asked, scans_from=1),
        answered(bounded, asked),
        answered(folder / "several.toml", asked),
    ]


@pytest.fixture(scope="module")
def plain_outcome(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    return outcome(written(tmp_path_factory.mktemp("names") / "plain", PLAIN), PLAIN)


def drawn(seed: int) -> tuple[str, ...]:
    """Six hostile names that differ, upper and lower case being alike."""
    chosen: dict[str, str] = {}
    order = list(HOSTILE)
    random.Random(seed).shuffle(order)
    for each in order:
        chosen.setdefault(each.lower(), each)
    return tuple(chosen.values())[:6]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))]
)
def test_names_change_nothing(tmp_path: Path, plain_outcome: list[object], seed: int) -> None:
    names = drawn(seed)
    assert outcome(written(tmp_path / "hostile", names), names) == plain_outcome, names


def test_a_column_that_is_taken_for_another_is_noticed(tmp_path: Path) -> None:
    """The twin: `whose` is asked for in place of `pay`, which is a number too."""
    folder, mistaken = written(tmp_path / "t", PLAIN), ("whose", *PLAIN[1:])
    one, other = (audited(folder / "bounded.toml", statements(each)) for each in (PLAIN, mistaken))
    assert one != other


def test_names_that_casemate_keeps_for_itself_are_refused(tmp_path: Path) -> None:
    for name in ("casemate_record", "casemate_position", "casemate_place", "Casemate_All"):
        (tmp_path / "t.csv").write_text(f"{name},x\n1,2\n")
        with pytest.raises(Misconfigured, match=f"a column called '{name}'; rename it"):
            Table.open(tmp_path / "t.csv")


@pytest.mark.parametrize("names", [("region", "Region"), ("k", "\u212a")])
def test_public_tables_that_sql_cannot_tell_apart_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    (tmp_path / "t.csv").write_text("code,pay\nred,1\n")
    tables = "".join(f'[public."{n}"]\nsource = "t.csv"\nkey = "code"\n' for n in names)
    (tmp_path / "p.toml").write_text(f'[table]\nsource = "t.csv"\n[columns.pay]\n{tables}')
    with pytest.raises(Misconfigured, match="is a name that SQL cannot tell from another one"):
        Table.open(tmp_path / "p.toml")


# PostgreSQL -----------------------------------------------------------------------------------


@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(2))
def test_names_change_nothing_in_postgresql_either(
    postgres: str, tmp_path: Path, seed: int
) -> None:
    names = tuple(each for each in drawn(seed + 100) if each.encode()[:64] == each.encode())
    names = (*names, *PLAIN)[:6]
    hostile, plain = (
        outcome(written(tmp_path / table, given, postgres, table), given)
        for table, given in (("hostile", names), ("plain", PLAIN))
    )
    assert hostile == plain, names
