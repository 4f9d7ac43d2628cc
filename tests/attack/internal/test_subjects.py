from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from casemate.attack.features import Feature, Features
from casemate.attack.problem_from_queries import Evidence
from casemate.attack.subjects import Subjects
from casemate.table import Table
from casemate.table.shipped import shipped_table
from casemate.table.sources import Series


def published(name: str | Path, column: str, sql: str) -> Subjects:
    with Table.open(name) as table:
        found = Evidence.of([sql], table)
        return found.subjects(column, Features.of(table.policy, table.source))


def test_a_private_category_is_a_row_of_unknowns() -> None:
    count = "SELECT diagnosis, COUNT(*) FROM t GROUP BY diagnosis"
    found = published("population:40", "diagnosis", count)
    assert len(found.records) == 40 and len(found.kinds) > 1
    assert found.by_record(np.zeros(len(found.record))).shape == (40, len(found.kinds))


POLICY = """
[table]
source = "t.csv"
person = "who"
rows_per_person = 2
[columns.who]
role = "public"
[columns.passport]
role = "identifier"
[columns.age]
role = "public"
nullable = true
[columns.town]
role = "public"
[columns.same]
role = "public"
[columns.income]
role = "private"
unbounded = true
"""
ROWS = """who,passport,age,town,same,income
1,a,10,north,1,5
1,b,30,north,1,6
2,c,,south,1,7
3,d,20,south,1,8
"""


@pytest.fixture
def households(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "t.toml").write_text(POLICY)
    return tmp_path / "t.toml"


def test_all_rows_of_a_person_leave_together(households: Path) -> None:
    found = published(households, "income", "SELECT town, SUM(income) FROM t GROUP BY town")
    gone = found.unknowns_of(found.people[:1])
    assert found.record[gone].tolist() == [0, 1]
    assert found.unknowns_of(found.people[2:3]).tolist() == [2]


def feature(values: Sequence[object], missing: list[bool] | None = None) -> Feature:
    gone = np.array(missing or [False] * len(values))
    return Feature.of("column", Series(np.array([*values], object), gone))


def test_only_public_columns_that_say_something_are_features(households: Path) -> None:
    with Table.open(households) as table:
        found = Features.of(table.policy, table.source)
    assert [each.name for each in found.columns] == ["age", "town"]
    assert found.records == 4
    assert found.columns[0].missing.tolist() == [False, False, True, False]
    assert repr(found) == "<Features: 2 public columns of 4 records>"


def test_the_rows_are_in_the_order_of_the_records() -> None:
    with Table.open("population:60") as table:
        found = {each.name: each for each in Features.of(table.policy, table.source).columns}
    told = shipped_table("population:60")
    assert told is not None
    for name in ("region", "sex"):
        _, codes = np.unique(told.columns[name].values.astype(str), return_inverse=True)
        same = found[name].codes[:, None] == found[name].codes
        assert (same == (codes[:, None] == codes)).all()


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")],
        [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3)],
        [datetime(2020, 1, 1, 6), datetime(2020, 1, 1, 7), datetime(2020, 1, 1, 8)],
    ],
)
def test_decimals_and_dates_are_numbers(values: list[object]) -> None:
    found = feature(values).numbers
    assert found is not None
    np.testing.assert_allclose(found, [-np.sqrt(1.5), 0, np.sqrt(1.5)], atol=1e-9)


def test_texts_and_truth_values_are_categories_and_rare_ones_are_pooled() -> None:
    found = feature(["a"] * 6 + ["b"] * 5 + ["c", "d"])
    assert found.numbers is None
    assert np.array(found.columns()).sum(axis=1).tolist() == [6, 5, 2]
    assert feature([True] * 5 + [False] * 5).numbers is None


def test_a_column_in_which_everybody_differs_is_a_number_or_nothing() -> None:
    numbers = Features.from_arrays({"id": np.arange(9.0)})
    assert numbers.shared == ()
    assert numbers.design(np.arange(9)).shape == (9, 1)
    texts = Features.from_arrays({"id": np.array(list("abcdefghi"))})
    assert texts.shared == ()
    assert texts.design(np.arange(9)).shape == (9, 0)
