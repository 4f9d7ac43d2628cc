import csv
from pathlib import Path

import pytest
from table.stored import store

from casemate.errors import Misconfigured
from casemate.table import ColumnReview, Review
from casemate.table import review_policy as reviewed_policy

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


def review_policy(folder: Path, policy: str, rows: str = ROWS) -> Review:
    (folder / "people.csv").write_text(rows)
    (folder / "casemate.toml").write_text(policy)
    return reviewed_policy(folder / "casemate.toml")[1]


Counts = tuple[int, int | None, int | None, int | None]


def counts(found: Review) -> dict[str, Counts]:
    return {item.column.name: _four(item) for item in found.columns}


def _four(item: ColumnReview) -> Counts:
    return item.nulls, item.misfits, item.outside, item.undeclared


def test_everything_the_policy_does_not_foresee_is_counted(tmp_path: Path) -> None:
    found = review_policy(tmp_path, POLICY)
    assert found.rows == 5
    assert counts(found) == {
        "Age": (0, 0, 2, None),
        "Gender": (1, 0, None, 1),
        "Day": (0, 0, 2, None),
        "Ratio": (1, 1, 1, None),  # NaN is no number
        "Note": (1, None, None, None),
    }
    assert (found.people, found.people_over_limit) == (2, 1)


def test_a_review_warns_of_what_needs_a_decision_and_has_the_grid_for_private_answers(
    tmp_path: Path,
) -> None:
    found = review_policy(tmp_path, POLICY)
    warnings = "\n".join(found.warnings)
    assert "Age: bounds, values or bins were taken from the data" in warnings
    assert "Age: some rows are outside the bounds and will be clamped" in warnings
    assert "Gender: some rows hold values that are not listed" in warnings
    assert "Gender: some rows are NULL, and the policy does not say `missing`" in warnings
    assert "Ratio: some rows are NULL" not in warnings
    assert "more rows than `rows_per_person`" in warnings
    universe = found.universe
    assert [each.name for each in universe.attributes] == ["Age", "Gender", "Day", "Ratio"]
    assert universe.shape == (17, 4, 17, 17)  # bounds without bins have sixteen, and NULL one more
    assert universe.left_out == ()  # an identifier is not asked about


@pytest.mark.parametrize(
    ("column", "warnings"),
    [
        ('role="private"\nmin=-1\nmax=101', ()),
        ("", ("no column is private, so nothing is protected yet",)),
    ],
)
def test_only_a_policy_that_foresees_everything_has_no_warnings(
    tmp_path: Path, column: str, warnings: tuple[str, ...]
) -> None:
    found = review_policy(tmp_path, f'[table]\nsource="people.csv"\n[columns.Age]\n{column}')
    assert found.warnings == warnings
    assert (found.people, found.people_over_limit) == (None, None)


def test_cells_that_are_not_of_the_policys_type_are_counted_and_fail_nothing(
    tmp_path: Path,
) -> None:
    policy = (
        '[table]\nsource="people.csv"\n[columns.n]\ntype="integer"\nrole="private"\nmin=0\nmax=9\n'
        "[columns.d]\nmin=2020-01-01\nmax=2020-12-31\n[columns.x]\nmin=0\nmax=1\n"
    )
    rows = "n,d,x\n3.5,2020-02-30,abc\n,,\n4.0,2020-02-29,.5\nseven,x,nan\n"
    found = review_policy(tmp_path, policy, rows)
    assert counts(found) == {"n": (1, 2, 0, None), "d": (1, 2, 0, None), "x": (1, 2, 0, None)}
    assert any("n: some cells are not of type integer" in each for each in found.warnings)


@pytest.mark.parametrize(("rows", "wrong"), [("1\n1", "same value"), ('1\n""', "NULL")])
def test_a_key_that_names_no_row_is_the_custodians_to_know(
    tmp_path: Path, rows: str, wrong: str
) -> None:
    policy = '[table]\nsource="people.csv"\nkey="id"\n[columns.id]\nrole="identifier"\n'
    with pytest.raises(Misconfigured, match=wrong):
        review_policy(tmp_path, policy, f"id\n{rows}\n")


def test_a_table_without_a_policy_is_not_reviewed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    with pytest.raises(Misconfigured, match="a table and no policy; draft one"):
        reviewed_policy(tmp_path / "t.csv")


@pytest.mark.postgres
def test_the_counts_are_the_same_on_postgresql(tmp_path: Path, postgres: str) -> None:
    names, *rows = csv.reader(ROWS.splitlines())
    engine_types = ("int", "int", "text", "date", "float8", "text")
    types = {"n": "int", **dict(zip(names, engine_types, strict=True))}
    cells = [(n, *(cell or None for cell in row)) for n, row in enumerate(rows)]
    source = store("postgres", tmp_path, types, cells, postgres=postgres)
    text = POLICY.replace('"people.csv"', f'"{source}"\nkey = "n"')
    there = review_policy(tmp_path, text)
    here = review_policy(tmp_path, POLICY)
    assert counts(there) == counts(here)
    assert (there.rows, there.people, there.people_over_limit) == (5, 2, 1)
    assert there.warnings == here.warnings
