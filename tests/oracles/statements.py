"""What statements show, written plainly: the true answers."""

from collections.abc import Iterable
from itertools import chain

from casemate.query import Aggregate, Function, Select, Statement
from casemate.query.engines import StatementAnswer, answers, shown_rows
from casemate.query.language import Operation, Scalar
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
