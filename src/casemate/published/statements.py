"""The statements of a log: which shown columns are equations, and why the others cannot be read.

`publication` reads a log against an open table, `readable` decides about one column. Besides
numbers, a statement shows which rows there are and which results are NULL. Where secrets decide
that, it is told as well: by the count of the rows behind it, which is 0 or is not.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from casemate.errors import Unsupported
from casemate.published.shown import ShownForm, half_unit, presence, shown_as
from casemate.query import Aggregate, Function, Output, Projection, Select, Statement
from casemate.query.engines import Key
from casemate.query.language import (
    NUMBERS,
    Call,
    ColumnRef,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    coerce,
    private_columns,
    substitute,
    walk,
)
from casemate.query.parse import DIALECT, Logged, Unread, read_projection, read_statement
from casemate.query.records import ONE, Term, counting, inexact, inexact_parts, linear_form
from casemate.table import ColumnType, Policy, Role
from casemate.table.sources import Source, quote_name

ORDERED = (Function.MIN, Function.MAX, Function.MEDIAN)
LINEAR = (Function.SUM, Function.COUNT, Function.AVG)
NOT_LINEAR = "it is not linear in what is secret"
QUANTILE = "of quantiles of something secret only median(x) is read"
SEVERAL = "several secrets decide whether it is NULL"


@dataclass(frozen=True)
class Readable:
    """The secret count that a column's sums are divided by, and the one that is 0 at NULL."""

    below: Aggregate | None = None
    empty: Aggregate | None = None


def is_public(aggregate: Aggregate) -> bool:
    """Whether an aggregate depends on nothing secret."""
    if aggregate.function is Function.COUNT_DISTINCT:  # of a public column: how many people
        return not private_columns(aggregate.membership, *aggregate.keys)
    terms = linear_form(aggregate)
    return terms is not None and all(term.unknown is None for term in terms)


def refused_whole(statement: Statement) -> str | None:
    """Why nothing of a statement can be read, or None."""
    if statement.limit is not None and any(select.keys for select in statement.selects):
        return "LIMIT shows some rows only; leave it out"
    for select in statement.selects:
        if not all(is_public(select.aggregates[index]) for index in _results_in([select.having])):
            return "HAVING decides by something secret"
        hidden = _results_in([each.expression for each in select.order]) - select.shown
        if not all(is_public(select.aggregates[index]) for index in hidden):
            return "ORDER BY shows the order of something secret"
    return None


def _results_in(expressions: Iterable[Expression]) -> set[int]:
    nodes = (node for expression in expressions for node in walk(expression))
    return {node.index for node in nodes if isinstance(node, ResultRef)}


def is_counted(select: Select) -> bool:
    """Whether a select shows how many rows are behind each of its cells."""
    outputs = (output.expression for output in select.outputs)
    shown = {each.index for each in outputs if isinstance(each, ResultRef)}
    return any(select.aggregates[index] == presence(select) for index in shown)


def readable(select: Select, output: Output, form: ShownForm) -> Readable | str:
    """How a column is read, or why it cannot be."""
    if any(isinstance(node, KeyRef) for node in walk(output.expression)):
        return "it is not a linear combination of sums"
    if _shows_order(select, output):
        return Readable()
    sums = [select.aggregates[index] for index, _ in form.weights]
    if any(each.function is Function.QUANTILE for each in sums):
        return QUANTILE
    if any(each.function not in LINEAR or linear_form(each) is None for each in sums):
        return _why_not(sums)
    below = _below(select, form)
    if isinstance(below, str):
        return below
    return _with_nulls(output.expression, sums, below)


def _why_not(aggregates: Iterable[Aggregate]) -> str:
    """Why an aggregate is not linear: a step that is not exact is named, with what to do."""
    parts = (part for each in aggregates for part in inexact_parts(each))
    part, why = next(((each, inexact(each)) for each in parts), (None, None))
    if part is None or why is None:
        return NOT_LINEAR
    (name,) = private_columns(part)
    bounds = f"declare bounds (--bounds LO:HI) of {name} within which it cannot"
    instead = f"aggregate {name} itself and compute with the result"
    return f"{why} for some values of {name}; {bounds if ' may ' in why else instead}"


def _shows_order(select: Select, output: Output) -> bool:
    """Whether an output is MIN, MAX or MEDIAN of a private number, over publicly chosen records."""
    if not isinstance(output.expression, ResultRef):
        return False
    aggregate = select.aggregates[output.expression.index]
    terms = linear_form(replace(aggregate, function=Function.SUM))
    return (
        aggregate.function in ORDERED
        and terms is not None
        and not aggregate.joins
        and len(terms) == 1
        and terms[0].unknown is not None
        and terms[0].unknown.category is None
        and terms[0].coefficient == ONE
    )


def _below(select: Select, form: ShownForm) -> Aggregate | str | None:
    """The secret count that the sums of a column are divided by, if there is one."""
    averages = [select.aggregates[index] for index, _ in form.weights]
    averages = [each for each in averages if each.function is Function.AVG]
    secret = [counting(each) for each in averages if not is_public(counting(each))]
    if form.divisor is not None:
        divisor = select.aggregates[form.divisor]
        if is_public(divisor):
            return "it divides an average" if secret else None
        if secret or divisor.function is not Function.COUNT or linear_form(divisor) is None:
            return "it divides by something secret that is not a count"
        return divisor
    if not secret:
        return None
    return secret[0] if len(form.weights) == 1 else "it adds to an average of secretly many values"


def _with_nulls(
    expression: Expression, sums: list[Aggregate], below: Aggregate | None
) -> Readable | str:
    """What a column's being NULL tells: that a secret count is 0, if that is always the same."""
    counts = [counting(each) for each in sums if each.function is not Function.COUNT]
    deciding = [each for each in (*counts, below) if each is not None and not is_public(each)]
    if not deciding:
        return Readable(below)
    if any(linear_form(each) is None for each in deciding):
        return _why_not(deciding)
    if any(_is_filled(node) for node in walk(expression)):
        hidden = below is None and all_filled(expression)
        return Readable() if hidden else "COALESCE hides whether something secret is NULL"
    if len({_rows(each) for each in deciding}) > 1:
        return SEVERAL
    return Readable(below, deciding[0])


def _rows(count: Aggregate) -> frozenset[Term]:
    return frozenset(linear_form(count) or ())


def _is_filled(node: Expression) -> bool:
    return isinstance(node, Call) and node.operation is Operation.COALESCE


def all_filled(expression: Expression) -> bool:
    """Whether each result stands in a COALESCE that shows 0 for NULL."""
    match expression:
        case ResultRef():
            return False
        case Call(Operation.COALESCE, (ResultRef(), other, *_)):
            return isinstance(other, Literal) and other.value == 0
        case Call(_, arguments):
            return all(map(all_filled, arguments))
    return True


# Columns that combine several private results ---------------------------------------------------
# What is computed from one result, in whatever way, says no more than the result. Of several it
# may: in `(SUM(a) + 9e18) - SUM(b)` an overflow says something of SUM(a) alone, and the equation
# that stands for the column is about the difference. So such a column is read only where every step
# is exact. Before anything is rounded or divided, that is: what follows is computed from one number
# again, or from the quotient of two.


ROWS = Literal(10**9, ColumnType.INTEGER)
"""As many as a result may come from."""

SEVERAL_RESULTS = (
    "it combines several results by steps that may overflow or be rounded, which says more than "
    "their sum; publish the results one by one, or declare bounds (--bounds LO:HI)"
)
ZERO = Literal(0, ColumnType.INTEGER)
FOLLOWING = (Operation.ROUND, Operation.CAST, Operation.DIVIDE, Operation.COALESCE)
"""Steps after which it is one number, or one by a count, if they read a constant or a result."""


def inexact_combination(select: Select, output: Output) -> str | None:
    """Why what a column shows is not a function of its linear form, or None if it is."""
    expression = combination(select, output)
    exact = expression is None or inexact(expression) is None
    return None if exact else SEVERAL_RESULTS


def combination(select: Select, output: Output) -> Expression | None:
    """What a column combines of several private results, as a formula of a row; or None."""
    form, expression = shown_as(output.expression), _before(output.expression, select)
    private = _private(expression, select)
    shown = set() if form is None else {select.aggregates[index] for index, _ in form.weights}
    if form is None or (len(private) < 2 and private <= shown) or _is_one_step(expression):
        return None
    return substitute(expression, lambda node: _as_row(node, select))


def _before(expression: Expression, select: Select) -> Expression:
    """What is computed before everything is rounded, or divided by a result."""
    while isinstance(expression, Call) and expression.operation in FOLLOWING:
        first, *others = expression.arguments
        if not all(isinstance(each, ResultRef) or not _private(each, select) for each in others):
            break
        expression = first
    return expression


def _private(expression: Expression, select: Select) -> set[Aggregate]:
    used = (node for node in walk(expression) if isinstance(node, ResultRef))
    found = {select.aggregates[node.index] for node in used}
    return {each for each in found if each.private_argument or each.private_predicate}


def _is_one_step(expression: Expression) -> bool:
    """Whether two results are added or subtracted, which rounds what the sum of both is.

    Whole numbers may overflow even so.
    """
    return (
        isinstance(expression, Call)
        and expression.operation in (Operation.ADD, Operation.SUBTRACT)
        and expression.type in (ColumnType.DOUBLE, ColumnType.DECIMAL)
        and all(isinstance(each, ResultRef) for each in expression.arguments)
    )


def _as_row(node: Expression, select: Select) -> Expression | None:
    """A result as something that a row could be: its argument, as many times as there are rows."""
    if not isinstance(node, ResultRef):
        return None
    aggregate = select.aggregates[node.index]
    if aggregate.function is Function.COUNT:
        return Call(Operation.CASE, (aggregate.membership, ROWS, ZERO), ColumnType.INTEGER)
    argument = aggregate.argument or ZERO
    operation = Operation.MULTIPLY if aggregate.function is Function.SUM else Operation.DIVIDE
    rows = coerce(ROWS, argument.type) if argument.type in NUMBERS else ROWS
    most = Call(operation, (argument, rows), node.type)
    return Call(Operation.COALESCE, (most, coerce(ZERO, node.type)), node.type)


# A log, statement by statement ------------------------------------------------------------------


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
class ReadOut:
    """A refused statement that shows single rows, and the answer that the log gives, if any."""

    query: int
    rows: Projection
    answer: Decimal | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Publication:
    """The columns that are equations, those that show extremes or medians, and what cannot.

    `read_out` are those of the refused statements that show rows of something private.
    """

    queries: int
    columns: tuple[ShownColumn, ...]
    ordered: tuple[ShownColumn, ...]
    refused: tuple[RefusedQuery, ...]
    statements: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()  # on which each statement of the log begins
    there: tuple[SecretRows, ...] = ()
    read_out: tuple[ReadOut, ...] = ()

    @property
    def told(self) -> bool:
        """Whether the log gives answers of its own, which the table's need not be."""
        return any(column.told for column in (*self.columns, *self.ordered))

    @property
    def private(self) -> frozenset[str]:
        """The private columns that what was read is about."""
        read: tuple[ShownColumn | SecretRows, ...] = (*self.columns, *self.ordered, *self.there)
        behind = [a for each in read for a in (*each.select.aggregates, presence(each.select))]
        names = (each.private_argument | each.private_predicate for each in dict.fromkeys(behind))
        return frozenset().union(*names, *(each.rows.private for each in self.read_out))

    @property
    def unlabelled(self) -> tuple[int, ...]:
        """The statements with rows that are not shown with all of their keys."""
        read: tuple[ShownColumn | SecretRows, ...] = (*self.columns, *self.ordered, *self.there)
        bare = {each.query for each in read if len(each.select.labels) < len(each.select.keys)}
        return tuple(sorted(bare - {each.query for each in self.read_out}))


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
    read_out: list[ReadOut] = []
    for count, entry in enumerate(log, start=1):
        number = count if entry.view is None else entry.view.number(count)
        statements.append(entry.text if isinstance(entry, Unread) else entry.sql)
        lines.append(entry.line)
        if isinstance(entry, Unread):
            refused.append(RefusedQuery(number, entry.line, None, entry.text, entry.reason))
            continue
        try:
            statement = counted_once(read_statement(entry, policy, dialect), unique)
        except Unsupported as error:
            place = (entry.line + max(0, error.line - 1), error.column or None)
            refused.append(RefusedQuery(number, *place, entry.sql, error.reason))
            read_out += _read_out(number, entry, policy, dialect)
            continue
        found, reasons = shown_columns(number, statement, entry.answer)
        if reasons and not found:
            read_out += _read_out(number, entry, policy, dialect)
        if rounding and entry.answer is not None:
            found = [replace(each, within=half_unit(entry.answer)) for each in found]
        ordered += [column for column in found if is_ordered(column)]
        columns += [column for column in found if not is_ordered(column)]
        refused += [RefusedQuery(number, entry.line, None, entry.sql, each) for each in reasons]
        there += secret_rows(number, statement)
    read = tuple(columns), tuple(ordered), tuple(refused)
    texts = tuple(statements), tuple(lines)
    return Publication(len(lines), *read, *texts, tuple(there), tuple(read_out))


def _read_out(number: int, entry: Logged, policy: Policy, dialect: str) -> list[ReadOut]:
    """A refused statement as one that shows rows of something private, if it is one."""
    rows = read_projection(entry, policy, dialect)
    return [] if rows is None or not rows.private else [ReadOut(number, rows, entry.answer)]


def shown_columns(
    number: int, statement: Statement, answer: Decimal | None
) -> tuple[list[ShownColumn], list[str]]:
    """The columns of a statement that are equations, and why the others are not."""
    if answer is not None and not _single(statement):
        return [], ["an answer goes with a statement that shows one number"]
    whole = refused_whole(statement)
    if whole is not None:
        return [], [whole]
    given: dict[Key, Decimal] | None = None if answer is None else {(): answer}
    read = [
        _read_column(number, select, output, given)
        for select in statement.selects
        for output in select.outputs
        if _private(output.expression, select)
    ]
    reasons = [each for each in read if isinstance(each, str)]
    return [each for each in read if isinstance(each, ShownColumn)], reasons


def _read_column(
    number: int, select: Select, output: Output, given: Mapping[Key, Decimal] | None
) -> ShownColumn | str | None:
    """A shown column, why it cannot be read, or None for one that is multiplied by nothing."""
    form = shown_as(output.expression)
    read = readable(select, output, form) if form else "it is not a linear combination of sums"
    if isinstance(read, Readable):
        read = inexact_combination(select, output) or read
    if form is None or isinstance(read, str):
        return f"the column {output.name}: {read}"
    if _cancels(select, output, form):
        return (
            f"the column {output.name}: it takes all of a sum away again, and whether it is shown, "
            f"or NULL, may still tell; leave that sum out"
        )
    shown = ShownColumn(number, select, output, form, given, below=read.below, empty=read.empty)
    return shown if form.weights else None


def _cancels(select: Select, output: Output, form: ShownForm) -> bool:
    """Whether a sum that what is shown does not depend on may still make it NULL, or a row."""
    if select.keys and not form.weights and not is_public(presence(select)):
        return True
    kept = {*dict(form.weights), form.divisor}
    gone = [select.aggregates[index] for index in _results_in([output.expression]) - kept]
    counts = [counting(each) for each in gone if each.function is not Function.COUNT]
    return not all(map(is_public, counts))


def secret_rows(number: int, statement: Statement) -> list[SecretRows]:
    """The selects of which secrets decide what rows they have."""
    return [
        SecretRows(number, select, is_counted(select))
        for select in statement.selects
        if select.keys and not is_public(presence(select))
    ]


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


# Distinct counts --------------------------------------------------------------------------------
# COUNT(DISTINCT c) of a column that differs in every row is COUNT(c), and so an equation.


def unique_columns(
    log: Iterable[Logged | Unread], policy: Policy, source: Source
) -> frozenset[str]:
    """The public columns that differ in every row, if the log counts anything distinct."""
    counted = any(isinstance(each, Logged) and "distinct" in each.sql.lower() for each in log)
    names = [column.name for column in policy.columns if column.role is Role.PUBLIC]
    if not counted or not names:
        return frozenset()
    asked = ", ".join(
        f"count(DISTINCT t.{quote_name(name)}) AS d{i}" for i, name in enumerate(names)
    )
    frame = source.read(f"SELECT count(*) AS n, {asked} FROM {source.relation()} AS t")
    rows = int(frame["n"].values[0])
    return frozenset(name for i, name in enumerate(names) if int(frame[f"d{i}"].values[0]) == rows)


def counted_once(statement: Statement, unique: Collection[str]) -> Statement:
    """The statement with a plain count wherever nothing could be counted twice."""

    def as_plain_count(aggregate: Aggregate) -> Aggregate:
        distinct = aggregate.function is Function.COUNT_DISTINCT and not aggregate.joins
        argument = aggregate.argument
        if distinct and isinstance(argument, ColumnRef) and argument.column.name in unique:
            return replace(aggregate, function=Function.COUNT, argument=None)
        return aggregate

    selects = (
        replace(each, aggregates=tuple(map(as_plain_count, each.aggregates)))
        for each in statement.selects
    )
    return replace(statement, selects=tuple(selects))
