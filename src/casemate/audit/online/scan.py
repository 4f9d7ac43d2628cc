"""A statement's answer and what decides about it, in one scan.

Statements whose private columns are each a sum or an average of one private number, over records
that a public predicate chooses, are asked with two results more: the sum of the secret numbers of
the records in each cell, and which records of a small sample are there. The decision uses these
two alone; the answers beside them are dropped where it is a refusal.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from casemate.audit.online.answers import (
    RIDING,
    ShownCells,
    is_private_sum,
    result,
    shown_values,
    sql_results,
)
from casemate.audit.online.columns import SecretColumn, SumColumn, secret_columns
from casemate.audit.online.fingerprints import CellTally, FingerprintedTable, Place, among
from casemate.audit.online.questions import shown_keys
from casemate.audit.online.summed_space import Names
from casemate.audit.online.sums import PlainSum
from casemate.published import exact, presence
from casemate.query import Aggregate, Function, Select, Statement
from casemate.query.engines import (
    Key,
    StatementAnswer,
    answers,
    batches,
    grouped,
    rows,
    shown_rows,
    values,
)
from casemate.query.language import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
    columns_of,
    simplify,
)
from casemate.query.records import ONE, Term, linear_form
from casemate.table import ColumnType
from casemate.table.sources import Frame

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


def _added(aggregate: Aggregate) -> tuple[ColumnRef, Expression | None]:
    """The private column that a plain sum adds up, and what is added to it in every row."""
    (column,) = (ref for ref in columns_of(aggregate.argument or ONE) if ref.private)
    terms = linear_form(aggregate, wide=True) or ()
    public = [each.coefficient for each in terms if each.unknown is None]
    return column, public[0] if public else None


def _arguments(index: int, aggregate: Aggregate) -> Iterator[tuple[str, Expression]]:
    """What of each row is added up; of a private number the column itself, and an offset."""
    if is_private_sum(aggregate):
        column, offset = _added(aggregate)
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

    def decided_about(self) -> Scanned:
        """The sums alone, without reading anything private."""
        found = {place: self._read(each, ())[1] for place, each in self._secret.items()}
        selects = {each.select for each in self._columns if each.select.having != TRUE}
        shown = {each: shown_keys(each, self._table.source) for each in selects}
        return Scanned(self._sums(found, shown), None)

    def answered(self) -> Scanned:
        """The sums and the answer together."""
        selects, wanted = self._statement.selects, self._statement.aggregates
        riding = [each for each in wanted if self._rides(each)]
        rest = [each for each in wanted if not self._rides(each)]
        rest += [presence(each) for each in selects if _place(presence(each)) not in self._secret]
        results = dict(zip(rest, answers(rest, self._table.source), strict=True))
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
        known = self._table.known(place)
        if known is not None and not batch:
            return {}, self._with_others(known, first)
        frame = self._table.source.read(self._written(first, batch, known is None))
        keys = _keys_of(frame, len(first.keys))
        if known is None:
            known = _cells(keys, frame)
            self._table.check(each.members for each in known.values())
            self._table.keep(place, known)
        shown = {
            each: dict(zip(keys, self._shown(i, each, frame, keys), strict=True))
            for i, each in enumerate(batch)
        }
        return shown, self._with_others(known, first)

    def _shown(
        self, index: int, aggregate: Aggregate, frame: Frame, keys: Sequence[Key]
    ) -> Iterable[Scalar]:
        """What an aggregate comes to in each cell; private numbers are added up exactly."""
        if not is_private_sum(aggregate):
            return shown_values(index, aggregate, frame)
        column, offset = _added(aggregate)
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
        there = [
            key
            for key, gone in zip(_keys_of(frame, len(keys)), frame["a"].missing, strict=True)
            if not gone
        ]
        for key, number in zip(there, numbers.tolist(), strict=True):
            cells[key].append(number)
        return {key: fsum(some) for key, some in cells.items()}

    def _written(self, first: Aggregate, batch: Sequence[Aggregate], deciding: bool) -> str:
        keys = {f"k{i}": key for i, key in enumerate(first.keys)}
        arguments = dict(part for i, each in enumerate(batch) for part in _arguments(i, each))
        inner = rows(self._table.source, (), first.predicate, {**keys, **arguments})
        results = dict(pair for i, each in enumerate(batch) for pair in sql_results(i, each))
        results |= {name: f"sum({name})" for name in arguments if name.startswith("o")}
        if deciding:
            inner, results = (
                self._table.numbered(inner, [*keys, *arguments]),
                results | self._extra(),
            )
        return grouped(inner, list(keys), results)

    def _extra(self) -> dict[str, str]:
        """What the decision needs of a cell."""
        return {"t": "sum(v)", "m": _listed(f" FILTER (WHERE v < {self._table.below})")}

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
        numbered = self._table.numbered(inner, list(keys))
        chosen = f"SELECT * FROM ({numbered}) AS c WHERE {among(self._also)}"
        frame = self._table.source.read(grouped(chosen, list(keys), {"m": _listed()}))
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


def _listed(chosen: str = "") -> str:
    """Numbers one after the other, as text; an engine sends no lists."""
    return f"array_to_string(array_agg(v){chosen}, ' ')"


def _numbers(text: Scalar) -> Names:
    """Numbers written one after the other."""
    return np.sort(np.array(str(text).split() if text is not None else [], np.int64))


def _whole(number: Any) -> int:
    return 0 if number is None else int(number)
