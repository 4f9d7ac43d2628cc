"""The rows of a statement: results and keys put together, filtered, ordered and cut on answers.

HAVING, ORDER BY and LIMIT act on answered values alone, so they say nothing that the answers do not
say. Every declared group is there before HAVING, whether or not anybody is in it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from casemate.answer.shown_interval import Unbounded, bounds, constant
from casemate.answer.shown_number import Band, Noised
from casemate.answer.shown_rank import RankReading
from casemate.answer.shown_readings import Estimates, Reading
from casemate.query.aggregate import Ordering, Output
from casemate.query.answers import Key
from casemate.query.expression import (
    Call,
    Expression,
    KeyRef,
    Operation,
    ResultRef,
    Scalar,
    walk,
)
from casemate.query.interpret import evaluate
from casemate.table.schema import ColumnType

Cell = Scalar | Noised
"""What stands in one column of one row: a key or a constant, or what came out of answers."""


@dataclass(frozen=True)
class Shown:
    """Column names and rows; `notes` are those that only the answers can tell."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Layout:
    """One select: its groups in order, how its results are read, and what it makes of them."""

    keys: tuple[Key, ...]
    readings: tuple[Reading, ...]
    outputs: tuple[Output, ...]
    having: Expression
    order: tuple[Ordering, ...]

    def together(self, origin: Callable[[int], object] = int) -> int:
        """Of how many cells a number is made at most, if parts of one origin are read once."""
        return max(self._made_of(each, origin) for each in self.outputs)

    def _made_of(self, output: Output, origin: Callable[[int], object]) -> int:
        cells: dict[object, int] = {}
        for index in _results_in(output.expression):
            needed = self.readings[index].needed
            cells |= {origin(part): size for part, size in needed.items()}
        return sum(cells.values())


def show(layouts: Sequence[Layout], limit: int | None, estimates: Estimates) -> Shown:
    """The rows of a statement from the numbers of every part."""
    made = [row for layout in layouts for row in _rows(layout, estimates)]
    made = _ordered(made, layouts[0].order)
    names = tuple(each.name for each in layouts[0].outputs)
    rows = tuple(row.cells for row in made[:limit])
    return Shown(names, rows, tuple(dict.fromkeys(_widths(layouts, estimates))))


@dataclass(frozen=True)
class _Row:
    cells: tuple[Cell, ...]
    places: tuple[Scalar, ...]  # by which it is ordered


def _rows(layout: Layout, estimates: Estimates) -> Iterable[_Row]:
    outputs = [relaxed(each.expression) for each in layout.outputs]
    order = [relaxed(each.expression) for each in layout.order]
    having = relaxed(layout.having)
    for group, key in enumerate(layout.keys):
        row = _Group(key, [each.read(estimates, group) for each in layout.readings])
        if row.value(having) is True:
            yield _Row(
                tuple(row.cell(each) for each in outputs), tuple(row.value(each) for each in order)
            )


def _widths(layouts: Sequence[Layout], estimates: Estimates) -> Iterable[str]:
    """How wide a proven rank is."""
    for layout in layouts:
        for reading in layout.readings:
            if isinstance(reading, RankReading) and layout.keys:
                width = reading.width(estimates, len(layout.keys))
                if math.isfinite(width):
                    yield (
                        f"what is proved of a quantile, MIN or MAX is a rank: within "
                        f"{math.ceil(width):,} records either way"
                    )


# One group --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """What is known in one group: its keys and its results."""

    key: Key
    results: Sequence[Noised]

    def value(self, expression: Expression) -> Scalar:
        """An expression over answered values."""
        return evaluate(expression, self._read({}))

    def cell(self, expression: Expression) -> Cell:
        """What one column shows."""
        if isinstance(expression, ResultRef):
            return self.results[expression.index]
        used = _results_in(expression)
        value = self.value(expression)
        if not used:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | None):
            return Noised(value)
        answer, session = (self._bounds(expression, level) for level in (False, True))
        number = float(value) if isinstance(value, Decimal) else value
        return Noised.of(number, self._error(expression, used), answer, session)

    def _read(self, moved: dict[int, float]) -> Callable[[Any], Scalar]:
        def read(reference: KeyRef | ResultRef) -> Scalar:
            if isinstance(reference, KeyRef):
                return self.key[reference.index]
            value = self.results[reference.index].value
            if reference.index in moved and isinstance(value, float):
                value = value + moved[reference.index]
            return _typed(value, reference.type)

        return read

    def _bounds(self, expression: Expression, session: bool) -> Band | None:
        def read(reference: KeyRef | ResultRef) -> Band:
            if isinstance(reference, KeyRef):
                return constant(self.key[reference.index])
            band = self.results[reference.index].band(session)
            if band is None:
                raise Unbounded
            return band

        try:
            return bounds(expression, read)
        except Unbounded:
            return None

    def _error(self, expression: Expression, used: Sequence[int]) -> float | None:
        """The typical errors of the results carried through, as if they were independent."""
        carried, smooth = [], _smooth(expression)
        for index in used:
            error = self.results[index].error
            if error is None:
                return None
            ends = [evaluate(smooth, self._read({index: step})) for step in (error, -error)]
            if any(isinstance(each, bool | str) or each is None for each in ends):
                return None
            carried.append(float(ends[0]) - float(ends[1]))  # type: ignore[arg-type]  # numbers, as the value is
        return math.hypot(*carried) / 2


def _results_in(expression: Expression) -> list[int]:
    found = (node.index for node in walk(expression) if isinstance(node, ResultRef))
    return list(dict.fromkeys(found))


def _typed(value: Scalar, kind: ColumnType) -> Scalar:
    """An answered number as the language computes with it."""
    if isinstance(value, float) and kind is ColumnType.DECIMAL:
        return Decimal(repr(value))
    return value


def relaxed(expression: Expression) -> Expression:
    """The expression over answers, of which those of integers need not be whole.

    Sums and products of counts are not cut to whole numbers; a division of integers is, as in SQL,
    and is one of the nearest whole numbers.
    """
    if not isinstance(expression, Call) or not _results_in(expression):
        return expression
    arguments = tuple(relaxed(each) for each in expression.arguments)
    if expression.type is not ColumnType.INTEGER:
        return Call(expression.operation, arguments, expression.type)
    if expression.operation in (Operation.DIVIDE, Operation.MODULO):
        whole = tuple(Call(Operation.CAST, (each,), ColumnType.INTEGER) for each in arguments)
        return Call(expression.operation, whole, ColumnType.INTEGER)
    if expression.operation is Operation.CAST:
        return Call(expression.operation, arguments, ColumnType.INTEGER)
    return Call(expression.operation, arguments, ColumnType.DOUBLE)


def _smooth(expression: Expression) -> Expression:
    """A relaxed expression with divisions that are not cut: what a small error is carried by."""
    if not isinstance(expression, Call):
        return expression
    arguments = expression.arguments
    cut = expression.operation is Operation.DIVIDE and expression.type is ColumnType.INTEGER
    if cut and _results_in(expression):
        whole = [each.arguments[0] if isinstance(each, Call) else each for each in arguments]
        return Call(Operation.DIVIDE, tuple(map(_smooth, whole)), ColumnType.DOUBLE)
    return Call(expression.operation, tuple(map(_smooth, arguments)), expression.type)


# Order ------------------------------------------------------------------------------------------


def _ordered(rows: list[_Row], order: Sequence[Ordering]) -> list[_Row]:
    """The rows by ORDER BY; rows that it does not tell apart stay in the policy's order."""

    def compare(left: _Row, right: _Row) -> int:
        for each, a, b in zip(order, left.places, right.places, strict=True):
            found = _compared(a, b, each)
            if found:
                return found
        return 0

    return sorted(rows, key=cmp_to_key(compare)) if order else rows


def _compared(left: Any, right: Any, ordering: Ordering) -> int:
    if left is None or right is None:
        sides = (left is not None) - (right is not None)
        return sides if ordering.nulls_first else -sides
    found = int(left > right) - int(left < right)
    return -found if ordering.descending else found
