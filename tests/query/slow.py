"""The slow, obvious way: every row, every condition, one value at a time, in plain Python."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from query import world

from casemate.query import Aggregate, Function, Join
from casemate.query.language import ColumnRef, Scalar, evaluate

PUBLIC: Mapping[str, list[dict[str, Any]]] = {
    "areas": [dict(zip(("area", "region", "rate"), row, strict=True)) for row in world.AREAS],
    "offers": [dict(zip(("offer", "area", "price"), row, strict=True)) for row in world.OFFERS],
}
Row = Mapping[str, Mapping[str, Any]]


def records(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Rows as dictionaries."""
    return [dict(zip(world.COLUMNS, row, strict=True)) for row in rows]


def value(expression: Any, row: Row) -> Scalar:
    """An expression on one row."""

    def read(reference: Any) -> Scalar:
        assert isinstance(reference, ColumnRef)
        return row[reference.alias][reference.column.name]  # type: ignore[no-any-return]  # a cell

    return evaluate(expression, read)


def joined(record: dict[str, Any], joins: Sequence[Join]) -> Iterator[Row]:
    """Every combination of the record with rows of the joined tables."""
    for rows in product(*(PUBLIC[join.public] for join in joins)):
        yield {"": record, **{j.alias: row for j, row in zip(joins, rows, strict=True)}}


def selected(aggregate: Aggregate, table: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Row]]:
    """The rows that enter the aggregate, with the position of their record."""
    for position, record in enumerate(table):
        for row in joined(record, aggregate.joins):
            if value(aggregate.membership, row) is True:
                yield position, row


def answer(aggregate: Aggregate, table: Sequence[dict[str, Any]]) -> dict[Any, Any]:
    """The aggregate in every cell into which a row falls; NULL arguments leave their cell there."""
    cells: dict[Any, list[Any]] = defaultdict(list)
    if not aggregate.keys:
        cells[()] = []
    for record in table:
        for row in joined(record, aggregate.joins):
            if value(aggregate.predicate, row) is not True:
                continue
            key = tuple(value(each, row) for each in aggregate.keys)
            entry = 1 if aggregate.argument is None else value(aggregate.argument, row)
            cells[key] += [entry] if entry is not None else []
    return {key: compute(aggregate, found) for key, found in cells.items()}


def compute(aggregate: Aggregate, found: list[Any]) -> Any:
    """One aggregate of a list of values, in exact arithmetic where they are exact."""
    function = aggregate.function
    if function in (Function.COUNT, Function.COUNT_DISTINCT):
        return len(found if function is Function.COUNT else set(found))
    if not found:
        return None
    if function is Function.MEDIAN:
        return float(statistics.median([float(each) for each in found]))
    if function is Function.QUANTILE:
        assert aggregate.fraction is not None
        return quantile(sorted(found), aggregate.fraction, aggregate.discrete)
    if function in (Function.MIN, Function.MAX):
        return min(found) if function is Function.MIN else max(found)
    total = sum(Fraction(each) for each in found)
    exact = total if function is Function.SUM else total / len(found)
    return float(exact)


def quantile(found: list[Any], fraction: Fraction, discrete: bool) -> Any:
    """The first value with so large a share at or below it, or a point between two values."""
    if discrete:
        ranks = enumerate(found, start=1)
        return next(each for rank, each in ranks if Fraction(rank, len(found)) >= fraction)
    place = fraction * (len(found) - 1)
    below, above = (Fraction(found[index]) for index in (math.floor(place), math.ceil(place)))
    return float(below + (place - math.floor(place)) * (above - below))


def close(left: Any, right: Any) -> bool:
    """Equal, or equal as numbers up to the rounding of a double."""
    numbers = (int, float, Decimal, Fraction)
    if isinstance(left, bool) or not isinstance(left, numbers) or not isinstance(right, numbers):
        return bool(left == right)
    return abs(float(left) - float(right)) <= 1e-9 * max(1.0, abs(float(left)), abs(float(right)))


def same_rows(left: Sequence[Sequence[Any]], right: Sequence[Sequence[Any]]) -> bool:
    """Two answers with the same rows in some order."""

    def order(row: Sequence[Any]) -> list[tuple[bool, str]]:
        numbers = (int, float, Decimal)
        return [
            (each is None, f"{float(each):.6f}" if isinstance(each, numbers) else str(each))
            for each in row
        ]

    pairs = zip(sorted(left, key=order), sorted(right, key=order), strict=False)
    return len(left) == len(right) and all(
        close(a, b) for one, other in pairs for a, b in zip(one, other, strict=True)
    )
