"""Joins to public tables said of one protected column: the same answers, without the joins."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.cells import snapped
from oracles.statements import show
from query import slow

from casemate.errors import Unsupported
from casemate.query import Statement
from casemate.query.parse import eliminate_joins, parse_statement, public_rows
from casemate.query.parse import public_join as public_join_met
from casemate.query.parse.public_join import Lookup
from casemate.query.snapping import cells_of, histogram
from casemate.table import Table, Universe

POLICY = """
[table]
source = "SOURCE#visits"
key = "id"
[columns]
id = {role = "identifier"}
area = {values = [1, 2, 3, 4, 5]}
floor = {min = 0, max = 3}
sex = {values = ["f", "m"]}
age = {min = 0, max = 99, bins = 10}
diagnosis = {role = "private", values = ["none", "flu", "gout"]}
note = {}
cost = {role = "private", min = 0, max = 100}
[public]
areas = {key = "area"}
regions = {key = "region"}
floors = {key = "floor"}
illnesses = {key = "name"}
"""
CREATE = """
CREATE TABLE visits (id INTEGER, area INTEGER, floor INTEGER, sex TEXT, age INTEGER,
    diagnosis TEXT, note TEXT, cost INTEGER);
CREATE TABLE areas (area INTEGER, region TEXT, rate DECIMAL(4, 1), since DATE, big BOOLEAN);
CREATE TABLE regions (region TEXT, country TEXT, tax DOUBLE);
CREATE TABLE floors (floor DECIMAL(6, 2), sort TEXT);
CREATE TABLE illnesses (name TEXT, severity INTEGER);
"""


def contents(seed: int) -> dict[str, Sequence[tuple[Any, ...]]]:
    """Rows that keep to the policy: NULLs, keys nobody has, and values without a key."""
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    def some(keys: list[Any]) -> list[Any]:
        return sorted(chance.sample(keys, chance.randint(0, len(keys))), key=str)

    def numbers(most: int) -> Any:
        return maybe(chance.randint(0, most))

    return {
        "visits": [
            (
                *(number, maybe(chance.randint(1, 5)), numbers(3), maybe(chance.choice("fm"))),
                *(numbers(99), maybe(chance.choice(["none", "flu", "gout"])), "x", numbers(100)),
            )
            for number in range(1, chance.randint(1, 60))
        ],
        "areas": [
            (
                *(area, maybe(chance.choice(["north", "south", "west"]))),
                maybe(Decimal(chance.randint(-30, 30)).scaleb(-1)),
                *(maybe(f"20{chance.randint(10, 20)}-01-01"), maybe(chance.random() < 0.5)),
            )
            for area in some([1, 2, 3, 4, 5, 6, 77])
        ],
        "regions": [
            (region, maybe(chance.choice(["A", "B"])), maybe(chance.choice([0.5, 0.1, -2.0])))
            for region in some(["north", "south", "west", "east"])
        ],
        "floors": [
            (floor, maybe(chance.choice(["low", "high"]))) for floor in some([0, 1, 2, 3, 9])
        ],
        "illnesses": [(name, numbers(5)) for name in some(["none", "flu", "gout", "cold"])],
    }


def written(value: Any) -> str:
    """A constant in SQL."""
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)


Make = Callable[..., Table]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """The tables of one seed, opened once through their policy."""
    with ExitStack() as opened:

        @cache
        def make(seed: int = 0, areas: tuple[tuple[Any, ...], ...] | None = None) -> Table:
            folder = tmp_path_factory.mktemp("join")
            rows = contents(seed) if areas is None else {**contents(seed), "areas": areas}
            with duckdb.connect(str(folder / "base.db")) as connection:
                connection.execute(CREATE)
                for name, values in rows.items():
                    listed = [f"({', '.join(map(written, row))})" for row in values]
                    if listed:
                        connection.execute(f"INSERT INTO {name} VALUES {', '.join(listed)}")
            policy = POLICY.replace("SOURCE", f"duckdb:///{folder}/base.db")
            (folder / "casemate.toml").write_text(policy)
            return opened.enter_context(Table.open(folder / "casemate.toml"))

        yield make


AREAS = "visits v JOIN areas a ON v.area = a.area"
CHAIN = f"{AREAS} JOIN regions r ON r.region = a.region"
SAME = [
    f"SELECT COUNT(*) FROM {AREAS}",
    f"SELECT a.region, COUNT(*), SUM(v.cost), AVG(v.cost) FROM {AREAS} GROUP BY a.region",
    f"SELECT COUNT(*) FROM {AREAS} WHERE a.region = 'north' AND v.age >= 50",
    f"SELECT COUNT(*) FROM {AREAS} WHERE a.rate > 0.5 OR a.big OR v.sex = 'f'",
    f"SELECT COUNT(*) FROM {AREAS} WHERE a.region IS NULL AND NOT a.big",
    f"SELECT SUM(a.rate), MIN(a.since), MAX(a.area), COUNT(a.region) FROM {AREAS}",
    f"SELECT SUM(v.cost * a.rate) FILTER (WHERE a.big) FROM {AREAS}",
    f"SELECT upper(a.region) AS u, COUNT(*) FROM {AREAS} GROUP BY 1 HAVING COUNT(*) > 1",
    f"SELECT a.area, extract(year FROM a.since), COUNT(*) FROM {AREAS} GROUP BY 1, 2",
    f"SELECT r.country, COUNT(*), SUM(r.tax) FROM {CHAIN} GROUP BY ROLLUP (r.country)",
    f"SELECT COUNT(*) FROM {CHAIN} WHERE r.tax < a.rate AND a.rate <> 0",
    "SELECT COUNT(*) FROM regions r JOIN areas a USING (region) JOIN visits v USING (area)",
    "SELECT f.sort, COUNT(*) FROM visits v JOIN floors f ON f.floor = v.floor GROUP BY 1",
    f"SELECT f.sort, a.region, COUNT(*) FROM {AREAS} JOIN floors f USING (floor) GROUP BY 1, 2",
    "SELECT x.region, y.region, COUNT(*) FROM visits v JOIN areas x ON x.area = v.area "
    "JOIN areas y ON y.area = v.area + 1 GROUP BY 1, 2",
    "SELECT i.severity, COUNT(*) FROM visits v, illnesses i WHERE i.name = v.diagnosis GROUP BY 1",
    f"SELECT COUNT(*) FROM {AREAS} WHERE a.area = 3",
    f"SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM {AREAS}",
    f"WITH t AS (SELECT v.cost, a.region FROM {AREAS}) SELECT region, SUM(cost) FROM t GROUP BY 1",
    f"SELECT quantile_disc(a.rate, 0.3), median(v.cost) FROM {AREAS}",
]
"""Joins of every kind that is accepted, in every place of a statement."""


def flattened(table: Table, statement: Statement, lookup: Lookup | None = None) -> Statement:
    """A statement without its joins, to the table's own public rows or to others."""
    rows = public_rows(table.source, table.policy, statement) if lookup is None else lookup
    return eliminate_joins(statement, rows, Universe.of(table.policy))


def assert_same(table: Table, sql: str) -> None:
    statement = parse_statement(sql, table.policy)
    flat = flattened(table, statement)
    assert not any(aggregate.joins for aggregate in flat.aggregates)
    assert not any(select.joins for select in flat.selects)
    assert slow.same_rows(show(flat, table.source).rows, show(statement, table.source).rows), sql


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_answer_is_the_same_without_the_joins_on_any_tables(make: Make, seed: int) -> None:
    table = make(seed)
    for sql in SAME:
        assert_same(table, sql)


def test_the_comparison_above_would_notice_a_row_that_is_met_wrongly(make: Make) -> None:
    table = make(3)
    statement = parse_statement(SAME[1], table.policy)
    lookup = public_rows(table.source, table.policy, statement)
    areas = dict(lookup["areas"])
    wrong = {"areas": {**areas, "region": [*areas["region"][1:], "elsewhere"]}}
    flat = flattened(table, statement, wrong)
    shown = show(statement, table.source).rows
    assert not slow.same_rows(show(flat, table.source).rows, shown)


COUNTED = [sql for sql in SAME if sql.startswith("SELECT COUNT(*)") and "r.tax" not in sql]


@pytest.mark.parametrize("sql", COUNTED[::3])
def test_what_is_left_has_cells_that_come_to_the_same_count(make: Make, sql: str) -> None:
    table = make(5)
    universe = Universe.of(table.policy)
    statement = parse_statement(sql, table.policy)
    flat = flattened(table, statement)
    for select, (shown,) in zip(flat.selects, show(statement, table.source).rows, strict=True):
        question = snapped(select.aggregates[0], universe)
        assert question.exact
        counts = histogram(universe, question.scope, table.source)
        assert question.total(counts) == shown


def test_groups_are_those_of_rows_that_can_be_met(make: Make) -> None:
    """In the order of the protected column's cells; what no record can meet is no group."""
    areas = [
        (4, "south", None, None, None),
        (2, None, None, None, None),
        (3, "north", None, None, None),
        (9, "west", None, None, None),
    ]
    table = make(areas=tuple(areas))
    (select,) = flattened(table, parse_statement(SAME[1], table.policy)).selects
    groups = cells_of(select, Universe.of(table.policy)).groups
    assert [each.key for each in groups] == [("north",), ("south",), (None,)]


# What is read ---------------------------------------------------------------------------------


def test_only_public_tables_are_read_each_once_and_only_what_is_needed(make: Make) -> None:
    table = make()
    source = Mock(wraps=table.source)
    sql = f"SELECT x.region, COUNT(*) FROM {CHAIN} JOIN areas x ON x.area = v.area GROUP BY 1"
    lookup = public_rows(source, table.policy, parse_statement(sql, table.policy))
    assert {name: set(rows) for name, rows in lookup.items()} == {
        "areas": {"area", "region"},
        "regions": {"region"},
    }
    asked = [*source.relation.call_args_list, *source.fields.call_args_list]
    assert asked and all(each.args and each.args[0] is not None for each in asked)
    assert source.read.call_count == 2


# Refusals -------------------------------------------------------------------------------------

BY_KEY = "the public table areas is not joined by its key; for private answers equate areas.area"
REFUSED = {
    "no condition": ("SELECT COUNT(*) FROM visits CROSS JOIN areas", BY_KEY),
    "not the key": ("SELECT COUNT(*) FROM visits v JOIN areas a ON a.region = v.sex", BY_KEY),
    "not an equality": ("SELECT COUNT(*) FROM visits v JOIN areas a ON a.area >= v.area", BY_KEY),
    "one of two": (f"SELECT COUNT(*) FROM {AREAS} OR a.big", BY_KEY),
    "a constant": ("SELECT COUNT(*) FROM visits v JOIN areas a ON a.area = 3", BY_KEY),
    "two columns in one": (
        "SELECT COUNT(*) FROM visits v JOIN areas a ON a.area = v.area + v.floor",
        BY_KEY,
    ),
    "a second column": (
        f"SELECT COUNT(*) FROM {AREAS} AND a.region = v.sex",
        "joined by area and sex together; for private answers join it by its key",
    ),
    "the key twice": (
        f"SELECT COUNT(*) FROM {AREAS} AND a.area = v.floor",
        "joined by area and floor together",
    ),
    "a chain that hangs": (
        "SELECT COUNT(*) FROM visits v, regions r JOIN areas a ON r.region = a.region",
        "is not joined by its key",
    ),
    "bins of several values": (
        "SELECT COUNT(*) FROM visits v JOIN areas a ON a.area = v.age",
        "age is known by bins of several values, so what it is joined to cannot be told",
    ),
    "no cells": (
        "SELECT COUNT(*) FROM visits v JOIN regions r ON r.region = v.note",
        "note has no cells; declare its `values`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cells_do_not_tell_is_refused_in_one_sentence(make: Make, case: str) -> None:
    sql, reason = REFUSED[case]
    table = make(4)
    with pytest.raises(Unsupported) as refused:
        flattened(table, parse_statement(sql, table.policy))
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def test_keys_that_a_cast_makes_one_are_refused(make: Make) -> None:
    """Two keys that are different decimals are the same double."""
    table = make()
    sql = "SELECT COUNT(*) FROM visits v JOIN floors f ON f.floor::float8 = v.floor"
    statement = parse_statement(sql, table.policy)
    near: Lookup = {"floors": {"floor": [Decimal(1), Decimal("1.00000000000000000001")]}}
    with pytest.raises(Unsupported, match="several rows of the public table floors meet one"):
        flattened(table, statement, near)


def test_more_rows_than_are_written_into_a_statement_are_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    areas = [(area, "north", None, None, None) for area in (1, 2, 3, 6, 7, 8)]
    table = make(areas=tuple(areas))
    statement = parse_statement(SAME[0], table.policy)
    monkeypatch.setattr(public_join_met, "MAX_JOINED_ROWS", 3)
    assert not flattened(table, statement).selects[0].joins
    monkeypatch.setattr(public_join_met, "MAX_JOINED_ROWS", 2)
    with pytest.raises(Unsupported, match="more than 2 rows of the public table areas can be"):
        flattened(table, statement)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "tax of a public table is not finite in some rows"),
        (float("inf"), "tax of a public table is not finite in some rows"),
        (Decimal("1e-13"), "tax of a public table cannot be used: a decimal has at most 26"),
    ],
)
def test_a_public_number_without_a_place_in_every_engine_is_refused(
    make: Make, value: Any, reason: str
) -> None:
    table = make()
    statement = parse_statement(f"SELECT SUM(r.tax) FROM {CHAIN}", table.policy)
    lookup: Lookup = {
        "areas": {"area": [1], "region": ["north"]},
        "regions": {"region": ["north"], "tax": [value]},
    }
    with pytest.raises(Unsupported, match=reason):
        flattened(table, statement, lookup)


def test_a_statement_that_would_grow_too_large_is_refused(make: Make) -> None:
    table = make()
    policy = replace(
        table.policy,
        columns=tuple(
            replace(each, values=tuple(range(4000))) if each.name == "area" else each
            for each in table.policy.columns
        ),
    )
    many = " AND ".join(f"a.rate < {number}" for number in range(30))
    statement = parse_statement(f"SELECT COUNT(*) FROM {AREAS} AND ({many} OR a.big)", policy)
    numbers = [Decimal(number) for number in range(4000)]
    lookup: Lookup = {
        "areas": {"area": list(range(4000)), "rate": numbers, "big": [None] * 4000},
    }
    with pytest.raises(Unsupported, match="reads joined columns too often"):
        eliminate_joins(statement, lookup, Universe.of(policy))
