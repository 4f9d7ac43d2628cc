"""Statements sent to a source: always an inner SELECT of rows and an outer one that groups them."""

from collections.abc import Sequence

from casemate.query.aggregate import Join
from casemate.query.expression import TRUE, Expression
from casemate.query.render import PROTECTED, Engine, quote, render
from casemate.query.render_duckdb import DUCKDB
from casemate.query.render_postgres import POSTGRES
from casemate.table.source import RECORD, Source

ENGINES = {"duckdb": DUCKDB, "postgres": POSTGRES}
RECORD_COLUMN = f"{quote(PROTECTED)}.{quote(RECORD)}"


def engine_of(source: Source) -> Engine:
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
    where = "" if predicate == TRUE else f" WHERE {render(predicate, engine)}"
    return f"SELECT {', '.join(written)} FROM {tables(source, joins)}{where}"


def grouped(inner: str, keys: Sequence[str], results: dict[str, str]) -> str:
    """A SELECT of keys and results over the rows of another."""
    shown = [*keys, *(f"{written} AS {name}" for name, written in results.items())]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(shown)} FROM ({inner}) AS q{by}"


def integer_sum(column: str, source: Source) -> str:
    """A sum of integers, read back as an integer."""
    return f"CAST(sum({column}) AS {'BIGINT' if source.dialect == 'duckdb' else 'bigint'})"
