"""Answers computed from the form that was decided about, never from the asker's expression.

A sum is its coefficients times the private numbers, added up in exact arithmetic and rounded once.
A column that combines several such sums is computed in exact arithmetic too, so what is shown is a
function of the combination that was decided about, and of nothing else.

What aggregates come to in a scan that also adds up the numbers of records.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from casemate.audit.online.columns import EXTREMES, counted_form, public_form, results
from casemate.audit.online.questions import CellUnknowns
from casemate.published import exact_value, presence
from casemate.query import Aggregate, Function, Output, Select, Statement
from casemate.query.engines import Key, StatementAnswer, answers, average, shown_rows, values
from casemate.query.language import LARGEST_DOUBLE, ResultRef, Scalar
from casemate.table import ColumnType
from casemate.table.sources import Frame, Source

PRINTED = Context(prec=28)
"""Digits of a decimal that does not end."""

Totals = Mapping[Key, Fraction | None]


def answered(statement: Statement, cells: CellUnknowns | None, source: Source) -> StatementAnswer:
    """What a statement shows, given the cells behind its sums of private numbers."""
    names = tuple(output.name for output in statement.selects[0].outputs)
    rows = (row for select in statement.selects for row in _rows(select, cells, source))
    return StatementAnswer(names, tuple(rows))


def _rows(
    select: Select, cells: CellUnknowns | None, source: Source
) -> Iterable[tuple[Scalar, ...]]:
    private = [each for each in select.aggregates if is_private_sum(each)]
    public = {each: public_form(each) or each for each in select.aggregates if each not in private}
    counts = {each: form for each in private if (form := counted_form(each)) is not None}
    needed = list(dict.fromkeys([presence(select), *counts.values(), *public.values()]))
    found = dict(zip(needed, answers(needed, source), strict=True))
    keys = found[presence(select)]
    shown: dict[Aggregate, Mapping[Key, Scalar]] = {a: found[form] for a, form in public.items()}
    exact: dict[Aggregate, Totals] = {}
    for each in private:
        counted = found[counts[each]] if each in counts else dict.fromkeys(keys, 1)
        numbers = {key: int(str(counted.get(key) or 0)) for key in keys}
        shown[each], exact[each] = _private_sums(each, numbers, cells)
    return printed(select, keys, shown, exact).values()


def _private_sums(
    aggregate: Aggregate, counts: Mapping[Key, int], cells: CellUnknowns | None
) -> tuple[Mapping[Key, Scalar], Totals]:
    """What a private sum shows in each cell of so many rows, and exactly; NULL over none."""
    shown: dict[Key, Scalar] = {}
    exact: dict[Key, Fraction | None] = {}
    for key, count in counts.items():
        total = cells.total(aggregate, key) if cells is not None and count else None
        shown[key] = result(aggregate, total, count)
        averaged = aggregate.function is Function.AVG
        exact[key] = total / count if averaged and total is not None else total
    return shown, exact


def is_private_sum(aggregate: Aggregate) -> bool:
    """Whether an aggregate adds up something private."""
    return public_form(aggregate) is None and aggregate.function not in EXTREMES


def result(aggregate: Aggregate, total: Fraction | None, count: int) -> Scalar:
    """A sum or an average as a value of its type, rounded once."""
    kind = ColumnType.INTEGER if aggregate.argument is None else aggregate.argument.type
    value = typed(total, kind)
    return average(value, count) if aggregate.function is Function.AVG else value


def typed(value: Fraction | None, kind: ColumnType) -> Scalar:
    """An exact number as a value of a type."""
    if value is None:
        return None
    if kind is ColumnType.INTEGER and value.denominator == 1:
        return value.numerator
    if kind is ColumnType.DOUBLE:
        return float(value) if abs(value) <= LARGEST_DOUBLE else None
    ends = _decimal_digits(value.denominator)
    if ends is None:
        return PRINTED.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(value.numerator * 10**ends // value.denominator).scaleb(-ends, Context(prec=400))


def _decimal_digits(denominator: int) -> int | None:
    """How many digits after the point a fraction needs; None if they do not end."""
    rest, digits = denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        digits = max(digits, power)
    return digits if rest == 1 and digits <= 60 else None


def printed(
    select: Select,
    keys: Iterable[Key],
    shown: Mapping[Aggregate, Mapping[Key, Scalar]],
    exact: Mapping[Aggregate, Totals],
) -> dict[Key, tuple[Scalar, ...]]:
    """What a select shows of these cells; what combines private sums, from their exact values."""
    return {
        key: tuple(
            _combined(select, output, key, shown, exact)
            if _is_combination(select, output, exact)
            else value
            for output, value in zip(select.outputs, row, strict=True)
        )
        for key, row in shown_rows(select, keys, shown).items()
    }


def _is_combination(select: Select, output: Output, exact: Mapping[Aggregate, Totals]) -> bool:
    """Whether an output combines several private sums, of which it must not show more."""
    used = {select.aggregates[index] for index in results(output.expression)}
    return len(used.intersection(exact)) > 1


def _combined(
    select: Select,
    output: Output,
    key: Key,
    shown: Mapping[Aggregate, Mapping[Key, Scalar]],
    exact: Mapping[Aggregate, Totals],
) -> Scalar:
    def number(reference: ResultRef) -> Fraction | None:
        aggregate = select.aggregates[reference.index]
        if aggregate in exact:
            return exact[aggregate][key]
        counts = aggregate.function in (Function.COUNT, Function.COUNT_DISTINCT)
        public: Any = shown[aggregate].get(key, 0 if counts else None)
        return None if public is None else Fraction(public)

    return typed(exact_value(output.expression, number), output.expression.type)


# Online shown -----------------------------------------------------------------------------------


ADDED = (Function.SUM, Function.AVG)
RIDING = (*ADDED, Function.COUNT)
"""What is computed beside the numbers of records."""

ShownCells = dict[Key, Scalar]


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
