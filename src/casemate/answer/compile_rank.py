"""The cells of an attribute in the order of what is ranked: what a quantile, MIN or MAX asks about.

Cells of equal values are one step. Steps must not overlap, so that the records before a boundary
are those below it; NULL is no step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np

from casemate.errors import Unsupported
from casemate.query.coercion import NUMBERS, TIMES
from casemate.query.expression import ColumnRef, Expression, Scalar, columns_of, present
from casemate.query.interpret import evaluate
from casemate.query.snapping import attribute_of, selection, summed
from casemate.query.snapping_products import Bits
from casemate.table.schema import ColumnType
from casemate.table.universe import Attribute, Kind, Universe
from casemate.table.universe_cuts import WHOLE, Point, image, point


@dataclass(frozen=True, eq=False)
class Step:
    """Cells that hold values from `low` to `high`, both of one type."""

    cells: Bits
    low: Scalar
    high: Scalar

    def at(self, share: float) -> Scalar:
        """The value so far into the step; numbers are floats, and whole where the column is."""
        if isinstance(self.low, bool | str) or self.low is None or self.high is None:
            return self.low
        if isinstance(self.low, date):  # a datetime is one, too
            return self.low if self.low == self.high else _moment(self.low, self.high, share)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return float(min(self.high, self.low + int((self.high - self.low + 1) * share)))
        low, high = float(self.low), float(self.high)  # type: ignore[arg-type]  # a number like `low`
        return low + (high - low) * share


@dataclass(frozen=True, eq=False)
class Rank:
    """The attribute that is ranked by, and its steps in order."""

    place: int
    steps: tuple[Step, ...]

    @property
    def step_of(self) -> tuple[int | None, ...]:
        """The step of each cell of the attribute; None for cells that are never ranked."""
        found: list[int | None] = [None] * self.steps[0].cells.size
        for number, step in enumerate(self.steps):
            for cell in np.flatnonzero(step.cells).tolist():
                found[cell] = number
        return tuple(found)

    def up_to(self, step: int) -> Bits:
        """The cells of all steps up to and with this one."""
        return np.asarray(np.any([each.cells for each in self.steps[: step + 1]], axis=0))


def rank_of(argument: Expression, universe: Universe) -> Rank:
    """The steps of an expression of one column."""
    references = sorted(columns_of(argument), key=lambda each: each.column.name)
    if len(references) != 1:
        raise Unsupported("a quantile, MIN or MAX is taken of one column; ask about one at a time")
    place = attribute_of(references[0], universe)
    attribute = universe.attributes[place]
    there = selection(present(argument), universe)
    mask = _mask(there.outer, place, attribute.size)
    spans = _spans(argument, attribute, universe)
    steps = _steps(spans, mask)
    if not steps:
        raise Unsupported("what is ranked here is always NULL; ask about a column with values")
    for before, after in pairwise(steps):
        if _comparable(after.low) < _comparable(before.high):
            raise Unsupported(
                f"the cells of {attribute.name} do not keep their order in what is ranked here; "
                f"rank {attribute.name} itself"
            )
    return Rank(place, tuple(steps))


Span = tuple[Scalar, Scalar]


def _mask(products: tuple[Any, ...], place: int, size: int) -> Bits:
    """The cells of one attribute in a union of products about it alone."""
    found = np.zeros(size, np.bool_)
    for each in products:
        found |= each.get(place, np.ones(size, np.bool_))
    return found


def _spans(argument: Expression, attribute: Attribute, universe: Universe) -> list[Span]:
    """What each cell holds, from least to most; anything for the cells of NULL."""
    if attribute.kind is Kind.VALUES:
        values = [evaluate(argument, _reading(each)) for each in (*attribute.points, None)]
        return [(each, each) for each in values]
    if isinstance(argument, ColumnRef):
        return [*(_bin(attribute, cell) for cell in range(attribute.size - 1)), (None, None)]
    if argument.type not in NUMBERS:
        raise Unsupported(f"{attribute.name} is known by bins; rank {attribute.name} itself")
    return [(float(each.low), float(each.high)) for each in summed(argument, universe)[1]]


def _reading(value: Point | None) -> Callable[[object], Scalar]:
    return lambda _: value


def _bin(attribute: Attribute, cell: int) -> Span:
    """The least and the most value of a bin; above a real one there is no greatest."""
    low, high = attribute.edges[cell : cell + 2]
    if attribute.type in WHOLE and cell + 2 < len(attribute.edges):
        high = point(attribute.images[cell + 1] - 1, attribute.type)
    return low, high


def _steps(spans: list[Span], mask: Bits) -> list[Step]:
    """Cells with equal spans together, in order."""
    same: dict[Span, list[int]] = {}
    for cell in np.flatnonzero(mask).tolist():
        same.setdefault(spans[cell], []).append(cell)
    ordered = sorted(same.items(), key=lambda item: tuple(map(_comparable, item[0])))
    return [Step(np.isin(np.arange(len(mask)), cells), *span) for span, cells in ordered]


def _comparable(value: Scalar) -> Any:
    """All values of one column have an order, whatever their type; NULL is not among them."""
    return cast(Any, value)


def _moment(low: date, high: Scalar, share: float) -> Scalar:
    kind = ColumnType.TIMESTAMP if isinstance(low, datetime) else ColumnType.DATE
    assert kind in TIMES and isinstance(high, date), "both ends are of one type"
    start, end = image(low), image(high)
    return point(Fraction(round(start + (end - start) * Fraction(share))), kind)
