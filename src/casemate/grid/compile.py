"""SQL to one private question and back: a statement compiled, without looking at any data.

All aggregates of all groups, branches and grouping sets are parts of one question, so their bounds
hold at once. The question is the same however the statement is written: its parts are sorted, and
so are the cells of each.
"""

from dataclasses import dataclass, field

from casemate.errors import Unsupported
from casemate.grid.aggregates import AggregatePart, AggregateParts, Compiler
from casemate.grid.direct import Direct, MeasuredPart, Whence
from casemate.grid.outcome import Outcome
from casemate.grid.product import Product
from casemate.grid.question import GridQuestion, LinearCells, Relation
from casemate.grid.readings import AverageReading
from casemate.grid.rows import SelectLayout, ShownTable, show
from casemate.query import Select, Statement
from casemate.query.snapping import KeyGroups, cells_of
from casemate.table import Provenance, Universe

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

    def rows(self, outcome: Outcome) -> ShownTable:
        """The rows of the statement, from the outcome of `asked`."""
        places = {part: place for place, part in enumerate(_texts(self.parts))}
        answered = [outcome.parts[places[part.text]] for part in self.parts]
        estimates = [
            [cells[place] for place in part.places]
            for part, cells in zip(self.parts, answered, strict=True)
        ]
        return show(self.layouts, self.limit, estimates)

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


def _origin(part: AggregatePart, measured: tuple[MeasuredPart, ...]) -> Whence:
    if part.measured is None:
        return Whence(None, len(part.places))
    worth = part.measured.unit / part.linear.unit
    return Whence(measured.index(part.measured), len(part.places), worth)


def compiled(statement: Statement, universe: Universe) -> Compiled:
    """The question that a statement asks, or `Unsupported` with the reason why there is none."""
    parts = AggregateParts()
    groups = [_groups(select, universe) for select in statement.selects]
    numbers = zip(statement.selects, groups, strict=True)
    parts.require_room(sum(len(s.aggregates) * len(each.groups) for s, each in numbers))
    made = [
        _layout(select, universe, each, parts)
        for select, each in zip(statement.selects, groups, strict=True)
    ]
    layouts = tuple(layout for layout, _ in made)
    together = max(each.together() for each in layouts)
    compilers = [compiler for _, compiler in made]
    moved = [note for each in compilers for note in (*each.groups.notes, *each.moved)]
    wide = [WIDTH_NOTE] if any(part.measured is None for part in parts.found) else []
    always = [note for each in compilers for note in each.notes]
    always += [*_of_persons(universe), *_conditional(universe)]
    return Compiled(
        GridQuestion(_questions(parts), max(1, together), _ratios(parts, layouts)),
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
    return SelectLayout(keys, readings, select.outputs, select.having, select.order), compiler


def _texts(parts: tuple[AggregatePart, ...] | list[AggregatePart]) -> list[str]:
    """The names of the different questions among the parts, in their order in `Asked`."""
    return sorted({part.text for part in parts})


def _questions(parts: AggregateParts) -> tuple[LinearCells, ...]:
    by_name = {part.text: part.linear for part in parts.found}
    return tuple(by_name[text] for text in _texts(parts.found))


def _ratios(
    parts: AggregateParts, layouts: tuple[SelectLayout, ...]
) -> tuple[tuple[int, int], ...]:
    """Which part is divided by which, by their places in `Asked`."""
    places = {text: place for place, text in enumerate(_texts(parts.found))}
    averages = (
        each for layout in layouts for each in layout.readings if isinstance(each, AverageReading)
    )
    pairs = ((parts.found[each.sum.part], parts.found[each.count.part]) for each in averages)
    return tuple(dict.fromkeys((places[above.text], places[below.text]) for above, below in pairs))


def _of_persons(universe: Universe) -> list[str]:
    """Where a person may have several rows, an answer is about those that count."""
    if universe.person is None:
        return []
    most = "1 row" if universe.rows_per_person == 1 else f"{universe.rows_per_person} rows"
    return [f"it is about the rows that count: at most {most} of each {universe.person}"]


def _conditional(universe: Universe) -> list[str]:
    """The stand-in is made of all columns, so bounds taken from the data stamp every answer."""
    names = [each.name for each in universe.attributes if each.column.provenance is Provenance.DATA]
    if not names:
        return []
    return [
        f"guarantee conditional on the policy: what it declares of {', '.join(names)} was taken "
        f"from the data"
    ]
