"""A private number that is only compared with constants: pieces between which nothing changes.

The constants cut the numbers into pieces. Within a piece every comparison has the same value, so
what a statement computes from the number is constant there; what changes at a cut belongs to a
0/1 unknown, "the number is at least this", the same one for every statement that cuts there.
A missing number lies before all others, and the first cut is then that there is a number at all.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from casemate.query.language.coercion import NUMBERS
from casemate.query.language.expression import (
    FALSE,
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    children,
    private_columns,
    replace,
    walk,
)
from casemate.query.language.operations import simplify
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


def pieces(
    column: Column, expressions: Iterable[Expression], split: Split
) -> tuple[Piece, ...] | None:
    """The pieces on which all comparisons in these expressions are constant; None if others are."""
    found: set[tuple[Fraction, bool]] = set()
    for expression in expressions:
        for atom in _atoms(expression, split):
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


def within(expression: Expression, piece: Piece, split: Split) -> Expression:
    """The expression for numbers of one piece: nothing private is left in it."""

    def fixed(node: Expression) -> Expression | None:
        if not private_columns(node):
            return node
        atom = _atom(node, split)
        return None if atom is None else atom.at(piece.sample)

    return simplify(replace(expression, fixed))


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
                yield (_next_whole(place, strict), False) if whole else (place, strict)

    def at(self, sample: Fraction | None) -> Expression:
        """Its value for one number."""
        if self.operation is Operation.IS_NULL:
            return TRUE if sample is None else FALSE
        if sample is None:
            return FALSE if self.operation is Operation.SAME else UNSURE
        left = self.slope * sample + self.offset
        compare = COMPARED[self.operation]
        return TRUE if any(compare(left, constant) for constant in self.constants) else FALSE


COMPARED: dict[Operation, Callable[[Fraction, Fraction], bool]] = {
    Operation.EQUAL: lambda left, right: left == right,
    Operation.SAME: lambda left, right: left == right,
    Operation.IN: lambda left, right: left == right,
    Operation.DIFFERENT: lambda left, right: left != right,
    Operation.LESS: lambda left, right: left < right,
    Operation.LESS_EQUAL: lambda left, right: left <= right,
    Operation.GREATER: lambda left, right: left > right,
    Operation.GREATER_EQUAL: lambda left, right: left >= right,
}
SWAPPED = {
    Operation.LESS: Operation.GREATER,
    Operation.LESS_EQUAL: Operation.GREATER_EQUAL,
    Operation.GREATER: Operation.LESS,
    Operation.GREATER_EQUAL: Operation.LESS_EQUAL,
}


def _sides(operation: Operation, rising: bool) -> tuple[bool, ...]:
    """Whether a comparison changes where its constant is reached (False), passed, or both."""
    seen = operation if rising else SWAPPED.get(operation, operation)
    if seen in (Operation.GREATER_EQUAL, Operation.LESS):
        return (False,)
    return (True,) if seen in (Operation.GREATER, Operation.LESS_EQUAL) else (False, True)


def _next_whole(place: Fraction, strict: bool) -> Fraction:
    """The first whole number that is at least a place, or past it."""
    return Fraction(math.floor(place) + 1 if strict else math.ceil(place))


def _atoms(expression: Expression, split: Split) -> Iterator[_Atom | None]:
    """The comparisons in an expression; None for each other use of the private number."""
    if not private_columns(expression):
        return
    atom = _atom(expression, split)
    if atom is not None or isinstance(expression, ColumnRef):
        yield atom
        return
    for each in children(expression):
        yield from _atoms(each, split)


def _atom(expression: Expression, split: Split) -> _Atom | None:
    """A comparison of the private number with constants, if the expression is one."""
    if not isinstance(expression, Call):
        return None
    if expression.operation is Operation.IS_NULL:
        found = _affine(expression.arguments[0], split)
        return None if found is None else _Atom(expression.operation, *found, ())
    if expression.operation not in COMPARED:
        return None
    operation: Operation = expression.operation
    left, *others = expression.arguments
    if not private_columns(left) and operation is not Operation.IN:
        operation, left, others = SWAPPED.get(operation, operation), others[0], [left]
    found, constants = _affine(left, split), [_constant(each) for each in others]
    if found is None or None in constants:
        return None
    return _Atom(operation, *found, tuple(each for each in constants if each is not None))


def _affine(expression: Expression, split: Split) -> tuple[Fraction, Fraction] | None:
    """Constant slope and offset of an expression, where every engine computes it exactly."""
    parts = split(expression) if expression.type in NUMBERS else None
    slope, offset = (None, None) if parts is None else map(_constant, map(simplify, parts))
    return None if not slope or offset is None else (slope, offset)


def compared(expression: Expression) -> Iterator[Expression]:
    """What is compared in an expression, or the expression itself where it compares nothing."""
    operands = children(expression)
    inner = [each for operand in operands for each in _comparisons(operand)]
    if _is_comparison(expression) or not inner:
        yield from operands if _is_comparison(expression) else (expression,)
    else:
        yield from (each for operand in operands for each in compared(operand))


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
