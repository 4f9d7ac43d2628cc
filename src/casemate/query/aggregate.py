"""Aggregates as values: what a statement asks of the protected table, and what it shows of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from casemate.query.language.expression import (
    INFIX,
    TRUE,
    Call,
    ColumnRef,
    Expression,
    KeyRef,
    Operation,
    ResultRef,
    all_of,
    children,
    columns_of,
    conjuncts,
    expression_text,
    present,
    private_columns,
    walk,
)
from casemate.table.sources import quote_name


class Function(StrEnum):
    """What is computed over the selected rows."""

    COUNT = "count"
    COUNT_DISTINCT = "count distinct"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    QUANTILE = "quantile"


@dataclass(frozen=True)
class Join:
    """A public table beside the protected one; the conditions stand in the predicate."""

    public: str
    alias: str
    key: str


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over the protected table: a number for each combination of its keys.

    `argument` is None for COUNT(*). `predicate` is WHERE, FILTER and the join conditions; a row
    is selected where it is true. Without `keys` there is one cell, even when nothing is selected.
    A quantile has the share of rows at or below it as `fraction`; a `discrete` one is a value of
    the rows themselves, any other one lies between two of them where it must.
    """

    function: Function
    argument: Expression | None
    predicate: Expression = TRUE
    keys: tuple[Expression, ...] = ()
    joins: tuple[Join, ...] = ()
    fraction: Fraction | None = None
    discrete: bool = False

    @property
    def membership(self) -> Expression:
        """True for the rows that enter the aggregate: selected, and with an argument to enter."""
        if self.argument is None:
            return self.predicate
        return all_of(self.predicate, present(self.argument))

    @property
    def private_predicate(self) -> frozenset[str]:
        """Private columns that decide which rows are selected, or into which cell they fall."""
        return private_columns(self.predicate, *self.keys)

    @property
    def private_argument(self) -> frozenset[str]:
        """Private columns that enter the aggregated value."""
        return private_columns(self.argument)

    @property
    def single_valued(self) -> bool:
        """Whether every record meets at most one row of each joined table."""
        return all(
            any(_pins(join, part) for part in conjuncts(self.predicate)) for join in self.joins
        )


def _pins(join: Join, condition: Expression) -> bool:
    """Whether the condition equates the joined table's key with something outside that table."""
    if not isinstance(condition, Call) or condition.operation is not Operation.EQUAL:
        return False
    left, right = children(condition)
    return any(
        isinstance(one, ColumnRef)
        and (one.alias, one.column.name) == (join.alias, join.key)
        and all(ref.alias != join.alias for ref in columns_of(other))
        for one, other in ((left, right), (right, left))
    )


@dataclass(frozen=True)
class Output:
    """One column that a statement shows, computed from results and keys."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Ordering:
    """One expression of ORDER BY, and which end of it comes first."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Select:
    """One grouping of a statement: its aggregates, and what of them is shown.

    ResultRef in `outputs`, `having` and `order` counts in `aggregates`, KeyRef in `keys`. A group
    is there when a row of it satisfies `predicate`, which is WHERE without the FILTERs.
    """

    aggregates: tuple[Aggregate, ...]
    keys: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    predicate: Expression = TRUE
    joins: tuple[Join, ...] = ()
    having: Expression = TRUE
    order: tuple[Ordering, ...] = ()

    @property
    def shown(self) -> frozenset[int]:
        """Which aggregates enter an output; the others act only in HAVING or ORDER BY."""
        return frozenset(
            node.index
            for output in self.outputs
            for node in walk(output.expression)
            if isinstance(node, ResultRef)
        )

    @property
    def labels(self) -> Mapping[int, str]:
        """The keys that are shown as they are, each with the name that it is shown under."""
        return {
            o.expression.index: o.name for o in self.outputs if isinstance(o.expression, KeyRef)
        }


@dataclass(frozen=True)
class Statement:
    """One SQL statement: a select for each UNION ALL branch and each grouping set."""

    sql: str
    selects: tuple[Select, ...]
    limit: int | None = None

    @property
    def aggregates(self) -> list[Aggregate]:
        """Every aggregate of the statement, in order, each once."""
        return list(dict.fromkeys(each for select in self.selects for each in select.aggregates))


@dataclass(frozen=True)
class Projection:
    """Single rows of the protected table as a statement of a log shows them; none is answered.

    With `once` rows that look alike are shown once, and with a `limit` the first ones alone.
    `partial` says that something which is not read decides what rows are shown, and `unread` are
    private columns of which more is shown than `outputs` and `order` say.
    """

    outputs: tuple[Output, ...]
    predicate: Expression = TRUE
    joins: tuple[Join, ...] = ()
    order: tuple[Ordering, ...] = ()
    once: bool = False
    limit: int | None = None
    partial: bool = False
    unread: frozenset[str] = frozenset()

    @property
    def private(self) -> frozenset[str]:
        """The private columns of which it shows anything."""
        ordering = (each.expression for each in self.order)
        outputs = (each.expression for each in self.outputs)
        return private_columns(self.predicate, *outputs, *ordering) | self.unread


def describe(aggregate: Aggregate) -> str:
    """An aggregate as one line, for example: sum("income") where "age" > 30 by "region"."""
    if aggregate.argument is None:
        head = "count(*)"
    elif aggregate.function is Function.COUNT_DISTINCT:
        head = f"count(distinct {expression_text(aggregate.argument)})"
    elif aggregate.fraction is not None:
        kind = "quantile_disc" if aggregate.discrete else "quantile_cont"
        head = f"{kind}({expression_text(aggregate.argument)}, {decimal(aggregate.fraction)})"
    else:
        head = f"{aggregate.function}({expression_text(aggregate.argument)})"
    joins = "".join(f" join {quote_name(join.public)} {join.alias}" for join in aggregate.joins)
    where = "" if aggregate.predicate == TRUE else f" where {_bare(aggregate.predicate)}"
    by = f" by {', '.join(map(expression_text, aggregate.keys))}" if aggregate.keys else ""
    return f"{head}{joins}{where}{by}"


def decimal(fraction: Fraction) -> str:
    """A fraction in decimal notation, which shares of quantiles have."""
    return f"{Decimal(fraction.numerator) / Decimal(fraction.denominator):f}"


def _bare(expression: Expression) -> str:
    wrapped = isinstance(expression, Call) and expression.operation in (*INFIX, *WRAPPED)
    return expression_text(expression)[1:-1] if wrapped else expression_text(expression)


WRAPPED = (
    *(Operation.NOT, Operation.IN, Operation.LIKE),
    *(Operation.IS_NULL, Operation.IS_TRUE),
)
"""Operations that stand in parentheses unless they stand alone, beside those between operands."""
