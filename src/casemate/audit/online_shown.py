"""What a statement shows, out of the results of its aggregates in a scan."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from casemate.query.aggregate import Aggregate, Function, Select
from casemate.query.answers import Key, average, values
from casemate.query.expression import KeyRef, ResultRef, Scalar
from casemate.query.interpret import evaluate
from casemate.table.schema import ColumnType
from casemate.table.source import Frame

ADDED = (Function.SUM, Function.AVG)
RIDING = (*ADDED, Function.COUNT)
"""What is computed beside the numbers of records."""

Cells = dict[Key, Scalar]


def sql_results(index: int, aggregate: Aggregate) -> Iterator[tuple[str, str]]:
    """The SQL aggregates that one of ours is computed from."""
    if aggregate.function in ADDED:
        yield f"r{index}", f"sum(a{index})"
    if aggregate.function is not Function.SUM:
        name = _count_name(index, aggregate)
        yield name, "count(*)" if name == "n" else f"count(a{index})"


def _count_name(index: int, aggregate: Aggregate) -> str:
    """Rows are counted once for all: of a private number that is averaged none is missing."""
    averaged = aggregate.function is Function.AVG and aggregate.private_argument
    return "n" if aggregate.argument is None or averaged else f"n{index}"


def shown_values(index: int, aggregate: Aggregate, frame: Frame) -> Iterable[Scalar]:
    """What an aggregate comes to in each cell."""
    if aggregate.function is Function.COUNT:
        return values(frame[_count_name(index, aggregate)])
    totals = values(frame[f"r{index}"])
    if aggregate.function is Function.AVG:
        return map(average, totals, values(frame[_count_name(index, aggregate)]))
    whole = aggregate.argument is not None and aggregate.argument.type is ColumnType.INTEGER
    return [int(str(each)) if whole and each is not None else each for each in totals]


def shown_rows(
    select: Select, keys: Iterable[Key], results: dict[Aggregate, Cells]
) -> dict[Key, tuple[Scalar, ...]]:
    """What a select shows, row by row; ORDER BY and LIMIT are read as if absent."""
    printed = {}
    for key in keys:
        read = _reader(key, [_result(each, results[each], key) for each in select.aggregates])
        if evaluate(select.having, read) is True:
            printed[key] = tuple(evaluate(each.expression, read) for each in select.outputs)
    return printed


def _result(aggregate: Aggregate, cells: Cells, key: Key) -> Scalar:
    counts = aggregate.function in (Function.COUNT, Function.COUNT_DISTINCT)
    return cells.get(key, 0 if counts else None)


def _reader(key: Key, results: Sequence[Scalar]) -> Callable[[Any], Scalar]:
    def read(reference: KeyRef | ResultRef) -> Scalar:
        return key[reference.index] if isinstance(reference, KeyRef) else results[reference.index]

    return read
