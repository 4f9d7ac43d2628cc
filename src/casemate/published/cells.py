"""The cells that a select shows, and the sums behind each of them: the custodian's view."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from casemate.query.aggregate import Aggregate, Function, Select
from casemate.query.answers import Key, answers, average
from casemate.query.expression import Expression, KeyRef, ResultRef, Scalar
from casemate.query.interpret import evaluate
from casemate.query.linear import counting
from casemate.table.source import Source


@dataclass(frozen=True, repr=False)
class ShownCell:
    """One cell: the sum behind each aggregate, and what that sum is divided by (AVG: its count)."""

    key: Key
    sums: tuple[Scalar, ...]
    divisors: tuple[int, ...]


def exact(value: Any) -> Fraction:
    """A number of any kind as a Fraction."""
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def presence(select: Select) -> Aggregate:
    """The count of the rows behind a cell, which is shown where there is one."""
    return Aggregate(Function.COUNT, None, select.predicate, select.keys, select.joins)


def shown_cells(select: Select, source: Source) -> list[ShownCell]:
    """The cells into which a row falls and that HAVING lets through."""
    return all_shown_cells([select], source)[select]


def all_shown_cells(selects: Iterable[Select], source: Source) -> dict[Select, list[ShownCell]]:
    """The cells of many selects, read together."""
    wanted = {select: _needed(select) for select in selects}
    every = list(dict.fromkeys(each for needed in wanted.values() for each in needed))
    found = dict(zip(every, answers(every, source), strict=True))
    return {
        select: _cells(select, [found[each] for each in needed])
        for select, needed in wanted.items()
    }


def _needed(select: Select) -> list[Aggregate]:
    """What must be known of a select: who is there, and the sums and counts behind its results."""
    sums = [_sum_behind(each) for each in select.aggregates]
    return [presence(select), *sums, *(counting(each) for each in select.aggregates)]


def _cells(select: Select, read: Sequence[Mapping[Key, Scalar]]) -> list[ShownCell]:
    present, *found = read
    width = len(select.aggregates)
    cells = []
    for key in present:
        totals = [each.get(key) for each in found[:width]]
        numbers = [int(str(each.get(key) or 0)) for each in found[width:]]
        cell = _cell(select, key, totals, numbers)
        if shown_value(select.having, select, cell) is True:
            cells.append(cell)
    return cells


def _sum_behind(aggregate: Aggregate) -> Aggregate:
    averaged = aggregate.function is Function.AVG
    return replace(aggregate, function=Function.SUM) if averaged else aggregate


def _cell(select: Select, key: Key, totals: Sequence[Scalar], numbers: Sequence[int]) -> ShownCell:
    functions = [each.function for each in select.aggregates]
    sums = (
        number if function is Function.COUNT else total
        for function, total, number in zip(functions, totals, numbers, strict=True)
    )
    divisors = (
        max(1, number) if function is Function.AVG else 1
        for function, number in zip(functions, numbers, strict=True)
    )
    return ShownCell(key, tuple(sums), tuple(divisors))


def shown_value(expression: Expression, select: Select, cell: ShownCell) -> Scalar:
    """An expression over the results and keys of one cell, as it is shown."""
    return evaluate(expression, _reader(select, cell))


def _reader(select: Select, cell: ShownCell) -> Callable[[Any], Scalar]:
    def read(reference: KeyRef | ResultRef) -> Scalar:
        if isinstance(reference, KeyRef):
            return cell.key[reference.index]
        total, divisor = cell.sums[reference.index], cell.divisors[reference.index]
        averaged = select.aggregates[reference.index].function is Function.AVG
        return average(total, divisor) if averaged and total is not None else total

    return read


def empty_keys(select: Select, present: Sequence[ShownCell], possible: Sequence[Key]) -> list[Key]:
    """Keys of cells that would be shown if anybody were in them, and are not."""
    seen = {cell.key for cell in present}

    def allowed(key: Key) -> bool:
        nothing = (None,) * len(select.aggregates)
        cell = ShownCell(key, nothing, (1,) * len(select.aggregates))
        return shown_value(select.having, select, cell) is True

    return [key for key in possible if key not in seen and allowed(key)]
