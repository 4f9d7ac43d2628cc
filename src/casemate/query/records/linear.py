"""Aggregates as linear forms in what is secret.

A private number is one unknown per record. A private category is one unknown per declared value
v and record, 1[x = v], which is 0 or 1 and adds up to 1 over v: any condition on it, and any
grouping by it, is then linear as well, because x may be replaced by each v in turn. A private
number that is compared with constants is one unknown per constant and record, 1[x >= v]; whether
it is missing, where it may be, is one more.

Departure  An aggregate that mixes two private columns, or adds up a number that it also compares,
           is not linear in these unknowns; `linear_form` gives None and the caller decides. Neither
           is one of which `exactness` does not prove that every engine computes the formula:
           overflow, cut digits and rounding make it another function of the number. Somebody who
           answers from the form itself, and never from the expression, need not ask for that
           (`wide`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from casemate.query.aggregate import Aggregate, Function
from casemate.query.language.coercion import NUMBERS, Mismatch, coerce, convert_number, widens
from casemate.query.language.expression import (
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
from casemate.query.language.operations import (
    arithmetic,
    call,
    check_digits,
    choice,
    negative,
    simplify,
)
from casemate.query.records.cuts import Cut, Split, compared, pieces, within
from casemate.query.records.exactness import differs, inexact, is_exact_beside
from casemate.table import Column, ColumnType

ADDED = (Function.SUM, Function.AVG)
COUNTED = (*ADDED, Function.COUNT)
ONE = Literal(1, ColumnType.INTEGER)
ZERO = Literal(0, ColumnType.INTEGER)


@dataclass(frozen=True)
class Category:
    """A declared value of a private category; None is NULL or anything undeclared."""

    value: Scalar


@dataclass(frozen=True)
class Unknown:
    """What is secret about one record: a number, or whether it has a value or is past a cut.

    A number that may be missing is 0 where it is.
    """

    column: str
    category: Category | Cut | None = None

    def of(self, value: Scalar) -> Fraction:
        """What it is where the column has this value.

        >>> Unknown("age", Cut(Fraction(18))).of(21), Unknown("age").of(None)
        (Fraction(1, 1), Fraction(0, 1))
        """
        if isinstance(self.category, Category):
            return Fraction(Category(value) == self.category)
        number = None if value is None else Fraction(value)  # type: ignore[arg-type]  # a number
        if self.category is None:
            return number or Fraction(0)
        return Fraction(self.category.holds(number))


@dataclass(frozen=True)
class Term:
    """A coefficient of an unknown (None: of nothing secret), where a public predicate holds."""

    unknown: Unknown | None
    coefficient: Expression
    predicate: Expression
    keys: tuple[Expression, ...]


@lru_cache(maxsize=4096)  # one audit asks about the same aggregate several times
def linear_form(aggregate: Aggregate, wide: bool = False) -> tuple[Term, ...] | None:
    """The terms whose sum is the aggregate's sum (COUNT counts ones), or None.

    For AVG this is the sum above the line; `counting` gives the count below it. For MIN, MAX and
    MEDIAN it is the argument of each row as a linear form. With `wide` the steps of a formula in a
    private number need not be exact on any engine.
    """
    try:
        return _form(aggregate, formula if wide else affine)
    except Mismatch:  # a coefficient that no engine could compute with
        return None


def inexact_parts(aggregate: Aggregate) -> list[Expression]:
    """The formulas in one private number that the aggregate adds up or compares, and are inexact.

    Each of them is why it is not linear, or may be.
    """
    parts = (aggregate.argument or ONE, aggregate.predicate, *aggregate.keys)
    found = [part for each in parts for part in compared(each)]
    return [each for each in dict.fromkeys(found) if _is_formula(each) and affine(each) is None]


def _is_formula(expression: Expression) -> bool:
    """Whether an expression would be affine in a private number if it were exact."""
    single = expression.type in NUMBERS and len(private_columns(expression)) == 1
    try:
        return single and formula(expression) is not None
    except Mismatch:
        return False


def _form(aggregate: Aggregate, split: Split) -> tuple[Term, ...] | None:
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
        if any(map(differs, (argument, aggregate.membership, *aggregate.keys))):
            return None
        return _same_for_all(tuple(_categories(column, values, argument, aggregate)), len(values))
    found = _number(column, argument, aggregate, split)
    return _compared(column, argument, aggregate) if found is None else found


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
    if never or nothing:
        return
    if isinstance(coefficient, Literal) and isinstance(coefficient.value, Decimal):
        check_digits(coefficient.value)
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


def _same_for_all(terms: tuple[Term, ...], values: int) -> tuple[Term, ...]:
    """Terms that are the same for every value of a category depend on nothing secret."""
    alike = {changed(term, unknown=None) for term in terms}
    return tuple(alike) if len(terms) == values and len(alike) == 1 else terms


def _declared(value: Scalar, kind: ColumnType) -> Scalar:
    """A declared value as its column has it; a policy writes a double as a decimal."""
    if value is None or kind not in NUMBERS:
        return value
    return convert_number(value, kind)


def _number(
    column: Column, argument: Expression, aggregate: Aggregate, split: Split
) -> tuple[Term, ...] | None:
    """A private number that is only added up: its coefficient, and what is added to it.

    A row counts where neither of the two is NULL, and the number is not missing.
    """
    parts = split(aggregate.argument or ONE)
    if parts is None or private_columns(aggregate.predicate, *aggregate.keys):
        return None
    slope, offset = (simplify(each) for each in parts)
    if column.nullable and aggregate.function not in (*ADDED, Function.COUNT):
        return None
    there = all_of(aggregate.predicate, present(slope), present(offset))
    counted = Unknown(column.name, Cut(None)) if column.nullable else None
    missing = _missing(argument, aggregate) if column.nullable else iter(())
    rest = [each for term in missing for each in (term, _taken_away(term, counted))]
    if argument == ONE:
        return (*_terms(counted, ONE, there, aggregate.keys), *rest)
    terms = (*_terms(Unknown(column.name), slope, there, aggregate.keys),)
    return (*terms, *_terms(counted, offset, there, aggregate.keys), *rest)


def _missing(argument: Expression, aggregate: Aggregate) -> Iterator[Term]:
    """What a row adds where the private number is missing: a CASE may pass it by."""

    def fixed(node: Expression) -> Expression | None:
        private = isinstance(node, ColumnRef) and node.private
        return Literal(None, node.type) if private else None

    inside = replace(aggregate.argument or ONE, fixed)
    selected = all_of(aggregate.predicate, present(inside))
    yield from _terms(None, replace(argument, fixed), selected, aggregate.keys)


def _compared(
    column: Column, argument: Expression, aggregate: Aggregate
) -> tuple[Term, ...] | None:
    """A private number that is only compared with constants: what changes at each of them."""
    parts = (argument, aggregate.membership, *aggregate.keys)
    found = pieces(column, parts, affine) if aggregate.function in COUNTED else None
    if found is None:
        return None
    terms: list[Term] = []
    before: tuple[Term, ...] = ()
    for piece in found:
        coefficient, predicate, *keys = (within(each, piece, affine) for each in parts)
        here = (*_terms(None, coefficient, predicate, tuple(keys)),)
        unknown = None if piece.cut is None else Unknown(column.name, piece.cut)
        if here != before:
            terms += [changed(term, unknown=unknown) for term in here]
            terms += [_taken_away(term, unknown) for term in before]
        before = here
    return tuple(terms)


def _taken_away(term: Term, unknown: Unknown | None) -> Term:
    return changed(term, unknown=unknown, coefficient=negative(term.coefficient))


def affine(expression: Expression) -> tuple[Expression, Expression] | None:
    """Public slope and offset with expression = slope * x + offset on every engine, or None.

    The expression is then NULL where x, the slope or the offset is.
    """
    if isinstance(expression, ColumnRef) or not private_columns(expression):
        return formula(expression)
    if inexact(expression) is not None:
        return None
    found = formula(expression)
    return found if found is not None and is_exact_beside(expression, *found) else None


def formula(expression: Expression) -> tuple[Expression, Expression] | None:
    """Public slope and offset with expression = slope * x + offset in exact arithmetic, or None."""
    if not private_columns(expression):
        return ZERO, expression
    if isinstance(expression, ColumnRef):
        return ONE, ZERO
    rule = AFFINE.get(expression.operation) if isinstance(expression, Call) else None
    return rule(expression) if rule is not None and isinstance(expression, Call) else None


def _added(expression: Call) -> tuple[Expression, Expression] | None:
    left, right = (formula(each) for each in expression.arguments)
    if left is None or right is None:
        return None
    slope = _combine(expression.operation, left[0], right[0])
    return slope, _combine(expression.operation, left[1], right[1])


def _multiplied(expression: Call) -> tuple[Expression, Expression] | None:
    left, right = expression.arguments
    factor, rest = (right, left) if private_columns(left) else (left, right)
    split = None if private_columns(factor) else formula(rest)
    if split is None:
        return None
    slope, offset = _scale(factor, split[0]), _scale(factor, split[1])
    if slope == offset == ZERO:  # and NULL where the factor is
        slope = arithmetic(Operation.MULTIPLY, factor, ZERO)
    return slope, offset


def _divided(expression: Call) -> tuple[Expression, Expression] | None:
    top, bottom = expression.arguments
    split = formula(top)
    if split is None or private_columns(bottom) or expression.type is ColumnType.INTEGER:
        return None
    return (
        arithmetic(Operation.DIVIDE, coerce(split[0], ColumnType.DOUBLE), bottom),
        arithmetic(Operation.DIVIDE, coerce(split[1], ColumnType.DOUBLE), bottom),
    )


def _chosen(expression: Call) -> tuple[Expression, Expression] | None:
    *pairs, otherwise = expression.arguments
    conditions, results = pairs[::2], (*pairs[1::2], otherwise)
    splits = [formula(each) for each in results]
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
    return formula(operand)


def _coalesced(expression: Call) -> tuple[Expression, Expression] | None:
    """What comes first, where it is never NULL."""
    split = formula(expression.arguments[0])
    nullable = any(ref.column.nullable for ref in columns_of(expression.arguments[0]))
    constant = split is not None and all(isinstance(simplify(each), Literal) for each in split)
    return split if constant and not nullable else None


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
