"""What can be learned from a log, the slow obvious way: every table that gives the same answers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from statistics import median
from typing import Any

from audit.small_world import AREAS, OFFERS, World

from casemate.query import Aggregate, Function, Join, Select, Statement
from casemate.query.engines import average
from casemate.query.language import Expression, evaluate

JOINED: dict[str, list[dict[str, Any]]] = {
    "areas": [dict(zip(("area", "region", "rate"), row, strict=True)) for row in AREAS],
    "offers": [dict(zip(("offer", "area", "price"), row, strict=True)) for row in OFFERS],
}
Row = dict[str, dict[str, Any]]
Private = tuple[Any, ...]
Table = tuple[Private, ...]
"""The private values of every record, in the order of the world's secrets."""


def possible_tables(world: World) -> Iterator[Table]:
    """Every table that types and bounds allow."""
    one = list(product(*(secret.possible for secret in world.secrets)))
    return product(one, repeat=len(world.rows))


def true_table(world: World) -> Table:
    return tuple(tuple(row[secret.name] for secret in world.secrets) for row in world.rows)


def consistent(
    world: World, statements: Sequence[Statement], answers: Sequence[Any] = ()
) -> list[Table]:
    """The possible tables in which every statement shows what it shows of the true one.

    Where `answers` are given, one for each statement, these are the only numbers shown.
    """
    tables, truth = list(possible_tables(world)), true_table(world)
    for number, statement in enumerate(statements):
        shown = Shower(world, statement)
        seen = [(plain(answers[number]),)] if answers else shown.of(truth)
        tables = [table for table in tables if shown.of(table) == seen]
    return tables


@dataclass(frozen=True)
class Found:
    """A value that is the same in all tables, though types and bounds alone leave others."""

    record: int
    column: str
    value: Any


def exposed(world: World, tables: Sequence[Table]) -> set[Found]:
    found = set()
    for place in range(len(world.rows)):
        for which, secret in enumerate(world.secrets):
            values = {table[place][which] for table in tables}
            if len(values) == 1 and len(secret.possible) > 1:
                found.add(Found(world.rows[place]["id"], secret.name, values.pop()))
    return found


class Shower:
    """Shows a statement of any table; what one record adds is worked out once per value."""

    def __init__(self, world: World, statement: Statement) -> None:
        self._selects = [_Select(world, select) for select in statement.selects]

    def of(self, table: Table) -> Any:
        """The rows, in no order."""
        rows = [row for select in self._selects for row in select.rows(table)]
        return sorted(rows, key=repr)


class _Select:
    def __init__(self, world: World, select: Select) -> None:
        self._world, self._select = world, select
        there = Aggregate(Function.COUNT, None, select.predicate, select.keys, select.joins)
        self._aggregates = (there, *select.aggregates)
        self._known: dict[tuple[int, Private], list[list[tuple[Any, Any]]]] = {}

    def rows(self, table: Table) -> Iterator[tuple[Any, ...]]:
        cells: list[dict[Any, list[Any]]] = [defaultdict(list) for _ in self._aggregates]
        if not self._select.keys:
            for each in cells:
                each[()] = []
        for place, private in enumerate(table):
            for cell, entries in zip(cells, self._entries(place, private), strict=True):
                for key, value in entries:
                    cell[key] += [] if value is None else [value]
        functions = [each.function for each in self._select.aggregates]
        for key in cells[0]:
            results = [
                compute(function, cell.get(key, []))
                for function, cell in zip(functions, cells[1:], strict=True)
            ]
            if self._value(self._select.having, key, results) is True:
                yield tuple(
                    plain(self._value(output.expression, key, results))
                    for output in self._select.outputs
                )

    def _entries(self, place: int, private: Private) -> list[list[tuple[Any, Any]]]:
        """The cell and the argument of each row that a record adds to each aggregate."""
        if (place, private) not in self._known:
            names = [secret.name for secret in self._world.secrets]
            record = self._world.rows[place] | dict(zip(names, private, strict=True))
            self._known[place, private] = [
                list(entries(aggregate, record)) for aggregate in self._aggregates
            ]
        return self._known[place, private]

    def _value(self, expression: Expression, key: Any, results: list[Any]) -> Any:
        def read(reference: Any) -> Any:
            kind = type(reference).__name__
            return key[reference.index] if kind == "KeyRef" else results[reference.index]

        return evaluate(expression, read)


def entries(aggregate: Aggregate, record: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for row in joined(record, aggregate.joins):
        if value(aggregate.predicate, row) is True:
            key = tuple(value(each, row) for each in aggregate.keys)
            yield key, 1 if aggregate.argument is None else value(aggregate.argument, row)


def joined(record: dict[str, Any], joins: Sequence[Join]) -> Iterator[Row]:
    for rows in product(*(JOINED[join.public] for join in joins)):
        yield {"": record, **{j.alias: row for j, row in zip(joins, rows, strict=True)}}


def value(expression: Expression, row: Row) -> Any:
    return evaluate(expression, lambda reference: row[reference.alias][reference.column.name])  # type: ignore[union-attr]  # a row has columns


def compute(function: Function, found: list[Any]) -> Any:
    if function in (Function.COUNT, Function.COUNT_DISTINCT):
        return len(found) if function is Function.COUNT else len(set(found))
    if not found:
        return None
    if function is Function.MEDIAN:
        return float(median(found))
    if function in (Function.MIN, Function.MAX):
        return min(found) if function is Function.MIN else max(found)
    return sum(found) if function is Function.SUM else average(sum(found), len(found))


def plain(shown: Any) -> Any:
    """One form for equal numbers."""
    is_number = isinstance(shown, int | float | Decimal) and not isinstance(shown, bool)
    return Fraction(shown) if is_number else shown
