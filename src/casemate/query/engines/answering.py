"""The true answers of aggregates and statements: the custodian's view, never anybody else's.

What is sent to a source is always an inner SELECT of rows and an outer one that groups them.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, TypeVar

from casemate.query.aggregate import Aggregate, Function, Join, Select, decimal
from casemate.query.engines.dialects import DUCKDB, POSTGRES
from casemate.query.engines.rendering import PROTECTED, SqlDialect, render
from casemate.query.language.expression import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    children,
    conjuncts,
)
from casemate.query.language.interpret import COMPARE, evaluate
from casemate.table import ColumnType
from casemate.table.sources import RECORD, Frame, Series, Source, quote_name

MAX_RESULTS_PER_STATEMENT = 128
"""Results asked for in one statement: engines plan wider ones in time that grows faster."""

T = TypeVar("T")
ENGINES = {"duckdb": DUCKDB, "postgres": POSTGRES}
RECORD_COLUMN = f"{quote_name(PROTECTED)}.{quote_name(RECORD)}"


def engine_of(source: Source) -> SqlDialect:
    """How the source's engine writes expressions."""
    return ENGINES[source.dialect]


def tables(source: Source, joins: Sequence[Join]) -> str:
    """The text after FROM: the protected table and the public ones beside it."""
    parts = [f"{source.relation()} AS {quote_name(PROTECTED)}"]
    parts += [f"{source.relation(join.public)} AS {quote_name(join.alias)}" for join in joins]
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
    plain = isinstance(expression, Call) and expression.operation in (*COMPARE, Operation.IN)
    written = render(expression, engine)
    return written if plain and all(map(is_simple, children(expression))) else engine.guard(written)


def is_simple(expression: Expression) -> bool:
    """A column or a constant, perhaps widened."""
    match expression:
        case Call(Operation.CAST, (operand, *_)):
            return is_simple(operand)
        case Literal(value):
            return value is not None
    return isinstance(expression, ColumnRef)


def group_by(inner: str, keys: Sequence[str], results: dict[str, str]) -> str:
    """A SELECT of keys and results over the rows of another."""
    shown = [*keys, *(f"{written} AS {name}" for name, written in results.items())]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(shown)} FROM ({inner}) AS q{by}"


def pieces(wanted: Sequence[T], most: int = MAX_RESULTS_PER_STATEMENT) -> Iterator[Sequence[T]]:
    """What is wanted, cut into what one statement is asked for."""
    size = min(most, MAX_RESULTS_PER_STATEMENT)
    return (wanted[start : start + size] for start in range(0, len(wanted), size))


# Answers -----------------------------------------------------------------------------------------


Key = tuple[Scalar, ...]
"""The values of an aggregate's keys in one cell."""


def key_order(key: Key) -> tuple[tuple[bool, str, Any], ...]:
    """What keys are sorted by: engines return groups in any order, and differ from run to run.

    >>> sorted([("b", 2), (None, 1), ("a", 10), ("a", 9)], key=key_order)
    [('a', 9), ('a', 10), ('b', 2), (None, 1)]
    """
    return tuple((part is None, type(part).__name__, part) for part in key)


@dataclass(frozen=True)
class StatementAnswer:
    """What a statement shows: column names, and one tuple of values per row."""

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


def answers(aggregates: Sequence[Aggregate], source: Source) -> list[dict[Key, Scalar]]:
    """The answer of each aggregate in each of its cells.

    A cell that no row falls into is absent, except the only cell of an aggregate without keys.
    """
    found: list[dict[Key, Scalar]] = [{} for _ in aggregates]
    reads = [batch for batch in batches(aggregates) if not _is_single(aggregates[batch[0]])]
    single = [index for index, each in enumerate(aggregates) if _is_single(each)]
    for batch in (*reads, *pieces(single)):
        for index, cells in zip(
            batch, _batch_answers([aggregates[i] for i in batch], source), strict=True
        ):
            found[index] = cells
    return found


def _is_single(aggregate: Aggregate) -> bool:
    """Whether an aggregate is one number of the protected table, so many share one scan."""
    return not aggregate.keys and not aggregate.joins


def batches(aggregates: Sequence[Aggregate]) -> list[Sequence[int]]:
    """The aggregates by what they share: tables, predicate and keys, so one scan serves each."""
    shared: dict[object, list[int]] = defaultdict(list)
    for index, each in enumerate(aggregates):
        shared[each.joins, each.predicate, each.keys].append(index)
    return [piece for batch in shared.values() for piece in pieces(batch)]


def _batch_answers(batch: Sequence[Aggregate], source: Source) -> list[dict[Key, Scalar]]:
    first = batch[0]
    shared = all(each.predicate == first.predicate for each in batch)
    keys = {f"k{i}": key for i, key in enumerate(first.keys)}
    arguments = {
        f"a{i}": each.argument or TRUE if shared else _where(each)
        for i, each in enumerate(batch)
        if each.argument is not None or not shared
    }
    where = first.predicate if shared else TRUE
    inner = rows(source, first.joins, where, {**keys, **arguments})
    results = dict(
        chain.from_iterable(_results(i, each, source, shared) for i, each in enumerate(batch))
    )
    frame = source.read(group_by(inner, list(keys), results))
    cells = list(zip(*(values(frame[name]) for name in keys), strict=True)) if keys else [()]
    found = [
        dict(zip(cells, _result_values(i, each, frame), strict=True))
        for i, each in enumerate(batch)
    ]
    in_order = sorted(cells, key=key_order)
    return [{key: by_key[key] for key in in_order} for by_key in found]


def _where(aggregate: Aggregate) -> Expression:
    """What an aggregate is computed from where its predicate holds, and NULL elsewhere."""
    argument = aggregate.argument or TRUE
    inside = Call(Operation.IS_TRUE, (aggregate.predicate,), ColumnType.BOOLEAN)
    return Call(Operation.CASE, (inside, argument, Literal(None, argument.type)), argument.type)


def _results(
    index: int, aggregate: Aggregate, source: Source, shared: bool
) -> list[tuple[str, str]]:
    """The SQL aggregates that one of ours is computed from."""
    column, name = f"a{index}", f"r{index}"
    if aggregate.argument is None:
        return [(name, "count(*)" if shared else f"count({column})")]
    simple = COUNT_SQL.get(aggregate.function)
    if simple is not None:
        return [(name, simple.format(column))]
    if aggregate.argument.type is ColumnType.TEXT:
        column = engine_of(source).order(column)
    if aggregate.function in (Function.MEDIAN, Function.QUANTILE):
        return [(name, quantile(aggregate, column, source.dialect))]
    if aggregate.function in (Function.MIN, Function.MAX):
        return [(name, f"{aggregate.function}({column})")]
    return [(name, f"sum({column})"), (f"n{index}", f"count({column})")]


COUNT_SQL = {Function.COUNT: "count({})", Function.COUNT_DISTINCT: "count(DISTINCT {})"}
DISCRETE_QUANTILE_SQL = {
    "duckdb": "quantile_disc({}, {})",
    "postgres": "percentile_disc({1}) WITHIN GROUP (ORDER BY {0})",
}
CONTINUOUS_QUANTILE_SQL = {
    "duckdb": "quantile_cont(CAST({} AS DOUBLE), {})",
    "postgres": "percentile_cont({1}) WITHIN GROUP (ORDER BY CAST({0} AS double precision))",
}
SHARE_REDUCTION = Fraction(2**50 - 1, 2**50)
"""PostgreSQL multiplies a share by the number of rows in double precision and rounds up: 0.28 of 25
rows would be 8. Of a share this much smaller that is exact up to 500 million rows, for shares
of six digits."""


def quantile(aggregate: Aggregate, column: str, dialect: str) -> str:
    """A quantile of a column in an engine's own words."""
    share = Fraction(1, 2) if aggregate.fraction is None else aggregate.fraction
    if not aggregate.discrete:
        return CONTINUOUS_QUANTILE_SQL[dialect].format(column, decimal(share))
    exact = dialect == "duckdb"  # which counts in whole numbers
    return DISCRETE_QUANTILE_SQL[dialect].format(
        column, decimal(share) if exact else repr(float(share * SHARE_REDUCTION))
    )


def _result_values(index: int, aggregate: Aggregate, frame: Frame) -> list[Scalar]:
    shown = values(frame[f"r{index}"])
    if aggregate.function is Function.SUM and aggregate.argument is not None:
        whole = aggregate.argument.type is ColumnType.INTEGER
        return [int(each) if whole and each is not None else each for each in shown]  # type: ignore[arg-type]  # a number
    if aggregate.function is not Function.AVG:
        return shown
    counts = values(frame[f"n{index}"])
    return [average(total, count) for total, count in zip(shown, counts, strict=True)]


def average(total: Any, count: Any) -> Scalar:
    """A mean: of doubles a double, of exact numbers a decimal of 28 digits."""
    if not count:
        return None
    if isinstance(total, float):
        return total / float(count)
    if isinstance(total, Decimal) and not total.is_finite():
        return total
    share = Fraction(total) / count
    return Decimal(share.numerator) / Decimal(share.denominator)


def values(series: Series) -> list[Scalar]:
    """A column as Python values: None for NULL, and one object for all that is not a number."""
    plain = zip(series.values.tolist(), series.missing.tolist(), strict=True)
    return [None if gone else math.nan if _is_nan(each) else each for each, gone in plain]


def _is_nan(value: Scalar) -> bool:
    """Two of these are not equal, so as keys they must be one object."""
    return isinstance(value, float | Decimal) and math.isnan(value)


def shown_rows(
    select: Select, keys: Iterable[Key], results: Mapping[Aggregate, Mapping[Key, Scalar]]
) -> dict[Key, tuple[Scalar, ...]]:
    """What a select shows of these cells, given what each of its aggregates comes to in them."""
    printed = {}
    for key in keys:
        read = _reader(key, [_result(each, results[each], key) for each in select.aggregates])
        if evaluate(select.having, read) is True:
            printed[key] = tuple(evaluate(each.expression, read) for each in select.outputs)
    return printed


def _result(aggregate: Aggregate, cells: Mapping[Key, Scalar], key: Key) -> Scalar:
    counts = aggregate.function in (Function.COUNT, Function.COUNT_DISTINCT)
    return cells.get(key, 0 if counts else None)


def _reader(key: Key, results: Sequence[Scalar]) -> Callable[[Any], Scalar]:
    def read(reference: KeyRef | ResultRef) -> Scalar:
        return key[reference.index] if isinstance(reference, KeyRef) else results[reference.index]

    return read
