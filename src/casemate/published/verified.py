"""The table's own values and answers: what formulas come to on it, and whether that was published.

Exactness is proved from types and bounds, and a table need not keep to them. So what the engine
published is compared with what each formula comes to on the table's own values, in exact
arithmetic; where they differ, the formula says nothing about the number, and its column is refused.
Where the answers are the table's, a determined value is the true one; `true_values` reads it, where
solving for it would give the same number with much more work.

Departure  A sum of doubles is rounded, in an order that nobody knows. Its error is at most n u S,
           with u = 2^-53, n numbers and S the sum of their sizes. Where that is less than a
           millionth of every number in it, what follows from it is known as well as if it were
           exact, and the exact sum stands in its place; else it enters as a range.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound, System
from casemate.published.cell_secrets import largest_size, numerators
from casemate.published.equation_system import (
    Equations,
    equations,
    with_sides,
)
from casemate.published.evidence import missing_counts
from casemate.published.public_absence import Absent
from casemate.published.statements import Publication, RefusedQuery, ShownColumn
from casemate.query.engines import PROTECTED, RECORD_COLUMN, tables, values
from casemate.query.language import Scalar
from casemate.query.records import possible_values
from casemate.table import ColumnType, Policy
from casemate.table.sources import Source, quote_name


def true_values(
    equations: Equations, columns: Iterable[int], source: Source
) -> dict[int, Fraction]:
    """The values of these secrets in the table; a missing number counts as 0.

    A secret that is constant for each person is read at the person's first row.
    """
    wanted = list(columns)
    values = map(Fraction, _secret_values(equations, wanted, source))
    return dict(zip(wanted, values, strict=True))


def _secret_values(
    equations: Equations, columns: Sequence[int], source: Source
) -> Iterator[int | Fraction]:
    """The values of these secrets, in order; whole ones as they are, for there may be millions."""
    unknowns = [equations.unknowns[which] for which in equations.unknown[columns].tolist()]
    names = dict.fromkeys(each.column for each in unknowns)
    tables_values = {name: column_values(name, source) for name in names}
    for unknown, place in zip(unknowns, equations.record[columns].tolist(), strict=True):
        value = tables_values[unknown.column][equations.people.record(place)]
        whole = unknown.category is None and isinstance(value, int)
        yield value if whole else unknown.of(value)  # type: ignore[misc]  # whole: an integer


def column_values(name: str, source: Source) -> dict[Scalar, Scalar]:
    """The value of a column for each record."""
    written = f"{quote_name(PROTECTED)}.{quote_name(name)}"
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r, {written} AS v FROM {tables(source, ())}")
    return dict(zip(values(frame["r"]), values(frame["v"]), strict=True))


# Published numbers against their formulas -------------------------------------------------------


MAX_INVISIBLE_SHARE = Fraction(1, 10**6)
"""Of a number, the rounding of a sum up to which the number is as good as known from it."""

ROUNDED_TYPES = (ColumnType.DOUBLE,)
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
    absent = _publicly_missing(policy, source)
    system = equations(found.columns, policy, source, found.there, absent)
    sums = _TrueSums.of(system, source)
    slacks = _roundings(system, found.columns, sums)
    refused = _different(system, found.columns, sums, slacks)
    if refused:
        return verified_equations(_without(found, refused), policy, source)
    lows, highs = list(system.low), list(system.high)
    for row, slack in slacks.items():
        lows[row], highs[row] = _ends_with_slack(
            sums, row, system.low[row], system.high[row], slack
        )
    return with_sides(system, tuple(lows), tuple(highs), system.open_ends), found


def _publicly_missing(policy: Policy, source: Source) -> Absent:
    """For each private number the records of which everybody knows that they have none."""
    known = [
        each for each in policy.private() if not each.nullable and possible_values(each) is None
    ]
    columns = {name: column_values(name, source) for name in missing_counts(known, source)}
    return {
        name: frozenset(record for record, value in of_record.items() if value is None)
        for name, of_record in columns.items()
    }


def _different(
    system: Equations,
    columns: Sequence[ShownColumn],
    sums: "_TrueSums",
    slacks: Mapping[int, Fraction],
) -> Refusals:
    """The columns of which an answer of the table's is not what its formula comes to."""
    given = {(each.query, each.output.name) for each in columns if each.told}
    refused: Refusals = {}
    for row, (place, value) in enumerate(zip(system.places, sums.values, strict=True)):
        low, high, slack = system.low[row], system.high[row], slacks.get(row, Fraction(0))
        fits = value >= low - slack and (high is None or value <= high + slack)
        if not fits and (place.query, place.column) not in given:
            refused[place.query, place.column] = DIFFERENT
    return refused


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


@dataclass(frozen=True, eq=False, repr=False)
class _TrueSums:
    """What the equations come to on the table: the parts of each, and their sums."""

    system: System
    numerators: NDArray[Any]  # of the secrets' values, over one denominator
    denominator: int
    values: list[Fraction]

    @classmethod
    def of(cls, found: Equations, source: Source) -> "_TrueSums":
        """The sums of all equations."""
        system = found.system
        secrets = _secret_values(found, range(system.columns), source)
        numbers, denominator = numerators(list(secrets))
        parts = multiply_exactly(system.value, numbers[system.column])
        totals = np.zeros(system.rows, object)
        rows, starts = np.unique(system.row, return_index=True)
        if len(parts):
            totals[rows] = np.add.reduceat(parts, starts)
        values = [Fraction(int(total), denominator) for total in totals.tolist()]
        return cls(system, numbers, denominator, values)

    @property
    def size(self) -> Fraction:
        """The sum of the sizes of all secrets."""
        return Fraction(int(np.abs(self.numerators.astype(object)).sum()), self.denominator)

    def smallest(self, row: int) -> Fraction:
        """The least size of a number in a row that is not 0."""
        mine = self.system.row == row
        numbers = self.numerators[self.system.column[mine]]
        sizes = np.abs(multiply_exactly(self.system.value[mine], numbers))
        found = (Fraction(int(each), self.denominator) for each in sizes[sizes != 0])
        return min(found, default=Fraction(0))


def _roundings(
    found: Equations, columns: Sequence[ShownColumn], sums: _TrueSums
) -> dict[int, Fraction]:
    """By how much the sum behind each row of doubles may be off."""
    weights = {(each.query, each.output.name): _double_weight(each) for each in columns}
    shown = ((row, weights.get((p.query, p.column))) for row, p in enumerate(found.places))
    rounded = [(row, weight) for row, weight in shown if weight]
    size = sums.size if rounded else Fraction(0)
    error = 2 * len(found.records) * UNIT_ROUNDOFF
    return {
        row: error * weight * abs(found.factor[row]) * (size + abs(found.public[row]))
        for row, weight in rounded
    }


def _double_weight(column: ShownColumn) -> Fraction:
    """How much of sums of doubles a column shows; 0 where it shows none."""
    weights = ((column.select.aggregates[index], weight) for index, weight in column.form.weights)
    doubles = [
        abs(w) for each, w in weights if each.argument and each.argument.type in ROUNDED_TYPES
    ]
    return sum(doubles, Fraction(0))


def _ends_with_slack(
    sums: _TrueSums, row: int, low: Fraction, high: Bound, slack: Fraction
) -> tuple[Fraction, Bound]:
    """The ends of a row of doubles whose published sum may be off by so much."""
    value = sums.values[row]
    if value < low - slack or high is None or value > high + slack:
        return low, high  # an answer that is not the table's own, or an inequality
    if low < high:
        return min(low, value), max(high, value)
    visible = slack <= MAX_INVISIBLE_SHARE * sums.smallest(row)
    return (value, value) if visible else (low - slack, high + slack)


def multiply_exactly(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Products of integers whose sums do not overflow."""
    narrow = one.dtype == other.dtype == np.int64
    fits = narrow and largest_size(one) * largest_size(other) * len(one) < 2**62
    kind = np.int64 if fits else object
    products: NDArray[Any] = one.astype(kind) * other.astype(kind)
    return products
