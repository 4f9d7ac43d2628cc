"""Groups of records: even, repeatable, made of public columns and nothing else."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.one_bit.groups import RecordGroups, grouped
from casemate.attack.plan.language import Axis, Language, read_language
from casemate.table import Column, ColumnType, Table


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


def by_name(groups: RecordGroups) -> dict[str, int]:
    return dict(zip(groups.names, groups.sizes.tolist(), strict=True))


def test_a_number_is_cut_at_its_quantiles() -> None:
    found = grouped(language(age=list(range(100))), 4)
    assert by_name(found) == {
        "age <= 24": 25,
        "24 < age <= 49": 25,
        "49 < age <= 74": 25,
        "age > 74": 25,
    }


def test_the_column_of_most_values_comes_first_and_then_whatever_is_left() -> None:
    found = grouped(language(sex=["f", "m"] * 4, age=[1, 1, 2, 2, 3, 3, 3, 3]), 16)
    assert found.names == (
        "sex = f, age = 1",
        "sex = f, age = 2",
        "sex = m, age = 1",
        "sex = m, age = 2",
        "sex = f, age = 3",
        "sex = m, age = 3",
    )
    assert found.sizes.tolist() == [1, 1, 1, 1, 2, 2]


def test_categories_are_listed_and_many_of_them_named_by_their_ends() -> None:
    letters = list("aabbccddeeff")
    assert grouped(language(kind=letters), 2).names == ("kind = a or b or c", "kind = d or e or f")
    assert grouped(language(kind=[*letters, "g", "g", "h", "h"]), 2).names == (
        "kind from a to d",
        "kind from e to h",
    )


def test_missing_values_come_first_and_are_named() -> None:
    found = grouped(language(age=[None, None, 1, 2]), 3)
    assert by_name(found) == {"age missing": 2, "age = 1": 1, "age = 2": 1}
    assert grouped(language(age=[None, 1, 2, 3]), 2).names == ("age = 1 or missing", "age > 1")


def test_one_group_is_everybody_and_twins_are_not_parted() -> None:
    assert by_name(grouped(language(age=[1, 2, 3]), 1)) == {"everybody": 3}
    assert by_name(grouped(language(age=[7, 7, 7]), 5)) == {"everybody": 3}
    with pytest.raises(ValueError, match="at least one group"):
        grouped(language(age=[1]), 0)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_groups_part_the_records_and_only_public_columns_matter(
    rows: list[tuple[int, int]], most: int
) -> None:
    """Records that agree in all public columns are together; groups are as many as there can be."""
    columns = language(a=[a for a, _ in rows], b=[b for _, b in rows])
    found = grouped(columns, most)
    assert len(found) == min(most, len(set(rows)))
    assert found.sizes.sum() == len(rows) and found.sizes.min() > 0
    alike = sorted(zip(rows, found.codes.tolist(), strict=True))
    assert all(g == h for (one, g), (other, h) in pairwise(alike) if one == other)
    assert found.codes.tolist() == grouped(columns, most).codes.tolist()
    assert len(set(found.names)) == len(found)


def test_distinct_numbers_make_groups_that_differ_by_a_factor_of_two_at_most() -> None:
    for most in range(1, 33):
        sizes = grouped(language(age=list(range(997))), most).sizes
        assert len(sizes) == most and sizes.max() <= 2 * sizes.min() + 1


def test_the_private_column_is_never_looked_at(tmp_path: Path) -> None:
    codes = []
    for pay in (range(40), reversed(range(40))):
        rows = [f"{i % 7},{i % 3},{each}" for i, each in enumerate(pay)]
        (tmp_path / "t.csv").write_text("\n".join(["age,area,pay", *rows, ""]))
        with Table.open(tmp_path / "t.csv", private=["pay"]) as table:
            codes.append(grouped(read_language(table.policy, table.source), 8).codes.tolist())
    assert codes[0] == codes[1]
