"""Statements of a log that show private values themselves, row by row: who is named by them."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations, groupby, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from cli.running import Captured, shown, told
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate import Attack, Audit, OnlineAuditor, Refused, repair
from casemate.published import Knowledge, read_out
from casemate.query.parse import Logged

ROWS = """name,team,sex,pay
ana,red,f,3100
ben,red,m,2900
cem,red,m,4000
dora,blue,f,5200
emil,blue,m,3300
fay,blue,f,5200
gus,blue,m,3900
"""
PRIVATE = 'private"\nunbounded = true #'
POLICY = """[table]
source = "staff.csv"
[columns.name]
role = "{name}"
[columns.team]
role = "public"
[columns.sex]
role = "{sex}"
[columns.pay]
role = "{pay}"
"""


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.csv"
    path.write_text(ROWS)
    return path


def policy(staff: Path, **roles: str) -> Path:
    """The same table with a policy of its own."""
    path = staff.with_name("staff.toml")
    path.write_text(POLICY.format(**{"name": "public", "sex": "public", "pay": PRIVATE} | roles))
    return path


def read(sql: str, staff: Path) -> tuple[list[Any], list[str], str]:
    """Who is exposed by reading, why the statement is not audited, and the verdict."""
    found = Audit.of([sql], staff, private=() if staff.suffix == ".toml" else "pay")
    who = [each.record for each in found.exposed if each.proof == "read"]
    return who, [each.reason for each in found.refused], found.verdict.value


# Who is named -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "who"),
    [
        ("SELECT pay FROM t WHERE team = 'red' AND sex = 'f'", [1]),
        ("SELECT * FROM t WHERE team = 'red'", [1, 2, 3]),
        ("SELECT t.* FROM t WHERE team = 'red'", [1, 2, 3]),
        ("SELECT t FROM t WHERE team = 'red'", [1, 2, 3]),
        ("SELECT row_to_json(t) FROM t WHERE team = 'red'", [1, 2, 3]),
        ("SELECT jsonb_agg(json_build_object('n', name, 'p', pay)) FROM t", [1, 2, 3, 4, 5, 6, 7]),
        ("SELECT json_object_agg(name, pay) FROM t WHERE sex = 'f'", [1, 4, 6]),
        ("SELECT DISTINCT pay FROM t WHERE team = 'blue' AND sex = 'f'", [4, 6]),
        ("SELECT pay, COUNT(*) FROM t WHERE team = 'blue' AND sex = 'f' GROUP BY pay", [4, 6]),
        ("SELECT team, sex, pay FROM t", [1, 4, 6]),
        ("SELECT team, sex, array_agg(pay) FROM t GROUP BY team, sex", [1, 4, 6]),
        ("SELECT team, sex, string_agg(pay::text, ',') FROM t GROUP BY 1, 2", [1, 4, 6]),
        ("SELECT name, pay FROM t ORDER BY pay DESC LIMIT 4", [3, 4, 6, 7]),
        ("SELECT name, pay FROM t ORDER BY pay DESC LIMIT 1", []),  # two tie for it
        ("SELECT pay FROM t ORDER BY name", [1, 2, 3, 4, 5, 6, 7]),
        ("SELECT pay FROM t ORDER BY name FETCH FIRST 2 ROWS ONLY", [1, 2]),
        ("SELECT array_agg(pay ORDER BY name) FROM t WHERE team = 'red'", [1, 2, 3]),
        ("SELECT name, pay FROM t WHERE pay > 3500", [3, 4, 6, 7]),
        ("SELECT team, sex, pay FROM t WHERE pay > 5000", [4, 6]),  # and both of them are there
        ("SELECT DISTINCT team, sex, pay FROM t WHERE pay > 5000", []),  # or one of them
        ("SELECT name, pay * 12 + 5 FROM t WHERE team = 'red'", [1, 2, 3]),
        ("SELECT name, pay, rank() OVER (ORDER BY pay) FROM t WHERE sex = 'f'", [1, 4, 6]),
        ("WITH q AS (SELECT name n, pay p FROM t WHERE sex = 'f') SELECT * FROM q", [1, 4, 6]),
        ("SELECT name, pay FROM t LIMIT 7", [1, 2, 3, 4, 5, 6, 7]),
        ("SELECT name, pay FROM t WHERE sex = 'f' FOR UPDATE", [1, 4, 6]),
    ],
)
def test_a_value_that_is_shown_is_exposed_where_it_is_known_whose(
    sql: str, who: list[int], staff: Path
) -> None:
    found, _, verdict = read(sql, staff)
    assert (found, verdict) == (who, "exposed" if who else "incomplete")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT pay FROM t", "the values of pay of 7 records themselves"),
        ("SELECT DISTINCT pay FROM t WHERE team = 'red'", "of 3 records themselves"),
        ("SELECT pay FROM t GROUP BY pay", "without saying whose each is; treat them as published"),
        ("SELECT array_agg(name), array_agg(pay) FROM t", "without saying whose each is"),
        ("SELECT array_agg(pay ORDER BY name) FROM t GROUP BY team", "without saying whose"),
        ("SELECT name, pay FROM t LIMIT 3", "for some of 7 records, and nothing here says"),
        ("SELECT name, pay FROM t LIMIT 3 OFFSET 1", "for some of 7 records"),
        ("SELECT name, pay FROM t WHERE random() < 0.5", "for some of 7 records"),
        ("SELECT DISTINCT ON (team) name, pay FROM t", "for some of 7 records"),
        ("SELECT name, pay FROM t UNION ALL SELECT name, 0 FROM t", "for some of 7 records"),
        ("SELECT name, pay, COUNT(*) FROM t GROUP BY ROLLUP (name, pay)", "for some of 7 records"),
        ("SELECT name, pay / 1000 FROM t", "something computed from pay"),
        ("SELECT name, pay::text FROM t", "something computed from pay"),
        ("SELECT name, CASE WHEN pay > 3000 THEN 1 ELSE 0 END FROM t", "computed from pay"),
        ("SELECT name || pay FROM t", "something computed from pay"),
        ("SELECT name, rank() OVER (ORDER BY pay) FROM t", "something computed from pay"),
        ("SELECT name FROM t ORDER BY pay", "or chosen by it"),
    ],
)
def test_values_that_may_be_anybodys_are_named_in_words_and_nobody_is_safe(
    sql: str, said: str, staff: Path
) -> None:
    found, (reason,), verdict = read(sql, staff)
    assert said in reason and verdict == "incomplete" and not found


def test_values_that_may_be_anybodys_are_at_the_top_of_the_report(
    staff: Path, capsys: Captured
) -> None:
    log = staff.with_name("log.sql")
    log.write_text("SELECT PAY FROM t WHERE team = 'blue'; SELECT name, team FROM t")
    first, second, *_ = told(
        capsys, "audit", str(log), "--table", str(staff), "--private", "pay"
    ).splitlines()
    assert first == (
        "verdict: incomplete (private values are shown row by row; whose they are was not decided "
        "for all)"
    )
    assert second.strip().startswith("query 1: it shows the values of pay of 4 records themselves")


def test_rows_of_public_columns_say_nothing_new(staff: Path) -> None:
    assert read("SELECT name, team FROM t", staff)[1:] == (
        ["nothing is aggregated here, and single rows are not shown"],
        "incomplete",
    )


def test_nobody_is_shown_where_nobody_is_selected(staff: Path) -> None:
    assert read("SELECT pay FROM t WHERE team = 'green'", staff) == ([], [], "none-exposed")
    assert read("SELECT pay FROM t WHERE pay < 0", staff)[2] == "incomplete"  # that is something


def test_public_rows_that_a_secret_chooses_are_compared_with_all_others(staff: Path) -> None:
    found = Audit.of(["SELECT name FROM t WHERE pay = 3100"], staff, private="pay")
    assert [(each.record, each.value, each.proof) for each in found.exposed] == [
        (1, 3100, "bounds")
    ]
    assert found.refused  # of the others it is said that they have something else


def test_what_is_read_is_taken_off_what_was_added_up(staff: Path) -> None:
    log = [
        "SELECT team, SUM(pay) FROM t GROUP BY team",
        "SELECT name, pay FROM t WHERE team = 'red' AND sex = 'm'",
    ]
    found = Audit.of(log, staff, private="pay")
    assert [(e.record, e.value, e.proof, e.by) for e in found.exposed] == [
        (2, 2900, "read", 2),
        (3, 4000, "read", 2),
        (1, 3100, "rank", 2),
    ]
    assert not found.refused and not [c for c in found.sensitive_cells if c.query == 2]


def test_a_value_that_could_be_computed_is_read_where_it_can_be(staff: Path) -> None:
    log = ["SELECT name, SUM(pay) FROM t GROUP BY name", "SELECT pay FROM t WHERE name = 'ana'"]
    found = Audit.of(log, staff, private="pay").exposed
    assert [each.proof.value for each in found] == ["read", *["rank"] * 6]


def test_whoever_was_known_is_not_exposed(staff: Path) -> None:
    known = Knowledge(known={1: (3100, 3100)})  # type: ignore[dict-item]  # integers are fractions
    found = Audit.of(["SELECT * FROM t WHERE sex = 'f'"], staff, private="pay", knowledge=known)
    assert [each.record for each in found.exposed] == [4, 6]


@pytest.mark.parametrize("declared", [True, False])
def test_a_category_and_a_text_are_read_too(declared: bool, staff: Path) -> None:
    closed = policy(staff, sex='private"\nvalues = ["f", "m"] #', pay="public")
    place, private = (closed, ()) if declared else (staff, ("sex",))
    found = Audit.of(["SELECT name, sex FROM t WHERE team = 'red'"], place, private=private)
    assert [(e.record, e.value, e.proof) for e in found.exposed] == [
        (1, "f", "read"),
        (2, "m", "read"),
        (3, "m", "read"),
    ]


def test_an_identifier_says_whose_a_row_is_and_is_not_repeated(staff: Path) -> None:
    closed = policy(staff, name="identifier")
    log = ["SELECT name, sex, pay FROM t WHERE team = 'red'", "SELECT SUM(pay) FROM t"]
    found = Audit.of(log, closed)
    assert [each.record for each in found.exposed] == [1, 2, 3]
    assert found.exposed[0].derivation[0].cell == (("sex", "f"),)
    assert not any("keys" in each for each in found.assumptions)
    assert read("SELECT pay FROM t WHERE name = 'ana'", closed)[0] == [1]


def test_a_missing_value_that_is_shown_is_a_finding_of_its_own(staff: Path) -> None:
    staff.write_text(ROWS.replace("3100", ""))
    found = Audit.of(["SELECT name, pay FROM t WHERE team = 'red'"], staff, private="pay")
    assert [(each.record, each.by) for each in found.missing] == [(1, 1)]
    assert [each.record for each in found.exposed] == [2, 3]


def test_a_missing_value_that_everybody_knows_of_is_none(staff: Path) -> None:
    staff.write_text(ROWS.replace("3100", ""))
    path = policy(staff, pay='private"\nunbounded = true\nmissing = "{}" #')
    said = path.read_text()
    missing = {}
    for kind in ("secret", "public"):
        path.write_text(said.format(kind))
        found = Audit.of(["SELECT name, pay FROM t", "SELECT MAX(pay) FROM t"], path)
        missing[kind] = [(each.record, each.column) for each in found.missing]
    assert missing == {"secret": [(1, "pay")], "public": []}


def test_a_value_that_overflow_hides_does_not_follow(staff: Path) -> None:
    staff.write_text(ROWS.replace("3100", "9000000000000000000"))
    assert read("SELECT name, pay * 2 FROM t WHERE team = 'red'", staff)[0] == [2, 3]


def test_a_person_with_one_value_in_many_rows_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("who,year,pay\nana,1,5\nana,2,5\nben,1,7\n")
    closed = tmp_path / "visits.toml"
    closed.write_text(
        '[table]\nsource = "visits.csv"\nperson = "who"\nrows_per_person = 2\n'
        '[columns.who]\nrole = "public"\n[columns.year]\nrole = "public"\n'
        '[columns.pay]\nrole = "private"\nper_person = "constant"\nunbounded = true\n'
    )
    found = Audit.of(["SELECT who, pay FROM t"], closed)
    assert [(e.record, e.person, e.value) for e in found.exposed] == [(1, "ana", 5), (3, "ben", 7)]


@pytest.mark.parametrize(("answer", "who"), [(3100, [1]), (3200, [])])
def test_an_answer_in_the_log_must_be_what_the_table_shows(
    answer: int, who: list[int], staff: Path
) -> None:
    log = [Logged("SELECT pay FROM t WHERE name = 'ana'", 1, Decimal(answer))]
    found = Audit.of(log, staff, private="pay")
    assert [each.record for each in found.exposed] == who
    assert [("not the table's" in each.reason) for each in found.refused] == [True] * (not who)


# How it is told ---------------------------------------------------------------------------------


def test_a_report_says_which_statement_shows_it_and_never_what(
    staff: Path, capsys: Captured
) -> None:
    log = staff.with_name("log.sql")
    log.write_text("SELECT SUM(pay) FROM t;\nSELECT team, sex, pay FROM t WHERE team = 'blue';\n")
    command = ("audit", str(log), "--table", str(staff), "--private", "pay")
    text, page = told(capsys, *command), told(capsys, *command, "--format", "html")
    assert "record 4: pay = •  by query 2, which shows it as it is" in text
    assert "which shows it as it is" in page
    assert not any("5200" in each for each in (text, page))
    told(capsys, *command, "--fail-on", "exposed", code=1)
    first = shown(capsys, *command)["exposed"][0]
    assert first == {
        "record": 4,
        "person": 4,
        "column": "pay",
        "value": None,
        "certificate": None,
        "by": 2,
        "proof": "read",
        "total": False,
        "derivation": [
            {
                "query": 2,
                "cell": {"team": "blue", "sex": "f"},
                "text": "it shows pay itself for each of 4 records that it selects; all 2 "
                "rows that can be of this record show the same",
            }
        ],
        "described": None,
        "across": False,
    }


def test_a_table_too_long_for_equations_is_read_as_well(
    staff: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casemate.published.plain_sums.MAX_STORED_ENTRIES", 0)
    log = ["SELECT SUM(pay) FROM t WHERE name <> 'ana'", "SELECT name, pay FROM t WHERE sex = 'f'"]
    found = Audit.of(log, staff, private="pay")
    assert [(e.record, e.proof) for e in found.exposed] == [(n, "read") for n in (1, 4, 6)]
    assert "other statements together" in found.refused[0].reason


def test_many_rows_stay_out_of_the_equations(staff: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_out, "MAX_IMPLIED_EQUATIONS", 1)
    log = ["SELECT SUM(pay) FROM t", "SELECT name, pay FROM t WHERE team = 'red'"]
    found = Audit.of(log, staff, private="pay")
    assert found.equations == 1 and [each.record for each in found.exposed] == [1, 2, 3]
    assert "other statements together, was not decided" in found.refused[0].reason


def test_a_repair_leaves_it_out(staff: Path) -> None:
    log = ["SELECT team, SUM(pay) FROM t GROUP BY team", "SELECT name, pay FROM t"]
    found = repair(log, staff, private="pay")
    assert found.dropped == (2,) and found.is_safe


def test_nothing_else_reads_it(staff: Path) -> None:
    log = ["SELECT SUM(pay) FROM t", "SELECT name, pay FROM t"]
    found = Attack.of(log, staff, private="pay", random=np.random.default_rng(0)).evidence
    assert [each.query for each in found.publication.refused] == [2]
    assert len(found.publication.columns) == 1
    with pytest.raises(Refused, match="single rows"):
        OnlineAuditor(staff, private="pay").ask(log[1])


# Against every table that would have shown the same ----------------------------------------------


Person = tuple[str, str, str]
LISTS = ("pay", "team, pay", "sex, pay", "team, sex, pay", "name, pay", "pay, pay + 1")
CHOSEN = ("", "team = 'a'", "sex = 'f'", "team = 'a' AND sex = 'f'", "name <> 'p0'")
SECRETLY = ("pay > 0", "pay <> 1", "team = 'a' AND pay < 2", "team = 'a' OR pay = 0")
VALUES = (0, 1, 2)

people = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("fm")), min_size=1, max_size=4)
tables = people.flatmap(
    lambda rows: st.tuples(
        st.just([(f"p{i}", *row) for i, row in enumerate(rows)]),
        st.lists(st.sampled_from(VALUES), min_size=len(rows), max_size=len(rows)),
    )
)


def statement(columns: str, kind: str, where: str) -> str:
    """The same rows in one of the ways that SQL has to write them."""
    condition = f" WHERE {where}" if where else ""
    *keys, last = columns.split(", ")
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return {
        "rows": f"SELECT {columns} FROM t{condition}",
        "distinct": f"SELECT DISTINCT {columns} FROM t{condition}",
        "counted": f"SELECT {columns}, COUNT(*) FROM t{condition} GROUP BY {columns}",
        "listed": f"SELECT {', '.join([*keys, f'array_agg({last})'])} FROM t{condition}{by}",
    }[kind]


class Tables:
    """Every table of these people, and what a statement shows of each, by DuckDB's own reading."""

    def __init__(self, rows: Sequence[Person], truth: Sequence[int]) -> None:
        self.rows, self.truth = rows, tuple(truth)
        self.all = list(product(VALUES, repeat=len(rows)))
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE t (name TEXT, team TEXT, sex TEXT, pay INTEGER)")

    def shown(self, sql: str, pay: Sequence[int]) -> list[Any]:
        self._connection.execute("DELETE FROM t")
        filled = [(*row, value) for row, value in zip(self.rows, pay, strict=True)]
        self._connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", filled)
        return self._connection.execute(sql).fetchall()

    def fixed(self, alike: Sequence[Sequence[int]]) -> list[int]:
        """The records that have the same value in all of these tables."""
        columns = list(zip(*alike, strict=True))
        return [place for place, seen in enumerate(columns, start=1) if len(set(seen)) == 1]

    def written(self, folder: Path) -> Path:
        path = folder / "t.csv"
        lines = [
            ",".join((*row, str(value))) for row, value in zip(self.rows, self.truth, strict=True)
        ]
        path.write_text("name,team,sex,pay\n" + "\n".join(lines) + "\n")
        return path


def without_order(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Rows, and the lists in them, as multisets."""
    plain = [tuple(sorted(v) if isinstance(v, list) else v for v in row) for row in rows]
    return sorted(plain, key=repr)


def named(sql: str, world: Tables, folder: Path) -> list[Any]:
    found = Audit.of([sql], world.written(folder), private="pay")
    truth: dict[Any, int] = dict(enumerate(world.truth, start=1))
    assert [each.value for each in found.exposed] == [truth[each.record] for each in found.exposed]
    return sorted(each.record for each in found.exposed if each.proof == "read")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("read")


@given(
    tables,
    st.sampled_from(LISTS[:-1]),
    st.sampled_from(("rows", "distinct", "counted", "listed")),
    st.sampled_from(CHOSEN),
)
def test_exactly_those_are_named_who_have_one_value_in_all_tables_that_show_the_same(
    folder: Path, table: tuple[list[Person], list[int]], columns: str, kind: str, where: str
) -> None:
    world, sql = Tables(*table), statement(columns, kind, where)
    seen = without_order(world.shown(sql, world.truth))
    alike = [pay for pay in world.all if without_order(world.shown(sql, pay)) == seen]
    assert named(sql, world, folder) == world.fixed(alike)


@given(tables, st.sampled_from(LISTS), st.sampled_from(("name", "team", "sex, name", "pay")))
def test_the_order_of_rows_says_whose_they_are_and_no_more_than_that(
    folder: Path, table: tuple[list[Person], list[int]], columns: str, order: str
) -> None:
    world = Tables(*table)

    def shown(pay: Sequence[int]) -> list[Any]:
        """The rows in their order, those that tie in any."""
        keys = f"SELECT ({order}), {columns} FROM t ORDER BY {order}"
        if "," in order:
            keys = keys.replace(f"({order})", f"row({order})")
        tied = groupby(world.shown(keys, pay), key=lambda row: repr(row[0]))
        return [row[1:] for _, rows in tied for row in sorted(rows, key=repr)]

    seen = shown(world.truth)
    alike = [pay for pay in world.all if shown(pay) == seen]
    sql = f"SELECT {columns} FROM t ORDER BY {order}"
    assert named(sql, world, folder) == world.fixed(alike)


@given(tables, st.sampled_from(LISTS), st.booleans(), st.sampled_from(SECRETLY))
def test_whoever_a_secret_chooses_is_named_only_where_that_follows(
    folder: Path, table: tuple[list[Person], list[int]], columns: str, once: bool, where: str
) -> None:
    world = Tables(*table)
    sql = statement(columns, "distinct" if once else "rows", where)
    seen = without_order(world.shown(sql, world.truth))
    alike = [pay for pay in world.all if without_order(world.shown(sql, pay)) == seen]
    assert set(named(sql, world, folder)) <= set(world.fixed(alike))


@given(
    tables,
    st.sampled_from(("pay", "team, pay", "name, pay")),
    st.sampled_from(("pay", "pay DESC", "name", "team")),
    st.integers(1, 3),
)
@settings(max_examples=20)
def test_the_first_rows_name_nobody_whom_another_choice_among_ties_would_not(
    folder: Path, table: tuple[list[Person], list[int]], columns: str, order: str, limit: int
) -> None:
    world = Tables(*table)

    def outcomes(pay: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """What may be shown: the first rows, and any of those that tie for the last places."""
        rows = world.shown(
            f"SELECT {order.removesuffix(' DESC')}, {columns} FROM t ORDER BY {order}", pay
        )
        first: list[Any] = []
        for _, group in groupby(rows, key=lambda row: row[0]):
            tied = sorted((row[1:] for row in group), key=repr)
            room = limit - len(first)
            if len(tied) >= room:
                yield from (tuple(first) + each for each in combinations(tied, room))
                return
            first += tied
        yield tuple(first)

    possible = {pay: set(outcomes(pay)) for pay in world.all}
    who = set(named(f"SELECT {columns} FROM t ORDER BY {order} LIMIT {limit}", world, folder))
    for seen in possible[world.truth]:
        alike = [pay for pay, shown in possible.items() if seen in shown]
        assert who <= set(world.fixed(alike))


# Twins ------------------------------------------------------------------------------------------


TWO = Tables([("p0", "a", "f"), ("p1", "a", "f"), ("p2", "b", "f")], [1, 2, 0])


@pytest.mark.parametrize("everybody", [True, False])
def test_the_comparison_notices_whoever_is_named_wrongly(
    everybody: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT team, pay FROM t"
    seen = without_order(TWO.shown(sql, TWO.truth))
    fixed = TWO.fixed([p for p in TWO.all if without_order(TWO.shown(sql, p)) == seen])
    assert named(sql, TWO, folder) == fixed == [3]
    broken = np.full(len(TWO.rows), everybody)
    monkeypatch.setattr(read_out._Rows, "_same", lambda *_: broken)
    assert named(sql, TWO, folder) != fixed
