"""Statements about one of several versions of a table that stand in one, as statements about all.

Such a statement is read with the names and types of its own version, and gets one more condition:
that a row is of that version.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from casemate.query.aggregate import Join, Select, Statement
from casemate.query.language.expression import (
    ColumnRef,
    Expression,
    Literal,
    Operation,
    all_of,
    substitute,
)
from casemate.query.language.operations import compare
from casemate.table import RELEASE, Column, ColumnType, Policy, Version


class QueryNumber(int):
    """The number of a statement among those of all logs, written as its number in its own."""

    def __new__(cls, number: int, written: str) -> Self:
        """The number itself, and how it is written."""
        made = super().__new__(cls, number)
        made._written = written
        return made

    _written: str

    def __str__(self) -> str:
        """For example `2 of last_year.sql`; with a format such as `d`, the number itself."""
        return self._written


@dataclass(frozen=True)
class VersionView:
    """A version in a stacked table, as the statements of one log see it.

    `log` is how reports call the log, empty for the one whose statements are numbered from 1, and
    `before` how many statements the logs before it have.
    """

    version: Version
    log: str = ""
    before: int = 0

    def number(self, number: int) -> int:
        """The number of a statement among those of all logs."""
        return QueryNumber(number, f"{number - self.before} of {self.log}") if self.log else number

    def policy(self, stacked: Policy) -> Policy:
        """The version's own policy, with what is known of the columns of the stacked table."""
        own, names, tables = self.version.policy, self.version.columns, self.version.public_tables
        known = {column.name: column for column in stacked.columns}
        public = {table.name: table for table in stacked.public_tables}
        return replace(
            own,
            columns=tuple(
                replace(known[names[each.name]], name=each.name) if each.name in names else each
                for each in own.columns
            ),
            public_tables=tuple(
                replace(each, columns=public[tables[each.name]].columns)
                for each in own.public_tables
            ),
        )

    def restrict(self, statement: Statement) -> Statement:
        """A statement about the version as one about the rows of the version in the stack."""
        release = ColumnRef(Column(RELEASE, type=ColumnType.INTEGER), ColumnType.INTEGER)
        place = Literal(self.version.place, ColumnType.INTEGER)
        here = compare(Operation.EQUAL, release, place)
        selects = (_restricted(each, self.version, here) for each in statement.selects)
        return replace(statement, selects=tuple(selects))


def _restricted(select: Select, version: Version, here: Expression) -> Select:
    def moved(expression: Expression) -> Expression:
        return substitute(expression, lambda node: _stacked(node, version.columns))

    def joined(joins: tuple[Join, ...]) -> tuple[Join, ...]:
        return tuple(replace(each, public=version.public_tables[each.public]) for each in joins)

    keys, joins = tuple(map(moved, select.keys)), joined(select.joins)
    aggregates = tuple(
        replace(
            each,
            argument=None if each.argument is None else moved(each.argument),
            predicate=all_of(moved(each.predicate), here),
            keys=tuple(map(moved, each.keys)),
            joins=joined(each.joins),
        )
        for each in select.aggregates
    )
    predicate = all_of(moved(select.predicate), here)
    return replace(select, aggregates=aggregates, keys=keys, predicate=predicate, joins=joins)


def _stacked(node: Expression, names: Mapping[str, str]) -> Expression | None:
    """A column of the version under its name in the stacked table."""
    if not isinstance(node, ColumnRef) or node.alias or node.column.name not in names:
        return None
    return replace(node, column=replace(node.column, name=names[node.column.name]))
