"""Aggregates as linear forms in what is secret.

A private number is one unknown per record. A private category is one unknown per declared value
v and record, 1[x = v], which is 0 or 1 and adds up to 1 over v: any condition on it, and any
grouping by it, is then linear as well, because x may be replaced by each v in turn. A private
number that is compared with constants is one unknown per constant and record, 1[x >= v]; whether
it is missing, where it may be, is one more.

The constants cut the numbers into pieces. Within a piece every comparison has the same value, so
what a statement computes from the number is constant there; what changes at a cut belongs to the
unknown of that cut, the same one for every statement that cuts there. A missing number lies before
all others, and the first cut is then that there is a number at all.

Departure  An aggregate that mixes two private columns, or adds up a number that it also compares,
           is not linear in these unknowns; `linear_form` gives None and the caller decides. Neither
           is one of which `language.exactness` does not prove that every engine computes it so:
           overflow, cut digits and rounding make it another function of the number. Somebody who
           answers from the form itself, and never from the expression, need not ask for that
           (`wide`).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from casemate.query.aggregate import Aggregate, Function
from casemate.query.language.coercion import NUMBERS, Mismatch, coerce, convert_number, widens
from casemate.query.language.exactness import differs, inexact, is_exact_beside
from casemate.query.language.expression import (
    FALSE,
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
    children,
    columns_of,
    present,
    private_columns,
    substitute,
    walk,
)
from casemate.query.language.interpret import COMPARE, FLIPPED
from casemate.query.language.operations import (
    arithmetic,
    call,
    check_digits,
    choice,
    negative,
    simplify,
)
from casemate.table import Column, ColumnType

UNSURE = Literal(None, ColumnType.BOOLEAN)
Split = Callable[[Expression], tuple[Expression, Expression] | None]
"""Slope and offset of an expression that is affine in the private number, on every engine."""


@dataclass(frozen=True)
class Cut:
    """Where a number is at least `value`, or more than it; None: wherever there is a number."""

    value: Fraction | None
    strict: bool = False

    def holds(self, number: Fraction | None) -> bool:
        """Whether a number, None for a missing one, is past the cut.

        >>> Cut(Fraction(5)).holds(Fraction(5)), Cut(Fraction(5), strict=True).holds(Fraction(5))
        (True, False)
        """
        if number is None or self.value is None:
            return number is not None
        return number > self.value if self.strict else number >= self.value


@dataclass(frozen=True)
class Piece:
    """The numbers from a cut to the next (None: from the first on), and one of them."""

    cut: Cut | None
    sample: Fraction | None


def pieces(column: Column, expressions: Iterable[Expression]) -> tuple[Piece, ...] | None:
    """The pieces on which all comparisons in these expressions are constant; None if others are."""
    found: set[tuple[Fraction, bool]] = set()
    for expression in expressions:
        for atom in _atoms(expression):
            if atom is None:
                return None
            found.update(atom.cuts(whole=column.type is ColumnType.INTEGER))
    return tuple(_between(sorted(found), column.nullable))


def _between(cuts: list[tuple[Fraction, bool]], nullable: bool) -> Iterator[Piece]:
    below = cuts[0][0] - 1 if cuts else Fraction(0)
    if nullable:
        yield Piece(None, None)
    yield Piece(Cut(None) if nullable else None, below)
    last = (cuts[-1][0] + 2, False) if cuts else (Fraction(0), False)
    for (value, strict), (following, _) in pairwise([*cuts, last]):
        yield Piece(Cut(value, strict), (value + following) / 2 if strict else value)


def within(expression: Expression, piece: Piece) -> Expression:
    """The expression for numbers of one piece: nothing private is left in it."""

    def with_sample(node: Expression) -> Expression | None:
        if not private_columns(node):
            return node
        atom = _atom(node)
        return None if atom is None else atom.at(piece.sample)

    return simplify(substitute(expression, with_sample))


# Comparisons ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Atom:
    """slope * x + offset, compared with constants or with NULL."""

    operation: Operation
    slope: Fraction
    offset: Fraction
    constants: tuple[Fraction, ...]

    def cuts(self, whole: bool) -> Iterator[tuple[Fraction, bool]]:
        """The places at which the comparison changes, as value and whether it is passed there."""
        for constant in self.constants:
            place = (constant - self.offset) / self.slope
            for strict in _sides(self.operation, self.slope > 0):
                yield (next_whole(place, strict), False) if whole else (place, strict)

    def at(self, sample: Fraction | None) -> Expression:
        """Its value for one number."""
        if self.operation is Operation.IS_NULL:
            return TRUE if sample is None else FALSE
        if sample is None:
            return FALSE if self.operation is Operation.SAME else UNSURE
        left = self.slope * sample + self.offset
        compare = COMPARED[self.operation]
        return TRUE if any(compare(left, constant) for constant in self.constants) else FALSE


COMPARED = {**COMPARE, **dict.fromkeys((Operation.SAME, Operation.IN), COMPARE[Operation.EQUAL])}


def _sides(operation: Operation, rising: bool) -> tuple[bool, ...]:
    """Whether a comparison changes where its constant is reached (False), passed, or both."""
    seen = operation if rising else FLIPPED.get(operation, operation)
    if seen in (Operation.GREATER_EQUAL, Operation.LESS):
        return (False,)
    return (True,) if seen in (Operation.GREATER, Operation.LESS_EQUAL) else (False, True)


def next_whole(place: Fraction, strict: bool) -> Fraction:
    """The first whole number that is at least a place, or past it."""
    return Fraction(math.floor(place) + 1 if strict else math.ceil(place))


def _atoms(expression: Expression) -> Iterator[_Atom | None]:
    """The comparisons in an expression; None for each other use of the private number."""
    if not private_columns(expression):
        return
    atom = _atom(expression)
    if atom is not None or isinstance(expression, ColumnRef):
        yield atom
        return
    for each in children(expression):
        yield from _atoms(each)


def _atom(expression: Expression) -> _Atom | None:
    """A comparison of the private number with constants, if the expression is one."""
    if not isinstance(expression, Call):
        return None
    if expression.operation is Operation.IS_NULL:
        found = _affine(expression.arguments[0])
        return None if found is None else _Atom(expression.operation, *found, ())
    if expression.operation not in COMPARED:
        return None
    operation: Operation = expression.operation
    left, *others = expression.arguments
    if not private_columns(left) and operation is not Operation.IN:
        operation, left, others = FLIPPED.get(operation, operation), others[0], [left]
    found, constants = _affine(left), [_constant(each) for each in others]
    if found is None or None in constants:
        return None
    return _Atom(operation, *found, tuple(each for each in constants if each is not None))


def _affine(expression: Expression) -> tuple[Fraction, Fraction] | None:
    """Constant slope and offset of an expression, where every engine computes it exactly."""
    parts = affine(expression) if expression.type in NUMBERS else None
    slope, offset = (None, None) if parts is None else map(_constant, map(simplify, parts))
    return None if not slope or offset is None else (slope, offset)


def compared_parts(expression: Expression) -> Iterator[Expression]:
    """What is compared in an expression, or the expression itself where it compares nothing."""
    operands = children(expression)
    inner = [each for operand in operands for each in _comparisons(operand)]
    if _is_comparison(expression) or not inner:
        yield from operands if _is_comparison(expression) else (expression,)
    else:
        yield from (each for operand in operands for each in compared_parts(operand))


def _comparisons(expression: Expression) -> Iterator[Expression]:
    return (each for each in walk(expression) if _is_comparison(each) and private_columns(each))


def _is_comparison(expression: Expression) -> bool:
    asked = (*COMPARED, Operation.IS_NULL)
    return isinstance(expression, Call) and expression.operation in asked


def _constant(expression: Expression) -> Fraction | None:
    if not isinstance(expression, Literal) or isinstance(expression.value, bool):
        return None
    value = expression.value
    return Fraction(value) if isinstance(value, int | float | Decimal) else None


# Linear forms ------------------------------------------------------------------------------------


SUMMING = (Function.SUM, Function.AVG)
ADDITIVE = (*SUMMING, Function.COUNT)
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
    found = [part for each in parts for part in compared_parts(each)]
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
    return _comparison_form(column, argument, aggregate) if found is None else found


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
        parts = (argument, aggregate.membership, *aggregate.keys)
        coefficient, predicate, *keys = (_with_secret(each, value) for each in parts)
        yield from _terms(
            Unknown(column.name, Category(value)), coefficient, predicate, tuple(keys)
        )


def _with_secret(expression: Expression, value: Scalar) -> Expression:
    """The expression where the private column has a value."""

    def with_value(node: Expression) -> Expression | None:
        private = isinstance(node, ColumnRef) and node.private
        return Literal(_declared_value(value, node.type), node.type) if private else None

    return substitute(expression, with_value)


def _same_for_all(terms: tuple[Term, ...], values: int) -> tuple[Term, ...]:
    """Terms that are the same for every value of a category depend on nothing secret."""
    alike = {replace(term, unknown=None) for term in terms}
    return tuple(alike) if len(terms) == values and len(alike) == 1 else terms


def _declared_value(value: Scalar, kind: ColumnType) -> Scalar:
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
    if column.nullable and aggregate.function not in (*SUMMING, Function.COUNT):
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
    inside = _with_secret(aggregate.argument or ONE, None)
    selected = all_of(aggregate.predicate, present(inside))
    yield from _terms(None, _with_secret(argument, None), selected, aggregate.keys)


def _comparison_form(
    column: Column, argument: Expression, aggregate: Aggregate
) -> tuple[Term, ...] | None:
    """A private number that is only compared with constants: what changes at each of them."""
    parts = (argument, aggregate.membership, *aggregate.keys)
    found = pieces(column, parts) if aggregate.function in ADDITIVE else None
    if found is None:
        return None
    terms: list[Term] = []
    before: tuple[Term, ...] = ()
    for piece in found:
        coefficient, predicate, *keys = (within(each, piece) for each in parts)
        here = (*_terms(None, coefficient, predicate, tuple(keys)),)
        unknown = None if piece.cut is None else Unknown(column.name, piece.cut)
        if here != before:
            terms += [replace(term, unknown=unknown) for term in here]
            terms += [_taken_away(term, unknown) for term in before]
        before = here
    return tuple(terms)


def _taken_away(term: Term, unknown: Unknown | None) -> Term:
    return replace(term, unknown=unknown, coefficient=negative(term.coefficient))


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
    if isinstance(expression, Call) and expression.operation in AFFINE:
        return AFFINE[expression.operation](expression)
    return None


def _affine_sum(expression: Call) -> tuple[Expression, Expression] | None:
    left, right = (formula(each) for each in expression.arguments)
    if left is None or right is None:
        return None
    slope = _combine(expression.operation, left[0], right[0])
    return slope, _combine(expression.operation, left[1], right[1])


def _affine_product(expression: Call) -> tuple[Expression, Expression] | None:
    left, right = expression.arguments
    factor, rest = (right, left) if private_columns(left) else (left, right)
    split = None if private_columns(factor) else formula(rest)
    if split is None:
        return None
    slope, offset = _scale(factor, split[0]), _scale(factor, split[1])
    if slope == offset == ZERO:  # and NULL where the factor is
        slope = arithmetic(Operation.MULTIPLY, factor, ZERO)
    return slope, offset


def _affine_quotient(expression: Call) -> tuple[Expression, Expression] | None:
    top, bottom = expression.arguments
    split = formula(top)
    if split is None or private_columns(bottom) or expression.type is ColumnType.INTEGER:
        return None
    return (
        arithmetic(Operation.DIVIDE, coerce(split[0], ColumnType.DOUBLE), bottom),
        arithmetic(Operation.DIVIDE, coerce(split[1], ColumnType.DOUBLE), bottom),
    )


def _affine_choice(expression: Call) -> tuple[Expression, Expression] | None:
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


def _affine_cast(expression: Call) -> tuple[Expression, Expression] | None:
    operand = expression.arguments[0]
    exact = len(expression.arguments) == 1 and operand.type in NUMBERS
    if not exact or expression.type not in NUMBERS or not widens(operand.type, expression.type):
        return None
    return formula(operand)


def _affine_coalesce(expression: Call) -> tuple[Expression, Expression] | None:
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
    Operation.ADD: _affine_sum,
    Operation.SUBTRACT: _affine_sum,
    Operation.MULTIPLY: _affine_product,
    Operation.DIVIDE: _affine_quotient,
    Operation.CASE: _affine_choice,
    Operation.CAST: _affine_cast,
    Operation.COALESCE: _affine_coalesce,
}
