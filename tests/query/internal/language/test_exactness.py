"""The certificate of exactness against the engine itself, at the ends of what it allows."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from casemate.query.engines import render
from casemate.query.engines.dialects import DUCKDB
from casemate.query.language import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    arithmetic,
    cast,
)
from casemate.query.language.coercion import Mismatch
from casemate.query.language.exactness import reach
from casemate.query.language.operations import choice, compare
from casemate.query.records import inexact
from casemate.table import Column, ColumnType, Role

INTEGER, DECIMAL, DOUBLE = ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.DOUBLE
SIGNS = (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.DIVIDE)
ENGINE = duckdb.connect()
TYPES = {INTEGER: "BIGINT", DECIMAL: "DECIMAL(38, 12)", DOUBLE: "DOUBLE"}


def column(kind: ColumnType, low: Any = None, high: Any = None, digits: int | None = None) -> Any:
    return ColumnRef(Column("x", Role.PRIVATE, kind, low, high, digits=digits), kind)


def number(value: int | Decimal) -> Literal:
    return Literal(value, INTEGER if isinstance(value, int) else DECIMAL)


def exactly(expression: Expression, x: Fraction) -> Fraction:
    """What a formula comes to in exact arithmetic."""
    if isinstance(expression, Literal):
        return Fraction(expression.value)  # type: ignore[arg-type]  # a number
    if isinstance(expression, ColumnRef):
        return x
    assert isinstance(expression, Call)
    if expression.operation is Operation.CASE:
        return exactly(expression.arguments[1], x)  # the condition of these tests is true
    values = [exactly(each, x) for each in expression.arguments]
    if expression.operation is Operation.CAST:
        return values[0]
    left, right = values
    if expression.operation is Operation.MULTIPLY:
        return left * right
    return left + right if expression.operation is Operation.ADD else left - right


def computed(expression: Expression, kind: ColumnType, values: list[Any]) -> list[Any]:
    """What DuckDB makes of an expression for some values of x."""
    rows = ", ".join(f"({place}, '{value}'::{TYPES[kind]})" for place, value in enumerate(values))
    written = render(expression, DUCKDB)
    sql = f"SELECT {written} FROM (VALUES {rows}) AS t(i, x) ORDER BY i"
    return [row[0] for row in ENGINE.execute(sql).fetchall()]


CONSTANTS = some.one_of(
    some.integers(-20, 20),
    some.sampled_from([2**31, 2**62, 2**63 - 1, -(2**62), 10**9, 10**12]),
    some.sampled_from(
        [Decimal(each) for each in ("0.5", "1.25", "0.000001", "1e-12", "99999999999", "1.000000")]
    ),
    some.sampled_from([Decimal(2**64), Decimal(10) ** 25]),
)


@some.composite
def formulas(draw: some.DrawFn, kind: ColumnType, low: Any, high: Any, digits: int) -> Expression:
    found: Expression = column(kind, low, high, digits)
    for _ in range(draw(some.integers(1, 3))):
        step = draw(some.sampled_from([*SIGNS, "case", DECIMAL, DOUBLE, INTEGER]))
        constant = number(draw(CONSTANTS))
        try:
            if isinstance(step, ColumnType):
                found = cast(found, step)
            elif step == "case":
                place = ColumnRef(Column("i"), INTEGER)
                here = compare(Operation.LESS_EQUAL, Literal(0, INTEGER), place)
                found = choice([(here, found)], constant)
            else:
                sides = [found, constant] if draw(some.booleans()) else [constant, found]
                found = arithmetic(Operation(step), *sides)
        except Mismatch:
            assume(False)
    return found


@some.composite
def cases(draw: some.DrawFn) -> tuple[Expression, ColumnType, list[Any]]:
    kind = draw(some.sampled_from([INTEGER, DECIMAL]))
    ends = [0, 1, 7, 10**6, 10**9, 2**53, 2**62, 2**63 - 1]
    ends += [10**25] if kind is DECIMAL else []
    low = -draw(some.sampled_from(ends))
    high = draw(some.sampled_from(ends))
    digits = draw(some.integers(0, 12)) if kind is DECIMAL else 0
    unit = Decimal(1).scaleb(-digits)
    inside = [low, high, 0, *([low + unit, high - unit] if high - low > 1 else [])]
    found = draw(formulas(kind, low, high, digits))
    return found, kind, [int(str(each)) if kind is INTEGER else each for each in inside]


@settings(max_examples=120, deadline=None)
@given(cases())
def test_what_is_certified_the_engine_computes_exactly(
    case: tuple[Expression, ColumnType, list[Any]],
) -> None:
    expression, kind, values = case
    assume(inexact(expression) is None)
    found = reach(expression)
    for x, value in zip(values, computed(expression, kind, values), strict=True):
        assert value is not None
        exact = exactly(expression, Fraction(x))
        assert Fraction(value) == exact
        assert found.interval.low <= exact <= found.interval.high


def test_the_certificate_would_not_hold_without_its_limits() -> None:
    """The twin: each of these is affine, and the engine computes something else."""
    largest = 2**63 - 1
    wrong: list[tuple[Expression, ColumnType, Any]] = [
        (arithmetic(Operation.ADD, column(INTEGER), number(largest)), INTEGER, 1),
        (arithmetic(Operation.MULTIPLY, column(INTEGER), number(2**40)), INTEGER, 2**40),
        (
            arithmetic(Operation.MULTIPLY, column(DECIMAL), number(Decimal("0.0000001"))),
            DECIMAL,
            "0.0000001",
        ),
        (arithmetic(Operation.ADD, cast(column(INTEGER), DOUBLE), number(1)), INTEGER, 2**53),
    ]
    for expression, kind, x in wrong:
        assert inexact(expression) is not None
        (value,) = computed(expression, kind, [x])
        assert value is None or Fraction(value) != exactly(expression, Fraction(x))


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        (arithmetic(Operation.MULTIPLY, column(INTEGER, 0, 10**6), number(12)), True),
        (arithmetic(Operation.ADD, column(INTEGER), number(1)), False),
        (arithmetic(Operation.ADD, column(INTEGER, None, 10), number(1)), True),
        (arithmetic(Operation.SUBTRACT, number(0), column(DOUBLE)), True),
        (arithmetic(Operation.ADD, column(DOUBLE), number(1)), False),
        (arithmetic(Operation.MULTIPLY, column(DOUBLE), number(1)), True),
        (arithmetic(Operation.MULTIPLY, column(DECIMAL, 0, 9), number(Decimal("0.5"))), False),
        (arithmetic(Operation.MULTIPLY, column(DECIMAL, 0, 9, 2), number(Decimal("0.5"))), True),
        (arithmetic(Operation.DIVIDE, column(INTEGER, 0, 9), number(2)), False),
        (cast(column(INTEGER, 0, 2**53), DOUBLE), True),
        (cast(column(INTEGER, 0, 2**53 + 1), DOUBLE), False),
        (cast(column(DECIMAL, 0, 9, 2), INTEGER), False),
        (cast(column(DECIMAL, 0, 9, 0), INTEGER), True),
    ],
)
def test_ranges_and_digits_decide(expression: Expression, exact: bool) -> None:
    assert (inexact(expression) is None) is exact


def test_a_reason_names_the_step() -> None:
    step = arithmetic(Operation.ADD, column(INTEGER), number(2**62))
    assert inexact(arithmetic(Operation.MULTIPLY, step, number(0))) == (
        '"x" + 4611686018427387904 may leave 64 bits'
    )
