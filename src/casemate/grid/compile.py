"""SQL to one private question and back: a statement compiled, without looking at any data.

All aggregates of all groups, branches and grouping sets are parts of one question, so their bounds
hold at once. The question is the same however the statement is written: its parts are sorted, and
so are the cells of each.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from casemate.errors import Unsupported
from casemate.grid.direct import Direct, MeasuredPart, PartSource
from casemate.grid.product import Floats, Product
from casemate.grid.question import GridQuestion, LinearCells, Relation, split_of
from casemate.grid.ranks import Quantile, RankReading, rank_of
from casemate.grid.readings import AverageReading, CountReading, Outcome, Reading, Room, SumReading
from casemate.grid.rows import SelectLayout, ShownTable, divided_results, show
from casemate.grid.sums import SumGrid, centre_of, grid_of, summand_of
from casemate.query import Aggregate, Function, Select, Statement
from casemate.query.language import ColumnRef, Expression, Interval, present
from casemate.query.snapping import (
    KeyGroups,
    Snapped,
    cells_of,
    condition_of,
    keys_of,
    merge_pieces,
    selection,
    sum_spans,
    unconditional,
)
from casemate.query.snapping import Product as Cells
from casemate.table import Provenance, Universe

MAX_NUMBERS_PER_AGGREGATE = 100_000
"""A statement of which one aggregate needs more numbers is refused."""

Union = tuple[Cells, ...]
WeighCells = Callable[[Snapped], list[tuple[Union, Floats]]]
"""Unions of cells with what a record of each adds; where two have a cell, one of them adds 0."""

MAX_RANKED_STEPS = 2**12
"""A quantile, MIN or MAX among more steps is refused: each has a width of its own to be proven."""

MAX_PRODUCTS_PER_STATEMENT = 2**16
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


@dataclass(eq=False)
class AggregateParts:
    """The parts of a statement, each once."""

    found: list[AggregatePart] = field(default_factory=list)
    _numbers: dict[object, int] = field(default_factory=dict)
    _products: int = 0

    def reserve(self, products: int) -> None:
        """Say that so many sets of cells will be made."""
        self.require_room(products)
        self._products += products

    def require_room(self, products: int) -> None:
        """Refuse a statement of too many sets of cells, before they are made."""
        if self._products + products > MAX_PRODUCTS_PER_STATEMENT:
            raise Unsupported(
                f"this statement is put together out of more than {MAX_PRODUCTS_PER_STATEMENT:,} "
                f"sets of cells; ask for fewer groups, columns or alternatives at once"
            )

    def add(
        self, linear: LinearCells, places: tuple[int, ...], measured: MeasuredPart | None = None
    ) -> int:
        """The number of a part, which is new or known."""
        text = GridQuestion((linear,)).text
        name = (text, places, measured)
        if name not in self._numbers:
            self._numbers[name] = len(self.found)
            self.found.append(AggregatePart(linear, text, places, measured))
        return self._numbers[name]


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
        def name(place: int) -> list[tuple[int, bytes]]:
            cells = sorted(self.groups.groups[place].snapped.products[0].items())
            return [(attribute, mask.tobytes()) for attribute, mask in cells]

        self._order = sorted(range(len(self.groups.groups)), key=name)
        self._cells = [self.groups.groups[place].snapped for place in self._order]
        self._places = tuple(np.argsort(self._order).tolist())
        names = tuple(each.key for each in self.groups.groups)
        self._keys = keys_of(self.keys, names, self.universe)

    def reading(self, aggregate: Aggregate) -> Reading:
        """The parts of an aggregate are added to the statement's; how to read them comes back."""
        if aggregate.joins:
            raise Unsupported("a joined table has no cells in the universe; ask without the join")
        aggregate = unconditional(_count_distinct_as_count(aggregate, self.universe))
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
        return self._count_reading(aggregate.membership)

    def sum(self, aggregate: Aggregate) -> Reading:
        """SUM(x)."""
        argument = _argument(aggregate)
        found = self._select_cells(aggregate.predicate)
        place, spans = sum_spans(argument, self.universe)
        return self._sum_reading(argument, aggregate.predicate, found, (place, spans))

    def average(self, aggregate: Aggregate) -> Reading:
        """AVG(x)."""
        argument = _argument(aggregate)
        condition = aggregate.membership
        found = self._select_cells(condition)
        place, spans = sum_spans(argument, self.universe)
        there = self._present_cells(argument, place)
        kept = [span for span, inside in zip(spans, there, strict=True) if inside]
        if not kept:
            raise Unsupported("what is averaged here is always NULL; average a column with values")
        centre = centre_of(kept, argument.type)
        shifted = [
            Interval(span.low - centre, span.high - centre) if inside else ZERO_INTERVAL
            for span, inside in zip(spans, there, strict=True)
        ]
        added = self._sum_reading(argument, condition, found, (place, shifted), centre)
        low, high = min(each.low for each in kept), max(each.high for each in kept)
        return AverageReading(
            self._count_reading(condition), added, centre, float(low), float(high)
        )

    def rank(self, aggregate: Aggregate) -> Reading:
        """MEDIAN, quantiles, MIN and MAX."""
        argument, condition = _argument(aggregate), aggregate.membership
        rank = rank_of(argument, self.universe)
        found = self._select_cells(condition)
        size = len(rank.steps)
        if size > MAX_RANKED_STEPS:
            raise Unsupported(
                f"this ranks {size:,} bins or values, and at most {MAX_RANKED_STEPS:,} can be; "
                f"declare fewer bins"
            )
        if size * len(self._cells) > MAX_NUMBERS_PER_AGGREGATE:
            raise Unsupported(
                f"this asks for more than {MAX_NUMBERS_PER_AGGREGATE:,} numbers; "
                f"group by fewer columns"
            )
        below = [Snapped(({rank.place: rank.up_to(step)},)) for step in range(size)]
        cells = [each.within(step) for each in self._in_groups(found, size) for step in below]
        places = tuple(place * size + step for place in self._places for step in range(size))
        ranked = merge_pieces(self.universe.attributes[rank.place], rank.step_of)
        measured = MeasuredPart(self._keys, condition_of(condition, self.universe), ranked=ranked)
        part, room = self._counts(cells, places, measured)
        extreme = aggregate.function in EXTREMES
        if extreme:
            self.notes.append(EXTREME_NOTE)
        return RankReading(part, rank, _quantile(aggregate), extreme, room)

    # Parts --------------------------------------------------------------------------------------

    def _select_cells(self, condition: Expression) -> Snapped:
        found = selection(condition, self.universe)
        self.moved += found.notes
        return found

    def _present_cells(self, argument: Expression, place: int) -> Sequence[bool]:
        """The cells of an attribute in which an expression of it is not NULL."""
        size = self.universe.attributes[place].size
        found = np.zeros(size, np.bool_)
        for product in selection(present(argument), self.universe).outer:
            found |= product.get(place, np.ones(size, np.bool_))
        return [bool(each) for each in found]

    def _in_groups(self, found: Snapped, steps: int = 1) -> list[Snapped]:
        self.parts.reserve(steps * len(self._cells) * max(1, len(found.outer)))
        return [found.within(each) for each in self._cells]

    def _count_reading(self, condition: Expression) -> CountReading:
        measured = MeasuredPart(self._keys, condition_of(condition, self.universe))
        cells = self._in_groups(self._select_cells(condition))
        return CountReading(*self._counts(cells, self._places, measured))

    def _counts(
        self, cells: Sequence[Snapped], places: tuple[int, ...], measured: MeasuredPart
    ) -> tuple[int, Room | None]:
        """The part of counts, and those of whole and of touched cells where some are cut."""

        def add_part(products_of: Callable[[Snapped], Union]) -> int:
            linear = LinearCells(tuple(self._products((products_of(each), {})) for each in cells))
            return self.parts.add(linear, places, measured)

        part = add_part(lambda each: each.products)
        if all(each.exact for each in cells):
            return part, None
        return part, (add_part(lambda each: each.inner), add_part(lambda each: each.outer))

    def _sum_reading(
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
        measured = MeasuredPart(self._keys, condition_of(condition, self.universe), summand, unit)
        cells = self._in_groups(found)

        def add_part(weigh: WeighCells, measured: MeasuredPart | None = None) -> int:
            found = ([(union, {place: w}) for union, w in weigh(one)] for one in cells)
            linear = LinearCells(tuple(self._products(*one) for one in found), grid.unit)
            return self.parts.add(linear, self._places, measured)

        part = add_part(lambda one: [(one.products, grid.weights)], measured)
        slack, room = None, None
        if not grid.exact:
            slack = add_part(lambda one: [(one.products, grid.slack)])
        if not all(one.exact for one in cells):
            room = add_part(_room_end(grid, -1), measured), add_part(_room_end(grid, 1), measured)
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


def _room_end(grid: SumGrid, side: int) -> WeighCells:
    """The least that is added (side -1) or the most (1).

    What goes to that side is added by touched cells, what goes to the other by whole ones.
    """
    end = grid.weights + side * grid.slack
    along, against = np.where(side * end > 0, end, 0.0), np.where(side * end < 0, end, 0.0)

    def weigh(cells: Snapped) -> list[tuple[Union, Floats]]:
        both = ((cells.outer, along), (cells.inner, against))
        return [(union, weights) for union, weights in both if weights.any()]

    return weigh


ZERO_INTERVAL = Interval(Fraction(0), Fraction(0))
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


def _count_distinct_as_count(aggregate: Aggregate, universe: Universe) -> Aggregate:
    """COUNT(DISTINCT person) where each person has one row is COUNT(*)."""
    argument = aggregate.argument
    if (
        aggregate.function is Function.COUNT_DISTINCT
        and isinstance(argument, ColumnRef)
        and universe.person == argument.column.name
        and universe.rows_per_person == 1
    ):
        return replace(aggregate, function=Function.COUNT, argument=None)
    return aggregate


def _argument(aggregate: Aggregate) -> Expression:
    if aggregate.argument is None:
        raise Unsupported(f"{aggregate.function} needs an argument")
    return aggregate.argument


FIXED_FRACTIONS = {
    Function.MIN: Fraction(0),
    Function.MAX: Fraction(1),
    Function.MEDIAN: Fraction(1, 2),
}


def _quantile(aggregate: Aggregate) -> Quantile:
    found = FIXED_FRACTIONS.get(aggregate.function, aggregate.fraction)
    if found is None or not 0 <= found <= 1:
        raise Unsupported("a quantile is taken at a constant between 0 and 1")
    return Quantile(found, aggregate.discrete)


# The compiled statement -------------------------------------------------------------------------


WIDTH_NOTE = (
    "what is added up is known by bins: middles are added up, and the bounds have room for the "
    "width of the bins"
)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A statement as one question, and the way back from its answer to rows.

    `exact` says that no limit was moved to the boundary of a cell.
    """

    asked: GridQuestion
    notes: tuple[str, ...]
    exact: bool
    universe: Universe = field(repr=False)
    parts: tuple[AggregatePart, ...] = field(repr=False)
    layouts: tuple[SelectLayout, ...] = field(repr=False)
    direct_notes: tuple[str, ...] = ()  # those that hold without the grid, too
    limit: int | None = None

    def rows(self, outcome: Outcome, *, all_groups: bool = True) -> ShownTable:
        """The rows of the statement, from the outcome of `asked`."""
        places = {part: place for place, part in enumerate(_texts(self.parts))}
        answered = [outcome.parts[places[part.text]] for part in self.parts]
        estimates = [
            [cells[place] for place in part.places]
            for part, cells in zip(self.parts, answered, strict=True)
        ]
        return show(self.layouts, self.limit, estimates, all_groups=all_groups)

    def direct(self, relation: Relation) -> Direct:
        """The same statement to be measured on the table itself, not snapped."""
        parts = {each.measured for each in self.parts if each.measured is not None}
        measured = tuple(sorted(parts, key=repr))  # in whatever order they are written
        return Direct(
            self.universe,
            relation,
            measured,
            self._together,
            tuple(_origin(each, measured) for each in self.parts),
            self.layouts,
            tuple(self._on_grid(each) for each in measured),
            self.direct_notes,
            self.limit,
        )

    def as_measured(self, values: Sequence[Floats], direct: Direct) -> list[list[float]]:
        """What each measured part would be by values of `asked`, in its own units.

        Of parts with one measurement the first has the numbers.
        """
        places = {part: place for place, part in enumerate(_texts(self.parts))}
        found: dict[int, list[float]] = {}
        for part, source in zip(self.parts, direct.origins, strict=True):
            if source.part is not None and source.part not in found:
                numbers, worth = values[places[part.text]], float(source.worth)
                found[source.part] = [float(numbers[place]) / worth for place in part.places]
        return [found[place] for place in range(len(direct.parts))]

    @property
    def snapped(self) -> GridQuestion:
        """The question as it was moved to the grid, without room for cut cells: what plans are by.

        Of parts with one measurement the first has the numbers, the others are ends of the room.
        """
        if self.exact:
            return self.asked
        numbered = reversed(list(enumerate(self.parts)))
        first = {self._source(place): part for place, part in numbered}
        found = {part.text: part.linear for part in first.values()}
        return GridQuestion(tuple(found[text] for text in sorted(found)), self._together)

    @property
    def _together(self) -> int:
        """Of how many measured cells a number is made at most."""
        return max(1, *(each.together(self._source) for each in self.layouts))

    def _source(self, part: int) -> object:
        """What a direct measurement reads a part from; a part that it leaves out is its own."""
        return self.parts[part].measured or part

    def _on_grid(self, measured: MeasuredPart) -> tuple[Product, ...] | None:
        """What each cell of a measured part counts on the grid, where it counts whole cells."""
        if not self.exact or measured.summand is not None or measured.ranked is not None:
            return None
        part = next(each for each in self.parts if each.measured == measured)
        cells = [part.linear.cells[place] for place in part.places]
        if any(len(cell) != 1 for cell in cells):
            return None
        return tuple(cell[0] for cell in cells)


def _origin(part: AggregatePart, measured: tuple[MeasuredPart, ...]) -> PartSource:
    if part.measured is None:
        return PartSource(None, len(part.places))
    worth = part.measured.unit / part.linear.unit
    return PartSource(measured.index(part.measured), len(part.places), worth)


def compile_statement(statement: Statement, universe: Universe) -> Compiled:
    """The question that a statement asks, or `Unsupported` with the reason why there is none."""
    parts = AggregateParts()
    groups = [_groups(select, universe) for select in statement.selects]
    numbers = zip(statement.selects, groups, strict=True)
    parts.require_room(sum(len(s.aggregates) * len(each.groups) for s, each in numbers))
    made = [
        _layout(select, universe, each, parts)
        for select, each in zip(statement.selects, groups, strict=True)
    ]
    layouts = _with_quotients(parts, [layout for layout, _ in made])
    together = max(each.together() for each in layouts)
    compilers = [compiler for _, compiler in made]
    moved = [note for each in compilers for note in (*each.groups.notes, *each.moved)]
    wide = [WIDTH_NOTE] if any(part.measured is None for part in parts.found) else []
    always = [note for each in compilers for note in each.notes]
    always += _policy_notes(universe)
    return Compiled(
        GridQuestion(
            _questions(parts), max(1, together), _ratios(parts, layouts), _shares(parts, layouts)
        ),
        tuple(dict.fromkeys([*moved, *wide, *always])),
        not moved,
        universe,
        tuple(parts.found),
        layouts,
        tuple(dict.fromkeys(always)),
        statement.limit,
    )


def _groups(select: Select, universe: Universe) -> KeyGroups:
    if select.joins:
        raise Unsupported("a joined table has no cells in the universe; ask without the join")
    return cells_of(select, universe)


def _layout(
    select: Select, universe: Universe, groups: KeyGroups, parts: AggregateParts
) -> tuple[SelectLayout, Compiler]:
    compiler = Compiler(universe, select.keys, groups, parts)
    readings = tuple(compiler.reading(each) for each in select.aggregates)
    keys = tuple(each.key for each in compiler.groups.groups)
    cells = [each.snapped.outer for each in compiler.groups.groups]
    impossible = frozenset(g for g, each in enumerate(cells) if not _is_possible(each, universe))
    layout = SelectLayout(keys, readings, select.outputs, select.having, select.order, impossible)
    return layout, compiler


def _is_possible(cells: Union, universe: Universe) -> bool:
    """Whether a record that is as the policy says may be in one of these cells."""
    return any(
        all(
            mask[:-1].any() or universe.attributes[place].may_be_missing
            for place, mask in product.items()
        )
        for product in cells
    )


def _texts(parts: tuple[AggregatePart, ...] | list[AggregatePart]) -> list[str]:
    """The names of the different questions among the parts, in the order of the question."""
    return sorted({part.text for part in parts})


def _questions(parts: AggregateParts) -> tuple[LinearCells, ...]:
    by_name = {part.text: part.linear for part in parts.found}
    return tuple(by_name[text] for text in _texts(parts.found))


def _ratios(
    parts: AggregateParts, layouts: tuple[SelectLayout, ...]
) -> tuple[tuple[int, int], ...]:
    """Which part is divided by which, by their places in the question."""
    places = {text: place for place, text in enumerate(_texts(parts.found))}
    averages = (
        each for layout in layouts for each in layout.readings if isinstance(each, AverageReading)
    )
    pairs = _of_one_divisor(
        (parts.found[each.sum.part].text, parts.found[each.count.part].text) for each in averages
    )
    return tuple(sorted((places[above], places[below]) for above, below in pairs.items()))


def _of_one_divisor(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By which part a part is divided, where it is divided by one: it has room for one quotient."""
    divisors: dict[str, set[str]] = {}
    for above, below in pairs:
        divisors.setdefault(above, set()).add(below)
    return {above: below for above, (below, *more) in divisors.items() if not more}


def _averages(parts: AggregateParts, layouts: Sequence[SelectLayout]) -> dict[str, str]:
    """By which part that of an average is divided, where a code is one value."""
    readings = [each for layout in layouts for each in layout.readings]
    averages = [each for each in readings if isinstance(each, AverageReading)]
    return _of_one_divisor(
        (parts.found[each.sum.part].text, parts.found[each.count.part].text)
        for each in averages
        if _exact_part(each.sum) is not None and _exact_part(each.count) is not None
    )


def _with_quotients(
    parts: AggregateParts, layouts: Sequence[SelectLayout]
) -> tuple[SelectLayout, ...]:
    """The layouts, with the quotients of a count and of a whole that it is part of.

    A part has room for what is proven of one quotient.
    """
    divided, found = _averages(parts, layouts), []
    for layout in layouts:
        quotients = {}
        pairs = {pair for each in layout.outputs for pair in divided_results(each.expression)}
        for pair in sorted(pairs):
            above, below = (_exact_part(layout.readings[place]) for place in pair)
            if above is None or below is None:
                continue
            if any(parts.found[each].linear.unit != 1 for each in (above, below)):
                continue  # what is proven is a quotient of counts of records
            text, other = parts.found[above].text, parts.found[below].text
            if divided.setdefault(text, other) == other:
                quotients[pair] = above, below
        found.append(replace(layout, quotients=quotients))
    return tuple(found)


def _exact_part(reading: Reading) -> int | None:
    """The part of which a count or a sum is a number by itself, with nothing left to bins."""
    if isinstance(reading, SumReading) and reading.slack is None and reading.room is None:
        return reading.part
    if isinstance(reading, CountReading) and reading.room is None:
        return reading.part
    return None


def _shares(parts: AggregateParts, layouts: Sequence[SelectLayout]) -> tuple[tuple[int, int], ...]:
    """Which part is a share of which in some group, by their places in the question."""
    texts = _texts(parts.found)
    linear = {each.text: each.linear for each in parts.found}
    named = {
        (parts.found[above].text, parts.found[below].text)
        for layout in layouts
        for above, below in layout.quotients.values()
    }
    named |= set(_averages(parts, layouts).items())
    found = [
        (texts.index(above), texts.index(below))
        for above, below in named
        if any(map(_is_split, linear[above].cells, linear[below].cells))
    ]
    return tuple(sorted(found))


def _is_split(above: Sequence[Product], below: Sequence[Product]) -> bool:
    return len(above) == len(below) == 1 and split_of(above[0], below[0]) is not None


def _policy_notes(universe: Universe) -> list[str]:
    """Where a person may have several rows, an answer is about those that count.

    The stand-in is made of all columns, so bounds taken from the data stamp every answer.
    """
    notes = []
    if universe.person is not None:
        most = "1 row" if universe.rows_per_person == 1 else f"{universe.rows_per_person} rows"
        notes.append(f"it is about the rows that count: at most {most} of each {universe.person}")
    names = [each.name for each in universe.attributes if each.column.provenance is Provenance.DATA]
    if names:
        notes.append(
            f"guarantee conditional on the policy: what it declares of {', '.join(names)} was "
            f"taken from the data"
        )
    return notes
