"""What was published, and what of it could not be read: a log against an open table."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from casemate.errors import Unsupported
from casemate.published.coefficients import counted_once
from casemate.published.readable import (
    ORDERED,
    Readable,
    inexact_combination,
    is_counted,
    is_public,
    readable,
    refused_whole,
)
from casemate.published.shown import ShownForm, half_unit, presence, shown_as
from casemate.query import Aggregate, Output, Select, Statement
from casemate.query.engines import Key
from casemate.query.language import ResultRef, walk
from casemate.query.parse import DIALECT, Logged, Unread, parse_statement
from casemate.table import Policy


@dataclass(frozen=True)
class RefusedQuery:
    """A statement, or a part of one, that was not audited, and why; `line` is the log's."""

    query: int
    line: int | None
    column: int | None
    text: str
    reason: str


@dataclass(frozen=True)
class ShownColumn:
    """One shown column of one select of a statement: an equation for each of its cells.

    `below` is the secret count that its sums are divided by, and `empty` the secret count that is
    0 where it shows NULL; each is None where there is none.
    """

    query: int
    select: Select
    output: Output
    form: ShownForm
    # Given by the log for each cell; None: the table's own.
    answers: Mapping[Key, Decimal] | None = field(repr=False)
    within: Fraction = Fraction(0)  # half a unit of the answer's last printed digit
    below: Aggregate | None = None
    empty: Aggregate | None = None

    @property
    def told(self) -> bool:
        """Whether the answers were given, and are not the table's own."""
        return self.answers is not None

    def answer(self, key: Key) -> Decimal | None:
        """The answer that was given for a cell."""
        return None if self.answers is None else self.answers.get(key)


@dataclass(frozen=True)
class SecretRows:
    """A select of which secrets decide what rows it has; `counted` if each shows its count."""

    query: int
    select: Select
    counted: bool


@dataclass(frozen=True)
class Publication:
    """The columns that are equations, those that show extremes or medians, and what cannot."""

    queries: int
    columns: tuple[ShownColumn, ...]
    ordered: tuple[ShownColumn, ...]
    refused: tuple[RefusedQuery, ...]
    statements: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()  # on which each statement of the log begins
    there: tuple[SecretRows, ...] = ()

    @property
    def told(self) -> bool:
        """Whether the log gives answers of its own, which the table's need not be."""
        return any(column.told for column in (*self.columns, *self.ordered))

    @property
    def unlabelled(self) -> tuple[int, ...]:
        """The statements with rows that are not shown with all of their keys."""
        read: tuple[ShownColumn | SecretRows, ...] = (*self.columns, *self.ordered, *self.there)
        bare = {each.query for each in read if len(each.select.labels) < len(each.select.keys)}
        return tuple(sorted(bare))


def publication(
    log: Iterable[Logged | Unread],
    policy: Policy,
    dialect: str = DIALECT,
    rounding: bool = False,
    unique: Collection[str] = (),
) -> Publication:
    """Read every statement of a log; one that cannot be read does not stop the others.

    With `rounding` an answer that the log gives counts as rounded to the digits it has there.
    `unique` are public columns that differ in every row, so that counting them counts rows.
    """
    columns: list[ShownColumn] = []
    ordered: list[ShownColumn] = []
    refused: list[RefusedQuery] = []
    statements: list[str] = []
    lines: list[int] = []
    there: list[SecretRows] = []
    number = 0
    for number, entry in enumerate(log, start=1):
        statements.append(entry.text if isinstance(entry, Unread) else entry.sql)
        lines.append(entry.line)
        if isinstance(entry, Unread):
            refused.append(RefusedQuery(number, entry.line, None, entry.text, entry.reason))
            continue
        try:
            statement = counted_once(parse_statement(entry.sql, policy, dialect), unique)
        except Unsupported as error:
            place = (entry.line + max(0, error.line - 1), error.column or None)
            refused.append(RefusedQuery(number, *place, entry.sql, error.reason))
            continue
        found, reasons = _columns(number, statement, entry.answer)
        if rounding and entry.answer is not None:
            found = [replace(each, within=half_unit(entry.answer)) for each in found]
        ordered += [column for column in found if is_ordered(column)]
        columns += [column for column in found if not is_ordered(column)]
        refused += [RefusedQuery(number, entry.line, None, entry.sql, each) for each in reasons]
        there += _there(number, statement)
    read = tuple(columns), tuple(ordered), tuple(refused)
    return Publication(number, *read, tuple(statements), tuple(lines), tuple(there))


def _columns(
    number: int, statement: Statement, answer: Decimal | None
) -> tuple[list[ShownColumn], list[str]]:
    """The columns of a statement that are equations, and why the others are not."""
    if answer is not None and not _single(statement):
        return [], ["an answer goes with a statement that shows one number"]
    whole = refused_whole(statement)
    if whole is not None:
        return [], [whole]
    columns, reasons = [], []
    for select in statement.selects:
        for output in select.outputs:
            if not _about_secrets(select, output):
                continue
            form = shown_as(output.expression)
            read = readable(select, output, form)
            if isinstance(read, Readable):
                read = inexact_combination(select, output) or read
            if isinstance(read, Readable) and form is not None and not form.weights:
                continue  # multiplied by nothing: it shows nothing
            if isinstance(read, Readable) and form is not None:
                given: dict[Key, Decimal] | None = None if answer is None else {(): answer}
                columns.append(
                    ShownColumn(
                        number, select, output, form, given, below=read.below, empty=read.empty
                    )
                )
            else:
                reasons.append(f"the column {output.name}: {read}")
    return columns, reasons


def _there(number: int, statement: Statement) -> list[SecretRows]:
    """The selects of which secrets decide what rows they have."""
    return [
        SecretRows(number, select, is_counted(select))
        for select in statement.selects
        if select.keys and not is_public(presence(select))
    ]


def _about_secrets(select: Select, output: Output) -> bool:
    """Whether a shown column depends on anything private, or on which cells there are."""
    used = {node.index for node in walk(output.expression) if isinstance(node, ResultRef)}
    return any(
        select.aggregates[index].private_argument or select.aggregates[index].private_predicate
        for index in used
    )


def _single(statement: Statement) -> bool:
    return (
        len(statement.selects) == 1
        and not statement.selects[0].keys
        and len(statement.selects[0].outputs) == 1
    )


def is_ordered(column: ShownColumn) -> bool:
    """Whether a column shows an extreme or a median, and nothing else."""
    index = column.form.weights[0][0]
    return column.select.aggregates[index].function in ORDERED
