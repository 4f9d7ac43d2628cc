"""Statements about one of several versions of a table that stand in one, as statements about all.

Such a statement is read with the names and types of its own version, and gets one more condition:
that a row is of that version.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from casemate.query.aggregate import Join, Projection, Select, Statement
from casemate.query.language.expression import (
    ColumnRef,
    Expression,
    Literal,
    Operation,
    all_of,
    columns_of,
    substitute,
)
from casemate.query.language.operations import compare
from casemate.table import LINK, NAME, RELEASE, Column, ColumnType, Policy, Role, Version


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
        return replace(statement, selects=tuple(map(self._restricted, statement.selects)))

    def restrict_rows(self, shown: Projection) -> Projection | None:
        """Rows of the version as rows of the stack; None where they need what the stack has not.

        It has no identifiers, but says whose row it is by columns of its own.
        """
        outputs = [replace(o, expression=self._identified(o.expression)) for o in shown.outputs]
        order = [replace(o, expression=self._moved(o.expression)) for o in shown.order]
        shown_by = (*(each.expression for each in outputs), *(o.expression for o in shown.order))
        there = {*self.version.columns, NAME, LINK}
        columns = frozenset[ColumnRef]().union(*map(columns_of, (shown.predicate, *shown_by)))
        if any(not each.alias and each.column.name not in there for each in columns):
            return None
        outputs = [replace(o, expression=self._moved(o.expression)) for o in outputs]
        return replace(
            shown,
            outputs=tuple(outputs),
            order=tuple(order),
            predicate=self._here(shown.predicate),
            joins=self._joined(shown.joins),
        )

    def _restricted(self, select: Select) -> Select:
        aggregates = tuple(
            replace(
                each,
                argument=None if each.argument is None else self._moved(each.argument),
                predicate=self._here(each.predicate),
                keys=tuple(map(self._moved, each.keys)),
                joins=self._joined(each.joins),
            )
            for each in select.aggregates
        )
        return replace(
            select,
            aggregates=aggregates,
            keys=tuple(map(self._moved, select.keys)),
            predicate=self._here(select.predicate),
            joins=self._joined(select.joins),
        )

    def _here(self, predicate: Expression) -> Expression:
        """A condition, and that a row is of the version."""
        release = ColumnRef(Column(RELEASE, type=ColumnType.INTEGER), ColumnType.INTEGER)
        place = Literal(self.version.place, ColumnType.INTEGER)
        return all_of(self._moved(predicate), compare(Operation.EQUAL, release, place))

    def _moved(self, expression: Expression) -> Expression:
        return substitute(expression, lambda node: _stacked(node, self.version.columns))

    def _joined(self, joins: tuple[Join, ...]) -> tuple[Join, ...]:
        public = self.version.public_tables
        return tuple(replace(each, public=public[each.public]) for each in joins)

    def _identified(self, expression: Expression) -> Expression:
        """What is shown, an identifier of the version as the stack's own."""
        own, columns = self.version.policy, self.version.columns
        if not isinstance(expression, ColumnRef) or expression.column.name in columns:
            return expression
        name = {own.person: LINK, own.key: NAME}.get(expression.column.name)
        if name is None or expression.alias:
            return expression
        column = Column(name, role=Role.IDENTIFIER, type=ColumnType.TEXT)
        return ColumnRef(column, ColumnType.TEXT)


def _stacked(node: Expression, names: Mapping[str, str]) -> Expression | None:
    """A column of the version under its name in the stacked table."""
    if not isinstance(node, ColumnRef) or node.alias or node.column.name not in names:
        return None
    return replace(node, column=replace(node.column, name=names[node.column.name]))
