"""What a statement shows: columns as linear forms of results, cells, and what rounding leaves open.

A column such as `SUM(a) - SUM(b)`, `ROUND(AVG(x), 2)` or `SUM(x) / COUNT(*)` is an equation in the
sums behind it (`shown_as`); anything that is not is left to the caller to refuse. `shown_cells` are
the cells of a select in the custodian's view, and a `Span` is what a printed number says about the
one behind it.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import floor, trunc
from typing import Any

import numpy as np

from casemate.exact import OrderQuestion
from casemate.query import Aggregate, Function, Select
from casemate.query.engines import Key, answers, average
from casemate.query.language import (
    Call,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    evaluate,
)
from casemate.query.records import counting
from casemate.table import ColumnType
from casemate.table.sources import Source


@dataclass(frozen=True)
class ShownForm:
    """(sum of weight * result + constant) / divisor, known up to `half_unit` on either side.

    `divisor` is the index of a result, or None for 1. `cut` says that the quotient was cut to a
    whole number, as the division of two integers is; `to_even` that halves were rounded to the
    even neighbour, as those of doubles are, and not away from 0.
    """

    weights: tuple[tuple[int, Fraction], ...]
    constant: Fraction = Fraction(0)
    divisor: int | None = None
    half_unit: Fraction = Fraction(0)
    cut: bool = False
    to_even: bool = False

    @property
    def rounded(self) -> bool:
        """Whether other values are shown as the same number."""
        return self.cut or self.half_unit != 0


def shown_as(expression: Expression) -> ShownForm | None:
    """The linear form that a column shows, or None."""
    match expression:
        case ResultRef(index):
            return ShownForm(((index, Fraction(1)),))
        case Literal(int() | float() | Decimal() as value) if not isinstance(value, bool):
            return ShownForm((), Fraction(value))
        case Call(operation) if operation in RULES:
            return RULES[operation](expression)
    return None


def _is_plain(form: ShownForm | None) -> bool:
    return form is not None and form.divisor is None and not form.rounded


def _sum(call: Call) -> ShownForm | None:
    left, right = (shown_as(each) for each in call.arguments)
    if left is None or right is None or not _is_plain(left) or not _is_plain(right):
        return None
    sign = 1 if call.operation is Operation.ADD else -1
    weights = dict(left.weights)
    for index, weight in right.weights:
        weights[index] = weights.get(index, Fraction(0)) + sign * weight
    kept = tuple((index, weight) for index, weight in weights.items() if weight)
    return ShownForm(kept, left.constant + sign * right.constant)


def _product(call: Call) -> ShownForm | None:
    left, right = (shown_as(each) for each in call.arguments)
    if left is None or right is None:
        return None
    if left.weights and right.weights:
        return None
    form, factor = (left, right.constant) if not right.weights else (right, left.constant)
    return _scale(form, factor) if _is_plain(right if form is left else left) else None


def _scale(form: ShownForm, factor: Fraction) -> ShownForm | None:
    if form.cut:
        return None
    weights = tuple((index, weight * factor) for index, weight in form.weights if factor)
    constant, half = form.constant * factor, form.half_unit * abs(factor)
    return ShownForm(weights, constant, form.divisor, half, to_even=form.to_even)


def _quotient(call: Call) -> ShownForm | None:
    top, bottom = (shown_as(each) for each in call.arguments)
    if top is None or bottom is None or not _is_plain(top) or not _is_plain(bottom):
        return None
    cut = call.type is ColumnType.INTEGER
    if not bottom.weights:
        scaled = _scale(top, 1 / bottom.constant) if bottom.constant else None
        return replace(scaled, cut=True) if scaled is not None and cut else scaled
    ((index, weight), *more) = bottom.weights
    if more or weight != 1 or bottom.constant:
        return None
    return ShownForm(top.weights, top.constant, index, cut=cut)


def _rounding(call: Call) -> ShownForm | None:
    form = shown_as(call.arguments[0])
    digits = call.arguments[1] if len(call.arguments) > 1 else Literal(0, ColumnType.INTEGER)
    if form is None or form.rounded or not isinstance(digits, Literal):
        return None
    half = Fraction(1, 2) / Fraction(10) ** int(str(digits.value))
    to_even = len(call.arguments) == 1 and call.type is ColumnType.DOUBLE
    return replace(form, half_unit=half, to_even=to_even)


def _same_value(call: Call) -> ShownForm | None:
    """A cast to a wider number, or a COALESCE that only names what stands for nothing."""
    if call.operation is Operation.CAST and len(call.arguments) > 1:
        return _rounding(call)
    first, *others = call.arguments
    if call.operation is Operation.COALESCE:
        return shown_as(first) if all(isinstance(each, Literal) for each in others) else None
    narrowing = call.type is ColumnType.INTEGER and first.type is not ColumnType.INTEGER
    return None if narrowing else shown_as(first)


# What a column comes to in exact arithmetic -----------------------------------------------------


def exact_value(
    expression: Expression, read: Callable[[ResultRef], Fraction | None]
) -> Fraction | None:
    """What a column that `shown_as` reads comes to in exact arithmetic; None is NULL.

    It is a function of its linear form alone: nothing on the way overflows or is rounded.
    """
    if isinstance(expression, ResultRef):
        return read(expression)
    if isinstance(expression, Literal):
        return None if expression.value is None else Fraction(expression.value)  # type: ignore[arg-type]  # a number
    if not isinstance(expression, Call):
        raise ValueError("only results and constants are combined")
    values = [exact_value(each, read) for each in expression.arguments]
    if expression.operation is Operation.COALESCE:
        return next((each for each in values if each is not None), None)
    known = [each for each in values if each is not None]
    return (
        EXACT_RULES[expression.operation](expression, known) if len(known) == len(values) else None
    )


def _exact_quotient(call: Call, values: list[Fraction]) -> Fraction | None:
    top, bottom = values
    if not bottom:
        return None
    return Fraction(trunc(top / bottom)) if call.type is ColumnType.INTEGER else top / bottom


def _exactly_rounded(call: Call, values: list[Fraction]) -> Fraction:
    """Halves go away from zero, but of doubles without digits to the even neighbour."""
    value, *digits = values
    if call.operation is Operation.CAST and not digits:
        return value
    unit = Fraction(10) ** -int(digits[0] if digits else 0)
    if not digits and call.type is ColumnType.DOUBLE:
        return Fraction(round(value))
    size = floor(abs(value) / unit + Fraction(1, 2)) * unit
    return size if value >= 0 else -size


EXACT_RULES: dict[Operation, Callable[[Call, list[Fraction]], Fraction | None]] = {
    Operation.ADD: lambda _, values: values[0] + values[1],
    Operation.SUBTRACT: lambda _, values: values[0] - values[1],
    Operation.MULTIPLY: lambda _, values: values[0] * values[1],
    Operation.DIVIDE: _exact_quotient,
    Operation.ROUND: _exactly_rounded,
    Operation.CAST: _exactly_rounded,
}

RULES = {
    Operation.ADD: _sum,
    Operation.SUBTRACT: _sum,
    Operation.MULTIPLY: _product,
    Operation.DIVIDE: _quotient,
    Operation.ROUND: _rounding,
    Operation.CAST: _same_value,
    Operation.COALESCE: _same_value,
}


# The cells that a select shows, and the sums behind each of them --------------------------------


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
    """The cells of many selects, read together.

    Of each: who is there, and the sums and counts behind its results.
    """
    wanted = {
        select: [
            presence(select),
            *(_sum_behind(each) for each in select.aggregates),
            *(counting(each) for each in select.aggregates),
        ]
        for select in selects
    }
    every = list(dict.fromkeys(each for needed in wanted.values() for each in needed))
    found = dict(zip(every, answers(every, source), strict=True))
    return {
        select: list(_cells(select, [found[each] for each in needed]))
        for select, needed in wanted.items()
    }


def _sum_behind(aggregate: Aggregate) -> Aggregate:
    averaged = aggregate.function is Function.AVG
    return replace(aggregate, function=Function.SUM) if averaged else aggregate


def _cells(select: Select, read: Sequence[Mapping[Key, Scalar]]) -> Iterator[ShownCell]:
    present, *found = read
    functions = [each.function for each in select.aggregates]
    for key in present:
        results = [each.get(key) for each in found]
        counts = [int(str(each or 0)) for each in results[len(functions) :]]
        behind = list(zip(functions, results, counts, strict=False))
        sums = tuple(n if function is Function.COUNT else total for function, total, n in behind)
        divisors = tuple(max(1, n) if function is Function.AVG else 1 for function, _, n in behind)
        cell = ShownCell(key, sums, divisors)
        if shown_value(select.having, select, cell) is True:
            yield cell


def shown_value(expression: Expression, select: Select, cell: ShownCell) -> Scalar:
    """An expression over the results and keys of one cell, as it is shown."""

    def read(reference: Any) -> Scalar:
        if isinstance(reference, KeyRef):
            return cell.key[reference.index]
        total, divisor = cell.sums[reference.index], cell.divisors[reference.index]
        averaged = select.aggregates[reference.index].function is Function.AVG
        return average(total, divisor) if averaged and total is not None else total

    return evaluate(expression, read)


def empty_keys(select: Select, present: Sequence[ShownCell], possible: Sequence[Key]) -> list[Key]:
    """Keys of cells that would be shown if anybody were in them, and are not."""
    seen = {cell.key for cell in present}

    def passes_having(key: Key) -> bool:
        nothing = (None,) * len(select.aggregates)
        cell = ShownCell(key, nothing, (1,) * len(select.aggregates))
        return shown_value(select.having, select, cell) is True

    return [key for key in possible if key not in seen and passes_having(key)]


# Rounded numbers as intervals -------------------------------------------------------------------
# A number rounded by SQL, or printed with few digits, lies within half a unit of its last digit.
# Both ends count as possible, unless it is known how ties are rounded: exact numbers go away from
# zero, and the quotient of two whole numbers is cut towards it.


HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Span:
    """The numbers from `low` to `high`, without an end that is open."""

    low: Fraction
    high: Fraction
    open_low: bool = False
    open_high: bool = False

    def times(self, factor: Fraction) -> "Span":
        """All of the numbers multiplied.

        >>> Span(Fraction(1), Fraction(3), open_high=True).times(Fraction(-2))
        Span(low=Fraction(-6, 1), high=Fraction(-2, 1), open_low=True, open_high=False)
        """
        if factor < 0:
            return Span(self.high * factor, self.low * factor, self.open_high, self.open_low)
        return Span(self.low * factor, self.high * factor, self.open_low, self.open_high)

    def less(self, amount: Fraction) -> "Span":
        """All of the numbers less an amount."""
        return Span(self.low - amount, self.high - amount, self.open_low, self.open_high)


def half_unit(printed: Decimal) -> Fraction:
    """Half a unit of the last digit with which a number is printed.

    >>> half_unit(Decimal("12")), half_unit(Decimal("12.30")), half_unit(Decimal("1E+3"))
    (Fraction(1, 2), Fraction(1, 200), Fraction(500, 1))
    """
    exponent = printed.as_tuple().exponent
    return HALF * Fraction(10) ** int(exponent)


def whole_answer(question: OrderQuestion) -> OrderQuestion:
    """The same question about whole numbers: an answer between two others is none of them.

    >>> whole_answer(OrderQuestion.of("max", [0, 1], 7, within=HALF)).exact
    True
    """
    if question.kind not in ("max", "min", "median"):
        return question
    unit = 2 if question.kind == "median" and len(question.members) % 2 == 0 else 1
    low = Fraction(math.ceil(question.low * unit), unit)
    high = Fraction(math.floor(question.high * unit), unit)
    return question if low > high else replace(question, low=low, high=high)


def span(form: ShownForm, shown: Fraction, printed: Fraction = Fraction(0)) -> Span:
    """The numbers for which a column shows this one, printed with half a unit of so much.

    Printing loses nothing of a number that was rounded to fewer digits before.
    """
    lost = printed if printed > (HALF if form.cut else form.half_unit) else Fraction(0)
    half = form.half_unit + lost
    below = half + (1 if form.cut and shown <= 0 else 0)
    above = half + (1 if form.cut and shown >= 0 else 0)
    open_low, open_high = (False, False) if lost else _open_ends(form, shown)
    return Span(shown - below, shown + above, open_low, open_high)


def _open_ends(form: ShownForm, shown: Fraction) -> tuple[bool, bool]:
    """Whether the ends of what is rounded or cut to a number are themselves shown as another."""
    if form.to_even and form.half_unit:
        odd = (shown / (2 * form.half_unit)) % 2 == 1
        return odd, odd
    rounded = form.rounded
    return rounded and shown <= 0, rounded and shown >= 0
