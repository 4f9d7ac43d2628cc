"""Conditions as step functions: what the interpreter says, the same for many ways to write them."""

from datetime import date
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from query import universes

from casemate.query.language import Expression, evaluate
from casemate.query.parse import parse
from casemate.query.snapping import Condition, breaks, condition_of
from casemate.query.snapping.cells import UnknownBreaks
from casemate.table import AttributeKind, Column, ColumnType, Point, Policy, Universe, column_value

POLICY = Policy(
    "",
    (
        Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10),
        Column("sex", type=ColumnType.TEXT, values=("m", "f", "x")),
        Column("member", type=ColumnType.BOOLEAN),
        Column("score", type=ColumnType.DOUBLE, low=0, high=10, bins=5),
        Column("far", type=ColumnType.INTEGER, low=0, high=2**63 - 1, bins=5),
        Column("rate", type=ColumnType.DECIMAL, low=0, high=10, bins=5),
        Column("born", type=ColumnType.DATE),
        Column("free", type=ColumnType.INTEGER),
    ),
)


def predicate(sql: str, policy: Policy = POLICY) -> Expression:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {sql}", policy)
    return aggregate.predicate


def condition(sql: str, policy: Policy = POLICY) -> Condition:
    return condition_of(predicate(sql, policy), Universe.of(policy))


def holds(found: Condition, record: dict[str, Any]) -> bool:
    return any(
        all(each.at(record[each.name]) for each in several) for several in found.conjunctions
    )


def declared(column: Column, value: Any) -> Point | None:
    kind = column.type
    assert kind is not None
    if value is None or (column.values is not None and value not in column.values):
        return None
    if column.low is None or column.high is None:
        return value  # type: ignore[no-any-return]  # a value of the world
    ends: Any = (column_value(column.low, kind), column_value(column.high, kind))
    return min(max(value, ends[0]), ends[1])  # type: ignore[no-any-return]  # of one type


@given(st.data(), universes.policies)
def test_a_condition_holds_where_the_interpreter_says_so(
    records: list[dict[str, Any]], data: st.DataObject, policy: Policy
) -> None:
    attributes = Universe.of(policy).attributes
    binned = st.sampled_from([each for each in attributes if each.kind is AttributeKind.BINS])
    either = binned.flatmap(universes.anywhere) | st.sampled_from(attributes).flatmap(
        universes.on_boundaries
    )
    sql = data.draw(universes.combined(either))
    found, asked = condition(sql, policy), predicate(sql, policy)
    for record in records:
        row = {each.name: declared(each.column, record[each.name]) for each in attributes}
        said = evaluate(asked, lambda ref, row=row: row[ref.column.name])  # type: ignore[misc]  # a column
        assert holds(found, row) == (said is True)


@pytest.mark.parametrize(
    ("sql", "column", "true", "false"),
    [
        (
            "CAST(far AS double precision) = 9007199254740992",
            "far",
            [2**53, 2**53 + 1],
            [2**53 - 1],
        ),
        ("CAST(far AS double precision) > 9007199254740992", "far", [2**53 + 2], [2**53 + 1]),
        ("score <= 0.1", "score", [0.0, 0.1], [0.1 + 2e-17, 10.0]),
        ("score = 10", "score", [10.0], [9.999999999999998, 0.0]),
    ],
)
def test_what_a_cast_to_double_rounds_is_met(
    sql: str, column: str, true: list[Point], false: list[Point]
) -> None:
    found = condition(sql)
    assert all(holds(found, {column: each}) for each in true)
    assert not any(holds(found, {column: each}) for each in (*false, None))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age > 33", "33 < age"),
        ("age > 33", "age >= 34"),
        ("age > 33", "NOT age <= 33"),
        ("age > 33", "2 * age + 1 > 67.5"),
        ("age > 33 AND sex = 'f'", "'f' = sex AND 34 <= age"),
        ("sex = 'f' OR sex = 'm'", "sex = 'm' OR sex = 'f' OR sex = 'm'"),
        ("sex IN ('f', 'm')", "sex IN ('m', 'f', 'f')"),
        ("sex <> 'f'", "sex IN ('m', 'x')"),
        ("NOT (age < 3 OR sex = 'f')", "age >= 3 AND sex <> 'f'"),
        ("NOT (NOT member)", "member"),
        ("age BETWEEN 3 AND 5", "age < 6 AND age > 2"),
        ("member AND (age < 3 OR sex = 'f')", "(member AND age < 3) OR (sex = 'f' AND member)"),
        ("age < 3 AND rate IS NOT NULL AND rate >= -1", "age < 3 AND NOT rate IS NULL"),
    ],
)
def test_two_ways_to_write_a_condition_are_one(one: str, other: str) -> None:
    assert condition(one) == condition(other) and repr(condition(one)) == repr(condition(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("age > 33", "age > 34"), ("score > 3", "score >= 4"), ("age < 3 OR member", "age < 3")],
)
def test_two_different_conditions_stay_different(one: str, other: str) -> None:
    assert condition(one) != condition(other)


# Breaks: between two neighbours of them a condition does not change ------------------------------

DAY = date(2020, 1, 1).toordinal()


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("age > 5", {5}),
        ("5.5 >= age", {Fraction(11, 2)}),
        ("age IN (1, 2, NULL)", {1, 2}),
        ("age IS NULL", set()),
        ("age + 1 IS NULL", {-1}),
        ("age BETWEEN 2 AND 7 OR NOT age = 9", {2, 7, 9}),
        ("(3 - 2 * age) < 9", {-3}),
        ("rate * 3 = 1", {Fraction(1, 3)}),
        ("abs(rate - 1) < 2", {-1, 3}),
        ("CASE WHEN age < 4 THEN age ELSE 8 END > 2", {4, 2}),
        ("score < 0.1", {Fraction(0.1)}),
        ("born < '2020-01-01'", {DAY}),
        ("born < TIMESTAMP '2020-01-01 12:00:00'", {DAY + Fraction(1, 2)}),
        ("(age > 1) IS TRUE", {1}),
        ("age + 9000000000 > 1", {1 - 9_000_000_000}),
        ("far > 9000000000", {9_000_000_000}),
        ("abs(far) < 7", {7, -7}),
    ],
)
def test_a_condition_changes_only_at_its_constants(sql: str, places: set[Fraction]) -> None:
    assert breaks(predicate(sql)) == {Fraction(each) for each in places}


UNSOLVED = [
    *("age % 2 = 1", "age > rate", "score * 2 > 1", "age * 0 = 0", "far + 1 > 1"),
    *("far * 2 IS NULL", "free + 1 > 1", "sqrt(score) > 1", "rate / 2 > 1"),
]


@pytest.mark.parametrize("sql", UNSOLVED)
def test_what_cannot_be_solved_exactly_has_no_known_breaks(sql: str) -> None:
    with pytest.raises(UnknownBreaks):
        breaks(predicate(sql))
