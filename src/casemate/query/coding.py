"""Columns as small codes: two records with one code agree on every condition asked of the column.

A number that is only compared with constants is coded by the interval between constants that it
falls into; anything else by its distinct value, on which the engine decides the conditions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.answers import values
from casemate.query.atoms import Atom, Both, Formula, atoms_of
from casemate.query.engine import engine_of, tables
from casemate.query.expression import Call, ColumnRef, Expression, Literal, Operation
from casemate.query.render import PROTECTED, quote, render
from casemate.table.schema import ColumnType
from casemate.table.source import Series, Source

Bits = NDArray[np.bool_]
EPOCH = datetime(1970, 1, 1)
MOST_DISTINCT = 65_536
"""A column of more distinct values is not coded by them."""

IMAGES = {
    ("duckdb", ColumnType.DATE): "CAST({} - DATE '1970-01-01' AS BIGINT)",
    ("postgres", ColumnType.DATE): "CAST({} - DATE '1970-01-01' AS bigint)",
    ("duckdb", ColumnType.TIMESTAMP): "epoch_us({})",
    ("postgres", ColumnType.TIMESTAMP): "CAST(extract(epoch FROM {}) * 1000000 AS bigint)",
}
"""Dates and timestamps as whole numbers: days, and microseconds, since 1970."""

FLIPPED = {
    Operation.LESS: Operation.GREATER,
    Operation.LESS_EQUAL: Operation.GREATER_EQUAL,
    Operation.GREATER: Operation.LESS,
    Operation.GREATER_EQUAL: Operation.LESS_EQUAL,
    Operation.EQUAL: Operation.EQUAL,
    Operation.DIFFERENT: Operation.DIFFERENT,
    Operation.SAME: Operation.SAME,
}


@dataclass(frozen=True, eq=False)
class Coding:
    """A code for each record, and which codes satisfy each condition."""

    codes: NDArray[np.int32]
    satisfied: Callable[[Formula], Bits]


def image(reference: ColumnRef, source: Source) -> str:
    """The column as the engine is asked for it."""
    written = render(reference, engine_of(source))
    return IMAGES.get((source.dialect, reference.type), "{}").format(written)


def as_number(value: object) -> Any:
    """A constant on the scale of its column's image: whole numbers are doubled.

    A fraction between two integers, which no integer equals, is then the odd number between.
    """
    if isinstance(value, datetime):
        return 2 * ((value - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return 2 * (value - EPOCH.date()).days
    if isinstance(value, int | Decimal):
        below = math.floor(value)
        return 2 * below + (value != below)
    return value


def doubled(series: Series) -> NDArray[Any]:
    """A column's values on the scale of `as_number`."""
    return series.values if series.values.dtype == np.float64 else 2 * series.values


def comparison(condition: Expression) -> tuple[Operation, list[Any]] | None:
    """The operation and constants of a column compared with constants, or None."""
    if not isinstance(condition, Call):
        return None
    first, *rest = (narrowed(each) for each in condition.arguments)
    if condition.operation is Operation.IS_NULL and isinstance(first, ColumnRef):
        return Operation.IS_NULL, []
    operation = condition.operation
    if isinstance(first, Literal) and len(rest) == 1 and operation in FLIPPED:
        first, rest, operation = rest[0], [first], FLIPPED[operation]
    if not isinstance(first, ColumnRef) or operation not in (*FLIPPED, Operation.IN):
        return None
    constants = [each.value for each in rest if isinstance(each, Literal)]
    return (operation, constants) if len(constants) == len(rest) else None


def narrowed(expression: Expression) -> Expression:
    """An integer column that was widened to be compared with decimals: comparing stays exact."""
    if isinstance(expression, Call) and expression.operation is Operation.CAST:
        inner = expression.arguments[0]
        whole = inner.type is ColumnType.INTEGER and expression.type is ColumnType.DECIMAL
        return inner if whole and isinstance(inner, ColumnRef) else expression
    return expression


def is_ordered(reference: ColumnRef) -> bool:
    """Whether the column's image is a machine number."""
    return reference.type not in (ColumnType.TEXT, ColumnType.DECIMAL, ColumnType.BOOLEAN)


# Coding by interval ------------------------------------------------------------------------


def by_interval(series: Series, conditions: Iterable[Formula]) -> Coding:
    """Codes 2k and 2k+1: just below the k-th constant, and equal to it; the last is NULL."""
    atoms = {atom for each in conditions for atom in atoms_of(each)}
    constants = sorted({as_number(c) for atom in atoms for c in _constants(atom) if c is not None})
    image = doubled(series)
    cuts = np.array(constants, image.dtype)
    below = np.searchsorted(cuts, image, side="left")
    equal = np.zeros(len(below), np.int32)
    inside = below < len(cuts)
    equal[inside] = cuts[below[inside]] == image[inside]
    codes = (2 * below + equal).astype(np.int32)
    null = 2 * len(cuts) + 1
    codes[series.missing] = null
    places = {constant: 2 * index + 1 for index, constant in enumerate(constants)}
    return Coding(codes, lambda found: combine(found, null + 1, _interval_decider(places, null)))


def _constants(atom: Atom) -> list[Any]:
    found = comparison(atom.condition)
    return found[1] if found is not None else []


def _interval_decider(places: dict[Any, int], null: int) -> Callable[[Atom], Bits]:
    codes = np.arange(null + 1)

    def decide(atom: Atom) -> Bits:
        found = comparison(atom.condition)
        if found is None:
            raise ValueError("only comparisons with constants are coded by interval")
        operation, constants = found
        points = [None if c is None else places[as_number(c)] for c in constants]
        return _decided(operation, points, codes, null, atom.holds)

    return decide


def _decided(
    operation: Operation, points: list[int | None], codes: NDArray[Any], null: int, holds: bool
) -> Bits:
    """On which codes a comparison is true (or false)."""
    missing: Bits = codes == null
    if operation is Operation.IS_NULL:
        return missing if holds else ~missing
    if operation is Operation.SAME:
        same: Bits = missing if points[0] is None else codes == points[0]
        return same if holds else ~same
    if operation is Operation.IN:
        return _in_list(points, codes, missing, holds)
    if points[0] is None:
        return np.zeros(len(codes), np.bool_)
    true = COMPARE[operation](codes, points[0])
    decided: Bits = (true if holds else ~true) & ~missing
    return decided


def _in_list(points: list[int | None], codes: NDArray[Any], missing: Bits, holds: bool) -> Bits:
    listed = np.isin(codes, [point for point in points if point is not None])
    if holds:
        return listed & ~missing
    return np.zeros(len(codes), np.bool_) if None in points else ~listed & ~missing


COMPARE: dict[Operation, Callable[[NDArray[Any], int], Bits]] = {
    Operation.EQUAL: lambda codes, point: codes == point,
    Operation.DIFFERENT: lambda codes, point: codes != point,
    Operation.LESS: lambda codes, point: codes < point,
    Operation.LESS_EQUAL: lambda codes, point: codes <= point,
    Operation.GREATER: lambda codes, point: codes > point,
    Operation.GREATER_EQUAL: lambda codes, point: codes >= point,
}


# Coding by distinct value --------------------------------------------------------------------


def by_value(
    reference: ColumnRef, series: Series, conditions: Sequence[Formula], source: Source
) -> Coding:
    """A code for each distinct value; the engine says which of them satisfy which atom."""
    atoms = list(dict.fromkeys(atom for each in conditions for atom in atoms_of(each)))
    distinct, verdicts = _distinct_verdicts(reference, atoms, source)
    lookup = {value: code for code, value in enumerate(distinct)}
    seen = values(series)
    codes = np.fromiter(map(lookup.__getitem__, seen), np.int32, len(seen))
    decided = dict(zip(atoms, verdicts, strict=True))
    return Coding(codes, lambda found: combine(found, len(distinct), decided.__getitem__))


def _distinct_verdicts(
    reference: ColumnRef, atoms: Sequence[Atom], source: Source
) -> tuple[list[Any], list[Bits]]:
    """The distinct values of a column, and for each atom the values that satisfy it."""
    written = ", ".join(f"{verdict(atom, source)} AS b{i}" for i, atom in enumerate(atoms))
    table, name = quote(PROTECTED), quote(reference.column.name)
    inner = f"SELECT DISTINCT {table}.{name} FROM {tables(source, ())}"
    shown = f"{image(reference, source)} AS v, {written}"
    frame = source.read(f"SELECT {shown} FROM ({inner}) AS {table}")
    return values(frame["v"]), [frame[f"b{i}"].values.astype(np.bool_) for i in range(len(atoms))]


def verdict(found: Formula, source: Source) -> str:
    """A formula as a two-valued SQL condition."""
    if not isinstance(found, Atom):
        word = " AND " if isinstance(found, Both) else " OR "
        return "(" + word.join(verdict(part, source) for part in found.parts) + ")"
    written = render(found.condition, engine_of(source))
    return f"coalesce({written}, FALSE)" if found.holds else f"coalesce(NOT {written}, FALSE)"


# Formulas over codes -------------------------------------------------------------------------


def combine(found: Formula, size: int, decide: Callable[[Atom], Bits]) -> Bits:
    """Which codes satisfy a formula, given which satisfy its atoms."""
    if isinstance(found, Atom):
        return decide(found)
    parts = [combine(part, size, decide) for part in found.parts]
    joined = np.full(size, isinstance(found, Both))
    for part in parts:
        joined = joined & part if isinstance(found, Both) else joined | part
    return joined


def is_simple(found: Formula, reference: ColumnRef) -> bool:
    """Whether a condition on a column can be decided on intervals."""
    return is_ordered(reference) and all(
        (known := comparison(atom.condition)) is not None and all(map(fits, known[1]))
        for atom in atoms_of(found)
    )


def fits(constant: object) -> bool:
    """Whether a constant has a place on the doubled scale of 64-bit numbers."""
    return constant is None or isinstance(constant, float) or abs(as_number(constant)) < 2**62
