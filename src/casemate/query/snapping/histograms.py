"""Records counted by cell: one grouped statement for each scope.

What is counted is the table as its policy declares it: numbers clamped to their bounds, undeclared
values NULL, and at most so many rows of each person. Everything is a whole number, so the order in
which an engine adds up has no part in the result. These are exact figures of protected data: they
are what noise is added to, and never an answer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from casemate.query.engines.answering import engine_of, group_by, rows
from casemate.query.engines.rendering import PROTECTED, render
from casemate.query.language import operations as make
from casemate.query.language.expression import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    substitute,
)
from casemate.query.language.interpret import evaluate
from casemate.query.snapping.cells import StepFunction
from casemate.table import (
    FRACTION_DIGITS,
    Attribute,
    AttributeKind,
    Column,
    ColumnType,
    Point,
    Universe,
    Value,
    column_value,
    whole_values,
)
from casemate.table.sources import Source, bound_contribution, quote_name

Counts = NDArray[np.int64]
Labels = Sequence[int]
"""For each code of an attribute the number that stands for it, such as that of its class."""

MAX_VALUE_GROUPS = 2**12
"""So many groups of values an engine forms faster than it codes each row."""

MAX_UNITS_PER_ROW = 2**31
"""What one row may add to a sum: so that no sum of a table leaves 64 bits."""


@dataclass(frozen=True)
class Summand:
    """What each row adds to a sum: an expression in units of 1 / scale, clamped to whole numbers.

    NULL adds nothing. The bounds are in units, and follow from the policy alone. With `steps` the
    units are known for each piece of the column, and an engine computes nothing but the piece.
    """

    expression: Expression
    low: int
    high: int
    scale: int = 1
    steps: StepFunction | None = None

    def __post_init__(self) -> None:
        if self.scale < 1 or not -MAX_UNITS_PER_ROW <= self.low <= self.high <= MAX_UNITS_PER_ROW:
            raise ValueError(
                f"a sum needs scale >= 1 and bounds within 2^31 units, got {self.scale} and "
                f"{self.low} to {self.high}; take a coarser unit"
            )

    @property
    def units(self) -> Expression:
        """The whole number of units that a row adds."""
        if self.steps is not None:
            return code(self.steps.pieces, labels=[_number(each) for each in self.steps.results])
        if self._is_clamped:
            return as_declared(self.expression)
        return self._units_of(substitute(self.expression, _declared_digits))

    def units_at(self, value: Point | None) -> int:
        """The same where the only column has a declared value, without an engine."""
        return _number(evaluate(self._units_of(self.expression), lambda _: value))

    def _units_of(self, value: Expression) -> Expression:
        if value.type is ColumnType.INTEGER and self.scale == 1:
            return _clamp(value, *self._limits)
        scaled = make.arithmetic(Operation.MULTIPLY, value, _whole(self.scale))
        units = make.cast(make.round_number(scaled, None), ColumnType.INTEGER)
        return _clamp(units, *self._limits)

    @property
    def _limits(self) -> tuple[Expression, Expression]:
        return _whole(self.low), _whole(self.high)

    @property
    def _is_clamped(self) -> bool:
        """Whether the policy keeps a whole column between these bounds already."""
        if not isinstance(self.expression, ColumnRef) or self.expression.alias:
            return False
        low, high = self.expression.column.low, self.expression.column.high
        whole = self.expression.type is ColumnType.INTEGER and self.scale == 1
        if not whole or not isinstance(low, int) or not isinstance(high, int):
            return False
        return self.low <= low and high <= self.high


def histogram(
    universe: Universe,
    scope: tuple[int, ...],
    source: Source,
    *,
    key: bytes | None = None,
    labels: Sequence[Labels] | None = None,
) -> Counts:
    """How many rows fall into each cell of a scope, which lists attributes by position.

    `key` is the dataset's secret; it is needed where a person may have several rows. With `labels`
    codes of one class are counted together, by the engine: no larger table is ever made.
    """
    kept = bound_contribution(universe, source, key)
    labels = [range(size) for size in universe.sizes(scope)] if labels is None else labels
    shape = tuple(max(each) + 1 for each in labels)
    coded = [
        _Coded(universe.attributes[place], numbers)
        for place, numbers in zip(scope, labels, strict=True)
    ]
    frame = kept.read(_statement(coded, kept))
    codes = tuple(frame[f"c{i}"].values.astype(np.int64) for i in range(len(shape)))
    table = np.zeros(shape, np.int64)
    table[codes] = frame["n"].values.astype(np.int64) if shape else int(frame["n"].values[0])
    return table


@dataclass(frozen=True)
class _Coded:
    """An attribute, and the number that stands for each of its codes."""

    attribute: Attribute
    labels: Labels

    def number(self, reference: ColumnRef | None = None) -> Expression:
        return code(self.attribute, reference, self.labels)


def _statement(scope: Sequence[_Coded], source: Source) -> str:
    """Counts by cell; where values are few they are grouped first and coded after."""
    direct = grouped_first([each.attribute for each in scope])
    named = {
        f"k{i}": reference_to(each.attribute) if each.attribute in direct else each.number()
        for i, each in enumerate(scope)
    }
    by_value = group_by(rows(source, (), TRUE, named), list(named), {"n": "count(*)"})
    coded = [
        _code_after(each, f"k{i}", source) if each.attribute in direct else f"k{i}"
        for i, each in enumerate(scope)
    ]
    shown = [*(f"{written} AS c{i}" for i, written in enumerate(coded)), "n"]
    inner = f"SELECT {', '.join(shown)} FROM ({by_value}) AS {quote_name(PROTECTED)}"
    total = {"n": "CAST(coalesce(sum(n), 0) AS BIGINT)"}
    return group_by(inner, [f"c{i}" for i in range(len(scope))], total)


def grouped_first(scope: Sequence[Attribute]) -> list[Attribute]:
    """The attributes whose values, together, are few enough to be groups of their own."""
    found, groups = [], 1
    for each in sorted(scope, key=lambda each: each.kind is AttributeKind.BINS):
        groups *= _declared_values(each)
        if groups > MAX_VALUE_GROUPS:
            break
        found.append(each)
    return found


def _declared_values(attribute: Attribute) -> int:
    """How many values a column may have in a table that keeps to its policy."""
    if attribute.kind is AttributeKind.VALUES:
        return attribute.size
    return (whole_values(*bounds_of(attribute.column), attribute.type) or MAX_VALUE_GROUPS) + 1


def _code_after(coded: _Coded, name: str, source: Source) -> str:
    column = replace(coded.attribute.column, name=name)
    renamed = replace(reference_to(coded.attribute), column=column)
    return render(coded.number(renamed), engine_of(source))


# The table as declared, in the language of queries ---------------------------------------------


def as_declared(expression: Expression) -> Expression:
    """The expression over clamped numbers and declared values instead of what a row holds."""

    def change(node: Expression) -> Expression | None:
        return declared_column(node) if isinstance(node, ColumnRef) and not node.alias else None

    return substitute(expression, change)


def _declared_digits(node: Expression) -> Expression | None:
    """A column as declared; a decimal has as many digits as every engine computes with."""
    if not isinstance(node, ColumnRef) or node.alias:
        return None
    if node.type is not ColumnType.DECIMAL:
        return declared_column(node)
    return Call(Operation.CAST, (declared_column(node), _whole(FRACTION_DIGITS)), node.type)


def declared_column(reference: ColumnRef) -> Expression:
    """A column as the policy declares it: clamped to its bounds, NULL where it is undeclared."""
    column = reference.column
    if column.values is not None:
        listed = tuple(
            _constant(column_value(each, reference.type), reference) for each in column.values
        )
        inside = Call(Operation.IN, (reference, *listed), ColumnType.BOOLEAN)
        return _case([inside, reference], Literal(None, reference.type))
    if column.low is None or column.high is None:
        return reference
    low, high = (
        _constant(column_value(each, reference.type), reference) for each in bounds_of(column)
    )
    clamped = _clamp(reference, low, high)
    if reference.type not in NOT_A_NUMBER:
        return clamped
    return _case([missing(reference), Literal(None, reference.type)], clamped)


def code(
    attribute: Attribute, reference: ColumnRef | None = None, labels: Labels | None = None
) -> Expression:
    """The number of the cell that a row falls into, or its label; NULL never.

    The column may have another name where the row is.
    """
    reference = reference or reference_to(attribute)
    labels = range(attribute.size) if labels is None else labels
    reserved = _whole(labels[attribute.reserved])
    if attribute.kind is AttributeKind.VALUES:
        pairs = [
            part
            for label, value in zip(labels, attribute.points, strict=False)
            if label != reserved.value
            for part in (_comparison(Operation.EQUAL, reference, value), _whole(label))
        ]
        return _case(pairs, reserved)
    found = _search(reference, attribute.points, labels[: attribute.reserved])
    return _case([missing(reference), reserved], found)


def missing(reference: ColumnRef) -> Expression:
    """Whether a bounded column has no value: what is not a number is none, either."""
    absent = Call(Operation.IS_NULL, (reference,), ColumnType.BOOLEAN)
    if reference.type not in NOT_A_NUMBER:
        return absent
    nan = Literal(NOT_A_NUMBER[reference.type], reference.type)
    same = Call(Operation.SAME, (reference, nan), ColumnType.BOOLEAN)
    return Call(Operation.OR, (absent, same), ColumnType.BOOLEAN)


NOT_A_NUMBER: dict[ColumnType, float | Decimal] = {
    ColumnType.DOUBLE: math.nan,
    ColumnType.DECIMAL: Decimal("NaN"),
}


def _search(reference: ColumnRef, cuts: tuple[Point, ...], labels: Labels) -> Expression:
    """The label after the cuts that a value has passed: by halves, so that few are looked at."""
    if len(set(labels)) == 1:
        return _whole(labels[0])
    middle = len(cuts) // 2
    below = _search(reference, cuts[:middle], labels[: middle + 1])
    above = _search(reference, cuts[middle + 1 :], labels[middle + 1 :])
    return _case([_comparison(Operation.LESS, reference, cuts[middle]), below], above)


def bounds_of(column: Column) -> tuple[Value, Value]:
    """The declared bounds of a column that has them."""
    if column.low is None or column.high is None:
        raise ValueError(f"{column.name} has no bounds")
    return column.low, column.high


def reference_to(attribute: Attribute) -> ColumnRef:
    """The column of an attribute."""
    return ColumnRef(attribute.column, attribute.type)


def _clamp(value: Expression, low: Expression, high: Expression) -> Expression:
    below = Call(Operation.LESS, (value, low), ColumnType.BOOLEAN)
    above = Call(Operation.GREATER, (value, high), ColumnType.BOOLEAN)
    return _case([below, low, above, high], value)


def _comparison(operation: Operation, reference: ColumnRef, value: Point) -> Expression:
    return Call(operation, (reference, _constant(value, reference)), ColumnType.BOOLEAN)


def _case(pairs: Sequence[Expression], otherwise: Expression) -> Expression:
    if not pairs:
        return otherwise
    return Call(Operation.CASE, (*pairs, otherwise), otherwise.type)


def _constant(value: Point, reference: ColumnRef) -> Literal:
    return Literal(value, reference.type)


def _number(value: object) -> int:
    """Whole units; NULL is nothing."""
    return value if isinstance(value, int) else 0


def _whole(number: int) -> Literal:
    return Literal(number, ColumnType.INTEGER)
