"""No cell has a part in types, grid, edition or refusals, and none makes an answer fail."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from answer.session_world import LAVISH, codes, csv, policy

from casemate.answer import Session
from casemate.doors import edition_of
from casemate.errors import Misconfigured, Unsupported
from casemate.table import Budget, ColumnType, Policy, PublicTable, Table, Universe, load_policy

TABLE = 'source = "people.csv"\nkey = "id"'
DECLARED = """
[columns.id]
role = "identifier"
[columns.age]
min = 0
max = 99
[columns.grade]
type = "integer"
role = "private"
min = 0
max = 10
[columns.born]
min = 1900-01-01
max = 2020-12-31
[columns.group]
values = [1, 2]
[columns.well]
values = [true, false]
[columns.note]
"""
NAMES = ("id", "age", "grade", "born", "group", "well", "note")
USUAL = ("7", "30", "5", "1990-01-01", "1", "true", "x")
HOSTILE = [
    *("3.5", "abc", "nan", "inf", "-inf", "1e400", "9" * 60, "2020-02-30", "2020-01-01 10:00+02"),
    *("", " ", "true", "é", "0x1", "1,5", '"', "1_0", "-0", "0.0000000000000001"),
]
STATEMENTS = (
    "SELECT COUNT(*) FROM t WHERE age >= 50",
    "SELECT SUM(grade) FROM t",
    'SELECT "group", COUNT(*) FROM t GROUP BY "group"',
    "SELECT COUNT(*) FROM t WHERE born < DATE '1950-01-01' AND well",
)
REFUSED = ("SELECT COUNT(note) FROM t", "SELECT COUNT(*) FROM t WHERE note = 'x'", "SELECT 1 % age")


def written(folder: Path, rows: list[tuple[str, ...]]) -> Path:
    folder.mkdir()
    cells = [['"' + cell.replace('"', '""') + '"' if cell else "" for cell in row] for row in rows]
    csv(folder / "people.csv", NAMES, cells)
    return policy(folder, table=TABLE, columns=DECLARED, budget=LAVISH)


def leaves(path: Path) -> list[Any]:
    """Everything about a session that must not depend on the data."""
    with Session.simulated(path, seed=1) as session:
        dataset = session._dataset
        found: list[Any] = [dataset.doors.edition, dataset.universe, dataset.table.policy.columns]
        for sql in STATEMENTS:
            answer = session.query(sql)
            found += [answer.columns, answer.notes, len(answer.rows)]
        for sql in REFUSED:
            with pytest.raises(Unsupported) as refusal:
                session.query(sql)
            found.append(str(refusal.value))
    return found


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return leaves(written(tmp_path_factory.mktemp("usual") / "t", [USUAL] * 3))


def test_no_cell_of_a_row_changes_what_must_not_depend_on_it(
    tmp_path: Path, usual: list[Any]
) -> None:
    places = range(len(USUAL))
    rows = [(*USUAL[:p], cell, *USUAL[p + 1 :]) for p in places for cell in HOSTILE]
    assert leaves(written(tmp_path / "all", [USUAL, *rows])) == usual
    assert leaves(written(tmp_path / "none", [])) == usual


def test_types_from_cells_are_noticed(tmp_path: Path) -> None:
    """As it was: one person's cell gives the column another type, and the grid other cells."""
    universes = []
    for name, age in (("a", "30"), ("b", "30.5")):
        path = written(tmp_path / name, [USUAL, ("8", age, *USUAL[2:])])
        with Table.open(path) as table:
            universes.append(Universe.of(table.policy))
    assert universes[0] != universes[1]
    misfit = written(tmp_path / "c", [("7", "30", "3.5", *USUAL[3:])])
    with pytest.raises(Misconfigured, match="is something else"):
        Table.open(misfit)


def test_the_edition_follows_from_the_policys_file_alone(tmp_path: Path, usual: list[Any]) -> None:
    loaded = load_policy(written(tmp_path / "t", []))
    (tmp_path / "t" / "people.csv").unlink()
    assert loaded.budget is not None
    assert edition_of(loaded, loaded.budget) == usual[0]


def test_what_a_public_table_holds_is_no_part_of_the_edition() -> None:
    table = PublicTable("zips", "zips.csv", "zip")
    one, budget = Policy("t.csv", (), public_tables=(table,)), Budget(Fraction(1))
    opened = replace(one, public_tables=(replace(table, columns=one.columns),))
    assert edition_of(one, budget) == edition_of(opened, budget)
    other = replace(one, public_tables=(replace(table, key="area"),))
    assert edition_of(one, budget) != edition_of(other, budget)


def test_a_column_of_unknown_type_says_what_to_declare(tmp_path: Path) -> None:
    with Session.simulated(written(tmp_path / "t", [USUAL]), seed=1) as session:
        assert session._dataset.table.policy.column("age").type is ColumnType.DECIMAL  # type: ignore[union-attr]  # it is there
        with pytest.raises(Unsupported, match="type of note is not known; declare `type` for it"):
            session.query("SELECT COUNT(*) FROM t WHERE note = 'x'")
        with pytest.raises(Unsupported, match="id is an identifier"):
            session.query("SELECT COUNT(id) FROM t")


# Rows of a person --------------------------------------------------------------------------------


def visits(folder: Path, rows: list[tuple[int, str, int]]) -> Path:
    csv(folder / "people.csv", ("who", "place", "cost"), rows)
    table = 'source = "people.csv"\nperson = "who"\nrows_per_person = 2'
    columns = '[columns.place]\nvalues = ["a", "b", "c"]\n' + codes({"cost": 10}, "private")
    return policy(folder, table=table, columns=columns)


def exact_counts(path: Path) -> list[int]:
    with Session(path) as session:
        cells = session._dataset.construction._cells.marginal((0, 1))
        return [int(each) for each in cells.ravel()]


def test_a_person_who_leaves_moves_no_more_than_their_rows(tmp_path: Path) -> None:
    rows = [(who % 40, "abc"[who * 7 % 3], who * 13 % 10) for who in range(400)]
    before = exact_counts(visits(tmp_path, rows))
    for person in (0, 17, 39):
        after = exact_counts(visits(tmp_path, [row for row in rows if row[0] != person]))
        assert sum(abs(one - other) for one, other in zip(before, after, strict=True)) == 2


def test_another_key_is_another_edition(tmp_path: Path) -> None:
    path = visits(tmp_path, [(1, "a", 1)])

    def edition() -> Any:
        with Session(path) as session:
            return session._dataset.doors.edition

    first = edition()
    assert edition() == first
    (tmp_path / "casemate.ledger-key").unlink()
    assert edition() != first
