"""What aggregates come to in a scan that also adds up the numbers of records."""

from collections.abc import Iterable, Iterator

from casemate.query.aggregate import Aggregate, Function
from casemate.query.answers import Key, average, values
from casemate.query.expression import Scalar
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
