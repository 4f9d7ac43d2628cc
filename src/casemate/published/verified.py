"""The table's own answers against the formulas that stand for them, number by number.

Exactness is proved from types and bounds, and a table need not keep to them. So what the engine
published is compared with what each formula comes to on the table's own values, in exact
arithmetic; where they differ, the formula says nothing about the number, and its column is refused.

Departure  A sum of doubles is rounded, in an order that nobody knows. Its error is at most n u S,
           with u = 2^-53, n numbers and S the sum of their sizes. Where that is less than a
           millionth of every number in it, what follows from it is known as well as if it were
           exact, and the exact sum stands in its place; else it enters as a range.

The table's own values of determined secrets: what the published numbers come to.

Where the answers are the table's, a determined value is the true one; solving for it would give
the same number with much more work.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound
from casemate.published.coefficients import largest_size
from casemate.published.knowledge import record_name
from casemate.published.statements import Publication, RefusedQuery, ShownColumn
from casemate.published.system import Equations, equations, with_sides
from casemate.query.engines import PROTECTED, RECORD_COLUMN, quote, tables, values
from casemate.query.language import Scalar
from casemate.table import ColumnType, Policy
from casemate.table.sources import Source


def true_values(
    equations: Equations, columns: Iterable[int], source: Source
) -> dict[int, Fraction]:
    """The values of these secrets in the table; a missing number counts as 0.

    A secret that is constant for each person is read at the person's first row.
    """
    wanted = list(columns)
    names = {equations.unknowns[int(equations.unknown[c])].column for c in wanted}
    tables_values = {name: column_values(name, source) for name in names}
    found = {}
    for column in wanted:
        unknown = equations.unknowns[int(equations.unknown[column])]
        found[column] = unknown.of(tables_values[unknown.column][record_name(equations, column)])
    return found


def true_numerators(equations: Equations, source: Source) -> tuple[NDArray[Any], int]:
    """The table's values of all secrets, as integers over one denominator."""
    width = equations.system.columns
    found: list[Any] = [0] * width
    names = dict.fromkeys(each.column for each in equations.unknowns)
    tables_values = {name: column_values(name, source) for name in names} if width else {}
    names_of = [equations.people.record(place) for place in range(len(equations.records))]
    for column, (kind, record) in enumerate(
        zip(equations.unknown.tolist(), equations.record.tolist(), strict=True)
    ):
        unknown = equations.unknowns[kind]
        value = tables_values[unknown.column][names_of[record]]
        whole = unknown.category is None and isinstance(value, int)
        found[column] = value if whole else unknown.of(value)
    return numerators(found)


def numerators(numbers: Sequence[Any]) -> tuple[NDArray[Any], int]:
    """Numbers of any kind as integers over one denominator; None counts as 0."""
    exact = [each if isinstance(each, int) else Fraction(each or 0) for each in numbers]
    scale = lcm(1, *{each.denominator for each in exact})
    whole = [each.numerator * (scale // each.denominator) for each in exact]
    fits = all(abs(each) < 2**62 for each in whole)
    return np.array(whole, np.int64 if fits else object), scale


def column_values(name: str, source: Source) -> dict[Scalar, Scalar]:
    """The value of a column for each record."""
    written = f"{quote(PROTECTED)}.{quote(name)}"
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r, {written} AS v FROM {tables(source, ())}")
    return dict(zip(values(frame["r"]), values(frame["v"]), strict=True))


# Verified ---------------------------------------------------------------------------------------


VISIBLE = Fraction(1, 10**6)
"""Of a number, the rounding of a sum up to which the number is as good as known from it."""

ROUNDED = (ColumnType.DOUBLE,)
UNIT_ROUNDOFF = Fraction(1, 2**53)
DIFFERENT = (
    "what the engine gives is not what the formula comes to on this table, so a value is missing "
    "where the policy does not say `nullable`, or outside of the declared bounds or digits; "
    "correct those"
)

Refusals = dict[tuple[int, str], str]
"""Why the columns of some statements are refused."""


def verified_equations(
    found: Publication, policy: Policy, source: Source
) -> tuple[Equations, Publication]:
    """The equations of all columns that are what they are taken for; the others are refused."""
    system = equations(found.columns, policy, source, found.there)
    rows = _Rows(system, policy, source, found.columns)
    refused = rows.refusals()
    if not refused:
        return rows.with_rounding(), found
    found = _without(found, refused)
    return verified_equations(found, policy, source)


def _weight(column: ShownColumn) -> Fraction:
    """How much of sums of doubles a column shows; 0 where it shows none."""
    weights = ((column.select.aggregates[index], weight) for index, weight in column.form.weights)
    doubles = [abs(w) for each, w in weights if each.argument and each.argument.type in ROUNDED]
    return sum(doubles, Fraction(0))


def _without(found: Publication, refused: Refusals) -> Publication:
    """A publication without some columns, which it says are refused."""
    reasons = tuple(
        RefusedQuery(
            query,
            found.lines[query - 1] if query <= len(found.lines) else None,
            None,
            found.statements[query - 1] if query <= len(found.statements) else "",
            f"the column {name}: {reason}" if name else reason,
        )
        for (query, name), reason in refused.items()
    )
    return replace(
        found,
        columns=tuple(c for c in found.columns if (c.query, c.output.name) not in refused),
        there=tuple(each for each in found.there if (each.query, "") not in refused),
        refused=(*found.refused, *reasons),
    )


# The rows -----------------------------------------------------------------------------------------


class _Rows:
    """The equations, what they come to on the table, and how large their parts are."""

    def __init__(
        self,
        found: Equations,
        policy: Policy,
        source: Source,
        columns: Sequence[ShownColumn],
    ) -> None:
        self._found, self._policy, self._source = found, policy, source
        self._given = {(each.query, each.output.name) for each in columns if each.told}
        self._double_weights = {(c.query, c.output.name): w for c in columns if (w := _weight(c))}
        self._rows, self._starts = np.unique(found.system.row, return_index=True)

    def refusals(self) -> Refusals:
        """Why columns are refused: their numbers differ, or weigh too differently."""
        refused: Refusals = {}
        for row in self._different():
            refused.setdefault(self._place(row), DIFFERENT)
        return refused

    def _place(self, row: int) -> tuple[int, str]:
        place = self._found.places[row]
        return place.query, place.column

    def _entries(self) -> Iterator[tuple[int, slice]]:
        ends = [*self._starts.tolist(), len(self._found.system.row)]
        for row, (start, end) in zip(self._rows.tolist(), pairwise(ends), strict=True):
            yield row, slice(start, end)

    # Answers ------------------------------------------------------------------------------------

    def _different(self) -> Iterator[int]:
        """Rows of the table's own answers that are not what their formula comes to."""
        for row, value in enumerate(self._values):
            if self._place(row) in self._given:
                continue
            low, high = self._found.low[row], self._found.high[row]
            slack = self._roundings.get(row, Fraction(0))
            if value < low - slack or (high is not None and value > high + slack):
                yield row

    def with_rounding(self) -> Equations:
        """The equations, with sums of doubles as exact as they are."""
        low, high = list(self._found.low), list(self._found.high)
        for row, slack in self._roundings.items():
            low[row], high[row] = self._rounded(row, low[row], high[row], slack)
        return with_sides(self._found, tuple(low), tuple(high), self._found.open_ends)

    def _rounded(
        self, row: int, low: Fraction, high: Bound, slack: Fraction
    ) -> tuple[Fraction, Bound]:
        """The ends of a row of doubles whose published sum may be off by so much."""
        value = self._values[row]
        if value < low - slack or high is None or value > high + slack:
            return low, high  # an answer that is not the table's own, or an inequality
        if low < high:
            return min(low, value), max(high, value)
        visible = slack <= VISIBLE * self._smallest(row)
        return (value, value) if visible else (low - slack, high + slack)

    def _smallest(self, row: int) -> Fraction:
        """The least size of a number in a row that is not 0."""
        numerators, scale = self._true
        mine = self._found.system.row == row
        sizes = np.abs(self._found.system.value[mine] * numerators[self._found.system.column[mine]])
        return min((Fraction(int(each), scale) for each in sizes[sizes != 0]), default=Fraction(0))

    @cached_property
    def _values(self) -> list[Fraction]:
        """What every row comes to on the table."""
        numerators, scale = self._true
        system = self._found.system
        parts = multiplied_exactly(system.value, numerators[system.column])
        totals = np.zeros(system.rows, object)
        if len(parts):
            totals[self._rows] = np.add.reduceat(parts, self._starts)
        return [Fraction(int(total), scale) for total in totals.tolist()]

    @cached_property
    def _roundings(self) -> dict[int, Fraction]:
        """By how much the sum behind each row of doubles may be off."""
        weights = self._double_weights
        rows = [row for row in range(self._found.system.rows) if self._place(row) in weights]
        if not rows:
            return {}
        numerators, scale = self._true
        size = Fraction(int(np.abs(numerators.astype(object)).sum()), scale)
        error = 2 * len(self._found.records) * UNIT_ROUNDOFF
        return {
            row: error
            * weights[self._place(row)]
            * abs(self._found.factor[row])
            * (size + abs(self._found.public[row]))
            for row in rows
        }

    @cached_property
    def _true(self) -> tuple[NDArray[Any], int]:
        return true_numerators(self._found, self._source)


def multiplied_exactly(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Products of integers whose sums do not overflow."""
    narrow = one.dtype == other.dtype == np.int64
    fits = narrow and largest_size(one) * largest_size(other) * len(one) < 2**62
    kind = np.int64 if fits else object
    products: NDArray[Any] = one.astype(kind) * other.astype(kind)
    return products
