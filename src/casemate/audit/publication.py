"""What was published, and what of it could not be read: a log against an open table."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from casemate.audit.shown import Shown, shown_as
from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate, Function, Output, Select, Statement
from casemate.query.expression import KeyRef, ResultRef, walk
from casemate.query.linear import ONE, counting, linear_form
from casemate.query.log import Logged, Unread
from casemate.query.sql import DIALECT, parse_statement
from casemate.table.schema import Policy


@dataclass(frozen=True)
class RefusedQuery:
    """A statement, or a part of one, that was not audited, and why."""

    query: int
    line: int | None
    column: int | None
    text: str
    reason: str


@dataclass(frozen=True)
class Column:
    """One shown column of one select of a statement: an equation for each of its cells."""

    query: int
    select: Select
    output: Output
    form: Shown
    answer: Decimal | None


@dataclass(frozen=True)
class Publication:
    """The columns that are equations, those that show extremes or medians, and what cannot."""

    queries: int
    columns: tuple[Column, ...]
    ordered: tuple[Column, ...]
    refused: tuple[RefusedQuery, ...]

    @property
    def told(self) -> bool:
        """Whether the log gives answers of its own, which the table's need not be."""
        return any(column.answer is not None for column in self.columns)


def publication(
    log: Iterable[Logged | Unread], policy: Policy, dialect: str = DIALECT
) -> Publication:
    """Read every statement of a log; one that cannot be read does not stop the others."""
    columns: list[Column] = []
    ordered: list[Column] = []
    refused: list[RefusedQuery] = []
    number = 0
    for number, entry in enumerate(log, start=1):
        if isinstance(entry, Unread):
            refused.append(RefusedQuery(number, entry.line, None, entry.text, entry.reason))
            continue
        try:
            statement = parse_statement(entry.sql, policy, dialect)
        except Unsupported as error:
            place = (error.line or None, error.column or None)
            refused.append(RefusedQuery(number, *place, entry.sql, error.reason))
            continue
        found, reasons = _columns(number, statement, entry.answer)
        ordered += [column for column in found if is_ordered(column)]
        columns += [column for column in found if not is_ordered(column)]
        refused += [RefusedQuery(number, None, None, entry.sql, reason) for reason in reasons]
    return Publication(number, tuple(columns), tuple(ordered), tuple(refused))


def _columns(
    number: int, statement: Statement, answer: Decimal | None
) -> tuple[list[Column], list[str]]:
    """The columns of a statement that are equations, and why the others are not."""
    if answer is not None and not _single(statement):
        return [], ["an answer goes with a statement that shows one number"]
    columns, reasons = [], []
    for select in statement.selects:
        for output in select.outputs:
            if not _about_secrets(select, output):
                continue
            form = shown_as(output.expression)
            if form is not None and not form.weights:
                continue  # multiplied by nothing: it shows nothing
            reason = unfit(select, output, form)
            if reason is None and form is not None:
                columns.append(Column(number, select, output, form, answer))
            else:
                reasons.append(f"the column {output.name}: {reason}")
    return columns, reasons


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


def is_ordered(column: Column) -> bool:
    """Whether a column shows an extreme or a median, and nothing else."""
    index = column.form.weights[0][0]
    return column.select.aggregates[index].function in ORDERED


ORDERED = (Function.MIN, Function.MAX, Function.MEDIAN)
LINEAR = (Function.SUM, Function.COUNT, Function.AVG)


def unfit(select: Select, output: Output, form: Shown | None) -> str | None:
    """Why a column is not one that the audit can read, or None."""
    if form is None or any(isinstance(node, KeyRef) for node in walk(output.expression)):
        return "it is not a linear combination of sums"
    if not _public_having(select):
        return "HAVING decides by something secret"
    if _shows_order(select, output):
        return None
    if form.divisor is not None and not _public(select.aggregates[form.divisor]):
        return "it divides by something secret"
    return next(filter(None, (_not_linear(select.aggregates[i]) for i, _ in form.weights)), None)


def _not_linear(aggregate: Aggregate) -> str | None:
    if aggregate.function not in LINEAR or linear_form(aggregate) is None:
        return "it is not linear in what is secret"
    if aggregate.function is Function.AVG and not _public(counting(aggregate)):
        return "the number of values behind the average is secret"
    return None


def _shows_order(select: Select, output: Output) -> bool:
    """Whether an output is MIN, MAX or MEDIAN of a private number, over publicly chosen records."""
    if not isinstance(output.expression, ResultRef):
        return False
    aggregate = select.aggregates[output.expression.index]
    terms = linear_form(aggregate) if aggregate.function in ORDERED else None
    return (
        terms is not None
        and not aggregate.joins
        and len(terms) == 1
        and terms[0].unknown is not None
        and terms[0].unknown.category is None
        and terms[0].coefficient == ONE
    )


def _public(aggregate: Aggregate) -> bool:
    terms = linear_form(aggregate)
    return terms is not None and all(term.unknown is None for term in terms)


def _public_having(select: Select) -> bool:
    used = {node.index for node in walk(select.having) if isinstance(node, ResultRef)}
    return all(_public(select.aggregates[index]) for index in used)
