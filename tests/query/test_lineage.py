"""Lineage by chance: coefficients times true secrets are the sums, whatever is secret and asked."""

import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query import world
from query.internal.engines.test_golden import assert_adds_up

from casemate.query.parse import parse
from casemate.query.records import Category, Unknown, lineage, linear_form
from casemate.table import Table

COLUMNS = {
    "id": "INTEGER",
    "g": "INTEGER",
    "w": "INTEGER",
    "x": "INTEGER",
    "y": "DECIMAL(6, 2)",
    "flag": "BOOLEAN",
    "level": "INTEGER",
    "size": "DOUBLE",
    "price": "DECIMAL(4, 1)",
    "tag": "VARCHAR",
}
POLICY = """
[columns]
g = {}
w = {}
x = {role = "private", min = 0, max = 20}
y = {role = "private", min = -5, max = 5, nullable = true}
flag = {role = "private", values = [true, false], nullable = true}
level = {role = "private", values = [1, 2, 3], nullable = true}
size = {role = "private", values = [1, 0.5, 2.5]}
price = {role = "private", values = [1, 2.5]}
tag = {role = "private", values = ["a", "ab", "it's"]}
"""


def secrets(seed: int = 1, count: int = 40) -> list[dict[str, Any]]:
    chance = random.Random(seed)

    def row(place: int) -> tuple[Any, ...]:
        return (
            place,
            chance.choice([1, 2, 3, None]),
            chance.choice([-1, 0, 2, 5, None]),
            chance.randrange(21),
            chance.choice([None, Decimal(chance.randrange(-500, 500)).scaleb(-2)]),
            chance.choice([True, False, None]),
            chance.choice([1, 2, 3, None]),
            chance.choice([1.0, 0.5, 2.5]),
            chance.choice([Decimal("1.0"), Decimal("2.5")]),
            chance.choice(["a", "ab", "it's"]),
        )

    return [dict(zip(COLUMNS, row(place), strict=True)) for place in range(count)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    rows = [tuple(row.values()) for row in secrets()]
    with world.in_file(tmp_path_factory.mktemp("secrets"), COLUMNS, rows, POLICY) as opened:
        yield opened


public = st.sampled_from(["TRUE", "g = 1", "w > 0", "w IS NULL", "g IS NULL OR w < 3", "NULL"])
about = {
    "x": ["TRUE"],
    "y": ["TRUE"],
    "flag": ["flag", "NOT flag", "flag IS TRUE", "flag IS NULL", "flag = (g = 1)", "flag OR w > 0"],
    "level": ["level = 2", "level IN (1, 3)", "level > w", "NOT level = 1", "level IS NULL"],
    "size": ["size > 0.7", "size * 2 = 1", "round(size) = 2", "size + w > 1"],
    "price": ["price = 2.5", "price * 2 > w", "price IN (1, 2)", "NOT price > 2"],
    "tag": ["tag = 'a'", "tag LIKE 'a%'", "length(tag) > 1", "tag < 'b'", "tag = 'it''s'"],
}
sums = {
    "x": ["x", "w * x", "x - w", "-x", "(x + 1) * (w - 1)", "x / 2.0", "x::numeric * w",
          "coalesce(x, 0)", "CASE WHEN g = 1 THEN x WHEN g = 2 THEN w ELSE x * w END"],
    "y": ["y", "w * y", "-y", "y / 2", "CASE WHEN g = 1 THEN y END", "y + 1", "coalesce(y, 0)",
          "CASE WHEN g = 1 THEN y ELSE 0 END", "CASE WHEN g = 1 THEN w * y ELSE 0.0 END"],
    "flag": ["w", "CASE WHEN flag THEN w ELSE 0 END", "flag::int", "1"],
    "level": ["level", "level * w", "w", "coalesce(level, 9)", "CASE level WHEN 1 THEN w END"],
    "size": ["size", "size * w", "round(size)", "size / 2", "w"],
    "price": ["price", "price * w", "price % 2", "least(price, w)", "1"],
    "tag": ["length(tag)", "w", "CASE WHEN tag > 'a' THEN 1.5 ELSE w END"],
}  # fmt: skip
by = {
    "x": ["g"],
    "y": ["g", "w"],
    "flag": ["flag", "g, flag", "flag IS NULL"],
    "level": ["level", "level + g", "level, g", "CASE WHEN level = 2 THEN g END"],
    "size": ["size", "size * 2", "g"],
    "price": ["price", "round(price)", "g, price"],
    "tag": ["tag", "upper(tag), w", "substr(tag, 1, 1)"],
}


@st.composite
def questions(draw: st.DrawFn) -> str:
    """A statement about one secret column, or now and then about two."""
    column = draw(st.sampled_from(sorted(sums)))
    other = draw(st.sampled_from([column, column, column, *sorted(sums)]))
    condition = draw(st.sampled_from([*about[other], "TRUE"]))
    joined = f"({condition}) {draw(st.sampled_from(['AND', 'OR']))} ({draw(public)})"
    argument = draw(st.sampled_from(sums[column]))
    function = draw(st.sampled_from(["SUM({})", "SUM({})", "COUNT({})", "AVG({})", "COUNT(*)"]))
    groups = draw(st.sampled_from(["", f" GROUP BY {draw(st.sampled_from(by[column]))}"]))
    return f"SELECT {function.format(argument)} FROM t WHERE {joined}{groups}"


@given(st.lists(questions(), min_size=1, max_size=4))
def test_coefficients_times_secrets_are_the_sums(table: Table, statements: list[str]) -> None:
    aggregates = [each for sql in statements for each in parse(sql, table.policy)]
    assert_adds_up(aggregates, lineage(aggregates, table.source), secrets())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) WHERE flag",
        "SELECT flag, SUM(w) GROUP BY flag",
        "SELECT SUM(level) WHERE level > 1",
        "SELECT SUM(size * w) WHERE size > 0.7",
        "SELECT price, COUNT(*) WHERE price IN (1, 2.5) GROUP BY 1",
        "SELECT SUM(CASE WHEN g = 1 THEN y END)",
        "SELECT SUM(CASE WHEN g = 1 THEN w * y ELSE 0.0 END)",
        "SELECT COUNT(tag) WHERE upper(tag) LIKE 'A%'",
    ],
)
def test_these_are_linear(sql: str, table: Table) -> None:
    (aggregate,) = parse(sql, table.policy)
    assert linear_form(aggregate) is not None


def test_a_private_boolean_has_two_values_though_none_are_declared(table: Table) -> None:
    with Table.open(table.policy.source, key="id", private=["flag"]) as bare:
        (count,) = parse("SELECT COUNT(*) WHERE flag", bare.policy)
        terms = linear_form(count)
    assert terms is not None
    assert [each.unknown for each in terms] == [Unknown("flag", Category(True))]


def test_a_coefficient_that_no_engine_computes_with_makes_an_aggregate_opaque(
    table: Table,
) -> None:
    (total,) = parse("SELECT SUM(x * 1e20 * 1e20 * w)", table.policy)
    assert linear_form(total) is None
