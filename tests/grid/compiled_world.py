"""Statements with exact answers on the small world: what compiled questions are tested against."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st
from oracles.statements import show

from casemate.grid import (
    Compiled,
    Estimate,
    Noised,
    Origin,
    Outcome,
    PrivateCells,
    ShownTable,
    compile_statement,
)
from casemate.query import Aggregate, Select, Statement
from casemate.query.parse import parse_statement
from casemate.query.snapping.histograms import as_declared
from casemate.table import Column, ColumnType, Policy, Role, Universe
from casemate.table.sources import Source

INTEGER, DECIMAL, TEXT = ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.TEXT
POLICY = Policy(
    "",
    (
        Column("id", Role.IDENTIFIER, INTEGER),
        Column("age", type=INTEGER, low=0, high=99, bins=10),
        Column("weight", type=INTEGER, low=0, high=9),
        Column("sex", type=TEXT, values=("m", "f")),
        Column("member", type=ColumnType.BOOLEAN),
        Column("area", type=INTEGER, values=(4, 2, 1)),
        Column("bonus", Role.PRIVATE, DECIMAL, low=-100, high=100, bins=8),
        Column("diagnosis", Role.PRIVATE, TEXT, values=("none", "flu", "gout")),
    ),
    key="id",
)
UNIVERSE = Universe.of(POLICY)
AGGREGATES = [
    "COUNT({})",
    "SUM({})",
    "SUM(3 * {} - 1)",
    "SUM(2 - 3 * {})",
    "AVG({})",
    "MEDIAN({})",
    "percentile_disc(0.8) WITHIN GROUP (ORDER BY {})",
    "MIN({})",
    "MAX({})",
]
columns = st.sampled_from(["age", "weight", '"Height"', "score"])
aggregates = st.just("COUNT(*)") | st.builds(str.format, st.sampled_from(AGGREGATES), columns)


def ask(sql: str, policy: Policy = POLICY) -> Compiled:
    return compile_statement(parse_statement(sql, policy), Universe.of(policy))


def cells_of(source: Source, policy: Policy = POLICY) -> PrivateCells:
    return PrivateCells.of(Universe.of(policy), source, None)


def within(question: Compiled, cells: PrivateCells, width: float, random: Random) -> Outcome:
    """Numbers that are off by at most a width, with bounds that say so."""

    def estimate(exact: int) -> Estimate:
        value = exact + random.uniform(-width, width)
        ends = (value - width, value + width)
        return Estimate(value, *ends, width / 2, *ends)

    parts = tuple(tuple(map(estimate, part)) for part in cells.exact(question.asked))
    return Outcome(parts, Origin.SURROGATE)


def exactly(question: Compiled, cells: PrivateCells) -> Outcome:
    return within(question, cells, 0.0, Random(0))


def truth(sql: str, source: Source, policy: Policy = POLICY) -> list[tuple[Any, ...]]:
    """What the engine shows of the table as its policy declares it."""
    return list(show(as_policy_declares(parse_statement(sql, policy)), source).rows)


def as_policy_declares(statement: Statement) -> Statement:
    return replace(statement, selects=tuple(_select(each) for each in statement.selects))


def _select(select: Select) -> Select:
    return replace(
        select,
        aggregates=tuple(_aggregate(each) for each in select.aggregates),
        keys=tuple(as_declared(each) for each in select.keys),
        predicate=as_declared(select.predicate),
    )


def _aggregate(aggregate: Aggregate) -> Aggregate:
    return replace(
        aggregate,
        argument=None if aggregate.argument is None else as_declared(aggregate.argument),
        predicate=as_declared(aggregate.predicate),
        keys=tuple(as_declared(each) for each in aggregate.keys),
    )


def plain(shown: ShownTable) -> list[tuple[Any, ...]]:
    """Rows of values alone."""
    return [
        tuple(cell.value if isinstance(cell, Noised) else cell for cell in row)
        for row in shown.rows
    ]


def noised(shown: ShownTable, column: int = -1) -> list[Noised]:
    found = [row[column] for row in shown.rows]
    return [each for each in found if isinstance(each, Noised)]


def contains(cell: Noised, true: Any) -> bool:
    """Whether the bounds, for the answer and for the session, hold the truth."""
    room = 1e-9 * max(1.0, abs(float(true)))
    ends: Sequence[Any] = (cell.lo, cell.hi, cell.session_lo, cell.session_hi)
    lo, hi, first, last = (float(each) for each in ends)
    return lo - room <= float(true) <= hi + room and first - room <= float(true) <= last + room
