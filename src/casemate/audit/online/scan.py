"""A statement's answer and what decides about it, in one scan; answers in exact arithmetic.

Statements whose private columns are each a sum or an average of one private number, over records
that a public predicate chooses, are asked with two results more: the sum of the secret numbers of
the records in each cell, and which records of a small sample are there. The decision uses these
two alone; the answers beside them are dropped where it is a refusal.

Answers are computed from the form that was decided about, never from the asker's expression
(`answer_statement`). A sum is its coefficients times the private numbers, added up in exact
arithmetic and rounded once. A column that combines several such sums is computed in exact
arithmetic too, so what is shown is a function of the combination that was decided about, and of
nothing else.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np

from casemate.audit.online.questions import (
    EXTREMES,
    CellUnknowns,
    SecretColumn,
    SumColumn,
    counted_form,
    public_form,
    results,
    secret_columns,
    shown_keys,
)
from casemate.audit.online.summed_space import Names
from casemate.audit.online.sums import CellTally, FingerprintedTable, Place, PlainSum, among
from casemate.published import exact, exact_value, presence
from casemate.query import Aggregate, Function, Output, Select, Statement
from casemate.query.engines import (
    Key,
    StatementAnswer,
    answers,
    average,
    batches,
    group_by,
    rows,
    shown_rows,
    values,
)
from casemate.query.language import (
    LARGEST_DOUBLE,
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    all_of,
    columns_of,
    simplify,
)
from casemate.query.records import ONE, Term, linear_form
from casemate.table import ColumnType
from casemate.table.sources import Frame, Source

PRINTED = Context(prec=28)
"""Digits of a decimal that does not end."""

Totals = Mapping[Key, Fraction | None]


def answer_statement(
    statement: Statement, cells: CellUnknowns | None, source: Source
) -> StatementAnswer:
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
    shown_values: dict[Aggregate, Mapping[Key, Scalar]] = {
        a: found[form] for a, form in public.items()
    }
    exact: dict[Aggregate, Totals] = {}
    for each in private:
        counted = found[counts[each]] if each in counts else dict.fromkeys(keys, 1)
        numbers = {key: int(str(counted.get(key) or 0)) for key in keys}
        shown_values[each], exact[each] = _private_sums(each, numbers, cells)
    return output_rows(select, keys, shown_values, exact).values()


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
    value = as_type(total, kind)
    return average(value, count) if aggregate.function is Function.AVG else value


def as_type(value: Fraction | None, kind: ColumnType) -> Scalar:
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


def output_rows(
    select: Select,
    keys: Iterable[Key],
    shown: Mapping[Aggregate, Mapping[Key, Scalar]],
    exact: Mapping[Aggregate, Totals],
) -> dict[Key, tuple[Scalar, ...]]:
    """What a select shows of these cells; what combines private sums, from their exact values."""
    return {
        key: tuple(
            _combination_value(select, output, key, shown, exact)
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


def _combination_value(
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

    return as_type(exact_value(output.expression, number), output.expression.type)


# What aggregates come to in a scan --------------------------------------------------------------


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


# The scans of one statement ---------------------------------------------------------------------


KEYS = (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.BOOLEAN, ColumnType.DECIMAL)
"""Types of keys whose values come back from an engine as they went in."""

Found = dict[Place, dict[Key, CellTally]]


@dataclass(frozen=True, eq=False, repr=False)
class Scanned:
    """The sums of a statement, as they are decided about, and its answer if that was asked for."""

    sums: tuple[PlainSum, ...]
    answer: StatementAnswer | None


@dataclass(frozen=True)
class RiddenColumn:
    """A column of a select that shows sums or averages of one private column of the table."""

    select: Select
    aggregate: Aggregate
    column: int


def ridden_columns(statement: Statement, names: Sequence[str]) -> list[RiddenColumn] | None:
    """The private columns of a statement, if scans can decide about all of them.

    Raises Refused where the statement shows anything that is not decided before it is answered.
    """
    found = []
    for column in secret_columns(statement, names):
        term = _private_term(column)
        if term is None or term.unknown is None or not isinstance(column, SumColumn):
            return None
        place = names.index(term.unknown.column)
        found.append(RiddenColumn(column.select, column.aggregates[0], place))
    return found or None


def _private_term(column: SecretColumn) -> Term | None:
    """The number that a column adds up, each record of a predicate once; None for all else."""
    if not isinstance(column, SumColumn) or len(column.aggregates) != 1:
        return None
    (aggregate,) = column.aggregates
    form = linear_form(aggregate, wide=True) or ()
    terms = [each for each in form if each.unknown is not None]
    if aggregate.joins or len(terms) != 1 or any(key.type not in KEYS for key in aggregate.keys):
        return None
    (term,) = terms
    plain = term.coefficient == ONE and len(form) <= 2
    everybody = {each.predicate for each in form} == {simplify(aggregate.predicate)}
    return term if plain and everybody else None


def _summand(aggregate: Aggregate) -> tuple[ColumnRef, Expression | None]:
    """The private column that a plain sum adds up, and what is added to it in every row."""
    (column,) = (ref for ref in columns_of(aggregate.argument or ONE) if ref.private)
    terms = linear_form(aggregate, wide=True) or ()
    public = [each.coefficient for each in terms if each.unknown is None]
    return column, public[0] if public else None


def _arguments(index: int, aggregate: Aggregate) -> Iterator[tuple[str, Expression]]:
    """What of each row is added up; of a private number the column itself, and an offset."""
    if is_private_sum(aggregate):
        column, offset = _summand(aggregate)
        yield f"a{index}", column
        if offset is not None:
            yield f"o{index}", offset
    elif aggregate.argument is not None:
        yield f"a{index}", aggregate.argument


class Scan:
    """Runs the scans of one statement."""

    def __init__(
        self,
        statement: Statement,
        columns: Sequence[RiddenColumn],
        table: FingerprintedTable,
        also: Names,
    ) -> None:
        """`also` are records, beside the sample, of which is asked whether they are in a cell."""
        self._statement, self._columns = statement, columns
        self._table, self._also = table, also
        self._secret = {_place(each.aggregate): each.aggregate for each in columns}

    def read_sums(self) -> Scanned:
        """The sums alone, without reading anything private."""
        found = {place: self._read(each, ())[1] for place, each in self._secret.items()}
        selects = {each.select for each in self._columns if each.select.having != TRUE}
        shown = {each: shown_keys(each, self._table.source) for each in selects}
        return Scanned(self._sums(found, shown), None)

    def answer(self) -> Scanned:
        """The sums and the answer together."""
        selects, wanted = self._statement.selects, self._statement.aggregates
        riding = [each for each in wanted if self._rides(each)]
        unscanned = [each for each in wanted if not self._rides(each)]
        unscanned += [
            presence(each) for each in selects if _place(presence(each)) not in self._secret
        ]
        results = dict(zip(unscanned, answers(unscanned, self._table.source), strict=True))
        found: Found = {}
        for batch in ([riding[i] for i in each] for each in batches(riding)):
            read, found[_place(batch[0])] = self._read(batch[0], batch)
            results |= read
        cells = [shown_rows(each, _keys_there(each, found, results), results) for each in selects]
        shown = {each: set(some) for each, some in zip(selects, cells, strict=True)}
        names = tuple(output.name for output in selects[0].outputs)
        answer = StatementAnswer(names, tuple(row for some in cells for row in some.values()))
        return Scanned(self._sums(found, shown), answer)

    def _rides(self, aggregate: Aggregate) -> bool:
        """Whether it is computed in a scan that decides."""
        return aggregate.function in RIDING and _place(aggregate) in self._secret

    def _sums(self, found: Found, shown: dict[Select, set[Key]]) -> tuple[PlainSum, ...]:
        """One for each cell that is shown and has somebody in it."""
        sums = {}
        for each in self._columns:
            for key, cell in found[_place(each.aggregate)].items():
                hidden = each.select.having != TRUE and key not in shown[each.select]
                if cell.numbers and not hidden:
                    inside = _cell_predicate(each.aggregate, key)
                    sums[each.column, inside] = PlainSum(
                        self._table, each.column, inside, cell.numbers, cell.members, self._also
                    )
        return tuple(sums.values())

    # One scan -----------------------------------------------------------------------------------

    def _read(
        self, first: Aggregate, batch: Sequence[Aggregate]
    ) -> tuple[dict[Aggregate, ShownCells], dict[Key, CellTally]]:
        """Results that share predicate and keys with the first, and the records behind them."""
        place = _place(first)
        cells = self._table.known_cells(place)
        if cells is not None and not batch:
            return {}, self._with_others(cells, first)
        frame = self._table.source.read(self._sql(first, batch, cells is None))
        keys = _keys_of(frame, len(first.keys))
        if cells is None:
            cells = _cells(keys, frame)
            self._table.check(each.members for each in cells.values())
            self._table.keep(place, cells)
        shown = {
            each: dict(zip(keys, self._aggregate_values(i, each, frame, keys), strict=True))
            for i, each in enumerate(batch)
        }
        return shown, self._with_others(cells, first)

    def _aggregate_values(
        self, index: int, aggregate: Aggregate, frame: Frame, keys: Sequence[Key]
    ) -> Iterable[Scalar]:
        """What an aggregate comes to in each cell; private numbers are added up exactly."""
        if not is_private_sum(aggregate):
            return shown_values(index, aggregate, frame)
        column, offset = _summand(aggregate)
        offsets = [0] * len(keys) if offset is None else values(frame[f"o{index}"])
        if column.type is ColumnType.DOUBLE:
            found = self._sums_of_doubles(aggregate, column)
            sums: list[Any] = [found.get(key) for key in keys]
        else:
            sums = values(frame[f"r{index}"])
        totals = (
            None if s is None else exact(s) + exact(o) for s, o in zip(sums, offsets, strict=True)
        )
        counts = values(frame["n"]) if aggregate.function is Function.AVG else [1] * len(keys)
        return [result(aggregate, t, int(str(n))) for t, n in zip(totals, counts, strict=True)]

    def _sums_of_doubles(self, aggregate: Aggregate, column: ColumnRef) -> dict[Key, float]:
        """Sums that are rounded once: an engine rounds at every step, in an order of its own."""
        keys = {f"k{i}": key for i, key in enumerate(aggregate.keys)}
        inner = rows(self._table.source, (), aggregate.predicate, {**keys, "a": column})
        frame = self._table.source.read(inner)
        numbers = frame["a"].values[~frame["a"].missing]
        if not keys:
            return {(): fsum(numbers.tolist())} if len(numbers) else {}
        cells: dict[Key, list[float]] = defaultdict(list)
        present_keys = [
            key
            for key, gone in zip(_keys_of(frame, len(keys)), frame["a"].missing, strict=True)
            if not gone
        ]
        for key, number in zip(present_keys, numbers.tolist(), strict=True):
            cells[key].append(number)
        return {key: fsum(cell_numbers) for key, cell_numbers in cells.items()}

    def _sql(self, first: Aggregate, batch: Sequence[Aggregate], deciding: bool) -> str:
        keys = {f"k{i}": key for i, key in enumerate(first.keys)}
        arguments = dict(part for i, each in enumerate(batch) for part in _arguments(i, each))
        inner = rows(self._table.source, (), first.predicate, {**keys, **arguments})
        results = dict(pair for i, each in enumerate(batch) for pair in sql_results(i, each))
        results |= {name: f"sum({name})" for name in arguments if name.startswith("o")}
        if deciding:
            inner, results = (
                self._table.with_numbers(inner, [*keys, *arguments]),
                results | self._extra(),
            )
        return group_by(inner, list(keys), results)

    def _extra(self) -> dict[str, str]:
        """What the decision needs of a cell."""
        return {"t": "sum(v)", "m": _list_numbers_sql(f" FILTER (WHERE v < {self._table.below})")}

    def _with_others(self, cells: dict[Key, CellTally], first: Aggregate) -> dict[Key, CellTally]:
        """The cells with the further records that are in them."""
        if not len(self._also):
            return cells
        also, nobody = self._also_there(first), _numbers(None)
        return {
            key: CellTally(cell.numbers, np.append(cell.members, also.get(key, nobody)))
            for key, cell in cells.items()
        }

    def _also_there(self, first: Aggregate) -> dict[Key, Names]:
        """Which of the further records are in each cell."""
        keys = {f"k{i}": key for i, key in enumerate(first.keys)}
        inner = rows(self._table.source, (), first.predicate, keys)
        numbered = self._table.with_numbers(inner, list(keys))
        chosen = f"SELECT * FROM ({numbered}) AS c WHERE {among(self._also)}"
        frame = self._table.source.read(group_by(chosen, list(keys), {"m": _list_numbers_sql()}))
        found = _keys_of(frame, len(keys))
        return {key: _numbers(m) for key, m in zip(found, values(frame["m"]), strict=True)}


def _cells(keys: Sequence[Key], frame: Frame) -> dict[Key, CellTally]:
    totals, members = (values(frame[name]) for name in ("t", "m"))
    return {
        key: CellTally(_whole(t), _numbers(m))
        for key, t, m in zip(keys, totals, members, strict=True)
    }


def _keys_of(frame: Frame, count: int) -> list[Key]:
    """The keys of each row of a frame."""
    if not count:
        return [()]
    return list(zip(*(values(frame[f"k{i}"]) for i in range(count)), strict=True))


def _place(aggregate: Aggregate) -> Place:
    return aggregate.joins, aggregate.predicate, aggregate.keys


def _keys_there(
    select: Select, found: Found, results: dict[Aggregate, ShownCells]
) -> Iterable[Key]:
    """The cells that a select has."""
    place = _place(presence(select))
    return found[place] if place in found else results[presence(select)]


def _cell_predicate(aggregate: Aggregate, key: Key) -> Expression:
    """The records of a cell, by a predicate of their own."""
    same = (
        Call(Operation.SAME, (each, Literal(value, each.type)), ColumnType.BOOLEAN)
        for each, value in zip(aggregate.keys, key, strict=True)
    )
    return all_of(aggregate.predicate, *same)


def _list_numbers_sql(chosen: str = "") -> str:
    """Numbers one after the other, as text; an engine sends no lists."""
    return f"array_to_string(array_agg(v){chosen}, ' ')"


def _numbers(text: Scalar) -> Names:
    """Numbers written one after the other."""
    return np.sort(np.array(str(text).split() if text is not None else [], np.int64))


def _whole(number: Any) -> int:
    return 0 if number is None else int(number)
