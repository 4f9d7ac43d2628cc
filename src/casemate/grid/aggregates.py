"""One aggregate of a statement as numbers on the grid, and how its result is read from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from fractions import Fraction

import numpy as np

from casemate.errors import Unsupported
from casemate.grid.direct import MeasuredPart
from casemate.grid.product import Floats, Product
from casemate.grid.question import GridQuestion, LinearCells
from casemate.grid.ranks import Quantile, RankReading, rank_of
from casemate.grid.readings import AverageReading, CountReading, Reading, Room, SumReading
from casemate.grid.sums import SumGrid, centre_of, grid_of, summand_of
from casemate.query import Aggregate, Function
from casemate.query.language import ColumnRef, Expression, Interval, present
from casemate.query.snapping import (
    Condition,
    KeyGroups,
    Snapped,
    condition_of,
    keys_of,
    merged,
    selection,
    summed,
    unconditional,
)
from casemate.query.snapping import Product as Cells
from casemate.table import Universe

MOST_CELLS = 100_000
"""A statement of which one aggregate needs more numbers is refused."""

Union = tuple[Cells, ...]
Weighed = Callable[[Snapped], list[tuple[Union, Floats]]]
"""Unions of cells with what a record of each adds; where two have a cell, one of them adds 0."""

MOST_STEPS = 2**12
"""A quantile, MIN or MAX among more steps is refused: each has a width of its own to be proven."""

MOST_PRODUCTS = 2**16
"""A statement that is put together out of more sets of cells is refused."""


@dataclass(frozen=True, eq=False)
class AggregatePart:
    """Numbers of one kind in every group: on the grid, and measured without it.

    `places` has the cell of the linear question for each of the numbers that rows are made of.
    """

    linear: LinearCells
    text: str
    places: tuple[int, ...]
    measured: MeasuredPart | None = None


class AggregateParts:
    """The parts of a statement, each once."""

    def __init__(self) -> None:
        self.found: list[AggregatePart] = []
        self._known: dict[object, int] = {}
        self._products = 0

    def reserve(self, products: int) -> None:
        """Say that so many sets of cells will be made."""
        self.require_room(products)
        self._products += products

    def require_room(self, products: int) -> None:
        """Refuse a statement of too many sets of cells, before they are made."""
        if self._products + products > MOST_PRODUCTS:
            raise Unsupported(
                f"this statement is put together out of more than {MOST_PRODUCTS:,} sets of "
                f"cells; ask for fewer groups, columns or alternatives at once"
            )

    def add(
        self, linear: LinearCells, places: tuple[int, ...], measured: MeasuredPart | None = None
    ) -> int:
        """The number of a part, which is new or known."""
        text = GridQuestion((linear,)).text
        name = (text, places, measured)
        if name not in self._known:
            self._known[name] = len(self.found)
            self.found.append(AggregatePart(linear, text, places, measured))
        return self._known[name]


@dataclass(eq=False)
class Compiler:
    """Compiles the aggregates of one select: its groups are those of all of them.

    Cells are asked for in an order that does not depend on how the groups are written.
    """

    universe: Universe
    keys: tuple[Expression, ...]
    groups: KeyGroups
    parts: AggregateParts
    notes: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)  # what was said of limits inside cells

    def __post_init__(self) -> None:
        named = [_name(each.cells) for each in self.groups.groups]
        self._order = sorted(range(len(named)), key=named.__getitem__)
        self._cells = [self.groups.groups[place].snapped for place in self._order]
        self._places = tuple(np.argsort(self._order).tolist())
        names = tuple(each.key for each in self.groups.groups)
        self._keys = keys_of(self.keys, names, self.universe)

    def reading(self, aggregate: Aggregate) -> Reading:
        """The parts of an aggregate are added to the statement's; how to read them comes back."""
        if aggregate.joins:
            raise Unsupported("a joined table has no cells in the universe; ask without the join")
        aggregate = unconditional(_counted_once(aggregate, self.universe))
        compile_one = COMPILERS.get(aggregate.function)
        if compile_one is None:
            raise Unsupported(
                f"{aggregate.function} is not a sum over cells and has no private answer here; "
                f"ask for COUNT, or for COUNT(*) grouped by the column"
            )
        return compile_one(self, aggregate)

    # Kinds of aggregates ------------------------------------------------------------------------

    def count(self, aggregate: Aggregate) -> Reading:
        """COUNT(*) and COUNT(x)."""
        return self._counted(aggregate.membership)

    def sum(self, aggregate: Aggregate) -> Reading:
        """SUM(x)."""
        argument = _argument(aggregate)
        found = self._selected(aggregate.predicate)
        place, spans = summed(argument, self.universe)
        return self._summed(argument, aggregate.predicate, found, (place, spans))

    def average(self, aggregate: Aggregate) -> Reading:
        """AVG(x)."""
        argument = _argument(aggregate)
        condition = aggregate.membership
        found = self._selected(condition)
        place, spans = summed(argument, self.universe)
        there = self._there(argument, place)
        kept = [span for span, inside in zip(spans, there, strict=True) if inside]
        if not kept:
            raise Unsupported("what is averaged here is always NULL; average a column with values")
        centre = centre_of(kept, argument.type)
        shifted = [
            Interval(span.low - centre, span.high - centre) if inside else NOTHING
            for span, inside in zip(spans, there, strict=True)
        ]
        added = self._summed(argument, condition, found, (place, shifted), centre)
        low, high = min(each.low for each in kept), max(each.high for each in kept)
        return AverageReading(self._counted(condition), added, centre, float(low), float(high))

    def rank(self, aggregate: Aggregate) -> Reading:
        """MEDIAN, quantiles, MIN and MAX."""
        argument, condition = _argument(aggregate), aggregate.membership
        rank = rank_of(argument, self.universe)
        found = self._selected(condition)
        size = len(rank.steps)
        if size > MOST_STEPS:
            raise Unsupported(
                f"this ranks {size:,} bins or values, and at most {MOST_STEPS:,} can be; declare "
                f"fewer bins"
            )
        if size * len(self._cells) > MOST_CELLS:
            raise Unsupported(
                f"this asks for more than {MOST_CELLS:,} numbers; group by fewer columns"
            )
        below = [Snapped(({rank.place: rank.up_to(step)},)) for step in range(size)]
        cells = [each.within(step) for each in self._in_groups(found, size) for step in below]
        places = tuple(place * size + step for place in self._places for step in range(size))
        ranked = merged(self.universe.attributes[rank.place], rank.step_of)
        measured = MeasuredPart(self._keys, self._condition(condition), ranked=ranked)
        part, room = self._counts(cells, places, measured)
        extreme = aggregate.function in EXTREMES
        if extreme:
            self.notes.append(EXTREME_NOTE)
        return RankReading(part, rank, _quantile(aggregate), extreme, room)

    # Parts --------------------------------------------------------------------------------------

    def _selected(self, condition: Expression) -> Snapped:
        found = selection(condition, self.universe)
        self.moved += found.notes
        return found

    def _condition(self, condition: Expression) -> Condition:
        return condition_of(condition, self.universe)

    def _there(self, argument: Expression, place: int) -> Sequence[bool]:
        """The cells of an attribute in which an expression of it is not NULL."""
        size = self.universe.attributes[place].size
        found = np.zeros(size, np.bool_)
        for product in selection(present(argument), self.universe).outer:
            found |= product.get(place, np.ones(size, np.bool_))
        return [bool(each) for each in found]

    def _in_groups(self, found: Snapped, steps: int = 1) -> list[Snapped]:
        self.parts.reserve(steps * len(self._cells) * max(1, len(found.outer)))
        return [found.within(each) for each in self._cells]

    def _counted(self, condition: Expression) -> CountReading:
        measured = MeasuredPart(self._keys, self._condition(condition))
        cells = self._in_groups(self._selected(condition))
        return CountReading(*self._counts(cells, self._places, measured))

    def _counts(
        self, cells: Sequence[Snapped], places: tuple[int, ...], measured: MeasuredPart
    ) -> tuple[int, Room | None]:
        """The part of counts, and those of whole and of touched cells where some are cut."""

        def added(counted: Callable[[Snapped], Union]) -> int:
            linear = LinearCells(tuple(self._products((counted(each), {})) for each in cells))
            return self.parts.add(linear, places, measured)

        part = added(lambda each: each.products)
        if all(each.exact for each in cells):
            return part, None
        return part, (added(lambda each: each.inner), added(lambda each: each.outer))

    def _summed(
        self,
        argument: Expression,
        condition: Expression,
        found: Snapped,
        spans: tuple[int, list[Interval]],
        centre: Fraction = Fraction(0),
    ) -> SumReading:
        place, each = spans
        grid = grid_of(each)
        true = [Interval(span.low + centre, span.high + centre) for span in each]
        summand, unit = summand_of(argument, self.universe.attributes[place], true, centre)
        measured = MeasuredPart(self._keys, self._condition(condition), summand, unit)
        cells = self._in_groups(found)

        def added(weighed: Weighed, measured: MeasuredPart | None = None) -> int:
            found = ([(union, {place: w}) for union, w in weighed(one)] for one in cells)
            linear = LinearCells(tuple(self._products(*one) for one in found), grid.unit)
            return self.parts.add(linear, self._places, measured)

        part = added(lambda one: [(one.products, grid.weights)], measured)
        slack, room = None, None
        if not grid.exact:
            slack = added(lambda one: [(one.products, grid.slack)])
        if not all(one.exact for one in cells):
            room = added(_least(grid), measured), added(_most(grid), measured)
        return SumReading(part, slack, grid.unit, room)

    def _products(self, *weighed: tuple[Union, dict[int, Floats]]) -> tuple[Product, ...]:
        """The products of one cell; one that holds nothing where there is none."""
        shape = self.universe.shape
        products = tuple(
            Product(shape, dict(each), weights) for union, weights in weighed for each in union
        )
        if not products and not shape:
            raise Unsupported("no column has cells; declare bounds or values in the policy")
        return products or (Product(shape, {0: np.zeros(shape[0], np.bool_)}),)


def _least(grid: SumGrid) -> Weighed:
    """The least that is added: what is below zero by touched cells, what is above by whole ones."""
    low = grid.weights - grid.slack
    below, above = np.minimum(low, 0.0), np.maximum(low, 0.0)
    return lambda cells: _adding((cells.outer, below), (cells.inner, above))


def _most(grid: SumGrid) -> Weighed:
    """The most that is added: what is above zero by touched cells, what is below by whole ones."""
    high = grid.weights + grid.slack
    below, above = np.minimum(high, 0.0), np.maximum(high, 0.0)
    return lambda cells: _adding((cells.outer, above), (cells.inner, below))


def _adding(*weighed: tuple[Union, Floats]) -> list[tuple[Union, Floats]]:
    return [(union, weights) for union, weights in weighed if weights.any()]


NOTHING = Interval(Fraction(0), Fraction(0))
EXTREMES = (Function.MIN, Function.MAX)
EXTREME_NOTE = (
    "MIN and MAX are answered as extreme quantiles: what is proved is a rank, and on the open side "
    "the declared bound stands"
)
COMPILERS: dict[Function, Callable[[Compiler, Aggregate], Reading]] = {
    Function.COUNT: Compiler.count,
    Function.SUM: Compiler.sum,
    Function.AVG: Compiler.average,
    Function.MIN: Compiler.rank,
    Function.MAX: Compiler.rank,
    Function.MEDIAN: Compiler.rank,
    Function.QUANTILE: Compiler.rank,
}


def _name(cells: Cells) -> tuple[tuple[int, bytes], ...]:
    """A group by its cells."""
    return tuple((place, mask.tobytes()) for place, mask in sorted(cells.items()))


def _counted_once(aggregate: Aggregate, universe: Universe) -> Aggregate:
    """COUNT(DISTINCT person) where each person has one row is COUNT(*)."""
    argument = aggregate.argument
    if (
        aggregate.function is Function.COUNT_DISTINCT
        and isinstance(argument, ColumnRef)
        and universe.person == argument.column.name
        and universe.rows_per_person == 1
    ):
        return changed(aggregate, function=Function.COUNT, argument=None)
    return aggregate


def _argument(aggregate: Aggregate) -> Expression:
    if aggregate.argument is None:
        raise Unsupported(f"{aggregate.function} needs an argument")
    return aggregate.argument


FIXED = {
    Function.MIN: Fraction(0),
    Function.MAX: Fraction(1),
    Function.MEDIAN: Fraction(1, 2),
}


def _quantile(aggregate: Aggregate) -> Quantile:
    found = FIXED.get(aggregate.function, aggregate.fraction)
    if found is None or not 0 <= found <= 1:
        raise Unsupported("a quantile is taken at a constant between 0 and 1")
    return Quantile(found, aggregate.discrete)
