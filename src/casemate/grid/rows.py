"""The rows of a statement: results and keys put together, bounded, filtered, ordered and cut.

HAVING, ORDER BY and LIMIT act on answered values alone, so they say nothing that the answers do not
say. Every declared group is there before HAVING, whether or not anybody is in it; a group that by
the policy's own word nobody can be in is shown where somebody wants to see every group. What is
proven of a column follows from what is proven of its results, by interval arithmetic.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from casemate.grid.ranks import RankReading
from casemate.grid.readings import (
    Band,
    CountReading,
    Estimates,
    Noised,
    Ratio,
    Reading,
    SumReading,
    clamp,
    joint_proof,
)
from casemate.query import Ordering, Output
from casemate.query.engines import Key
from casemate.query.language import (
    NUMBERS,
    TRUE,
    Call,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    apply,
    cast_value,
    evaluate,
    walk,
)
from casemate.table import ColumnType

# The bounds of a column --------------------------------------------------------------------------


Read = Callable[[KeyRef | ResultRef], Band]


Quotient = Callable[[int, int], Band | None]
"""What is proven of one result over another by itself."""


class NoBounds(Exception):
    """No bounds follow for this expression."""


def bounds(expression: Expression, read: Read, quotient: Quotient = lambda *_: None) -> Band:
    """The bounds of an expression over results and keys; `NoBounds` where none follow.

    Dependence between results is not followed but for quotients that are proven as such, so bounds
    may be wider than needed and are never too narrow. NULL has no bounds: they are those of the
    number, where there is one.
    """
    if isinstance(expression, Literal):
        return constant(expression.value)
    if isinstance(expression, KeyRef | ResultRef):
        return read(expression)
    if not isinstance(expression, Call):
        raise NoBounds
    branches = _branches(expression)
    if branches is not None:
        return _around(branches, read, quotient)
    joint = _joint(expression, quotient)
    if joint is not None:
        return _common(joint, expression, read)
    rule = RULES.get(expression.operation)
    if rule is None:
        raise NoBounds
    found = rule(expression, [bounds(each, read, quotient) for each in expression.arguments])
    if not all(math.isfinite(end) for end in found):
        raise NoBounds
    return found


def _joint(call: Call, quotient: Quotient) -> Band | None:
    """The bounds of a multiple of one result over a multiple of another, proven as a quotient."""
    if call.operation is not Operation.DIVIDE or call.type is ColumnType.INTEGER:
        return None
    above, below = (_multiple_of_result(each) for each in call.arguments)
    if above is None or below is None:
        return None
    ends = quotient(above[1], below[1])
    if ends is None:
        return None
    low, high = (end * above[0] / below[0] for end in ends)
    return min(low, high), max(low, high)


def _multiple_of_result(expression: Expression) -> tuple[float, int] | None:
    """So many times which result an expression is."""
    if isinstance(expression, ResultRef):
        return 1.0, expression.index
    if not isinstance(expression, Call):
        return None
    first, *rest = expression.arguments
    if expression.operation in (Operation.NULLIF, Operation.CAST):
        found = _multiple_of_result(first)
        same = expression.type in NUMBERS and found is not None and found[0] == 1
        return found if same else None  # a result is whole, so that a cast to numbers keeps it
    if expression.operation is Operation.MULTIPLY:
        for times, other in ((first, rest[0]), (rest[0], first)):
            found = _multiple_of_result(other)
            if isinstance(times, Literal) and times.value and found is not None:
                return constant(times.value)[0] * found[0], found[1]
    return None


def _common(joint: Band, expression: Call, read: Read) -> Band:
    """What follows from the bounds of both results as well, where that says anything."""
    try:
        low, high = bounds(expression, read)
    except NoBounds:
        return joint
    found = max(low, joint[0]), min(high, joint[1])
    return found if found[0] <= found[1] else (low, high)  # one of them is wrong


def constant(value: Scalar) -> Band:
    """A number is its own bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NoBounds
    return float(value), float(value)


def _branches(call: Call) -> Sequence[Expression] | None:
    """The parts of which the call is always one."""
    if call.operation is Operation.CASE:
        return (*call.arguments[1:-1:2], call.arguments[-1])
    if call.operation is Operation.NULLIF:
        return call.arguments[:1]
    if call.operation in (Operation.COALESCE, Operation.LEAST, Operation.GREATEST):
        return call.arguments
    return None


def _around(branches: Sequence[Expression], read: Read, quotient: Quotient) -> Band:
    """Around all branches but those that are always NULL."""
    found = [
        bounds(each, read, quotient)
        for each in branches
        if not isinstance(each, Literal) or each.value is not None
    ]
    if not found:
        raise NoBounds
    return min(low for low, _ in found), max(high for _, high in found)


def _sum(_: Call, ends: Sequence[Band]) -> Band:
    (a, b), (c, d) = ends
    return a + c, b + d


def _difference(_: Call, ends: Sequence[Band]) -> Band:
    (a, b), (c, d) = ends
    return a - d, b - c


def _product(_: Call, ends: Sequence[Band]) -> Band:
    corners = [a * b for a in ends[0] for b in ends[1]]
    return min(corners), max(corners)


def _quotient(call: Call, ends: Sequence[Band]) -> Band:
    if ends[1][0] <= 0 <= ends[1][1]:
        raise NoBounds
    corners = [a / b for a in ends[0] for b in ends[1]]
    if call.type is ColumnType.INTEGER:  # which cuts towards zero, and so keeps the order
        corners = [float(math.trunc(each)) for each in corners]
    return min(corners), max(corners)


def _magnitude(_: Call, ends: Sequence[Band]) -> Band:
    low, high = ends[0]
    return 0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def _rising(call: Call, ends: Sequence[Band]) -> Band:
    """A function that keeps the order, computed at both ends."""
    low, high = (_at(call, end) for end in ends[0])
    return low, high


def _at(call: Call, end: float) -> float:
    first, *rest = call.arguments
    number: Scalar = Decimal(repr(end)) if first.type is ColumnType.DECIMAL else end
    if call.type not in NUMBERS or not all(isinstance(each, Literal) for each in rest):
        raise NoBounds
    extra = [each.value for each in rest if isinstance(each, Literal)]
    found = (
        cast_value(number, call)
        if call.operation is Operation.CAST
        else apply(call.operation, [number, *extra], call.type)
    )
    return constant(found)[0]


RULES: dict[Operation, Callable[[Call, Sequence[Band]], Band]] = {
    Operation.ADD: _sum,
    Operation.SUBTRACT: _difference,
    Operation.MULTIPLY: _product,
    Operation.DIVIDE: _quotient,
    Operation.ABS: _magnitude,
    **dict.fromkeys(
        (
            *(Operation.FLOOR, Operation.CEIL, Operation.ROUND, Operation.CAST),
            *(Operation.SQRT, Operation.LN, Operation.EXP),
        ),
        _rising,
    ),
}


# Rows -------------------------------------------------------------------------------------------


Cell = Scalar | Noised
"""What stands in one column of one row: a key or a constant, or what came out of answers."""


@dataclass(frozen=True)
class ShownTable:
    """Column names and rows; `notes` are those that only the answers can tell."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SelectLayout:
    """One select: its groups in order, how its results are read, and what it makes of them.

    `quotients` has the results of which one is divided by another, each with its part: that of the
    first has what is proven of the quotient.
    """

    keys: tuple[Key, ...]
    readings: tuple[Reading, ...]
    outputs: tuple[Output, ...]
    having: Expression
    order: tuple[Ordering, ...]
    impossible: frozenset[int] = frozenset()  # groups that the policy says nobody is in
    quotients: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @property
    def ranks(self) -> bool:
        """Whether any result is a quantile, MIN or MAX."""
        return any(isinstance(each, RankReading) for each in self.readings)

    @property
    def is_plain(self) -> bool:
        """Whether every shown number is a count or a sum, as wide as its noise makes it."""
        results = [each.expression for each in self.outputs if _results_in(each.expression)]
        return all(
            isinstance(each, ResultRef)
            and isinstance(self.readings[each.index], CountReading | SumReading)
            for each in results
        )

    def unfiltered(self, most: int | None = None) -> "SelectLayout":
        """The first groups, or all of them, whatever HAVING keeps and in their own order."""
        return replace(self, keys=self.keys[:most], having=TRUE, order=())

    def together(self, origin: Callable[[int], object] = int) -> int:
        """Of how many cells a number is made at most, if parts of one origin are read once."""
        most = 0
        for output in self.outputs:
            cells: dict[object, int] = {}
            for index in _results_in(output.expression):
                needed = self.readings[index].needed
                cells |= {origin(part): size for part, size in needed.items()}
            most = max(most, sum(cells.values()))
        return most


def show(
    layouts: Sequence[SelectLayout],
    limit: int | None,
    estimates: Estimates,
    *,
    all_groups: bool = True,
) -> ShownTable:
    """The rows of a statement from the numbers of every part."""
    made = [row for layout in layouts for row in _rows(layout, estimates, all_groups)]
    made = _sort_rows(made, layouts[0].order)
    names = tuple(each.name for each in layouts[0].outputs)
    rows = tuple(row.cells for row in made[:limit])
    return ShownTable(names, rows, tuple(dict.fromkeys(_widths(layouts, estimates))))


@dataclass(frozen=True)
class _SelectRow:
    cells: tuple[Cell, ...]
    places: tuple[Scalar, ...]  # by which it is ordered


def _rows(layout: SelectLayout, estimates: Estimates, all_groups: bool) -> Iterable[_SelectRow]:
    outputs = [relax_integers(each.expression) for each in layout.outputs]
    order = [relax_integers(each.expression) for each in layout.order]
    having = relax_integers(layout.having)
    for group, key in enumerate(layout.keys):
        if group in layout.impossible and not all_groups:
            continue
        ratios = {
            pair: estimates[above][group].ratio for pair, (above, _) in layout.quotients.items()
        }
        row = _Group(key, [_result(each, estimates, group) for each in layout.readings], ratios)
        if row.value(having) is True:
            yield _SelectRow(
                tuple(row.cell(each) for each in outputs), tuple(row.value(each) for each in order)
            )


def _result(reading: Reading, estimates: Estimates, group: int) -> Noised:
    """What an aggregate shows in a group, and by what it is proven."""
    found = reading.read(estimates, group)
    if found.lo is None and found.hi is None:
        return found
    used = (
        estimates[part][group * size + step]
        for part, size in reading.needed.items()
        for step in range(size)
    )
    return replace(found, proof=joint_proof(each.proof for each in used))


def _widths(layouts: Sequence[SelectLayout], estimates: Estimates) -> Iterable[str]:
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
    ratios: Mapping[tuple[int, int], Ratio | None]

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
        error = self._error(expression, used)
        found = Noised.of(clamp(number, answer), error, answer, session)
        if answer is None:
            return found
        return replace(found, proof=joint_proof(self.results[place].proof for place in used))

    def _read(self, moved: dict[int, float]) -> Callable[[Any], Scalar]:
        def read(reference: KeyRef | ResultRef) -> Scalar:
            if isinstance(reference, KeyRef):
                return self.key[reference.index]
            value = self.results[reference.index].value
            if reference.index in moved and isinstance(value, float):
                value = value + moved[reference.index]
            return _as_type(value, reference.type)

        return read

    def _bounds(self, expression: Expression, session: bool) -> Band | None:
        def read(reference: KeyRef | ResultRef) -> Band:
            if isinstance(reference, KeyRef):
                return constant(self.key[reference.index])
            band = self.results[reference.index].band(session)
            if band is None:
                raise NoBounds
            return band

        def quotient(above: int, below: int) -> Band | None:
            ratio = self.ratios.get((above, below))
            return None if ratio is None else ratio[session]

        try:
            return bounds(expression, read, quotient)
        except NoBounds:
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


def divided_results(expression: Expression) -> set[tuple[int, int]]:
    """Which results an expression divides by which, each times a constant."""
    found = set[tuple[int, int]]()

    def note(above: int, below: int) -> None:
        found.add((above, below))

    for node in walk(expression):
        if isinstance(node, Call):
            _joint(node, note)
    return found


def _results_in(expression: Expression) -> list[int]:
    found = (node.index for node in walk(expression) if isinstance(node, ResultRef))
    return list(dict.fromkeys(found))


def _as_type(value: Scalar, kind: ColumnType) -> Scalar:
    """An answered number as the language computes with it."""
    if isinstance(value, float) and kind is ColumnType.DECIMAL:
        return Decimal(repr(value))
    return value


def relax_integers(expression: Expression) -> Expression:
    """The expression over answers, of which those of integers need not be whole.

    Sums and products of counts are not cut to whole numbers; a division of integers is, as in SQL,
    and is one of the nearest whole numbers.
    """
    if not isinstance(expression, Call) or not _results_in(expression):
        return expression
    arguments = tuple(relax_integers(each) for each in expression.arguments)
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


def _sort_rows(rows: list[_SelectRow], order: Sequence[Ordering]) -> list[_SelectRow]:
    """The rows by ORDER BY; rows that it does not tell apart stay in the policy's order."""
    for place in reversed(range(len(order))):  # sorting is stable: the first one last
        known: list[tuple[Any, _SelectRow]] = []
        nulls = []
        for row in rows:
            value = row.places[place]
            nulls.append(row) if value is None else known.append((value, row))
        known.sort(key=lambda pair: pair[0], reverse=order[place].descending)
        values = [row for _, row in known]
        rows = [*nulls, *values] if order[place].nulls_first else [*values, *nulls]
    return rows
