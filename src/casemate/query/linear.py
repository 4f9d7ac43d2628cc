"""Aggregates as linear forms in what is secret.

A private number is one unknown per record. A private category is one unknown per declared value
v and record, 1[x = v], which is 0 or 1 and adds up to 1 over v: any condition on it, and any
grouping by it, is then linear as well, because x may be replaced by each v in turn.

Departure  An aggregate that mixes two private columns, or compares a private number, is not
           linear in these unknowns; `linear_form` gives None and the caller decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from casemate.query.aggregate import Aggregate, Function
from casemate.query.coercion import NUMBERS, Mismatch, coerce, convert_number, widens
from casemate.query.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
    columns_of,
    present,
    private_columns,
    replace,
)
from casemate.query.operations import arithmetic, call, choice
from casemate.query.simplify import simplify
from casemate.table.schema import Column, ColumnType

ADDED = (Function.SUM, Function.AVG)
ONE = Literal(1, ColumnType.INTEGER)
ZERO = Literal(0, ColumnType.INTEGER)


@dataclass(frozen=True)
class Category:
    """A declared value of a private category; None is NULL or anything undeclared."""

    value: Scalar


@dataclass(frozen=True)
class Unknown:
    """What is secret about one record: a number, or whether a category has a value."""

    column: str
    category: Category | None = None


@dataclass(frozen=True)
class Term:
    """A coefficient of an unknown (None: of nothing secret), where a public predicate holds."""

    unknown: Unknown | None
    coefficient: Expression
    predicate: Expression
    keys: tuple[Expression, ...]


def linear_form(aggregate: Aggregate) -> tuple[Term, ...] | None:
    """The terms whose sum is the aggregate's sum (COUNT counts ones), or None.

    For AVG this is the sum above the line; `counting` gives the count below it. For MIN, MAX and
    MEDIAN it is the argument of each row as a linear form.
    """
    try:
        return _form(aggregate)
    except Mismatch:  # a coefficient that no engine could compute with
        return None


def _form(aggregate: Aggregate) -> tuple[Term, ...] | None:
    argument = aggregate.argument
    if argument is None or aggregate.function is Function.COUNT:
        argument = ONE
    secrets = private_columns(argument, aggregate.membership, *aggregate.keys)
    if argument.type not in NUMBERS or len(secrets) > 1:
        return None
    if aggregate.function is Function.COUNT_DISTINCT:
        return None
    if not secrets:
        return tuple(_terms(None, argument, aggregate.membership, aggregate.keys))
    column = _column(aggregate, next(iter(secrets)))
    values = possible_values(column)
    if values is not None:
        return tuple(_categories(column, values, argument, aggregate))
    return _number(column, argument, aggregate)


def possible_values(column: Column) -> tuple[Scalar, ...] | None:
    """The values of a category, None standing for a missing one; None for a column of numbers."""
    values: tuple[Scalar, ...] | None = column.values
    if column.type is ColumnType.BOOLEAN:
        values = (False, True)
    if values is None:
        return None
    return (*values, None) if column.nullable else values


def counting(aggregate: Aggregate) -> Aggregate:
    """The COUNT of the rows that enter an aggregate."""
    return Aggregate(
        Function.COUNT, aggregate.argument, aggregate.predicate, aggregate.keys, aggregate.joins
    )


def _column(aggregate: Aggregate, name: str) -> Column:
    expressions = (aggregate.membership, *aggregate.keys)
    if aggregate.argument is not None:
        expressions = (*expressions, aggregate.argument)
    references = (ref for each in expressions for ref in columns_of(each))
    return next(ref.column for ref in references if ref.private and ref.column.name == name)


def _terms(
    unknown: Unknown | None,
    coefficient: Expression,
    predicate: Expression,
    keys: tuple[Expression, ...],
) -> Iterator[Term]:
    """One term, unless it is always nothing."""
    coefficient, predicate = simplify(coefficient), simplify(predicate)
    never = isinstance(predicate, Literal) and predicate.value is not True
    nothing = isinstance(coefficient, Literal) and coefficient.value in (0, None)
    if not never and not nothing:
        yield Term(unknown, coefficient, predicate, tuple(simplify(key) for key in keys))


def _categories(
    column: Column, values: tuple[Scalar, ...], argument: Expression, aggregate: Aggregate
) -> Iterator[Term]:
    """One term for each possible value: everything with the column replaced by that value."""
    for value in values:

        def fixed(node: Expression, value: Scalar = value) -> Expression | None:
            if isinstance(node, ColumnRef) and node.private:
                return Literal(_declared(value, node.type), node.type)
            return None

        yield from _terms(
            Unknown(column.name, Category(value)),
            replace(argument, fixed),
            replace(aggregate.membership, fixed),
            tuple(replace(key, fixed) for key in aggregate.keys),
        )


def _declared(value: Scalar, kind: ColumnType) -> Scalar:
    """A declared value as its column has it; a policy writes a double as a decimal."""
    if value is None or kind not in NUMBERS:
        return value
    return convert_number(value, kind)


def _number(column: Column, argument: Expression, aggregate: Aggregate) -> tuple[Term, ...] | None:
    """A private number that is only added up: its coefficient, and what is added to it.

    A row counts where neither of the two is NULL; a number that may be missing counts as 0, which
    is right for a sum of multiples of it, with nothing added, and for nothing else.
    """
    split = affine(aggregate.argument or ONE)
    if split is None or private_columns(aggregate.predicate, *aggregate.keys):
        return None
    slope, offset = (simplify(each) for each in split)
    if column.nullable and (aggregate.function not in ADDED or not _adds_nothing(offset)):
        return None
    there = all_of(aggregate.predicate, present(slope), present(offset))
    if argument == ONE:
        return (*_terms(None, ONE, there, aggregate.keys),)
    terms = (*_terms(Unknown(column.name), slope, there, aggregate.keys),)
    return (*terms, *_terms(None, offset, there, aggregate.keys))


def _adds_nothing(offset: Expression) -> bool:
    """Whether an offset is 0 or NULL on every row."""
    if isinstance(offset, Literal):
        return offset.value is None or offset.value == 0
    if not isinstance(offset, Call) or offset.operation is not Operation.CASE:
        return False
    *pairs, otherwise = offset.arguments
    return all(map(_adds_nothing, (*pairs[1::2], otherwise)))


def affine(expression: Expression) -> tuple[Expression, Expression] | None:
    """Public slope and offset with expression = slope * x + offset, or None."""
    if not private_columns(expression):
        return ZERO, expression
    if isinstance(expression, ColumnRef):
        return ONE, ZERO
    rule = AFFINE.get(expression.operation) if isinstance(expression, Call) else None
    return rule(expression) if rule is not None and isinstance(expression, Call) else None


def _added(expression: Call) -> tuple[Expression, Expression] | None:
    left, right = (affine(each) for each in expression.arguments)
    if left is None or right is None:
        return None
    slope = _combine(expression.operation, left[0], right[0])
    return slope, _combine(expression.operation, left[1], right[1])


def _multiplied(expression: Call) -> tuple[Expression, Expression] | None:
    left, right = expression.arguments
    factor, rest = (right, left) if private_columns(left) else (left, right)
    split = None if private_columns(factor) else affine(rest)
    if split is None:
        return None
    return _scale(factor, split[0]), _scale(factor, split[1])


def _divided(expression: Call) -> tuple[Expression, Expression] | None:
    top, bottom = expression.arguments
    split = affine(top)
    if split is None or private_columns(bottom) or expression.type is ColumnType.INTEGER:
        return None
    return (
        arithmetic(Operation.DIVIDE, coerce(split[0], ColumnType.DOUBLE), bottom),
        arithmetic(Operation.DIVIDE, coerce(split[1], ColumnType.DOUBLE), bottom),
    )


def _chosen(expression: Call) -> tuple[Expression, Expression] | None:
    *pairs, otherwise = expression.arguments
    conditions, results = pairs[::2], (*pairs[1::2], otherwise)
    splits = [affine(each) for each in results]
    if private_columns(*conditions) or None in splits:
        return None
    found = [split for split in splits if split is not None]
    parts = [
        choice(list(zip(conditions, side, strict=False)), side[-1])
        for side in ([split[0] for split in found], [split[1] for split in found])
    ]
    return parts[0], parts[1]


def _cast(expression: Call) -> tuple[Expression, Expression] | None:
    operand = expression.arguments[0]
    exact = len(expression.arguments) == 1 and operand.type in NUMBERS
    if not exact or expression.type not in NUMBERS or not widens(operand.type, expression.type):
        return None
    return affine(operand)


def _coalesced(expression: Call) -> tuple[Expression, Expression] | None:
    first = expression.arguments[0]
    if isinstance(first, ColumnRef) and not first.column.nullable:
        return affine(first)
    return None


def _combine(operation: Operation, left: Expression, right: Expression) -> Expression:
    if right == ZERO:
        return left
    if left == ZERO and operation is Operation.ADD:
        return right
    return arithmetic(operation, left, right)


def _scale(factor: Expression, part: Expression) -> Expression:
    if part == ZERO:
        return ZERO
    return factor if part == ONE else call(Operation.MULTIPLY, *_same_type(factor, part))


def _same_type(left: Expression, right: Expression) -> tuple[list[Expression], ColumnType]:
    product = arithmetic(Operation.MULTIPLY, left, right)
    return [coerce(left, product.type), coerce(right, product.type)], product.type


AFFINE = {
    Operation.ADD: _added,
    Operation.SUBTRACT: _added,
    Operation.MULTIPLY: _multiplied,
    Operation.DIVIDE: _divided,
    Operation.CASE: _chosen,
    Operation.CAST: _cast,
    Operation.COALESCE: _coalesced,
}
