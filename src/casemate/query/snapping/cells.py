"""What an expression of one column comes to in each cell of its attribute.

In a cell of one value it is one result. A bin is cut where the expression changes; each piece has
one result and a measure: how many values it holds, or how wide it is. A piece of measure zero is a
single number in between, which counts for nothing until records lie on it, so it is kept.

A function of one column as a step function: constant on each of finitely many pieces of it.

The pieces are those of an attribute whose cells may be finer than the universe's, or coarser, so an
engine numbers them as it numbers cells: by comparing the column with constants of its type. What
the function comes to on a piece is decided here, once, by the interpreter, at its first value; an
engine never computes it.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

from casemate.errors import Unsupported
from casemate.query.language.expression import Scalar
from casemate.query.snapping.breakpoints import Breaks, Unbroken
from casemate.table import (
    FRACTION_DIGITS,
    PRECISE,
    WHOLE,
    Attribute,
    AttributeKind,
    ColumnType,
    Point,
    image,
    point,
)

MOST_LISTED = 4096
"""A column of no more whole values is looked at value by value where breaks are not known."""

MOST_LIMITS = 1024
"""A condition that changes at more places within the bounds of a column is refused: each place is
tried, and each trial goes through the whole condition."""

Result = Callable[[Point | None], Scalar]
"""What an expression comes to where its column has a value."""


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
    places = sorted(places_of(attribute, broken))
    return [*_bin_results(attribute, compute, places), reserved]


def _bin_results(
    attribute: Attribute, compute: Result, places: list[Fraction]
) -> Iterator[CellResults]:
    """The results in each bin; bins between the same two breaks have the same one."""
    known: dict[int, CellResults] = {}
    for number, (start, end) in enumerate(pairwise(attribute.images)):
        passed = bisect_left(places, start)
        if bisect_right(places, end) > passed:
            yield _gathered(_pieces(attribute, number, places), compute)
            continue
        if passed not in known:
            known[passed] = CellResults({compute(attribute.edges[number]): Fraction(1)})
        yield known[passed]


def places_of(attribute: Attribute, broken: Callable[[], Breaks]) -> Iterable[Fraction]:
    """Where a function of a column may change: at its breaks, or at any of a few whole values."""
    low, high = attribute.images[0], attribute.images[-1]
    try:
        return _few(attribute, [place for place in broken() if low - 1 <= place <= high + 1])
    except Unbroken:
        if attribute.type not in WHOLE or high - low >= MOST_LISTED:
            raise Unsupported(
                f"the cells on which this holds cannot be told for {attribute.name}, which has too "
                f"many values to try; compare {attribute.name} with constants"
            ) from None
        return map(Fraction, range(int(low), int(high) + 1))


def _few(attribute: Attribute, places: list[Fraction]) -> list[Fraction]:
    if len(places) > MOST_LIMITS:
        raise Unsupported(
            f"this compares {attribute.name} with more than {MOST_LIMITS:,} constants; ask with "
            f"fewer of them at once"
        )
    return places


Piece = tuple[Point, Fraction]
"""A value of a column that stands for a piece of a bin, and the measure of the piece."""


def _gathered(pieces: Iterable[Piece], compute: Result) -> CellResults:
    found: dict[Scalar, Fraction] = {}
    for sample, measure in pieces:
        result = compute(sample)
        found[result] = found.get(result, Fraction(0)) + measure
    return CellResults(found)


def _pieces(attribute: Attribute, number: int, places: list[Fraction]) -> Iterator[Piece]:
    """The pieces of one bin."""
    start, end = attribute.images[number : number + 2]
    last = number + 2 == len(attribute.images)
    if attribute.type in WHOLE:
        return _whole_pieces(int(start), int(end) - (not last), places, attribute.type)
    inside = places[bisect_right(places, start) : bisect_left(places, end)]
    return _real_pieces([start, *inside, end], last, attribute.type)


def _whole_pieces(
    first: int, last: int, places: list[Fraction], kind: ColumnType
) -> Iterator[Piece]:
    """Runs of whole numbers; each begins at a place, or right after one."""
    near = places[bisect_left(places, first - 1) : bisect_right(places, last + 1)]
    starts = {first, *(math.ceil(each) for each in near), *(math.floor(each) + 1 for each in near)}
    ordered = [*sorted(start for start in starts if first <= start <= last), last + 1]
    for start, following in pairwise(ordered):
        yield point(Fraction(start), kind), Fraction(following - start)


def _real_pieces(places: list[Fraction], closed: bool, kind: ColumnType) -> Iterator[Piece]:
    """The places themselves and the open intervals between them, as far as there are values."""
    if places[0] == places[-1]:
        yield point(places[0], kind), Fraction(1)
        return
    for start, end in pairwise(places):
        yield from _single(start, kind)
        middle = _between(start, end, kind)
        if start < image(middle) < end:
            yield middle, end - start
    if closed:
        yield from _single(places[-1], kind)


def _single(place: Fraction, kind: ColumnType) -> Iterator[Piece]:
    value = _between(place, place, kind)
    if image(value) == place:
        yield value, Fraction(0)


def _between(start: Fraction, end: Fraction, kind: ColumnType) -> Point:
    """A value of the type near the middle of two places."""
    middle = (start + end) / 2
    if kind is ColumnType.DOUBLE:
        return float(middle)
    with localcontext(PRECISE):
        return Decimal(middle.numerator) / Decimal(middle.denominator)


# Step function ----------------------------------------------------------------------------------


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
        return merged(self.pieces, [other(each) for each in self.results])


def step_function(
    attribute: Attribute, compute: Result, broken: Callable[[], Breaks]
) -> StepFunction:
    """A function of a column; `broken` tells where it may change, by the images of values."""
    if attribute.kind is AttributeKind.VALUES:
        return merged(attribute, [*map(compute, attribute.points), compute(None)])
    starts = _starts(attribute, places_of(attribute, broken))
    pieces = replace(attribute, points=tuple(starts))
    return merged(pieces, [*map(compute, pieces.edges[:-1]), compute(None)])


def merged(pieces: Attribute, results: Sequence[Scalar]) -> StepFunction:
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


def _starts(attribute: Attribute, places: Iterable[Fraction]) -> list[Point]:
    """The first value of each piece but the first: at a place, and right after one."""
    low, high = attribute.images[0], attribute.images[-1]
    inside = [place for place in places if low <= place <= high]
    found = {_at_least(place, attribute.type) for place in inside}
    found |= {_above(place, attribute.type) for place in inside if place < high}
    return sorted((each for each in found if low < image(each) <= high), key=image)


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
