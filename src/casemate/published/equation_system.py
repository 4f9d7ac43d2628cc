"""A publication as equations: one row for each published number, one column for each secret.

A private number of a record is one column. A private category is one column for each declared
value but the last, because its 0/1 unknowns add up to 1: the last is 1 less the others. A column
of the table that is constant for each person has these once for the person and not for each row:
they stand at the person's first row, and their coefficient is that of all rows together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound, System
from casemate.published.cell_secrets import Secrets, integer_row
from casemate.published.people import People, check_constant
from casemate.published.public_absence import Absent, lineage_with_absence
from casemate.published.shown import (
    ShownCell,
    ShownForm,
    Span,
    all_shown_cells,
    empty_keys,
    exact,
    presence,
    shown_value,
    span,
)
from casemate.published.statements import SecretRows, ShownColumn, all_filled, is_public
from casemate.query import Aggregate, Function, Select
from casemate.query.engines import Key
from casemate.query.language import Scalar
from casemate.query.records import (
    Category,
    Cut,
    Unknown,
    counting,
)
from casemate.table import Policy
from casemate.table.sources import Source

# Between which numbers the sums behind a shown number lie ---------------------------------------


def target(column: ShownColumn, cell: ShownCell, divisor: Fraction) -> Span:
    """The weighted sums of a cell, over `divisor`, as far as what it shows tells them."""
    return printed_span(column, cell, divisor).less(column.form.constant / divisor)


def printed_span(column: ShownColumn, cell: ShownCell, divisor: Fraction) -> Span:
    """The numbers for which a cell shows what it shows."""
    form = column.form
    given = column.answer(cell.key)
    if given is not None:
        return span(form, Fraction(given), column.within)
    if form.rounded:
        shown = exact(shown_value(column.output.expression, column.select, cell))
        return span(form, _on_grid(shown, form))
    sums = (w * exact(cell.sums[i]) / cell.divisors[i] for i, w in form.weights)
    value = (sum(sums, Fraction(0)) + form.constant) / divisor
    return Span(value, value)


def _on_grid(shown: Fraction, form: ShownForm) -> Fraction:
    """The number that was meant, where a double stands for a decimal."""
    unit = 2 * form.half_unit
    return unit * round(shown / unit) if unit else shown


# Equations --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where an equation was published: the statement, the column, and the keys of its cell."""

    query: int
    column: str
    key: tuple[tuple[str, Scalar], ...] | None = field(repr=False)  # may be of private columns
    select: Select | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Equations:
    """The system, and what its rows and columns stand for.

    Row i says low[i] <= (coefficients of row i) . x <= high[i]; the two are equal unless the
    number was rounded, or only something at least so large is known (high is None). `open_ends`
    says which of the two is not itself possible. `factor[i]` is what the published number was
    multiplied by to make the coefficients whole, after `public[i]` of it was taken off that
    everybody knows. Column j is the secret `unknowns[unknown[j]]` of `records[record[j]]`, or of
    all rows of that record's person where the secret is constant for each person.
    """

    system: System
    low: tuple[Fraction, ...]
    high: tuple[Bound, ...]
    open_ends: tuple[tuple[bool, bool], ...]
    factor: tuple[Fraction, ...]
    public: tuple[Fraction, ...]
    places: tuple[Place, ...]
    records: NDArray[Any]
    record: NDArray[np.int64]
    unknown: NDArray[np.int64]
    unknowns: tuple[Unknown, ...]
    people: People

    def __repr__(self) -> str:
        """How many there are; never what they come to."""
        return f"<Equations: {self.system.rows} about {self.system.columns} secrets>"


@dataclass(frozen=True)
class _Row:
    """One equation while it is being put together: integer coefficients of coded secrets."""

    place: Place
    codes: NDArray[np.int64]
    values: NDArray[Any]
    low: Fraction
    high: Bound
    open_ends: tuple[bool, bool]
    factor: Fraction
    public: Fraction = Fraction(0)


def equations(
    columns: Sequence[ShownColumn],
    policy: Policy,
    source: Source,
    there: Sequence[SecretRows] = (),
    absent: Absent | None = None,
) -> Equations:
    """Every published number of the columns as an equation in the records' secrets.

    `there` are selects of which secrets decide what rows they have, `absent` says of which records
    everybody knows that they have no value.
    """
    counts = [presence(each.select) for each in there]
    needed = list(dict.fromkeys([a for c in columns for a in _behind(c)] + counts))
    found = lineage_with_absence(needed, source, absent or {})
    people = People.of(found.records, policy, source)
    check_constant({each.column for each in found.unknowns}, people, policy, source)
    secrets = Secrets(found, needed, policy, people)
    read = [each.select for each in columns if not _is_given(each)]
    shown = all_shown_cells(dict.fromkeys([*read, *(each.select for each in there)]), source)
    rows = [row for c in columns for row in _column_rows(c, secrets, shown.get(c.select, []))]
    rows += [row for each in there for row in _rows_there(each, secrets, shown[each.select])]
    return _assemble(rows, secrets, policy)


def _behind(column: ShownColumn) -> list[Aggregate]:
    """The sums that a column adds up, and the secret counts that it also tells about."""
    sums = [column.select.aggregates[index] for index, _ in column.form.weights]
    return [*sums, *(each for each in (column.below, column.empty) if each is not None)]


# The rows of one column -----------------------------------------------------------------------


def _column_rows(column: ShownColumn, secrets: Secrets, there: Sequence[ShownCell]) -> list[_Row]:
    """An equation for each cell that the column shows, and what its being NULL or not tells."""
    rows = []
    for cell in _cells(column, there):
        place = place_of(column.query, column.select, column.output.name, cell.key)
        index = column.form.divisor
        divisor = Fraction(1) if index is None else exact(cell.sums[index])
        missing = _missing_counts(column, cell)
        null = not divisor or (bool(missing) and not column.told)
        public = any(map(is_public, missing)) or (not divisor and column.below is None)
        if null and public:
            continue  # whatever the secrets are
        if not null and column.below is None:
            weights = [
                (column.select.aggregates[i], cell.key, weight / cell.divisors[i] / divisor)
                for i, weight in column.form.weights
            ]
            row = _row(place, weights, target(column, cell, divisor), secrets)
            rows.append(replace(row, public=row.public + column.form.constant / divisor))
        elif not null:
            rows += _ratio_rows(place, column, cell, printed_span(column, cell, divisor), secrets)
        if column.empty is not None:
            rows += _count_rows(place, column.empty, cell.key, secrets, empty=null)
    return rows


def _missing_counts(column: ShownColumn, cell: ShownCell) -> list[Aggregate]:
    """The counts that are 0 where a sum of the column is NULL in a cell."""
    missing = (index for index, _ in column.form.weights if cell.sums[index] is None)
    return [counting(column.select.aggregates[index]) for index in missing]


def _cells(column: ShownColumn, there: Sequence[ShownCell]) -> Iterator[ShownCell]:
    """The cells of a column: the table's, or those for which an answer was given.

    Of the latter some may be empty in the table of somebody who does not have the secrets. Sums
    of nothing are 0 where COALESCE(..., 0) shows that, and it was secret.
    """
    shown = {cell.key: cell for cell in there}
    nothing = len(column.select.aggregates)
    for key in shown if column.answers is None else column.answers:
        cell = shown.get(key, ShownCell(key, (None,) * nothing, (1,) * nothing))
        secret = not all(map(is_public, _missing_counts(column, cell)))
        if secret and all_filled(column.output.expression):
            cell = replace(cell, sums=tuple(0 if each is None else each for each in cell.sums))
        yield cell


def _is_given(column: ShownColumn) -> bool:
    """Whether all that is needed of a column's cells was given: nothing is divided by a count."""
    functions = {column.select.aggregates[index].function for index, _ in column.form.weights}
    return column.told and column.form.divisor is None and Function.AVG not in functions


def _ratio_rows(
    place: Place, column: ShownColumn, cell: ShownCell, seen: Span, secrets: Secrets
) -> Iterator[_Row]:
    """What a quotient by a secret count tells: at least so much, and at most so much, of it."""
    count = column.below
    if count is None:
        return
    for sign, end in ((1, seen.low), (-1, seen.high)):
        sums = [
            (column.select.aggregates[index], cell.key, sign * weight)
            for index, weight in column.form.weights
        ]
        averaged = column.form.divisor is None
        share = end - column.form.constant if averaged else end
        low = Fraction(0) if averaged else -sign * column.form.constant
        is_open = seen.open_low if sign > 0 else seen.open_high
        weights = [*sums, (count, cell.key, -sign * share)]
        yield replace(_row(place, weights, Span(low, low, is_open), secrets), high=None)


def _rows_there(rows: SecretRows, secrets: Secrets, there: Sequence[ShownCell]) -> list[_Row]:
    """That somebody is in each row that is shown, and nobody in those that could be and are not."""
    counted, select = presence(rows.select), rows.select
    absent = empty_keys(select, there, secrets.keys([counted]))
    present = [] if rows.counted else [cell.key for cell in there]
    return [
        row
        for keys, empty in ((present, False), (absent, True))
        for key in keys
        for row in _count_rows(
            place_of(rows.query, select, "", key), counted, key, secrets, empty=empty
        )
    ]


def _count_rows(
    place: Place, counted: Aggregate, key: Key, secrets: Secrets, *, empty: bool
) -> list[_Row]:
    """That a count is 0, or that it is not; nothing where that is no secret."""
    least = Fraction(0) if empty else Fraction(1)
    row = _row(place, [(counted, key, Fraction(1))], Span(least, least), secrets)
    if not len(row.codes):
        return []
    return [row if empty else replace(row, high=None)]


def place_of(query: int, select: Select, column: str, key: Key) -> Place:
    """Where a number was published, its keys by the names under which they are shown.

    A key that is not shown has its number for a name.
    """
    names = (select.labels.get(i, f"key {i + 1}") for i in range(len(select.keys)))
    return Place(query, column, tuple(zip(names, key, strict=True)) or None, select)


Weights = list[tuple[Aggregate, Key, Fraction]]


def _row(place: Place, weights: Weights, span: Span, secrets: Secrets) -> _Row:
    """One equation with whole coefficients."""
    cells, public = [], Fraction(0)
    for aggregate, key, weight in weights:
        codes, coefficients, constant = secrets.cell(aggregate, key)
        public += weight * exact(constant)
        cells.append((codes, coefficients, weight))
    codes, values, factor = integer_row(cells)
    right = span.less(public).times(Fraction(factor))
    ends = (right.open_low, right.open_high)
    return _Row(place, codes, values, right.low, right.high, ends, Fraction(factor), public)


def _assemble(rows: Sequence[_Row], secrets: Secrets, policy: Policy) -> Equations:
    empty = np.zeros(0, np.int64)
    asked = np.unique(np.concatenate([empty, *(row.codes for row in rows)]))
    distinct = np.union1d(asked, _companions(asked, secrets, policy))
    lengths = [len(row.codes) for row in rows]
    exactly = all(row.low == row.high for row in rows)
    system = System(
        len(rows),
        len(distinct),
        np.repeat(np.arange(len(rows), dtype=np.int64), lengths),
        np.searchsorted(distinct, np.concatenate([empty, *(row.codes for row in rows)])),
        np.concatenate([empty, *(row.values for row in rows)]),
        tuple(row.low for row in rows) if exactly else None,
    )
    return Equations(
        system,
        tuple(row.low for row in rows),
        tuple(row.high for row in rows),
        tuple(row.open_ends for row in rows),
        tuple(row.factor for row in rows),
        tuple(row.public for row in rows),
        tuple(row.place for row in rows),
        secrets.people.records,
        distinct % max(1, secrets.count),
        distinct // max(1, secrets.count),
        tuple(secrets.unknowns),
        secrets.people,
    )


def with_sides(
    equations: Equations,
    low: tuple[Fraction, ...],
    high: tuple[Bound, ...],
    open_ends: tuple[tuple[bool, bool], ...],
) -> Equations:
    """The same equations with other right sides."""
    system = replace(equations.system, right=low if low == high else None)
    return replace(equations, system=system, low=low, high=high, open_ends=open_ends)


def with_rows(equations: Equations, kept: Sequence[int]) -> Equations:
    """Some of the equations, about the same secrets."""
    system, right = equations.system, equations.system.right
    part = system.part(np.array(kept, np.int64), np.arange(system.columns))
    order = np.argsort(part.row, kind="stable")
    return replace(
        equations,
        system=replace(
            part,
            row=part.row[order],
            column=part.column[order],
            value=part.value[order],
            right=None if right is None else tuple(right[row] for row in kept),
        ),
        low=tuple(equations.low[row] for row in kept),
        high=tuple(equations.high[row] for row in kept),
        open_ends=tuple(equations.open_ends[row] for row in kept),
        factor=tuple(equations.factor[row] for row in kept),
        public=tuple(equations.public[row] for row in kept),
        places=tuple(equations.places[row] for row in kept),
    )


def _companions(codes: NDArray[np.int64], secrets: Secrets, policy: Policy) -> NDArray[np.int64]:
    """The numbers that are compared, and whether those that may be missing are there."""
    found = [np.zeros(0, np.int64)]
    which, record = codes // max(1, secrets.count), codes % max(1, secrets.count)
    for kind in np.unique(which).tolist():
        unknown = secrets.unknowns[kind]
        column = policy.column(unknown.column)
        if isinstance(unknown.category, Category):
            continue
        wanted = [Unknown(unknown.column)]
        if column is not None and column.nullable:
            wanted.append(Unknown(unknown.column, Cut(None)))
        places = [secrets.position(each) for each in wanted]
        found += [place * secrets.count + record[which == kind] for place in places]
    return np.concatenate(found)
