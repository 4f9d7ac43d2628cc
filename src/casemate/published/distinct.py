"""COUNT(DISTINCT c) of a column that differs in every row is COUNT(c), and so an equation."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from casemate.query.aggregate import Aggregate, Function, Select, Statement
from casemate.query.expression import ColumnRef
from casemate.query.log import Logged, Unread
from casemate.query.render import quote
from casemate.table.schema import Policy, Role
from casemate.table.source import Source


def unique_columns(
    log: Iterable[Logged | Unread], policy: Policy, source: Source
) -> frozenset[str]:
    """The public columns that differ in every row, if the log counts anything distinct."""
    counted = any(isinstance(each, Logged) and "distinct" in each.sql.lower() for each in log)
    names = [column.name for column in policy.columns if column.role is Role.PUBLIC]
    if not counted or not names:
        return frozenset()
    asked = ", ".join(f"count(DISTINCT t.{quote(name)}) AS d{i}" for i, name in enumerate(names))
    frame = source.read(f"SELECT count(*) AS n, {asked} FROM {source.relation()} AS t")
    rows = int(frame["n"].values[0])
    return frozenset(name for i, name in enumerate(names) if int(frame[f"d{i}"].values[0]) == rows)


def counted_once(statement: Statement, unique: Collection[str]) -> Statement:
    """The statement with a plain count wherever nothing could be counted twice."""
    return replace(statement, selects=tuple(_select(each, unique) for each in statement.selects))


def _select(select: Select, unique: Collection[str]) -> Select:
    return replace(select, aggregates=tuple(_aggregate(each, unique) for each in select.aggregates))


def _aggregate(aggregate: Aggregate, unique: Collection[str]) -> Aggregate:
    argument = aggregate.argument
    if (
        aggregate.function is Function.COUNT_DISTINCT
        and not aggregate.joins
        and isinstance(argument, ColumnRef)
        and argument.column.name in unique
    ):
        return replace(aggregate, function=Function.COUNT, argument=None)
    return aggregate
