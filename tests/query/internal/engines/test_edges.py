"""Tables at their edges: no rows, odd names, odd keys, and numbers at the ends of their types."""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from oracles.statements import show
from query import slow
from query.world import Rows, in_file

from casemate.query import Aggregate
from casemate.query.engines import answers
from casemate.query.parse import parse, parse_statement
from casemate.query.records import lineage, membership
from casemate.table import Table

Make = Callable[[Mapping[str, str], Rows], Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A protected table of the given columns and rows."""
    return partial(in_file, tmp_path)


def values(sql: str, table: Table) -> list[Any]:
    """The results of one statement, sorted."""
    return sorted(show(parse_statement(sql, table.policy), table.source).rows, key=str)


def members(sql: str, table: Table) -> list[Any]:
    """The records that one count selects."""
    found = membership(parse(sql, table.policy), table.source)
    return list(found.records[found.mask(0)])


EVERY_TYPE = {
    "id": "BIGINT",
    "b": "BOOLEAN",
    "i": "BIGINT",
    "d": "DECIMAL(9, 2)",
    "f": "DOUBLE",
    "s": "VARCHAR",
    "day": "DATE",
    "moment": "TIMESTAMP",
}
EVERY_QUESTION = """
    SELECT COUNT(*), COUNT(b), SUM(i), AVG(d), MIN(f), MAX(s), MIN(day), MAX(moment), MEDIAN(i)
    FROM t
    WHERE b IS NOT FALSE AND i < 5 AND d <= 3.5 AND f <> 2 AND s < 'z' AND day > '1999-01-01'
      AND moment > '1999-01-01 00:00:00' OR i IS NULL
"""


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(1,) + (None,) * 7],
        [(1, True, 3, 1.5, 2.5, "a", "2020-01-01", "2020-01-01 12:00:00")],
    ],
    ids=["no", "null", "one"],
)
def test_every_type_in_a_table_of_no_row_of_nulls_and_of_one_row(make: Make, rows: Rows) -> None:
    table = make(EVERY_TYPE, rows)
    aggregates = parse(EVERY_QUESTION, table.policy)
    ((count, *rest),) = values(EVERY_QUESTION, table)
    assert count == len(rows)
    assert membership(aggregates, table.source).sizes()[0] == len(rows)
    assert len(lineage(aggregates, table.source).records) == len(rows)
    grouped = "SELECT b, i, d, f, s, day, moment, COUNT(*) FROM t GROUP BY 1, 2, 3, 4, 5, 6, 7"
    assert len(values(grouped, table)) == len(rows)
    assert len(lineage(parse(grouped, table.policy), table.source).cells) == len(rows)
    assert (rest[0] == 0) == (not rows or rows[0][1] is None)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("VARCHAR", ["b", "a", "é"]),
        ("DECIMAL(5, 2)", ["2.50", "1.25", "10.00"]),
        ("DATE", ["2020-02-01", "2020-01-01", "1999-12-31"]),
        ("TIMESTAMP", ["2020-02-01 10:00:00", "2020-01-01 00:00:00", "1999-12-31 23:59:59"]),
        ("DOUBLE", [2.5, -1.0, 1e300]),
    ],
)
def test_records_may_be_known_by_keys_of_any_type(make: Make, kind: str, keys: list[Any]) -> None:
    table = make({"id": kind, "x": "INTEGER"}, list(zip(keys, [1, 2, 3], strict=True)))
    (total,) = parse("SELECT SUM(x) WHERE x >= 2", table.policy)
    found = lineage([total], table.source)
    assert found.records.tolist() == sorted(found.records.tolist())
    assert sorted(found.coefficient.tolist()) == [2, 3]
    chosen = membership([total], table.source)
    assert chosen.mask(0).sum() == 2
    assert set(found.records[found.record]) == set(chosen.records[chosen.mask(0)])


LARGEST = 2**63 - 1
EXTREMES = [-LARGEST - 1, -LARGEST, -(2**62) - 1, -(2**62), -1, 0, 1, 2**62, 2**62 + 1, LARGEST]


def test_integers_at_the_ends_of_64_bits_are_members_where_they_should_be(make: Make) -> None:
    table = make({"id": "INTEGER", "i": "BIGINT"}, list(enumerate(EXTREMES)))
    constants = [*EXTREMES[1:], 2**63, -(2**63) - 1, "0.5", "-4611686018427387904.5"]
    signs = ["=", "<>", "<", "<=", ">", ">="]
    records = [{"id": place, "i": value} for place, value in enumerate(EXTREMES)]
    for constant in constants:  # each in a coding of its own, and all in one
        texts = [f"SELECT COUNT(*) WHERE i {sign} {constant}" for sign in signs]
        check_members([parse(text, table.policy)[0] for text in texts], table, records)
    texts = [f"SELECT COUNT(*) WHERE i {sign} {each}" for sign in signs for each in constants]
    check_members([parse(text, table.policy)[0] for text in texts], table, records)


def check_members(counts: list[Aggregate], table: Table, records: list[dict[str, Any]]) -> None:
    found = membership(counts, table.source)
    for index, count in enumerate(counts):
        expected = [place for place, _ in slow.selected(count, records)]
        assert found.mask(index).nonzero()[0].tolist() == expected


def test_sums_past_64_bits_are_exact(make: Make) -> None:
    table = make({"id": "INTEGER", "i": "BIGINT"}, [(1, LARGEST), (2, LARGEST), (3, LARGEST)])
    aggregates = parse("SELECT SUM(i), AVG(i), SUM(-i) FROM t", table.policy)
    assert [cells[()] for cells in answers(aggregates, table.source)] == [
        3 * LARGEST,
        LARGEST,
        -3 * LARGEST,
    ]
    repeated = Aggregate(aggregates[0].function, aggregates[0].argument)
    assert sum(map(int, lineage([repeated], table.source).coefficient)) == 3 * LARGEST


def test_what_is_not_a_number_is_one_group_and_larger_than_all_numbers(make: Make) -> None:
    odd = [math.nan, math.inf, -math.inf, 1.5, None, math.nan]
    table = make({"id": "INTEGER", "f": "DOUBLE"}, list(enumerate(odd)))
    (grouped,) = parse("SELECT f, COUNT(*) FROM t GROUP BY f", table.policy)
    assert sorted(answers([grouped], table.source)[0].values(), key=str) == [1, 1, 1, 1, 2]
    assert len(lineage([grouped], table.source).cells) == 5
    found = membership([grouped], table.source)
    assert found.groups[0] is not None
    assert len(found.groups[0].keys) == 5
    assert members("SELECT COUNT(*) WHERE f > 1", table) == [0, 1, 3, 5]
    assert members("SELECT COUNT(*) WHERE f < 2 AND length(f::int::text) > 0 OR f < -9", table) == [
        2,
        3,
    ]
    assert members("SELECT COUNT(*) WHERE abs(f) > 1", table) == [0, 1, 2, 3, 5]


def test_the_digits_of_decimals_are_kept_through_products_and_choices(make: Make) -> None:
    columns = {"id": "INTEGER", "d": "DECIMAL(9, 2)", "wide": "DECIMAL(38, 2)"}
    table = make(columns, [(i, "1234567.25", "1234567.25") for i in range(3)])
    ((total,),) = values("SELECT SUM(d * 1.123456789012 * 1.5 * 1.000000000001)", table)
    assert math.isclose(total, 3 * 1234567.25 * 1.123456789012 * 1.5 * 1.000000000001)
    ((exact,),) = values("SELECT SUM(d * d * d)", table)
    assert exact == 3 * Decimal("1234567.25") ** 3
    ((apart,),) = values("SELECT SUM(d + 1.123456789012 - 0.000000000012)", table)
    assert apart == 3 * Decimal("1234568.373456789")
    ((least, case),) = values(
        "SELECT SUM(least(wide, 0.125)), SUM(CASE WHEN wide > 0.125 THEN 0.125 ELSE wide END)",
        table,
    )
    assert least == case == Decimal("0.375")
