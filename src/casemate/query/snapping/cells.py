"""What an expression of one column comes to: where it changes, by cell, and as a step function.

Between two neighbouring breaks, the constants that it is compared with, every comparison in an
expression has one value, so one value of the column decides for all of them. A cell is cut at the
breaks into pieces of one result each; a `StepFunction` is constant on each of finitely many pieces.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from casemate.errors import Unsupported
from casemate.query.language.exactness import within_range
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
    columns_of,
)
from casemate.query.language.interpret import COMPARE, evaluate
from casemate.query.records.coding import Atom, Both, Formula, atoms_of
from casemate.table import (
    FRACTION_DIGITS,
    WHOLE,
    Attribute,
    AttributeKind,
    ColumnType,
    Point,
    image,
    point,
)

Breaks = frozenset[Fraction]
NONE: Breaks = frozenset()

EXACT = (ColumnType.INTEGER, ColumnType.DECIMAL)
CONNECTIVES = (Operation.AND, Operation.OR, Operation.NOT, Operation.IS_TRUE)
COMPARISONS = (*COMPARE, Operation.SAME, Operation.IN)
WIDENED = {
    ColumnType.INTEGER: (ColumnType.DECIMAL, ColumnType.DOUBLE),
    ColumnType.DECIMAL: (ColumnType.DOUBLE,),
    ColumnType.DATE: (ColumnType.TIMESTAMP,),
}
DAY_MICROSECONDS = 86_400_000_000  # microseconds
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


# Where an expression may change ------------------------------------------------------------------
#
# Only arithmetic that every engine does exactly is solved for the column, and only where the
# column's declared bounds keep every step of it within its type, for past that it is NULL;
# `UnknownBreaks` says that the breaks are not known.


class UnknownBreaks(Exception):
    """The places where an expression changes cannot be told from its text."""


def breaks(expression: Expression) -> Breaks:
    """The images of the column at which the expression may change its value."""
    if not columns_of(expression):
        return NONE
    if not isinstance(expression, Call):
        raise UnknownBreaks
    if expression.operation in COMPARISONS:
        return _comparison_breaks(expression)
    if expression.operation is Operation.IS_NULL:
        return _null_breaks(expression.arguments[0])
    if expression.operation in CONNECTIVES:
        return _union(expression.arguments, breaks)
    if expression.operation is Operation.CASE:
        return _case(expression, breaks)
    raise UnknownBreaks


def _null_breaks(tested: Expression) -> Breaks:
    """Where something becomes NULL: only where a condition in it changes."""
    return NONE if isinstance(tested, ColumnRef) else solve(tested, Fraction(0))


def _union(parts: tuple[Expression, ...], each: Callable[[Expression], Breaks]) -> Breaks:
    return NONE.union(*(each(part) for part in parts))


def _case(call: Call, result: Callable[[Expression], Breaks]) -> Breaks:
    *pairs, otherwise = call.arguments
    return _union(tuple(pairs[::2]), breaks) | _union((*pairs[1::2], otherwise), result)


def _comparison_breaks(call: Call) -> Breaks:
    """A side that reads the column, compared with constants."""
    constants = [each for each in call.arguments if isinstance(each, Literal)]
    sides = [each for each in call.arguments if not isinstance(each, Literal)]
    if len(sides) != 1:
        raise UnknownBreaks
    known = [_image(each) for each in constants if each.value is not None]
    return NONE.union(*(solve(sides[0], each) for each in known))


def _image(constant: Literal) -> Fraction:
    value = constant.value
    if value is None or isinstance(value, str | bool):
        raise UnknownBreaks
    return image(Decimal(repr(value))) if isinstance(value, float) else image(value)


def solve(expression: Expression, value: Fraction) -> Breaks:
    """The images of the column at which a number computed from it reaches a value."""
    if isinstance(expression, Literal):
        return NONE
    if isinstance(expression, ColumnRef):
        return _nearest(value) if expression.type is ColumnType.DOUBLE else frozenset({value})
    if not isinstance(expression, Call):
        raise UnknownBreaks
    return SOLVERS.get(expression.operation, _solve_linear)(expression, value)


def _solve_absolute_value(call: Call, value: Fraction) -> Breaks:
    _check_exact(call)
    return solve(call.arguments[0], value) | solve(call.arguments[0], -value)


def _check_exact(call: Call) -> None:
    """Arithmetic must be without rounding or overflow wherever the column is within bounds."""
    try:
        if call.type in EXACT and within_range(call):
            return
    except Unsupported:
        pass
    raise UnknownBreaks


def _nearest(value: Fraction) -> Breaks:
    """A constant among doubles: the double that it is written for."""
    return frozenset({Fraction(float(value))})


def _solve_cast(call: Call, value: Fraction) -> Breaks:
    """A cast that keeps the order; a date is the first moment of its day."""
    inner = call.arguments[0]
    if len(call.arguments) > 1 or call.type not in WIDENED.get(inner.type, ()):
        raise UnknownBreaks
    if call.type is ColumnType.DOUBLE:
        return _solve_any(inner, _rounding_limits(value))
    days = inner.type is ColumnType.DATE
    return solve(inner, value / DAY_MICROSECONDS + EPOCH_ORDINAL if days else value)


def _rounding_limits(value: Fraction) -> Breaks:
    """A double, and the places halfway to its neighbours: what is between is rounded to it."""
    middle = float(value)
    ends = (math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf))
    return frozenset({value, *((Fraction(middle) + Fraction(end)) / 2 for end in ends)})


def _solve_any(inner: Expression, values: Breaks) -> Breaks:
    return NONE.union(*(solve(inner, each) for each in values))


def _solve_linear(call: Call, value: Fraction) -> Breaks:
    """Plus, minus or times a constant, in exact arithmetic."""
    if len(call.arguments) != 2:
        raise UnknownBreaks
    _check_exact(call)
    left, right = call.arguments
    if isinstance(right, Literal):
        return solve(left, _inverse(call.operation, value, _image(right)))
    if not isinstance(left, Literal):
        raise UnknownBreaks
    if call.operation is Operation.SUBTRACT:
        return solve(right, _image(left) - value)
    return solve(right, _inverse(call.operation, value, _image(left)))


def _inverse(operation: Operation, value: Fraction, constant: Fraction) -> Fraction:
    if operation is Operation.ADD:
        return value - constant
    if operation is Operation.SUBTRACT:
        return value + constant
    if operation is Operation.MULTIPLY and constant:
        return value / constant
    raise UnknownBreaks


SOLVERS: dict[Operation, Callable[[Call, Fraction], Breaks]] = {
    Operation.CAST: _solve_cast,
    Operation.CASE: lambda call, value: _case(call, lambda each: solve(each, value)),
    Operation.COALESCE: lambda call, value: _union(call.arguments, lambda each: solve(each, value)),
    Operation.ABS: _solve_absolute_value,
}


# Results by cell ---------------------------------------------------------------------------------
#
# In a cell of one value an expression is one result. A column is cut where the expression changes;
# each piece has one result, that of its first value, and in each bin a measure: how many values it
# holds there, or how wide it is. A piece of measure zero is a single number in between, which is
# worth nothing until records lie on it, so it is kept.


MAX_LISTED_VALUES = 4096
"""A column of no more whole values is looked at value by value where breaks are not known."""

MAX_BREAKS = 1024
"""A condition that changes at more places within the bounds of a column is refused: each place is
tried, and each trial goes through the whole condition."""

Result = Callable[[Point | None], Scalar]
"""What an expression comes to where its column has a value."""


Computed = tuple[Result, Callable[[], Breaks]]
"""A function of a column, and what tells where it may change."""


def computing(expression: Expression) -> Computed:
    """What an expression of one column comes to."""
    return lambda value: evaluate(expression, lambda _: value), lambda: breaks(expression)


def holding(found: Formula) -> Computed:
    """Whether a formula of one column holds."""
    atoms = list(atoms_of(found))
    return (
        lambda value: _holds(found, value),
        lambda: NONE.union(*(breaks(atom.condition) for atom in atoms)),
    )


def _holds(found: Formula, value: Point | None) -> bool:
    if isinstance(found, Atom):
        return evaluate(found.condition, lambda _: value) is found.holds
    parts = (_holds(part, value) for part in found.parts)
    return all(parts) if isinstance(found, Both) else any(parts)


@dataclass(frozen=True)
class CellResults:
    """The results that an expression has in a cell, each with its measure."""

    results: dict[Scalar, Fraction]

    @property
    def constant(self) -> bool:
        """Whether it has one result in the whole cell."""
        return len(self.results) == 1

    @property
    def usual(self) -> Scalar:
        """The result on most of the cell; of two on a half each, the first."""
        return max(self.results, key=self.results.__getitem__)


def results(
    attribute: Attribute, compute: Result, broken: Callable[[], Breaks]
) -> list[CellResults]:
    """The results in every cell, the reserved one last; `broken` tells where they may change."""
    reserved = CellResults({compute(None): Fraction(1)})
    if attribute.kind is AttributeKind.VALUES:
        single = [CellResults({compute(value): Fraction(1)}) for value in attribute.points]
        return [*single, reserved]
    starts = _starts(attribute, places_of(attribute, broken))
    return [*_bin_results(attribute, starts, list(map(compute, starts))), reserved]


def _bin_results(
    attribute: Attribute, starts: Mapping[Point, Fraction], computed: Sequence[Scalar]
) -> Iterator[CellResults]:
    """The results of the pieces that have a value in each bin."""
    values, begins = [image(each) for each in starts], list(starts.values())
    beyond = attribute.images[-1] + (attribute.type in WHOLE)  # the last bin has its end
    ends = [*begins[1:], beyond]
    for number, (low, high) in enumerate(pairwise(attribute.images)):
        last = number + 2 == len(attribute.images)
        first = bisect_right(values, low) - 1
        following = len(values) if last else bisect_left(values, high)
        found: dict[Scalar, Fraction] = defaultdict(Fraction)
        for piece in range(first, following):
            end = min(ends[piece], beyond if last else high)
            found[computed[piece]] += end - max(begins[piece], low)
        yield CellResults(found)


def places_of(attribute: Attribute, broken: Callable[[], Breaks]) -> Iterable[Fraction]:
    """Where a function of a column may change: at its breaks, or at any of a few whole values."""
    low, high = attribute.images[0], attribute.images[-1]
    try:
        return _check_few(attribute, [place for place in broken() if low - 1 <= place <= high + 1])
    except UnknownBreaks:
        if attribute.type not in WHOLE or high - low >= MAX_LISTED_VALUES:
            raise Unsupported(
                f"the cells on which this holds cannot be told for {attribute.name}, which has too "
                f"many values to try; compare {attribute.name} with constants"
            ) from None
        return map(Fraction, range(int(low), int(high) + 1))


def _check_few(attribute: Attribute, places: list[Fraction]) -> list[Fraction]:
    if len(places) > MAX_BREAKS:
        raise Unsupported(
            f"this compares {attribute.name} with more than {MAX_BREAKS:,} constants; ask with "
            f"fewer of them at once"
        )
    return places


def _starts(attribute: Attribute, places: Iterable[Fraction]) -> dict[Point, Fraction]:
    """The first value of each piece, in order, and where the measure of the piece begins.

    A piece begins at a place, or right after one; whole values are counted, so their measure begins
    with them.
    """
    low, high = attribute.images[0], attribute.images[-1]
    found = {attribute.edges[0]: low}
    for place in sorted(each for each in places if low <= each <= high):
        values = [_at_least(place, attribute.type)]
        values += [_above(place, attribute.type)] if place < high else []
        for value in values:
            if low < image(value) <= high:
                found[value] = image(value) if attribute.type in WHOLE else place
    return found


def _at_least(place: Fraction, kind: ColumnType) -> Point:
    """The least value of a type that is not below a place."""
    if kind is not ColumnType.DOUBLE:
        return point(place, kind)
    nearest = float(place)
    return nearest if Fraction(nearest) >= place else math.nextafter(nearest, math.inf)


def _above(place: Fraction, kind: ColumnType) -> Point:
    """The least value of a type that is above a place."""
    if kind is ColumnType.DOUBLE:
        nearest = float(place)
        return nearest if Fraction(nearest) > place else math.nextafter(nearest, math.inf)
    grid = 10**FRACTION_DIGITS if kind is ColumnType.DECIMAL else 1
    return point(Fraction(math.floor(place * grid) + 1, grid), kind)


# Step functions ----------------------------------------------------------------------------------
#
# The pieces are those of an attribute whose cells may be finer than the universe's, or coarser, so
# an engine numbers them as it numbers cells: by comparing the column with constants of its type.
# What the function comes to on a piece is decided here, once, by the interpreter, at its first
# value; an engine never computes it.


@dataclass(frozen=True)
class StepFunction:
    """What a function of a column comes to on each piece, the one of NULL last.

    Equal functions of a column are equal values: pieces beside each other differ.
    """

    pieces: Attribute
    results: tuple[Scalar, ...]

    @property
    def name(self) -> str:
        """The column's name."""
        return self.pieces.name

    @property
    def constant(self) -> bool:
        """Whether it is the same everywhere."""
        return len(set(self.results)) == 1

    @property
    def samples(self) -> tuple[Point | None, ...]:
        """A value of each piece: its first."""
        listed = self.pieces.kind is AttributeKind.VALUES
        return (*(self.pieces.points if listed else self.pieces.edges[:-1]), None)

    def at(self, value: Point | None) -> Scalar:
        """What it comes to where the column has a value."""
        return self.results[self.pieces.cell(value)]

    def then(self, other: Callable[[Scalar], Scalar]) -> "StepFunction":
        """Another function of what it comes to."""
        return merge_pieces(self.pieces, [other(each) for each in self.results])


def step_function(
    attribute: Attribute, compute: Result, broken: Callable[[], Breaks]
) -> StepFunction:
    """A function of a column; `broken` tells where it may change, by the images of values."""
    if attribute.kind is AttributeKind.VALUES:
        return merge_pieces(attribute, [*map(compute, attribute.points), compute(None)])
    _, *starts = _starts(attribute, places_of(attribute, broken))
    pieces = replace(attribute, points=tuple(starts))
    return merge_pieces(pieces, [*map(compute, pieces.edges[:-1]), compute(None)])


def merge_pieces(pieces: Attribute, results: Sequence[Scalar]) -> StepFunction:
    """The step function in which neighbouring pieces of one result are one piece."""
    if pieces.kind is AttributeKind.VALUES:
        return StepFunction(pieces, tuple(results))
    *inside, reserved = results
    changes = [before != after for before, after in pairwise(inside)]
    cuts = [cut for cut, changed in zip(pieces.points, changes, strict=True) if changed]
    kept = [inside[0], *(each for each, new in zip(inside[1:], changes, strict=True) if new)]
    return StepFunction(replace(pieces, points=tuple(cuts)), (*kept, reserved))


def combinations(functions: Sequence[StepFunction]) -> set[tuple[Scalar, ...]]:
    """What several functions of one column come to together, at one value or another."""
    samples = {value for each in functions for value in each.samples}
    return {tuple(each.at(value) for each in functions) for value in samples}
