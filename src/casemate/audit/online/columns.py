"""Which columns of a statement show private numbers, decided by the text of the statement alone.

A statement that could show more than sums, averages, minima and maxima over publicly chosen
records is refused, with the reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from casemate.audit.order.online import Extreme
from casemate.errors import Refused
from casemate.published import ShownForm, shown_as
from casemate.query import Aggregate, Function, Output, Select, Statement
from casemate.query.language import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    ResultRef,
    columns_of,
    private_columns,
    walk,
)
from casemate.query.records import ONE, Term, counting, linear_form
from casemate.table import Column

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
