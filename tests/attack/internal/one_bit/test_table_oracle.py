"""A table as a threshold oracle: the groups, the reduction, and what it refuses."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.one_bit import TableOracle
from casemate.attack.one_bit.laws import Gaussian, Laplace, Law, Uniform
from casemate.attack.one_bit.oracle import NoisyOracle
from casemate.attack.one_bit.table_oracle import GroupTotals, group_records
from casemate.attack.plan.language import Axis, Language, read_language
from casemate.errors import Misconfigured
from casemate.table import Column, ColumnType, Table

AGES, PAY = [20, 20, 30, 30, 30, 40], [100, 300, 50, 250, 600, 900]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{age},{pay},x" for age, pay in zip(AGES, PAY, strict=True)]
    path.write_text("\n".join(["age,pay,word", *rows, ""]))
    return path


def totals(
    people: Path, dimensions: int = 3, bounds: tuple[float, float] = (0, 1000)
) -> GroupTotals:
    return TableOracle.of(people, private="pay", dimensions=dimensions, bounds=bounds).totals


def test_a_weighted_total_is_a_product_with_the_groups_means(people: Path) -> None:
    """SUM(weight * pay), with one weight for each age, from w . q and public numbers alone."""
    for bounds in ((0.0, 1000.0), (50.0, 900.0), (-100.0, 2000.0)):
        oracle = TableOracle.of(people, private="pay", dimensions=3, bounds=bounds)
        weights = np.array([0.25, 1.0, 0.5])
        by_age = dict(zip((20, 30, 40), weights.tolist(), strict=True))
        truth = sum(by_age[age] * pay for age, pay in zip(AGES, PAY, strict=True))
        q = oracle.query(weights)
        assert oracle.totals.total(q, float(q @ oracle.totals.means)) == pytest.approx(truth)
        assert np.all((oracle.totals.means >= 0) & (oracle.totals.means <= 1))
        assert oracle.totals.value(oracle.totals.means[0]) == pytest.approx(200)


def test_noise_is_on_the_total_in_the_columns_unit(people: Path, seed: int) -> None:
    oracle = TableOracle(totals(people), Gaussian(5.0), np.random.default_rng(seed))
    q = oracle.query([1, 0, 0])
    noise = oracle.noisy(np.tile(q, (4_000, 1))) - 400
    assert abs(noise.mean()) < 6 * 5 / np.sqrt(4_000) and 4.4 < noise.std() < 5.6


def test_numbers_outside_the_bounds_are_moved_and_missing_ones_count_as_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("age,pay\n1,-50\n2,500\n3,\n4,60\n")
    assert totals(tmp_path / "t.csv", 4, (0, 100)).means.tolist() == [0, 1, 0, 0.6]
    assert totals(tmp_path / "t.csv", 4, (50, 150)).means.tolist() == [0, 1, 0, 0.1]


def test_bounds_come_from_the_policy(tmp_path: Path, people: Path) -> None:
    policy = tmp_path / "people.toml"
    start = f'[table]\nsource = "{people.name}"\n[columns.age]\n[columns.pay]\nrole = "private"\n'
    policy.write_text(f"{start}min = 0\nmax = 2000\n")
    assert TableOracle.of(policy, dimensions=3).totals.bounds == (0, 2000)
    policy.write_text(f"{start}values = [50, 100, 250, 300, 600, 900]\n")
    assert TableOracle.of(policy, dimensions=3).totals.bounds == (50, 900)


def test_an_open_table_stays_open(people: Path) -> None:
    with Table.open(people, private=["pay"]) as table:
        assert TableOracle.of(table, dimensions=2, bounds=(0, 1000)).dimension == 2
        assert TableOracle.of(table, private="pay", dimensions=2, bounds=(0, 1)).dimension == 2


@pytest.mark.parametrize(
    ("private", "bounds", "why"),
    [
        ("word", (0, 1), "'word' is not numeric"),
        ("pay", (5, 5), "5:5 leave no range"),
        ("pay", (0, float("inf")), "leave no range"),
        (None, (0, 1), "no column is private"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    people: Path, private: str | None, bounds: tuple[float, float], why: str
) -> None:
    with pytest.raises(Misconfigured, match=why):
        TableOracle.of(people, private=private, dimensions=3, bounds=bounds)


def test_several_private_columns_need_a_name(people: Path) -> None:
    with Table.open(people, private=["pay", "age"]) as table:
        with pytest.raises(Misconfigured, match=r"several columns are private \(age, pay\)"):
            TableOracle.of(table, dimensions=1, bounds=(0, 1))
        with pytest.raises(Misconfigured, match="'word' is not private"):
            TableOracle.of(table, private="word", dimensions=1, bounds=(0, 1))


@pytest.mark.parametrize("weights", [[1, 1], [1, 1, 1.5], [1, 1, -0.1], [1, 1, float("nan")]])
def test_weights_are_between_0_and_1_one_for_each_group(people: Path, weights: list[float]) -> None:
    oracle = TableOracle.of(people, private="pay", dimensions=3, bounds=(0, 1000))
    with pytest.raises(ValueError, match="need 3 weights between 0 and 1"):
        oracle.query(weights)


def test_nothing_of_the_secret_is_in_a_repr(people: Path) -> None:
    found = totals(people)
    assert repr(found) == "<GroupTotals: 3 groups of 6 records>"
    assert repr(found.groups) == "<Groups: 3 of 6 records>"


MEANS = np.array([0.2, 0.9, 0.4, 0.6])


@pytest.mark.parametrize("law", [Laplace(0.7), Uniform(2.0)])
def test_a_bit_is_one_as_often_as_the_law_says(law: Law, seed: int) -> None:
    trials, q = 20_000, np.ones(4)
    oracle = NoisyOracle(MEANS, law, np.random.default_rng(seed))
    hits = int((oracle.noisy(np.tile(q, (trials, 1))) > 2.6).sum())
    rate = 1 - float(law.cdf(2.6 - MEANS.sum()))
    assert_rate_at_most(hits, trials, rate)
    assert_rate_at_most(trials - hits, trials, 1 - rate)
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, trials, 0.9 * rate)


# Groups that everybody can name -------------------------------------------------------------------


def language(**columns: Sequence[Any]) -> Language:
    """Public columns with these values, in the order of the records."""
    axes = []
    for name, values in columns.items():
        kinds = sorted({each for each in values if each is not None})
        places = np.array([-1 if each is None else kinds.index(each) for each in values])
        ordered = not isinstance(kinds[0], str)
        column = Column(name, type=ColumnType.INTEGER if ordered else ColumnType.TEXT)
        axes.append(Axis(column, tuple(kinds), places, ordered))
    return Language(tuple(axes), np.arange(len(values)))


SEX, AGE = ["f", "m"] * 4, [1, 1, 2, 2, 3, 3, 3, 3]
LETTERS = list("aabbccddeeff")


@pytest.mark.parametrize(
    ("columns", "most", "expected"),
    [
        pytest.param(
            {"age": range(100)},
            4,
            {"age <= 24": 25, "24 < age <= 49": 25, "49 < age <= 74": 25, "age > 74": 25},
            id="a number is cut at its quantiles",
        ),
        pytest.param(
            {"sex": SEX, "age": AGE},
            16,
            {
                **{f"sex = {sex}, age = {age}": 1 for sex in "fm" for age in (1, 2)},
                **{f"sex = {sex}, age = 3": 2 for sex in "fm"},
            },
            id="the column of most values comes first and then whatever is left",
        ),
        pytest.param(
            {"kind": LETTERS},
            2,
            {"kind = a or b or c": 6, "kind = d or e or f": 6},
            id="categories are listed",
        ),
        pytest.param(
            {"kind": [*LETTERS, "g", "g", "h", "h"]},
            2,
            {"kind from a to d": 8, "kind from e to h": 8},
            id="many categories are named by their ends",
        ),
        pytest.param(
            {"age": [None, None, 1, 2]},
            3,
            {"age missing": 2, "age = 1": 1, "age = 2": 1},
            id="missing values come first",
        ),
        pytest.param(
            {"age": [None, 1, 2, 3]},
            2,
            {"age = 1 or missing": 2, "age > 1": 2},
            id="missing values are named",
        ),
        pytest.param({"age": [1, 2, 3]}, 1, {"everybody": 3}, id="one group is everybody"),
        pytest.param({"age": [7, 7, 7]}, 5, {"everybody": 3}, id="twins are not parted"),
    ],
)
def test_groups_are_named_by_what_parts_them(
    columns: dict[str, Sequence[Any]], most: int, expected: dict[str, int]
) -> None:
    found = group_records(language(**columns), most)
    assert list(zip(found.names, found.sizes.tolist(), strict=True)) == list(expected.items())


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_groups_part_the_records_and_only_public_columns_matter(
    rows: list[tuple[int, int]], most: int
) -> None:
    """Records that agree in all public columns are together; groups are as many as there can be."""
    columns = language(a=[a for a, _ in rows], b=[b for _, b in rows])
    found = group_records(columns, most)
    assert len(found) == min(most, len(set(rows)))
    assert found.sizes.sum() == len(rows) and found.sizes.min() > 0
    alike = sorted(zip(rows, found.codes.tolist(), strict=True))
    assert all(g == h for (one, g), (other, h) in pairwise(alike) if one == other)
    assert found.codes.tolist() == group_records(columns, most).codes.tolist()
    assert len(set(found.names)) == len(found)


def test_distinct_numbers_make_groups_that_differ_by_a_factor_of_two_at_most() -> None:
    for most in range(1, 33):
        sizes = group_records(language(age=list(range(997))), most).sizes
        assert len(sizes) == most and sizes.max() <= 2 * sizes.min() + 1


def test_the_private_column_is_never_looked_at(tmp_path: Path) -> None:
    codes = []
    for pay in (range(40), reversed(range(40))):
        rows = [f"{i % 7},{i % 3},{each}" for i, each in enumerate(pay)]
        (tmp_path / "t.csv").write_text("\n".join(["age,area,pay", *rows, ""]))
        with Table.open(tmp_path / "t.csv", private=["pay"]) as table:
            codes.append(group_records(read_language(table.policy, table.source), 8).codes.tolist())
    assert codes[0] == codes[1]
