"""What statements show and mean, written plainly: true answers, and aggregates in words."""

from collections.abc import Iterable
from itertools import chain

from casemate.query import Aggregate, Function, Select, Statement
from casemate.query.engines import StatementAnswer, answers, quote, shown_rows
from casemate.query.engines.text import INFIX, decimal, written
from casemate.query.language import TRUE, Call, Expression, Operation, Scalar
from casemate.table.sources import Source

COMPARISONS = (
    Operation.EQUAL,
    Operation.DIFFERENT,
    Operation.LESS,
    Operation.LESS_EQUAL,
    Operation.GREATER,
    Operation.GREATER_EQUAL,
    Operation.SAME,
)
WRAPPED = (
    Operation.NOT,
    Operation.IN,
    Operation.LIKE,
    Operation.IS_NULL,
    Operation.IS_TRUE,
)
"""Operations that stand in parentheses unless they stand alone."""


def show(statement: Statement, source: Source) -> StatementAnswer:
    """What the statement would print; ORDER BY and LIMIT are read as if absent."""
    names = tuple(output.name for output in statement.selects[0].outputs)
    shown = chain.from_iterable(_show_select(each, source) for each in statement.selects)
    return StatementAnswer(names, tuple(shown))


def _show_select(select: Select, source: Source) -> Iterable[tuple[Scalar, ...]]:
    there = Aggregate(Function.COUNT, None, select.predicate, select.keys, select.joins)
    counts, *found = answers([there, *select.aggregates], source)
    results = dict(zip(select.aggregates, found, strict=True))
    return shown_rows(select, counts, results).values()


def describe(aggregate: Aggregate) -> str:
    """An aggregate as one line, for example: sum("income") where "age" > 30 by "region"."""
    if aggregate.argument is None:
        head = "count(*)"
    elif aggregate.function is Function.COUNT_DISTINCT:
        head = f"count(distinct {written(aggregate.argument)})"
    elif aggregate.fraction is not None:
        kind = "quantile_disc" if aggregate.discrete else "quantile_cont"
        head = f"{kind}({written(aggregate.argument)}, {decimal(aggregate.fraction)})"
    else:
        head = f"{aggregate.function}({written(aggregate.argument)})"
    joins = "".join(f" join {quote(join.public)} {join.alias}" for join in aggregate.joins)
    where = "" if aggregate.predicate == TRUE else f" where {_bare(aggregate.predicate)}"
    by = f" by {', '.join(map(written, aggregate.keys))}" if aggregate.keys else ""
    return f"{head}{joins}{where}{by}"


def _bare(expression: Expression) -> str:
    text = written(expression)
    wrapped = isinstance(expression, Call) and expression.operation in (*INFIX, *WRAPPED)
    return text[1:-1] if wrapped else text
