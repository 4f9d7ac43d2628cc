"""What a statement asks about private numbers: its secret columns, and the records behind them.

`secret_columns` decides by the text alone, and refuses with the reason a statement that could show
more than sums, averages, minima and maxima over publicly chosen records. `Snapshot` finds the
questions about single records without reading a private column.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.online import Extreme
from casemate.errors import Misconfigured, Refused
from casemate.exact import Equation
from casemate.published import (
    People,
    Secrets,
    ShownForm,
    column_values,
    exact,
    integer_row,
    multiply_exactly,
    numerators,
    presence,
    shown_as,
)
from casemate.query import Aggregate, Function, Output, Select, Statement
from casemate.query.engines import Key, answers, shown_rows
from casemate.query.language import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    columns_of,
    private_columns,
    walk,
)
from casemate.query.records import ONE, Term, counting, lineage, linear_form
from casemate.table import Column, Policy
from casemate.table.sources import Source

EXTREMES: dict[Function, Extreme] = {Function.MIN: "min", Function.MAX: "max"}


@dataclass(frozen=True)
class SumColumn:
    """A column of weighted sums and averages of private numbers."""

    select: Select
    form: ShownForm

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Those that something private is added up in."""
        every = (self.select.aggregates[index] for index, _ in self.form.weights)
        return tuple(each for each in every if public_form(each) is None)


@dataclass(frozen=True)
class ExtremeColumn:
    """A column of minima or maxima of a private number."""

    select: Select
    aggregate: Aggregate
    kind: Extreme


SecretColumn = SumColumn | ExtremeColumn


def secret_columns(statement: Statement, names: Sequence[str]) -> list[SecretColumn]:
    """The columns that show something of these private columns of the table.

    Raises Refused where the statement shows anything else that is private.
    """
    for select in statement.selects:
        _check_choice(select)
        _check_order(select, statement.limit)
    return [
        column
        for select in statement.selects
        for output in select.outputs
        for column in _secret_column(select, output, names)
    ]


def public_form(aggregate: Aggregate) -> Aggregate | None:
    """The aggregate over public columns that has the same value, or None.

    Of a private column that is never missing, COUNT is COUNT(*). Of anything computed from it, it
    is not: an engine's arithmetic may be NULL for some values.
    """
    if not aggregate.private_argument and not aggregate.private_predicate:
        return aggregate
    bare = _is_bare(aggregate) and aggregate.function is Function.COUNT
    return replace(aggregate, argument=None) if bare and not aggregate.private_predicate else None


def counted_form(aggregate: Aggregate) -> Aggregate | None:
    """The public count of the rows that a sum of private numbers adds up, by its form; or None."""
    terms = linear_form(counting(aggregate), wide=True) or ()
    if len(terms) != 1 or terms[0].unknown is not None:
        return None
    (only,) = terms
    return Aggregate(Function.COUNT, None, only.predicate, only.keys, aggregate.joins)


def _is_bare(aggregate: Aggregate) -> bool:
    """Whether an aggregate is of a private column itself, which is never missing."""
    argument = aggregate.argument
    return isinstance(argument, ColumnRef) and argument.private and not argument.column.nullable


def results(expression: Expression) -> list[int]:
    """The results that an expression uses."""
    return [node.index for node in walk(expression) if isinstance(node, ResultRef)]


# What decides which rows and cells there are ----------------------------------------------------


def _check_choice(select: Select) -> None:
    if private_columns(select.predicate, *select.keys):
        raise Refused("which records or cells it chooses depends on a private column")
    if any(public_form(select.aggregates[index]) is None for index in results(select.having)):
        raise Refused("HAVING decides by something private")


def _check_order(select: Select, limit: int | None) -> None:
    """The order of rows, and which of them come first, must say nothing that is not shown."""
    used = {index for each in select.order for index in results(each.expression)}
    private = {index for index in used if public_form(select.aggregates[index]) is None}
    if private and (limit is not None or not private <= select.shown):
        raise Refused("the order of its rows depends on something private")


# What a column shows ----------------------------------------------------------------------------


def _secret_column(select: Select, output: Output, names: Sequence[str]) -> Iterator[SecretColumn]:
    used = [select.aggregates[index] for index in results(output.expression)]
    private = [each for each in used if public_form(each) is None]
    if not private:
        return
    _check_followed(private, names)
    if isinstance(output.expression, ResultRef) and private[0].function in EXTREMES:
        yield _extreme(select, private[0], output.name)
        return
    form = shown_as(output.expression)
    if form is None:
        raise Refused(f"the column {output.name} is not a linear combination of sums")
    if form.divisor is not None and public_form(select.aggregates[form.divisor]) is None:
        raise Refused(f"the column {output.name} divides by something private")
    column = SumColumn(select, form)
    if set(private) != set(column.aggregates):
        raise Refused(f"the column {output.name} takes all of a sum away again; leave that sum out")
    for aggregate in column.aggregates:
        _check_sum(aggregate, output.name)
    _check_missing(select, output)
    yield column


def _check_followed(aggregates: Sequence[Aggregate], names: Sequence[str]) -> None:
    if any(each.private_predicate for each in aggregates):
        raise Refused("which records it adds up depends on a private column")
    others = frozenset[str]().union(*(each.private_argument for each in aggregates)) - set(names)
    if others:
        raise Refused(f"it uses the private column {min(others)}, which is not audited here")


def _extreme(select: Select, aggregate: Aggregate, name: str) -> ExtremeColumn:
    if not _is_bare(aggregate) or aggregate.joins:
        raise Refused(
            f"the column {name} is not the plain minimum or maximum of a private number that is "
            f"never missing"
        )
    return ExtremeColumn(select, aggregate, EXTREMES[aggregate.function])


def _check_sum(aggregate: Aggregate, name: str) -> None:
    terms = linear_form(aggregate, wide=True)
    added = aggregate.function in (Function.SUM, Function.AVG)
    if not added or terms is None or not all(map(_is_number, terms)):
        raise Refused(
            f"the column {name} shows something other than sums, averages, minima and maxima of "
            f"private numbers, which is not decided before it is answered"
        )
    if aggregate.function is Function.AVG and counted_form(aggregate) is None:
        raise Refused(
            f"the column {name} is an average over values that may be missing, and how many there "
            f"are is private; ask for the sum"
        )


def _is_number(term: Term) -> bool:
    """Whether a term adds up a private number itself, or nothing private."""
    return term.unknown is None or term.unknown.category is None


def _check_missing(select: Select, output: Output) -> None:
    """A sum shows NULL where every value is missing, and would say so of everybody in it."""
    bare = [select.aggregates[index] for index in _bare_results(output.expression)]
    if any(_column(each).nullable for each in bare if public_form(each) is None):
        raise Refused(
            f"the column {output.name} would show that all values are missing where they are; "
            f"write COALESCE(SUM(...), 0)"
        )


def _bare_results(expression: Expression) -> Iterator[int]:
    """The results that stand outside COALESCE(result, 0)."""
    if isinstance(expression, ResultRef):
        yield expression.index
    if not isinstance(expression, Call):
        return
    first, *others = expression.arguments
    coalesced = expression.operation is Operation.COALESCE and isinstance(first, ResultRef)
    if coalesced and _is_zero(others[0]):
        return
    for argument in expression.arguments:
        yield from _bare_results(argument)


def _is_zero(expression: Expression) -> bool:
    if isinstance(expression, Call) and expression.operation is Operation.CAST:
        return _is_zero(expression.arguments[0])
    return isinstance(expression, Literal) and expression.value == 0


def _column(aggregate: Aggregate) -> Column:
    """The private column that an aggregate adds up."""
    references = columns_of(aggregate.argument or ONE)
    return next(reference.column for reference in references if reference.private)


# Questions about single records -----------------------------------------------------------------


class Family(StrEnum):
    """The two kinds of questions that are never mixed about linked records."""

    SUMS = "sums"
    EXTREMES = "extremes"


@dataclass(frozen=True, eq=False)
class ExtremeQuestion:
    """The minimum or maximum of some unknowns, and where it is shown."""

    kind: Extreme
    members: NDArray[np.int64]
    aggregate: Aggregate
    key: Key


@dataclass(frozen=True, eq=False)
class StatementQuestions:
    """Everything that a statement asks about private numbers."""

    sums: tuple[Equation, ...] = ()
    extremes: tuple[ExtremeQuestion, ...] = ()
    cells: "CellUnknowns | None" = field(
        default=None, repr=False
    )  # behind its sums, where it has some

    @cached_property
    def members(self) -> tuple[tuple[Family, NDArray[np.int64]], ...]:
        """The unknowns that each question links, and its family."""
        sums = ((Family.SUMS, each.columns) for each in self.sums)
        extremes = ((Family.EXTREMES, each.members) for each in self.extremes)
        return (*sums, *extremes)

    @cached_property
    def families(self) -> frozenset[Family]:
        """The families its questions belong to."""
        return frozenset(family for family, _ in self.members)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The records of a table at one time, and the private columns that are followed.

    Unknown number c * records + i is column c of record i, or of the person whose first row that
    is where the column is constant for each person.
    """

    source: Source
    policy: Policy
    people: People
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many unknowns there are."""
        return len(self.names) * self.records

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.people.records)

    @cached_property
    def persons(self) -> NDArray[np.int64]:
        """The first unknown of the same person, where each row has its own."""
        own, first = np.arange(self.records, dtype=np.int64), self.people.first
        constant = [self.people.owners(name) is not None for name in self.names]
        return np.concatenate(
            [c * self.records + (own if each else first) for c, each in enumerate(constant)]
        )

    def questions(self, statement: Statement) -> StatementQuestions:
        """What the statement asks; raises Refused where that cannot be decided beforehand."""
        columns = secret_columns(statement, self.names)
        if not columns:
            return StatementQuestions()
        sums = [each for each in columns if isinstance(each, SumColumn)]
        extremes = [each for each in columns if isinstance(each, ExtremeColumn)]
        needed = [a for each in sums for a in each.aggregates] + [e.aggregate for e in extremes]
        cells = CellUnknowns(list(dict.fromkeys(needed)), self)
        asked = [question for each in sums for question in _sums(each, cells)]
        ordered = [question for each in extremes for question in _extremes(each, cells)]
        return StatementQuestions(tuple(asked), tuple(ordered), cells)

    @cached_property
    def numbers(self) -> tuple[NDArray[Any], int]:
        """The private numbers themselves, as integers over one denominator; missing ones are 0."""
        found = [column_values(name, self.source) for name in self.names]
        records = [self.people.record(place) for place in range(self.records)]
        return numerators([values[record] for values in found for record in records])


class CellUnknowns:
    """The unknowns behind each cell of some aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate], snapshot: Snapshot) -> None:
        found = lineage(aggregates, snapshot.source, wide=True)
        if not np.array_equal(found.records, snapshot.people.records):
            raise Misconfigured(
                "the table's records are not those it had at first, and an audit is about one "
                "snapshot; start a new one"
            )
        self.source, self._snapshot = snapshot.source, snapshot
        self._secrets = Secrets(found, aggregates, snapshot.policy, snapshot.people)
        columns = [snapshot.names.index(each.column) for each in self._secrets.unknowns]
        self._columns = np.array(columns, np.int64)

    def of(self, aggregate: Aggregate, key: Key) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The unknowns of a cell, and their coefficients."""
        codes, coefficients, _ = self._secrets.cell(aggregate, key)
        return self._numbers_of(codes), coefficients

    def _numbers_of(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Secrets as the snapshot numbers its unknowns."""
        unknown, record = np.divmod(codes, max(1, self._snapshot.records))
        return self._columns[unknown] * self._snapshot.records + record

    def total(self, aggregate: Aggregate, key: Key) -> Fraction:
        """What a sum comes to, exactly: coefficients times private numbers, and what is public."""
        codes, coefficients, public = self._secrets.cell(aggregate, key)
        whole, scale = numerators(coefficients)
        numbers, denominator = self._snapshot.numbers
        terms = multiply_exactly(whole, numbers[self._numbers_of(codes)])
        return Fraction(int(terms.sum()), scale * denominator) + exact(public)

    def keys(self, select: Select, aggregates: Sequence[Aggregate]) -> list[Key]:
        """The cells that are shown and have something private in them, in a fixed order."""
        found = self._secrets.keys(aggregates)
        if select.having != TRUE:
            shown = shown_keys(select, self.source)
            found = [key for key in found if key in shown]
        return sorted(found, key=lambda key: [(each is None, str(each)) for each in key])


def shown_keys(select: Select, source: Source) -> set[Key]:
    """The cells that HAVING lets through, which it decides by public results."""
    used = [select.aggregates[index] for index in results(select.having)]
    forms = {each: form for each in used if (form := public_form(each)) is not None}
    present, *found = answers([presence(select), *forms.values()], source)
    values = defaultdict[Aggregate, dict[Key, Scalar]](dict, zip(forms, found, strict=True))
    return set(shown_rows(replace(select, outputs=()), present, values))


# From cells to questions ------------------------------------------------------------------------


def _extremes(column: ExtremeColumn, cells: CellUnknowns) -> list[ExtremeQuestion]:
    """One question for each cell; constant columns count a person once."""
    asked = []
    for key in cells.keys(column.select, [column.aggregate]):
        members = np.unique(cells.of(column.aggregate, key)[0])
        if len(members):
            asked.append(ExtremeQuestion(column.kind, members, column.aggregate, key))
    return asked


def _sums(column: SumColumn, cells: CellUnknowns) -> list[Equation]:
    """One equation for each cell in which something private is left."""
    aggregates = column.select.aggregates
    weights = [(aggregates[i], w) for i, w in column.form.weights]
    private = [(each, weight) for each, weight in weights if each in column.aggregates]
    counts = _counts([each for each, _ in private], cells.source) if len(private) > 1 else {}
    found = []
    for key in cells.keys(column.select, column.aggregates):
        parts = [
            (*cells.of(each, key), weight / max(1, counts.get(each, {}).get(key, 1)))
            for each, weight in private
        ]
        unknowns, coefficients, _ = integer_row(parts)
        if len(unknowns):
            found.append(Equation(unknowns, coefficients))
    return found


def weighing(equation: Equation) -> Fraction:
    """How many times more a sum weighs one record than another."""
    sizes = [abs(int(each)) for each in np.unique(equation.values).tolist()]
    return Fraction(max(sizes), min(sizes))


def _counts(aggregates: Sequence[Aggregate], source: Source) -> dict[Aggregate, dict[Key, int]]:
    """What the averages among some aggregates divide by; it matters beside others only."""
    averages = [each for each in aggregates if each.function is Function.AVG]
    forms = [form for each in averages if (form := counted_form(each)) is not None]
    found = answers(forms, source)
    return {
        each: {key: int(str(value)) for key, value in cells.items()}
        for each, cells in zip(averages, found, strict=True)
    }
