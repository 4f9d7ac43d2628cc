from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from casemate.attack.subjects import MOST_CODES, WIDEST, Feature, Features, combined
from casemate.table import Table
from casemate.table.shipped import shipped
from casemate.table.sources import Series

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


def feature(values: Sequence[object], missing: list[bool] | None = None) -> Feature:
    gone = np.array(missing or [False] * len(values))
    return Feature.of("column", Series(np.array([*values], object), gone))


def test_only_public_columns_that_say_something_are_features(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "t.toml").write_text(POLICY)
    with Table.open(tmp_path / "t.toml") as table:
        found = Features.of(table.policy, table.source)
    assert [each.name for each in found.columns] == ["age", "town"]
    assert found.records == 4
    assert found.columns[0].missing.tolist() == [False, False, True, False]
    assert repr(found) == "<Features: 2 public columns of 4 records>"


def test_the_rows_are_in_the_order_of_the_records() -> None:
    with Table.open("population:60") as table:
        found = {each.name: each for each in Features.of(table.policy, table.source).columns}
    told = shipped("population:60")
    assert told is not None
    for name in ("region", "sex"):
        _, codes = np.unique(told.columns[name].values.astype(str), return_inverse=True)
        same = found[name].codes[:, None] == found[name].codes
        assert (same == (codes[:, None] == codes)).all()


def test_numbers_have_mean_0_and_deviation_1_and_0_where_they_are_missing() -> None:
    found = feature([1, 3, 5, 0], [False, False, False, True])
    assert found.numbers is not None
    assert found.numbers[:3].mean() == pytest.approx(0)
    assert found.numbers[:3].std() == pytest.approx(1)
    assert found.numbers[3] == 0


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


def test_a_missing_value_is_a_category_of_its_own() -> None:
    found = feature(["a"] * 6 + ["a"] * 5, [False] * 6 + [True] * 5)
    assert found.codes.tolist() == [0] * 6 + [1] * 5
    assert np.array(found.columns())[:2].sum(axis=1).tolist() == [6, 5]


def test_a_column_in_which_everybody_differs_is_a_number_or_nothing() -> None:
    numbers = Features.given({"id": np.arange(9.0)})
    assert numbers.shared == ()
    assert numbers.design(np.arange(9)).shape == (9, 1)
    texts = Features.given({"id": np.array(list("abcdefghi"))})
    assert texts.shared == ()
    assert texts.design(np.arange(9)).shape == (9, 0)


def test_a_number_with_many_values_enters_cells_by_eighths() -> None:
    few = feature(list(range(MOST_CODES)) * 2)
    assert (few.cells == few.codes).all()
    many = feature([*range(80), 0, 0], [False] * 80 + [True] * 2)
    assert sorted(np.bincount(many.cells).tolist()) == [2, *[10] * 8]


def test_a_record_is_unique_when_nobody_shares_all_its_public_values() -> None:
    found = Features.given({"a": np.array([1, 1, 2, 2]), "b": np.array(["x", "x", "x", "y"])})
    assert found.unique.tolist() == [False, False, True, True]
    assert Features(3).unique.tolist() == [False] * 3


def test_a_design_keeps_the_columns_that_vary_most() -> None:
    rng = np.random.default_rng(0)
    found = Features.given({f"c{i}": rng.integers(0, 12, 200) for i in range(20)})
    assert found.design(np.arange(200)).shape == (200, WIDEST)


def test_combined_codes_are_equal_where_all_codes_are() -> None:
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 3, 40) for _ in range(3)]
    found = combined(codes, 40)
    tuples = list(zip(*(each.tolist() for each in codes), strict=True))
    for i in range(40):
        assert (found == found[i]).tolist() == [each == tuples[i] for each in tuples]
