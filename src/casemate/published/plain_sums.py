"""Published sums over publicly chosen records, one by one, without the records behind them.

Nothing here is compiled: every audit and every attack asks whether it is one of a large table.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from casemate.published.equation_system import Place, place_of, target
from casemate.published.evidence import missing_counts
from casemate.published.shown import ShownCell, all_shown_cells, exact
from casemate.published.statements import Publication, ShownColumn
from casemate.query import Function, Select
from casemate.query.engines import Key, tables
from casemate.query.language import TRUE, all_of, present
from casemate.query.records import ONE, Term, linear_form
from casemate.query.sketch import Selection
from casemate.table import PerPerson, Policy
from casemate.table.sources import Source

SUMMING = (Function.SUM, Function.AVG)
MAX_STORED_ENTRIES = 20_000_000
"""Records times published columns up to which the equations are written down."""


def is_large(found: Publication, policy: Policy, source: Source) -> bool:
    """Whether a publication is of plain sums, and has too many entries to be written down."""
    if found.ordered or found.there or not found.columns:
        return False
    if any(plain_sum_term(column, policy) is None for column in found.columns):
        return False
    counted = source.read(f"SELECT count(*) AS n FROM {tables(source, ())}")
    return int(counted["n"].values[0]) * len(found.columns) > MAX_STORED_ENTRIES


def plain_sum_term(
    column: ShownColumn, policy: Policy, incomplete: Collection[str] = ()
) -> Term | None:
    """The private number that a column adds up, each record's once, or None for anything else.

    Of columns that are `incomplete` everybody knows who has no value, and whoever has none is in
    no sum.
    """
    if column.below is not None or column.empty is not None or len(column.form.weights) > 1:
        return None
    aggregate = column.select.aggregates[column.form.weights[0][0]]
    terms = linear_form(aggregate)
    if aggregate.function not in SUMMING or aggregate.joins or terms is None or len(terms) > 1:
        return None
    term = next((term for term in terms if _is_plain(term, policy)), None)
    if term is None or term.unknown is None or aggregate.argument is None:
        return term
    if term.unknown.column not in incomplete:
        return term
    return replace(term, predicate=all_of(term.predicate, present(aggregate.argument)))


def _is_plain(term: Term, policy: Policy) -> bool:
    """Whether a term is a number of each record itself, one that is never missing."""
    if term.unknown is None or term.unknown.category is not None or term.coefficient != ONE:
        return False
    column = policy.column(term.unknown.column)
    several = policy.person not in (None, policy.key)
    return column is not None and not (
        column.nullable or (several and column.per_person is PerPerson.CONSTANT)
    )


@dataclass(frozen=True, eq=False)
class Number:
    """One published number: a multiple of the sum of a selection's values, and a constant."""

    column: ShownColumn
    term: Term
    key: Key
    cells: "ShownCellsOf"

    @property
    def selection(self) -> Selection:
        """The records that it adds up."""
        return Selection(self.term.predicate, self.term.keys, self.key)

    @property
    def place(self) -> Place:
        """Where it was published."""
        select, name = self.column.select, self.column.output.name
        return place_of(self.column.query, select, name, self.key)

    @cached_property
    def share(self) -> Fraction:
        """What the sum was multiplied by."""
        ((index, weight),) = self.column.form.weights
        return weight / self._cell.divisors[index] / self._divisor

    @cached_property
    def total(self) -> Fraction:
        """The sum itself, as the published number tells it."""
        return target(self.column, self._cell, self._divisor).low / self.share

    @property
    def is_there(self) -> bool:
        """Whether a number was published, and not that there is none."""
        return self.column.told or _is_there(self.column, self._cell)

    @property
    def _divisor(self) -> Fraction:
        divisor = self.column.form.divisor
        return Fraction(1) if divisor is None else exact(self._cell.sums[divisor])

    @property
    def _cell(self) -> ShownCell:
        return self.cells.of(self.column.select)[self.key]


class ShownCellsOf:
    """The shown cells of selects, read when they are first asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[Select, dict[Key, ShownCell]] = {}

    def of(self, select: Select) -> dict[Key, ShownCell]:
        """The cells of a select by their keys."""
        if select not in self._found:
            self.read([select])
        return self._found[select]

    def read(self, selects: Iterable[Select]) -> None:
        """Read the cells of many selects at once."""
        for select, cells in all_shown_cells(selects, self._source).items():
            self._found[select] = {cell.key: cell for cell in cells}


def numbers(
    columns: Sequence[ShownColumn], policy: Policy, source: Source, at_once: bool = False
) -> Iterator[Number]:
    """The numbers that columns show exactly; which cells there are is asked only where it must.

    `at_once` reads all cells together, for somebody who will ask for all of them.
    """
    cells, incomplete = ShownCellsOf(source), missing_counts(policy.private(), source)
    if at_once:
        cells.read(dict.fromkeys(column.select for column in columns))
    for column in columns:
        term = plain_sum_term(column, policy, incomplete)
        if term is None or column.form.rounded or column.within:
            continue
        keys: Sequence[Key] = [()]
        if column.select.keys or column.select.having != TRUE:
            found = cells.of(column.select)
            keys = [key for key, cell in found.items() if _is_there(column, cell)]
        if column.told:
            keys = [key for key in keys if column.answer(key) is not None]
        yield from (Number(column, term, key, cells) for key in keys)


def _is_there(column: ShownColumn, cell: ShownCell) -> bool:
    divisor = column.form.divisor
    empty = any(cell.sums[index] is None for index, _ in column.form.weights)
    return not empty and (divisor is None or bool(cell.sums[divisor]))
