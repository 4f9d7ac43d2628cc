"""Rows that a log shows as they are: whose values these are, as far as that follows.

Rule       Everybody knows which records the public part of a condition selects. Those of them whose
           rows look alike in what is public are a class. Where all rows of a class are shown, and
           are seen to be all of it, its values are known, though not in which order: one of them
           follows exactly if it is the same in the whole class, for any two may be exchanged.
Order      Rows that stand in the order of public columns show these columns, if everybody knows
           which rows there are. LIMIT leaves out rows that come later, and, of those that tie with
           the first one left out, nobody knows which.
Secrets    Where private columns choose the rows, a class is all there if as many rows of it are
           shown as it has. Rows that are shown once do not say how many they are, so only somebody
           who is alone in a class is known to be there.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from casemate.published.people import People
from casemate.published.shown import presence
from casemate.published.statements import (
    Publication,
    ReadOut,
    SecretRows,
    ShownColumn,
    secret_rows,
    shown_columns,
)
from casemate.query import Aggregate, Function, Ordering, Output, Projection, Select, Statement
from casemate.query.engines import answers, rows, values
from casemate.query.language import (
    NUMBERS,
    Call,
    ColumnRef,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
    all_of,
    conjuncts,
    private_columns,
)
from casemate.query.records import affine, factorise, possible_values
from casemate.table import ColumnType, Role
from casemate.table.sources import Frame, Series, Source

Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]

MAX_IMPLIED_EQUATIONS = 500
"""Equations up to which what rows say joins the others, one for each class of rows."""

STEPS = (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY)


@dataclass(frozen=True)
class ReadValue:
    """A value that a statement shows: at which position, and how many rows look like its own.

    `cell` is what the row shows of public columns.
    """

    place: int
    column: str
    value: Scalar = field(repr=False)
    cell: tuple[tuple[str, Scalar], ...] | None = field(repr=False)
    alike: int


@dataclass(frozen=True, eq=False, repr=False)
class RowsRead:
    """What a statement that shows rows says of single records.

    `columns` are the private ones that it shows as they are, `selected` how many records it may be
    about, and `unnamed` of how many of them a value is shown, and not whose it is. It says no more
    than `values` where it is `whole`.
    """

    query: int
    columns: tuple[str, ...]
    selected: int
    unnamed: int
    values: tuple[ReadValue, ...]
    whole: bool
    some: bool  # not all of them are shown, and nobody knows which
    secret: bool  # private columns choose them
    disputed: bool  # the log gives another answer than the table


def determined_column(expression: Expression) -> str | None:
    """The private column whose value follows from what an expression shows, if that is not NULL."""
    if isinstance(expression, ColumnRef):
        return expression.column.name if expression.private else None
    if not isinstance(expression, Call) or len(private_columns(expression)) != 1:
        return None
    if _is_whole_step(expression):
        return next(filter(None, map(determined_column, expression.arguments)), None)
    found = affine(expression)
    if found is None or not all(isinstance(part, Literal) for part in found):
        return None
    slope = found[0]
    return min(private_columns(expression)) if isinstance(slope, Literal) and slope.value else None


def _is_whole_step(call: Call) -> bool:
    """A step from one whole number to another, exact wherever it is not NULL."""
    constants = [each for each in call.arguments if isinstance(each, Literal)]
    whole = all(each.type is ColumnType.INTEGER for each in (call, *call.arguments))
    return whole and call.operation in STEPS and len(constants) == 1 and bool(constants[0].value)


def rows_read(read: ReadOut, people: People, source: Source) -> RowsRead:
    """Whose values a statement gives away by its rows alone."""
    return _Rows(read, people, source).found()


class _Rows:
    """The rows that a statement may show, as the custodian sees them."""

    def __init__(self, read: ReadOut, people: People, source: Source) -> None:
        self._read, self._people, rows_ = read, people, read.rows
        self._values: dict[str, list[Scalar]] = {}
        self._public = [each for each in rows_.outputs if not private_columns(each.expression)]
        self._private = [each for each in rows_.outputs if private_columns(each.expression)]
        self.secret = bool(private_columns(rows_.predicate))
        self._frame = self._scan(rows_, source)
        self._places = np.searchsorted(people.records, self._frame["r"].values).astype(np.int64)
        self._count = len(self._places)
        self._selected = np.ones(self._count, np.bool_)
        if self.secret:
            chosen = self._frame["s"]
            self._selected = chosen.values.astype(np.bool_) & ~chosen.missing

    def _scan(self, shown: Projection, source: Source) -> Frame:
        """What all rows show that the public part of the condition selects."""
        parts = conjuncts(shown.predicate)
        public = all_of(*(each for each in parts if not private_columns(each)))
        chosen = all_of(*(each for each in parts if private_columns(each)))
        own = {i: _own(output.expression) for i, output in enumerate(self._private)}
        asked: dict[str, Expression] = {
            **{f"p{i}": each.expression for i, each in enumerate(self._public)},
            **{f"v{i}": column for i, column in own.items() if column is not None},
            **{f"e{i}": each.expression for i, each in enumerate(self._private) if own[i]},
            **{f"o{i}": each.expression for i, each in enumerate(shown.order)},
            **({"s": chosen} if self.secret else {}),
        }
        return source.read(rows(source, shown.joins, public, asked))

    def found(self) -> RowsRead:
        """What follows."""
        disputed = self._disputed()
        sure, some = self._surely_shown()
        classes, alike, named = self._classes(sure & (not disputed))
        shown: dict[tuple[int, str], ReadValue] = {}
        unnamed: set[int] = set()
        columns: dict[str, None] = {}
        for i, output in enumerate(self._private):
            name = determined_column(output.expression)
            if name is None:
                continue
            columns[name] = None
            follows = named & self._same(classes, i)
            owners = self._owners(name)
            for row in np.flatnonzero(follows).tolist():
                value, cell = self._column(f"v{i}")[row], self._cell(row)
                found = ReadValue(int(owners[row]), name, value, cell, int(alike[row]))
                shown.setdefault((found.place, name), found)
            unnamed |= set(owners[self._selected & ~follows].tolist())
        listed = tuple(shown[secret] for secret in sorted(shown))
        selected = len(np.unique(self._places[self._selected]))
        whole = not (self.secret or some or disputed or unnamed) and (
            selected == 0 or self._says_no_more(columns, listed)
        )
        return RowsRead(
            self._read.query,
            tuple(columns),
            selected,
            len(unnamed),
            listed,
            whole,
            some,
            self.secret,
            disputed,
        )

    def _disputed(self) -> bool:
        """Whether the log gives an answer that is not the one value which the table shows."""
        answer, row = self._read.answer, np.flatnonzero(self._selected)
        if answer is None:
            return False
        if len(row) != 1 or len(self._private) != 1 or self._public or "e0" not in self._frame:
            return True
        shown = self._column("e0")[int(row[0])]
        number = isinstance(shown, int | float) or hasattr(shown, "as_tuple")
        return not number or Fraction(shown) != Fraction(answer)  # type: ignore[arg-type]  # a number

    def _says_no_more(self, columns: dict[str, None], listed: Sequence[ReadValue]) -> bool:
        """Whether it shows nothing private but the values that are listed."""
        rows_ = self._read.rows
        order = private_columns(*(each.expression for each in rows_.order))
        read = all(determined_column(each.expression) for each in self._private)
        there = all(each.value is not None for each in listed)
        return read and there and not rows_.unread and order <= columns.keys()

    # Which rows, and in which classes ----------------------------------------------------------

    def _surely_shown(self) -> tuple[Flags, bool]:
        """The rows that are shown for certain, and whether there may be others."""
        rows_, nobody = self._read.rows, np.zeros(self._count, np.bool_)
        if rows_.partial:
            return nobody, True
        if rows_.limit is None or rows_.limit >= self._selected.sum():
            return self._selected, False
        ranks = [self._ranks(i, each) for i, each in enumerate(rows_.order)]
        if rows_.once or not ranks or any(each is None for each in ranks):
            return nobody, True
        chosen = np.flatnonzero(self._selected)
        codes, _ = factorise(
            [
                Series(each[chosen], np.zeros(len(chosen), np.bool_))
                for each in ranks
                if each is not None
            ],
            len(chosen),
        )
        first_left_out = np.sort(codes)[rows_.limit]
        nobody[chosen[codes < first_left_out]] = True
        return nobody, True

    def _ranks(self, which: int, ordering: Ordering) -> Codes | None:
        """Where each row stands by one expression of ORDER BY; None where numbers are none."""
        seen = self._column(f"o{which}")
        if any(isinstance(each, float) and math.isnan(each) for each in seen):
            return None
        there = sorted({each for each in seen if each is not None})
        rank: dict[Scalar, int] = {value: place for place, value in enumerate(there)}
        if ordering.descending:
            rank = {value: len(there) - 1 - place for value, place in rank.items()}
        rank[None] = -1 if ordering.nulls_first else len(there)
        return np.array([rank[each] for each in seen], np.int64)

    def _classes(self, sure: Flags) -> tuple[Codes, Codes, Flags]:
        """The class of each row, how many are in it, and whether it is known to be all there."""
        labels = [self._frame[f"p{i}"] for i in range(len(self._public))]
        labels += [self._frame[f"o{i}"] for i in range(len(_public_order(self._read.rows)))]
        classes, _ = factorise(labels, self._count)
        size = np.bincount(classes, minlength=1)
        complete = np.bincount(classes, weights=sure, minlength=1) == size
        if self.secret and self._read.rows.once:
            complete &= size == 1
        return classes, size[classes], complete[classes] & sure

    def _same(self, classes: Codes, which: int) -> Flags:
        """The rows in whose class all values are the same, and follow from what is shown."""
        shown, own = self._frame[f"e{which}"], self._frame[f"v{which}"]
        codes, _ = factorise([own], self._count)
        low = np.full(int(classes.max(initial=0)) + 1, self._count, np.int64)
        high = np.full_like(low, -1)
        np.minimum.at(low, classes, codes)
        np.maximum.at(high, classes, codes)
        computed = not isinstance(self._private[which].expression, ColumnRef)
        lost = shown.missing & computed  # an overflow, or a value that is missing: who knows
        broken = np.bincount(classes, weights=lost, minlength=len(low)) > 0
        same: Flags = ((low == high) & ~broken)[classes]
        return same

    # Single rows --------------------------------------------------------------------------------

    def _owners(self, column: str) -> Codes:
        """The position that stands for the person of each row, where the column is constant."""
        owners = self._people.owners(column)
        return self._places if owners is None else owners[self._places]

    def _column(self, name: str) -> list[Scalar]:
        """A column of the scan as Python values."""
        if name not in self._values:
            self._values[name] = values(self._frame[name])
        return self._values[name]

    def _cell(self, row: int) -> tuple[tuple[str, Scalar], ...] | None:
        """What a row shows that is public; an identifier is not."""
        public = ((i, o) for i, o in enumerate(self._public) if not _names_somebody(o.expression))
        return tuple((output.name, self._column(f"p{i}")[row]) for i, output in public) or None


def _public_order(shown: Projection) -> list[Expression]:
    """The public columns that rows are sorted by first, where everybody knows which rows."""
    if shown.once or shown.partial or private_columns(shown.predicate):
        return []
    order = (each.expression for each in shown.order)
    return list(takewhile(lambda each: not private_columns(each), order))


def _own(expression: Expression) -> Expression | None:
    """The private column that an expression shows."""
    name = determined_column(expression)
    found = (each for each in _columns(expression) if each.column.name == name and each.private)
    return next(found, None)


def _columns(expression: Expression) -> Iterator[ColumnRef]:
    if isinstance(expression, ColumnRef):
        yield expression
    elif isinstance(expression, Call):
        for each in expression.arguments:
            yield from _columns(each)


def _names_somebody(expression: Expression) -> bool:
    return any(each.column.role is Role.IDENTIFIER for each in _columns(expression))


# What rows say, as equations ----------------------------------------------------------------------
# Whoever sees the values of a class knows their sum, how many have each value of a category, and
# how many rows there are. These join the published numbers, so that it is found out what follows
# from rows and sums together.


def with_implied_sums(found: Publication, source: Source) -> Publication:
    """The publication with what its shown rows add up to, as far as those are few."""
    columns: list[ShownColumn] = []
    there: list[SecretRows] = []
    room = MAX_IMPLIED_EQUATIONS
    for each in found.read_out:
        statements = [] if each.answer is not None else list(_implied_statements(each.rows))
        counts = [presence(statement.selects[0]) for statement in statements]
        room -= sum(map(len, answers(counts, source)))
        for statement in statements if room >= 0 else ():
            read, refused = shown_columns(each.query, statement, None)
            columns += read
            there += [] if refused else secret_rows(each.query, statement)
    return replace(found, columns=(*found.columns, *columns), there=(*found.there, *there))


def _implied_statements(shown: Projection) -> Iterator[Statement]:
    """Aggregates that whoever sees the rows can compute, by what is public in them."""
    if shown.partial or shown.limit is not None:
        return
    outputs = [each for each in shown.outputs if not isinstance(each.expression, Literal)]
    public = {each: f"place {i}" for i, each in enumerate(_public_order(shown), start=1)}
    public |= {e.expression: e.name for e in outputs if not private_columns(e.expression)}
    owned = (each.expression for each in outputs if isinstance(each.expression, ColumnRef))
    private = dict.fromkeys(each for each in owned if each.private)
    count = Aggregate(Function.COUNT, None, shown.predicate, tuple(public), shown.joins)
    if private_columns(shown.predicate):
        yield _statement(count, public, shown, counted=not shown.once)
    for column in () if shown.once else private:
        if possible_values(column.column) is not None:
            keys = {**public, column: column.column.name}
            yield _statement(replace(count, keys=tuple(keys)), keys, shown)
        elif column.type in NUMBERS:
            total = replace(count, function=Function.SUM, argument=column)
            yield _statement(total, public, shown)


def _statement(
    aggregate: Aggregate, keys: dict[Expression, str], shown: Projection, counted: bool = True
) -> Statement:
    listed = [(i, key, name) for i, (key, name) in enumerate(keys.items())]
    named = [Output(n, KeyRef(i, key.type)) for i, key, n in listed if not _names_somebody(key)]
    kind = ColumnType.INTEGER if aggregate.argument is None else aggregate.argument.type
    title = "count" if aggregate.argument is None else _title(aggregate.argument)
    result = [Output(title, ResultRef(0, kind))] if counted else []
    select = Select((aggregate,), aggregate.keys, (*named, *result), shown.predicate, shown.joins)
    return Statement("", (select,))


def _title(argument: Expression) -> str:
    return argument.column.name if isinstance(argument, ColumnRef) else ""
