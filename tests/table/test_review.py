from pathlib import Path

import pytest

from casemate.table.review import ColumnReview, Review, review
from casemate.table.table import Table

POLICY = """
[table]
source = "people.csv"
person = "who"
rows_per_person = 2
[columns.Age]
min = 0
max = 100
from = "data"
[columns.Gender]
values = ["m", "f", "it's"]
[columns.Day]
min = 2020-01-01
max = 2020-12-31
[columns.Ratio]
role = "private"
min = -0.5
max = 1
nullable = true
[columns.Note]
role = "identifier"
"""
ROWS = """who,Age,Gender,Day,Ratio,Note
1,0,m,2020-01-01,nan,a
1,100,f,2020-12-31,0.1e0,
1,101,it's,2021-01-01,,c
2,-1,x,2019-12-31,-0.5,d
,50,,2020-06-01,1.5,e
"""


def reviewed(folder: Path, policy: str, rows: str = ROWS) -> Review:
    (folder / "people.csv").write_text(rows)
    (folder / "casemate.toml").write_text(policy)
    with Table.open(folder / "casemate.toml", exact=False) as table:
        return review(table)


def counts(found: Review) -> dict[str, tuple[int, int | None, int | None]]:
    return {item.column.name: _three(item) for item in found.columns}


def _three(item: ColumnReview) -> tuple[int, int | None, int | None]:
    return item.nulls, item.outside, item.undeclared


def test_everything_the_policy_does_not_foresee_is_counted(tmp_path: Path) -> None:
    found = reviewed(tmp_path, POLICY)
    assert found.rows == 5
    assert counts(found) == {
        "Age": (0, 2, None),
        "Gender": (1, None, 1),
        "Day": (0, 2, None),
        "Ratio": (1, 2, None),  # NaN is above every bound
        "Note": (1, None, None),
    }
    assert (found.people, found.people_over_limit) == (2, 1)


def test_what_needs_a_decision_is_warned_of(tmp_path: Path) -> None:
    warnings = "\n".join(reviewed(tmp_path, POLICY).warnings)
    assert "Age: bounds, values or bins were taken from the data" in warnings
    assert "Age: some rows are outside the bounds and will be clamped" in warnings
    assert "Gender: some rows hold values that are not listed" in warnings
    assert "Gender: some rows are NULL, and the policy does not say `nullable`" in warnings
    assert "Ratio: some rows are NULL" not in warnings
    assert "more rows than `rows_per_person`" in warnings


def test_the_grid_for_private_answers_is_part_of_a_review(tmp_path: Path) -> None:
    universe = reviewed(tmp_path, POLICY).universe
    assert [each.name for each in universe.attributes] == ["Age", "Gender", "Day", "Ratio"]
    assert universe.shape == (17, 4, 17, 17)  # bounds without bins have sixteen, and NULL one more
    assert universe.left_out == ()  # an identifier is not asked about


def test_a_column_without_cells_is_left_out_and_says_why(tmp_path: Path) -> None:
    policy = '[table]\nsource="people.csv"\n[columns.Age]\n[columns.Note]\n[columns.Gender]\n'
    universe = reviewed(tmp_path, policy + 'values = ["m", "f"]').universe
    assert universe.cells == 3
    age, note = (each.reason for each in universe.left_out)
    assert "Age has no cells; declare `min`, `max` and `bins`" in age
    assert "Note has no cells; declare its `values`" in note


def test_a_policy_that_foresees_everything_has_no_warnings(tmp_path: Path) -> None:
    policy = '[table]\nsource="people.csv"\n[columns.Age]\nrole="private"\nmin=-1\nmax=101'
    found = reviewed(tmp_path, policy)
    assert found.warnings == ()
    assert (found.people, found.people_over_limit) == (None, None)


def test_a_table_in_which_nothing_is_private_is_warned_of(tmp_path: Path) -> None:
    found = reviewed(tmp_path, '[table]\nsource = "people.csv"\n[columns.Age]')
    assert found.warnings == ("no column is private, so nothing is protected yet",)


def test_a_column_made_private_in_passing_has_no_bounds(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS)
    with Table.open(tmp_path / "people.csv", private=["Age"]) as table:
        assert any("private without bounds" in warning for warning in review(table).warnings)


@pytest.mark.postgres
def test_the_counts_are_the_same_on_postgresql(tmp_path: Path, postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute(
            'CREATE TABLE people (n serial PRIMARY KEY, who int, "Age" int, "Gender" text, '
            '"Day" date, "Ratio" float8, "Note" text)'
        )
        with connection.cursor().copy(
            'COPY people (who, "Age", "Gender", "Day", "Ratio", "Note") FROM STDIN (FORMAT csv)'
        ) as copy:
            copy.write(ROWS.partition("\n")[2])
    text = POLICY.replace('"people.csv"', f'"{postgres}#people"\nkey = "n"')
    there = reviewed(tmp_path, text)
    here = reviewed(tmp_path, POLICY)
    assert counts(there) == counts(here)
    assert (there.rows, there.people, there.people_over_limit) == (5, 2, 1)
    assert there.warnings == here.warnings
