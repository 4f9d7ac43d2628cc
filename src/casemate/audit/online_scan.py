"""A statement's answer and what decides about it, in one scan.

Statements whose private columns are each a sum or an average of one private number, over records
that a public predicate chooses, are asked with two results more: the sum of the secret numbers of
the records in each cell, and which records of a small sample are there. The decision uses these
two alone; the answers beside them are dropped where it is a refusal.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casemate.audit.online_columns import SecretColumn, SumColumn, public_form, secret_columns
from casemate.audit.online_fingerprints import FingerprintedTable, among
from casemate.audit.online_questions import shown_keys
from casemate.audit.online_summed import PlainSum
from casemate.errors import Misconfigured
from casemate.query.aggregate import Aggregate, Function, Select, Statement
from casemate.query.answers import Answer, Key, answers, average, batches, values
from casemate.query.engine import grouped, rows, tables
from casemate.query.expression import (
    TRUE,
    Call,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    all_of,
)
from casemate.query.interpret import evaluate
from casemate.query.linear import ONE, Term, linear_form
from casemate.query.simplify import simplify
from casemate.solve.summed_space import Names
from casemate.table.schema import ColumnType
from casemate.table.source import Frame

ADDED = (Function.SUM, Function.AVG)
RIDING = (*ADDED, Function.COUNT)
KEYS = (ColumnType.INTEGER, ColumnType.TEXT, ColumnType.BOOLEAN, ColumnType.DECIMAL)
"""Types of keys whose values come back from an engine as they went in."""

Cells = dict[Key, Scalar]


@dataclass(frozen=True, eq=False, repr=False)
class Summed:
    """One cell of a scan: how many records, the sum of their numbers, and those of the sample."""

    size: int
    numbers: int
    members: Names


@dataclass(frozen=True, eq=False, repr=False)
class Scanned:
    """The sums of a statement, as they are decided about, and its answer if that was asked for."""

    sums: tuple[PlainSum, ...]
    answer: Answer | None


def ridden_columns(statement: Statement, names: Sequence[str]) -> list[int] | None:
    """The private columns that a statement adds up, if one scan can decide about all of it.

    Raises Refused where the statement shows anything else that is private.
    """
    columns = secret_columns(statement, names)
    terms = [_private_term(each) for each in columns]
    if not terms or any(each is None for each in terms):
        return None
    unknowns = [each.unknown for each in terms if each is not None and each.unknown is not None]
    return sorted({names.index(each.column) for each in unknowns})


def _private_term(column: SecretColumn) -> Term | None:
    """The number that a column adds up, each record of a predicate once; None for all else."""
    if not isinstance(column, SumColumn) or len(column.aggregates) != 1:
        return None
    (aggregate,) = column.aggregates
    terms = [each for each in linear_form(aggregate) or () if each.unknown is not None]
    if aggregate.joins or len(terms) != 1 or any(key.type not in KEYS for key in aggregate.keys):
        return None
    (term,) = terms
    plain = term.coefficient == ONE and term.predicate == simplify(aggregate.predicate)
    return term if plain else None


class Scan:
    """Runs the scans of one statement."""

    def __init__(
        self, statement: Statement, names: Sequence[str], table: FingerprintedTable, also: Names
    ) -> None:
        """`also` are records, beside the sample, of which is asked whether they are in a cell."""
        self._statement, self._table, self._also = statement, table, also
        found = [(each, _private_term(each)) for each in secret_columns(statement, names)]
        self._columns = [
            (column.select, column.aggregates[0], names.index(term.unknown.column))
            for column, term in found
            if isinstance(column, SumColumn) and term is not None and term.unknown is not None
        ]

    def decided_about(self) -> Scanned:
        """The sums alone, without reading anything private."""
        secret = list(dict.fromkeys(aggregate for _, aggregate, _ in self._columns))
        cells = [self._read(batch, False)[1] for batch in _together(secret)]
        found = dict(zip((_place(batch[0]) for batch in _together(secret)), cells, strict=True))
        selects = dict.fromkeys(select for select, *_ in self._columns)
        shown = {each: _shown(each, self._table) for each in selects if each.having != TRUE}
        return Scanned(self._sums(found, shown), None)

    def answered(self) -> Scanned:
        """The sums and the answer together."""
        wanted = [a for s in self._statement.selects for a in (_there(s), *s.aggregates)]
        secret = {_place(aggregate) for _, aggregate, _ in self._columns}
        results: dict[Aggregate, Cells] = {}
        found: dict[object, dict[Key, Summed]] = {}
        rest: list[Aggregate] = []
        for batch in _together(list(dict.fromkeys(wanted))):
            riding = [each for each in batch if each.function in RIDING]
            if _place(batch[0]) not in secret:
                rest += batch
                continue
            rest += [each for each in batch if each.function not in RIDING]
            read, found[_place(batch[0])] = self._read(riding, True)
            results |= read
        results |= zip(rest, answers(rest, self._table.source), strict=True)
        rows_shown = {each: _rows(each, results) for each in self._statement.selects}
        names = tuple(output.name for output in self._statement.selects[0].outputs)
        shown = {each: set(rows) for each, rows in rows_shown.items()}
        printed = [row for rows in rows_shown.values() for row in rows.values()]
        return Scanned(self._sums(found, shown), Answer(names, tuple(printed)))

    def _sums(
        self, found: dict[object, dict[Key, Summed]], shown: dict[Select, set[Key]]
    ) -> tuple[PlainSum, ...]:
        """One for each cell that is shown and has somebody in it."""
        sums = {}
        for select, aggregate, column in self._columns:
            for key, cell in found[_place(aggregate)].items():
                if cell.size and (select.having == TRUE or key in shown[select]):
                    inside = _cell_predicate(aggregate, key)
                    sums[column, inside] = PlainSum(
                        *(self._table, column, inside, cell.size, cell.numbers),
                        *(cell.members, self._also),
                    )
        return tuple(sums.values())

    # One scan -----------------------------------------------------------------------------------

    def _read(
        self, batch: Sequence[Aggregate], answered: bool
    ) -> tuple[dict[Aggregate, Cells], dict[Key, Summed]]:
        """Aggregates that share predicate and keys: their results, and the records behind them."""
        keys = {f"k{i}": key for i, key in enumerate(batch[0].keys)}
        asked = list(enumerate(batch)) if answered else []
        arguments = {f"a{i}": each.argument for i, each in asked if each.argument is not None}
        inner = rows(self._table.source, (), batch[0].predicate, {**keys, **arguments})
        numbered = self._table.numbered(inner, [*keys, *arguments])
        results = dict(result for i, each in asked for result in _results(i, each))
        frame = self._table.source.read(grouped(numbered, list(keys), results | self._extra()))
        self._check(frame)
        found = list(zip(*(values(frame[name]) for name in keys), strict=True)) if keys else [()]
        shown = {each: dict(zip(found, _shown_values(i, each, frame), strict=True)) for i, each in asked}
        return shown, self._summed(found, frame, batch[0])

    def _extra(self) -> dict[str, str]:
        """What the decision needs of a cell."""
        source = self._table.source
        everybody = f"(SELECT count(*) FROM {tables(source, ())})"
        return {
            "n": "count(*)",
            "t": "sum(v)",
            "m": f"string_agg(CAST(v AS VARCHAR), ' ') FILTER (WHERE v < {self._table.below})",
            "e": everybody,
        }

    def _check(self, frame: Frame) -> None:
        if any(int(each) != self._table.size for each in frame["e"].values.tolist()):
            raise Misconfigured(
                "the table's records are not those it had at first, and an audit is about one "
                "snapshot; start a new one"
            )

    def _summed(self, keys: Sequence[Key], frame: Frame, first: Aggregate) -> dict[Key, Summed]:
        sizes, totals, members = (values(frame[name]) for name in ("n", "t", "m"))
        also = self._also_there(first) if len(self._also) else {}
        return {
            key: Summed(_whole(n), _whole(t), np.append(_numbers(m), also.get(key, _numbers(None))))
            for key, n, t, m in zip(keys, sizes, totals, members, strict=True)
        }

    def _also_there(self, first: Aggregate) -> dict[Key, Names]:
        """Which of the further records are in each cell."""
        keys = {f"k{i}": key for i, key in enumerate(first.keys)}
        inner = rows(self._table.source, (), first.predicate, keys)
        numbered = self._table.numbered(inner, list(keys))
        chosen = f"SELECT * FROM ({numbered}) AS c WHERE {among(self._also)}"
        listed = {"m": "string_agg(CAST(v AS VARCHAR), ' ')"}
        frame = self._table.source.read(grouped(chosen, list(keys), listed))
        found = list(zip(*(values(frame[name]) for name in keys), strict=True)) if keys else [()]
        return {key: _numbers(m) for key, m in zip(found, values(frame["m"]), strict=True)}


def _together(aggregates: Sequence[Aggregate]) -> list[list[Aggregate]]:
    return [[aggregates[i] for i in batch] for batch in batches(aggregates)]


def _place(aggregate: Aggregate) -> object:
    """What aggregates of one scan share."""
    return aggregate.joins, aggregate.predicate, aggregate.keys


def _there(select: Select) -> Aggregate:
    return Aggregate(Function.COUNT, None, select.predicate, select.keys, select.joins)


def _shown(select: Select, table: FingerprintedTable) -> set[Key]:
    return shown_keys(select, table.source)


def _cell_predicate(aggregate: Aggregate, key: Key) -> Expression:
    """The records of a cell, by a predicate of their own."""
    same = (
        Call(Operation.SAME, (each, Literal(value, each.type)), ColumnType.BOOLEAN)
        for each, value in zip(aggregate.keys, key, strict=True)
    )
    return all_of(aggregate.predicate, *same)


def _numbers(text: Scalar) -> Names:
    """Numbers written one after the other."""
    return np.array(str(text).split() if text is not None else [], np.int64)


def _whole(number: Any) -> int:
    return 0 if number is None else int(number)


# Results, as they are shown -----------------------------------------------------------------------


def _results(index: int, aggregate: Aggregate) -> Iterator[tuple[str, str]]:
    """The SQL aggregates that one of ours is computed from."""
    if aggregate.function in ADDED:
        yield f"r{index}", f"sum(a{index})"
    if aggregate.argument is not None and aggregate.function is not Function.SUM:
        yield f"n{index}", f"count(a{index})"


def _shown_values(index: int, aggregate: Aggregate, frame: Frame) -> Iterable[Scalar]:
    if aggregate.function is Function.COUNT:
        return values(frame["n" if aggregate.argument is None else f"n{index}"])
    totals = values(frame[f"r{index}"])
    if aggregate.function is Function.AVG:
        return map(average, totals, values(frame[f"n{index}"]))
    whole = aggregate.argument is not None and aggregate.argument.type is ColumnType.INTEGER
    return [_whole(each) if whole and each is not None else each for each in totals]


def _rows(select: Select, results: dict[Aggregate, Cells]) -> dict[Key, tuple[Scalar, ...]]:
    """What a select shows, row by row; ORDER BY and LIMIT are read as if absent."""
    printed = {}
    for key in results[_there(select)]:
        read = _reader(key, [_result(each, results[each], key) for each in select.aggregates])
        if evaluate(select.having, read) is True:
            printed[key] = tuple(evaluate(each.expression, read) for each in select.outputs)
    return printed


def _result(aggregate: Aggregate, cells: Cells, key: Key) -> Scalar:
    counts = aggregate.function in (Function.COUNT, Function.COUNT_DISTINCT)
    return cells.get(key, 0 if counts else None)


def _reader(key: Key, results: Sequence[Scalar]) -> Callable[[Any], Scalar]:
    def read(reference: KeyRef | ResultRef) -> Scalar:
        return key[reference.index] if isinstance(reference, KeyRef) else results[reference.index]

    return read
