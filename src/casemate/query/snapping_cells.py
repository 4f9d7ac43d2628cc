"""What an expression of one column comes to in each cell of its attribute.

In a cell of one value it is one result. A bin is cut where the expression changes; each piece has
one result and a measure: how many values it holds, or how wide it is. A piece of measure zero is a
single number in between, which counts for nothing until records lie on it, so it is kept.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

from casemate.errors import Unsupported
from casemate.query.expression import Scalar
from casemate.query.snapping_breaks import Breaks, Unbroken
from casemate.table.schema import ColumnType
from casemate.table.universe import Attribute, Kind
from casemate.table.universe_cuts import PRECISE, WHOLE, Point, image, point

MOST_LISTED = 4096
"""A column of no more whole values is looked at value by value where breaks are not known."""

MOST_LIMITS = 1024
"""A condition that changes at more places within the bounds of a column is refused: each place is
tried, and each trial goes through the whole condition."""

Result = Callable[[Point | None], Scalar]
"""What an expression comes to where its column has a value."""


@dataclass(frozen=True)
class Cell:
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


def results(attribute: Attribute, compute: Result, broken: Callable[[], Breaks]) -> list[Cell]:
    """The results in every cell, the reserved one last; `broken` tells where they may change."""
    reserved = Cell({compute(None): Fraction(1)})
    if attribute.kind is Kind.VALUES:
        single = [Cell({compute(value): Fraction(1)}) for value in attribute.points]
        return [*single, reserved]
    places = sorted(places_of(attribute, broken))
    return [*_bin_results(attribute, compute, places), reserved]


def _bin_results(attribute: Attribute, compute: Result, places: list[Fraction]) -> Iterator[Cell]:
    """The results in each bin; bins between the same two breaks have the same one."""
    known: dict[int, Cell] = {}
    for number, (start, end) in enumerate(pairwise(attribute.images)):
        passed = bisect_left(places, start)
        if bisect_right(places, end) > passed:
            yield _gathered(_pieces(attribute, number, places), compute)
            continue
        if passed not in known:
            known[passed] = Cell({compute(attribute.edges[number]): Fraction(1)})
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


def _gathered(pieces: Iterable[Piece], compute: Result) -> Cell:
    found: dict[Scalar, Fraction] = {}
    for sample, measure in pieces:
        result = compute(sample)
        found[result] = found.get(result, Fraction(0)) + measure
    return Cell(found)


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
