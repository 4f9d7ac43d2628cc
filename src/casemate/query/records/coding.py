"""Predicates over columns as small codes: conjunctions of per-column conditions, decided by code.

A row is selected where its predicate is true, so three-valued logic ends at the root: "is true"
and "is false" are pushed down to the atoms, and from there on everything is a plain set of rows, a
union of conjunctions. Two records with one code of a column agree on every condition asked of it. A
number that is only compared with constants is coded by the interval between constants that it falls
into; anything else by its distinct value, on which the engine decides the conditions.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.engines.answering import Key, engine_of, key_order, tables, values
from casemate.query.engines.rendering import PROTECTED, render
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    columns_of,
)
from casemate.query.language.interpret import COMPARE, FLIPPED
from casemate.table import ColumnType
from casemate.table.sources import Series, Source, literal, quote_name

MAX_CONJUNCTIONS = 64
"""Past this many conjunctions a predicate is evaluated by the engine as a whole."""


@dataclass(frozen=True)
class Atom:
    """The rows on which a condition is true, or those on which it is false; never both."""

    condition: Expression
    holds: bool

    @property
    def column(self) -> ColumnRef | None:
        """The one column it reads, or None when it reads several."""
        columns = columns_of(self.condition)
        return next(iter(columns)) if len(columns) == 1 else None


@dataclass(frozen=True)
class Both:
    """The rows in every part."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True)
class Either:
    """The rows in at least one part."""

    parts: tuple["Formula", ...]


Formula = Atom | Both | Either
ALL = Both(())
NONE = Either(())


def formula(predicate: Expression, holds: bool = True) -> Formula:
    """The rows on which a predicate is true (or false, which is not the rest of them)."""
    if isinstance(predicate, Literal):
        return ALL if predicate.value is holds else NONE
    if isinstance(predicate, Call):
        if predicate.operation is Operation.NOT:
            return formula(predicate.arguments[0], not holds)
        if predicate.operation in (Operation.AND, Operation.OR):
            parts = tuple(formula(each, holds) for each in predicate.arguments)
            conjunctive = (predicate.operation is Operation.AND) is holds
            return Both(parts) if conjunctive else Either(parts)
    return Atom(predicate, holds)


def atoms_of(found: Formula) -> Iterator[Atom]:
    """Every atom of a formula."""
    if isinstance(found, Atom):
        yield found
    else:
        for part in found.parts:
            yield from atoms_of(part)


Subject = ColumnRef | Atom
"""What a condition is about: one column, or an atom of several columns by itself."""

Term = dict[Subject, Formula]
"""A conjunction: a condition for each subject."""


def subject(found: Formula) -> Subject | None:
    """What a whole formula is about, or None when it is about several things."""
    subjects = {atom.column or atom for atom in atoms_of(found)}
    return next(iter(subjects)) if len(subjects) == 1 else None


def terms(found: Formula, most: int = MAX_CONJUNCTIONS) -> list[Term] | None:
    """The formula as a union of conjunctions, or None when it takes too many."""
    about = subject(found)
    if about is not None:
        return [{about: found}]
    if isinstance(found, Atom):
        return [{found: found}]
    if isinstance(found, Either):
        return _union(found, most)
    return _intersection(found, most)


def _union(found: Either, most: int) -> list[Term] | None:
    branches: list[Term] = []
    for part in _join_by_subject(found.parts, Either):
        sub = terms(part, most)
        if sub is None or len(branches) + len(sub) > most:
            return None
        branches += sub
    return branches


def _intersection(found: Both, most: int) -> list[Term] | None:
    choices: list[list[Term]] = []
    size = 1
    for part in _join_by_subject(found.parts, Both):
        sub = terms(part, most)
        size *= len(sub) if sub is not None else most + 1
        if sub is None or size > most:
            return None
        choices.append(sub)
    return [_merge_terms(chosen) for chosen in product(*choices)]


def _join_by_subject(parts: tuple[Formula, ...], kind: type[Both] | type[Either]) -> list[Formula]:
    """The parts, with those about the same column joined into one."""
    by_subject: dict[Subject, list[Formula]] = defaultdict(list)
    mixed: list[Formula] = []
    for part in parts:
        about = subject(part)
        if about is None:
            mixed.append(part)
        else:
            by_subject[about].append(part)
    joined = [group[0] if len(group) == 1 else kind(tuple(group)) for group in by_subject.values()]
    return [*joined, *mixed]


def _merge_terms(chosen: tuple[Term, ...]) -> Term:
    found: dict[Subject, list[Formula]] = defaultdict(list)
    for term in chosen:
        for about, condition in term.items():
            found[about].append(condition)
    return {
        about: group[0] if len(group) == 1 else Both(tuple(group)) for about, group in found.items()
    }


# Columns as codes --------------------------------------------------------------------------------


Bits = NDArray[np.bool_]
EPOCH = datetime(1970, 1, 1)
MAX_CODED_VALUES = 65_536
"""A column of more distinct values is not coded by them."""

MAX_LOOKUP_SPAN = 2**21
"""Whole numbers of a narrower range are coded by looking each of them up."""

MAX_LISTED_TEXTS = 256
"""Texts of up to so many different values are coded by the engine, and never become objects."""

INFINITE = (
    "CASE WHEN isfinite({{0}}) THEN {} WHEN {{0}} > '1970-01-01' THEN 9223372036854775807 "
    "WHEN {{0}} < '1970-01-01' THEN -9223372036854775807 END"
)
IMAGES = {
    ("duckdb", ColumnType.DATE): INFINITE.format("CAST({0} - DATE '1970-01-01' AS BIGINT)"),
    ("postgres", ColumnType.DATE): INFINITE.format("CAST({0} - DATE '1970-01-01' AS bigint)"),
    ("duckdb", ColumnType.TIMESTAMP): INFINITE.format("epoch_us({0})"),
    ("postgres", ColumnType.TIMESTAMP): INFINITE.format(
        "CAST(extract(epoch FROM {0}) * 1000000 AS bigint)"
    ),
}
"""Dates and timestamps as whole numbers: days, and microseconds, since 1970."""

COMPARISONS = (*COMPARE, Operation.SAME)


@dataclass(frozen=True, eq=False)
class Coding:
    """A code for each record, and which codes satisfy each condition."""

    codes: NDArray[np.int32]
    satisfied: Callable[[Formula], Bits]


def image(reference: ColumnRef, source: Source) -> str:
    """The column as the engine is asked for it."""
    written = render(reference, engine_of(source))
    return IMAGES.get((source.dialect, reference.type), "{}").format(written)


Cut = tuple[Any, bool]
"""The least value of a column's image that is not below a constant, and whether it equals it."""


def cut(constant: object) -> Cut:
    """Where a constant stands among the values of its column's image."""
    if isinstance(constant, datetime):
        return (constant - EPOCH) // timedelta(microseconds=1), True
    if isinstance(constant, date):
        return (constant - EPOCH.date()).days, True
    if isinstance(constant, int | Decimal):
        above = math.ceil(constant)
        return above, above == constant
    return constant, True


def comparison(condition: Expression) -> tuple[Operation, list[Any]] | None:
    """The operation and constants of a column compared with constants, or None."""
    if not isinstance(condition, Call):
        return None
    first, *rest = (strip_exact_widening(each) for each in condition.arguments)
    if condition.operation is Operation.IS_NULL and isinstance(first, ColumnRef):
        return Operation.IS_NULL, []
    operation = condition.operation
    if isinstance(first, Literal) and len(rest) == 1 and operation in COMPARISONS:
        first, rest = rest[0], [first]
        operation = FLIPPED.get(operation, operation)
    if not isinstance(first, ColumnRef) or operation not in (*COMPARISONS, Operation.IN):
        return None
    constants = [each.value for each in rest if isinstance(each, Literal)]
    return (operation, constants) if len(constants) == len(rest) else None


def strip_exact_widening(expression: Expression) -> Expression:
    """An integer column that was widened to be compared with decimals: comparing stays exact."""
    match expression:
        case Call(
            Operation.CAST, (ColumnRef(type=ColumnType.INTEGER) as column, *_), ColumnType.DECIMAL
        ):
            return column
    return expression


def is_ordered(reference: ColumnRef) -> bool:
    """Whether the column's image is a machine number."""
    return reference.type not in (ColumnType.TEXT, ColumnType.DECIMAL, ColumnType.BOOLEAN)


# Coding by interval ------------------------------------------------------------------------


def by_interval(series: Series, conditions: Iterable[Formula]) -> Coding:
    """Codes 2k and 2k+1: just below the k-th constant, and equal to it; the last is NULL."""
    atoms = {atom for each in conditions for atom in atoms_of(each)}
    cuts = sorted({cut(c) for atom in atoms for c in _constants(atom) if c is not None})
    codes = _interval_codes(series.values, cuts)
    null = 2 * len(cuts) + 1
    codes[series.missing] = null
    places = {each: 2 * index + 1 for index, each in enumerate(cuts)}
    return Coding(codes, lambda found: combine(found, null + 1, _interval_decider(places, null)))


def _interval_codes(image: NDArray[Any], cuts: list[Cut]) -> NDArray[np.int32]:
    """The code of each value: twice the number of constants below it, and one if it is the next."""
    if not cuts or not len(image):
        return np.zeros(len(image), np.int32)
    low, high = image.min(), image.max()
    if image.dtype == np.int64 and 0 <= int(high) - int(low) < min(len(image), MAX_LOOKUP_SPAN):
        codes = _search_codes(np.arange(low, high + 1), cuts)  # each value only once
        found: NDArray[np.int32] = np.take(codes, image - low)
        return found
    return _search_codes(image, cuts)


def _search_codes(image: NDArray[Any], cuts: list[Cut]) -> NDArray[np.int32]:
    limits = np.array([limit for limit, _ in cuts], image.dtype)
    exact = np.array([equal for _, equal in cuts], np.bool_)
    reached = np.searchsorted(limits, image, side="right")
    last = np.maximum(reached - 1, 0)
    equal = (reached > 0) & exact[last] & (limits[last] == image)
    codes: NDArray[np.int32] = (2 * reached - equal).astype(np.int32)
    return codes


def _constants(atom: Atom) -> list[Any]:
    found = comparison(atom.condition)
    return found[1] if found is not None else []


def _interval_decider(places: dict[Cut, int], null: int) -> Callable[[Atom], Bits]:
    codes = np.arange(null + 1)

    def decide(atom: Atom) -> Bits:
        found = comparison(atom.condition)
        if found is None:
            raise ValueError("only comparisons with constants are coded by interval")
        operation, constants = found
        points = [None if c is None else places[cut(c)] for c in constants]
        return _decide_codes(operation, points, codes, null, atom.holds)

    return decide


def _decide_codes(
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


# Coding by distinct value --------------------------------------------------------------------


def by_value(
    reference: ColumnRef,
    conditions: Sequence[Formula],
    source: Source,
    read: Callable[[str], Series],
) -> Coding:
    """A code for each distinct value; the engine says which of them satisfy which atom."""
    atoms = list(dict.fromkeys(atom for each in conditions for atom in atoms_of(each)))
    distinct, verdicts = _distinct_verdicts(reference, atoms, source)
    codes = codes_of(image(reference, source), reference.type, distinct, source, read)
    decided = dict(zip(atoms, verdicts, strict=True))
    return Coding(codes, lambda found: combine(found, len(distinct), decided.__getitem__))


def codes_of(
    written: str,
    kind: ColumnType,
    distinct: Sequence[Any],
    source: Source,
    read: Callable[[str], Series],
) -> NDArray[np.int32]:
    """The place of each record's value among the distinct ones, None for NULL among them."""
    if kind is ColumnType.TEXT and len(distinct) <= MAX_LISTED_TEXTS:
        listed = [each for each in distinct if each is not None]
        series = read(POSITIONS[source.dialect].format(written, ", ".join(map(literal, listed))))
        places = np.array([distinct.index(each) for each in listed], np.int32)
        return _codes_from_positions(
            series, places, distinct.index(None) if None in distinct else 0
        )
    lookup = {value: code for code, value in enumerate(distinct)}
    seen = values(read(written))
    return np.fromiter(map(lookup.__getitem__, seen), np.int32, len(seen))


POSITIONS = {
    "duckdb": "list_position(CAST([{1}] AS VARCHAR[]), {0})",
    "postgres": "array_position(ARRAY[{1}]::text[], {0}::text)",
}
"""The place of a text in a list of texts, from 1; NULL for NULL."""


def _codes_from_positions(
    series: Series, places: NDArray[np.int32], null: int
) -> NDArray[np.int32]:
    """Codes out of positions in the list of those values that are not NULL."""
    if not len(places):
        return np.full(len(series.values), null, np.int32)
    codes = places[np.where(series.missing, 1, series.values).astype(np.int64) - 1]
    codes[series.missing] = null
    return codes


def _distinct_verdicts(
    reference: ColumnRef, atoms: Sequence[Atom], source: Source
) -> tuple[list[Any], list[Bits]]:
    """The distinct values of a column, and for each atom the values that satisfy it."""
    written = ", ".join(f"{verdict(atom, source)} AS b{i}" for i, atom in enumerate(atoms))
    table, name = quote_name(PROTECTED), quote_name(reference.column.name)
    inner = f"SELECT DISTINCT {table}.{name} FROM {tables(source, ())}"
    shown = f"{image(reference, source)} AS v, {written}"
    frame = source.read(f"SELECT {shown} FROM ({inner}) AS {table}")
    return values(frame["v"]), [frame[f"b{i}"].values.astype(np.bool_) for i in range(len(atoms))]


def verdict(found: Formula, source: Source) -> str:
    """A formula as a two-valued SQL condition."""
    if not isinstance(found, Atom):
        word, empty = (" AND ", "TRUE") if isinstance(found, Both) else (" OR ", "FALSE")
        return f"({word.join(verdict(part, source) for part in found.parts) or empty})"
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
    """Whether a constant has a place among 64-bit numbers."""
    return constant is None or isinstance(constant, float) or abs(cut(constant)[0]) < 2**63


# Keys as codes, with one Python value per cell and not per row -----------------------------------


Codes = NDArray[np.int64]


def factorise(columns: list[Series], count: int) -> tuple[Codes, list[Key]]:
    """A code for each of `count` rows, and the key that each code stands for."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        inner, size = _column_codes(column)
        codes = np.unique(codes * size + inner, return_inverse=True)[1]
    _, rows, codes = np.unique(codes, return_index=True, return_inverse=True)
    shown = [values(Series(each.values[rows], each.missing[rows])) for each in columns]
    return codes, list(zip(*shown, strict=True)) if columns else [()] * len(rows)


def _column_codes(column: Series) -> tuple[Codes, int]:
    """A code for each value of one column, NULL among them, and how many codes there are."""
    if column.values.dtype == object:
        seen = values(column)
        distinct_values = sorted(set(seen), key=lambda value: key_order((value,)))
        code_of = {value: code for code, value in enumerate(distinct_values)}
        codes = np.fromiter(map(code_of.__getitem__, seen), np.int64, len(seen))
        return codes, max(1, len(code_of))
    distinct, codes = np.unique(column.values, return_inverse=True)
    codes = codes.astype(np.int64)
    codes[column.missing] = len(distinct)
    return codes, len(distinct) + 1
