"""A function of one column as a step function: constant on each of finitely many pieces of it.

The pieces are those of an attribute whose cells may be finer than the universe's, or coarser, so an
engine numbers them as it numbers cells: by comparing the column with constants of its type. What
the function comes to on a piece is decided here, once, by the interpreter, at its first value; an
engine never computes it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from casemate.query.expression import Scalar
from casemate.query.snapping_breaks import Breaks
from casemate.query.snapping_cells import Result, places_of
from casemate.table.schema import ColumnType
from casemate.table.universe import Attribute, Kind
from casemate.table.universe_cuts import FRACTION_DIGITS, Point, image, point


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
        listed = self.pieces.kind is Kind.VALUES
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
    if attribute.kind is Kind.VALUES:
        return merged(attribute, [*map(compute, attribute.points), compute(None)])
    starts = _starts(attribute, places_of(attribute, broken))
    pieces = replace(attribute, points=tuple(starts))
    return merged(pieces, [*map(compute, pieces.edges[:-1]), compute(None)])


def merged(pieces: Attribute, results: Sequence[Scalar]) -> StepFunction:
    """The step function in which neighbouring pieces of one result are one piece."""
    if pieces.kind is Kind.VALUES:
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
