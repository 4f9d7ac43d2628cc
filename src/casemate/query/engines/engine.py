"""Statements sent to a source: always an inner SELECT of rows and an outer one that groups them."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from casemate.query.aggregate import Join
from casemate.query.engines.duckdb import DUCKDB
from casemate.query.engines.postgres import POSTGRES
from casemate.query.engines.rendering import PROTECTED, SqlDialect, quote, render
from casemate.query.language.expression import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    children,
    conjuncts,
)
from casemate.table.sources import RECORD, Source

WIDEST = 128
"""Results asked for in one statement: engines plan wider ones in time that grows faster."""

SIMPLE = (
    *(Operation.EQUAL, Operation.DIFFERENT, Operation.IN),
    *(Operation.LESS, Operation.LESS_EQUAL, Operation.GREATER, Operation.GREATER_EQUAL),
)
T = TypeVar("T")
ENGINES = {"duckdb": DUCKDB, "postgres": POSTGRES}
RECORD_COLUMN = f"{quote(PROTECTED)}.{quote(RECORD)}"


def engine_of(source: Source) -> SqlDialect:
    """How the source's engine writes expressions."""
    return ENGINES[source.dialect]


def tables(source: Source, joins: Sequence[Join]) -> str:
    """The text after FROM: the protected table and the public ones beside it."""
    parts = [f"{source.relation()} AS {quote(PROTECTED)}"]
    parts += [f"{source.relation(join.public)} AS {quote(join.alias)}" for join in joins]
    return " CROSS JOIN ".join(parts)


def rows(
    source: Source, joins: Sequence[Join], predicate: Expression, columns: dict[str, Expression]
) -> str:
    """A SELECT of named expressions, and the record as `r`, over the rows of a predicate."""
    engine = engine_of(source)
    written = [f"{RECORD_COLUMN} AS r"]
    written += [f"{render(each, engine)} AS {name}" for name, each in columns.items()]
    where = " AND ".join(condition(each, engine) for each in conjuncts(predicate) if each != TRUE)
    return f"SELECT {', '.join(written)} FROM {tables(source, joins)}{where and f' WHERE {where}'}"


def condition(expression: Expression, engine: SqlDialect) -> str:
    """A condition of WHERE; one on columns and constants is left open to indexes and joins."""
    plain = isinstance(expression, Call) and expression.operation in SIMPLE
    written = render(expression, engine)
    return written if plain and all(map(is_simple, children(expression))) else engine.guard(written)


def is_simple(expression: Expression) -> bool:
    """A column or a constant, perhaps widened."""
    if isinstance(expression, Call) and expression.operation is Operation.CAST:
        return is_simple(expression.arguments[0])
    return isinstance(expression, ColumnRef) or (
        isinstance(expression, Literal) and expression.value is not None
    )


def grouped(inner: str, keys: Sequence[str], results: dict[str, str]) -> str:
    """A SELECT of keys and results over the rows of another."""
    shown = [*keys, *(f"{written} AS {name}" for name, written in results.items())]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(shown)} FROM ({inner}) AS q{by}"


def pieces(wanted: Sequence[T], most: int = WIDEST) -> Iterator[Sequence[T]]:
    """What is wanted, cut into what one statement is asked for."""
    size = min(most, WIDEST)
    return (wanted[start : start + size] for start in range(0, len(wanted), size))
