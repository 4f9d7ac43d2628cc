"""Ranges of columns within which published formulas are exact: declared, or taken for granted.

Whether `x * 12` is linear depends on how large x may be. Bounds of a policy, or told to an audit,
enter first. Where a private number has none, a range -10^k to 10^k in which the log's
formulas are exact is taken for its bounds, as if it had been declared, provided that all of its
values lie there: second tables within it are then consistent with what the engine published. The
same goes for the digits after the point of decimals. Of public columns the table itself says it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil, floor, isfinite

from casemate.errors import Unsupported
from casemate.published.knowledge import Knowledge
from casemate.published.statements import combination
from casemate.query import Join
from casemate.query.engines import values
from casemate.query.language import (
    FRACTION_DIGITS,
    NUMBERS,
    ColumnRef,
    Expression,
    columns_of,
    substitute,
)
from casemate.query.parse import Logged, Unread, read_statement
from casemate.query.records import affine, inexact, inexact_parts
from casemate.table import Column, ColumnType, Policy, Role
from casemate.table.sources import Source, quote_name

LARGEST_POWER = {ColumnType.INTEGER: 18, ColumnType.DECIMAL: 25, ColumnType.DOUBLE: 0}
SMALLEST_POWER = 6
"""A range smaller than up to 10^6 is not taken for granted; it must be declared."""

DEFAULT_POWER, SPARE_POWERS = 9, 3
"""Up to 10^9 is taken where it is exact, or three powers of ten more than the values need: in much
larger ranges linear programs lose their digits."""

COMPUTING = re.compile(r"[-+*/%]|::|cast|coalesce|double|float", re.IGNORECASE)
"""What the text of a statement has in it that computes with a column."""

Reference = tuple[str, str]
"""The joined table of a column, empty for the protected one, and its name."""


@dataclass(frozen=True)
class ExactRanges:
    """A policy whose columns have ranges, and what was taken for granted about private ones."""

    policy: Policy
    notes: tuple[str, ...] = ()


def exact_ranges(
    log: Iterable[Logged | Unread],
    policy: Policy,
    knowledge: Knowledge,
    source: Source,
    dialect: str,
) -> ExactRanges:
    """The policy with ranges in which as many formulas of a log as possible are exact."""
    policy = with_knowledge(policy, knowledge)
    parts = list(dict.fromkeys(_inexact(log, policy, dialect)))
    numbers = dict(number for part in parts for number in part.numbers)
    facts = {place: _facts(place, column, source) for place, column in numbers.items()}
    public = {
        place: _with_observed_range(column, facts[place])
        for place, column in numbers.items()
        if column.role is not Role.PRIVATE or place[0]
    }
    secret = {
        place: _Number(column, fact)
        for place, column in numbers.items()
        if place not in public and (fact := facts[place]) and column.values is None
    }
    private = _choose_ranges(secret, [part.within(public) for part in parts])
    notes = (_note(numbers[place], column) for place, column in private.items())
    said = tuple(note for note in notes if note is not None)
    return ExactRanges(_with_columns(policy, public | private), said)


def with_knowledge(policy: Policy, knowledge: Knowledge) -> Policy:
    """The policy with bounds that are known beside it as bounds of its private numbers."""
    changed = tuple(
        _with_bounds(each, knowledge) if each in policy.private() else each
        for each in policy.columns
    )
    return replace(policy, columns=changed)


def _with_bounds(column: Column, knowledge: Knowledge) -> Column:
    if column.type not in NUMBERS or column.values is not None:
        return column
    low = column.low if knowledge.low is None else _value(knowledge.low, column.type, ceil)
    high = column.high if knowledge.high is None else _value(knowledge.high, column.type, floor)
    digits = 0 if knowledge.integer else column.digits
    return replace(column, low=low, high=high, digits=digits)


def _value(
    end: Fraction, kind: ColumnType, inwards: Callable[[Fraction], int]
) -> int | Decimal | None:
    """A bound as a policy writes it; None where it has no finite decimal."""
    if kind is ColumnType.INTEGER:
        return inwards(end)
    scaled = end * 10**FRACTION_DIGITS
    return Decimal(int(scaled)).scaleb(-FRACTION_DIGITS) if scaled.denominator == 1 else None


# What the log computes ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _FormulaPart:
    """A formula in a private number, and the public tables that its statement joins."""

    expression: Expression
    joins: tuple[Join, ...]
    combined: bool = False  # of several results, and not of one row

    @property
    def is_exact(self) -> bool:
        """Whether every engine computes it exactly."""
        if self.combined:
            return inexact(self.expression) is None
        return affine(self.expression) is not None

    @property
    def numbers(self) -> list[tuple[Reference, Column]]:
        """The columns of numbers that it reads."""
        read = (ref for ref in columns_of(self.expression) if ref.type in NUMBERS)
        return [(self._place(ref), ref.column) for ref in read]

    def within(self, columns: Mapping[Reference, Column]) -> "_FormulaPart":
        """The same formula over columns that have ranges."""

        def with_range(node: Expression) -> Expression | None:
            if not isinstance(node, ColumnRef):
                return None
            return replace(node, column=columns.get(self._place(node), node.column))

        return replace(self, expression=substitute(self.expression, with_range))

    def _place(self, reference: ColumnRef) -> Reference:
        joined = {join.alias: join.public for join in self.joins}
        return joined.get(reference.alias, ""), reference.column.name


def _inexact(
    log: Iterable[Logged | Unread], policy: Policy, dialect: str
) -> Iterator[_FormulaPart]:
    """The formulas of a log that are not exact in the ranges of a policy."""
    for entry in log:
        if isinstance(entry, Unread) or not COMPUTING.search(entry.sql.replace("(*)", "")):
            continue
        try:
            statement = read_statement(entry, policy, dialect)
        except Unsupported:
            continue  # refused as a whole
        for each in statement.aggregates:
            yield from (_FormulaPart(part, each.joins) for part in inexact_parts(each))
        for select in statement.selects:
            combined = (combination(select, output) for output in select.outputs)
            found = (each for each in combined if each is not None and inexact(each) is not None)
            yield from (_FormulaPart(each, select.joins, combined=True) for each in found)


# What the table says ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Facts:
    """The least and the greatest number of a column, and the digits after the point it needs."""

    low: Fraction
    high: Fraction
    digits: int | None


def _facts(place: Reference, column: Column, source: Source) -> _Facts | None:
    """What a column holds; None where that is nothing, or nothing that is a number."""
    public, name = place
    number = f"t.{quote_name(name)}"
    decimal = column.type is ColumnType.DECIMAL
    finer = {
        f"d{digits}": f"count(*) FILTER (WHERE {number} <> round({number}, {digits}))"
        for digits in range(FRACTION_DIGITS + 1 if decimal else 0)
    }
    asked = {"low": f"min({number})", "high": f"max({number})", **finer}
    shown = ", ".join(f"{text} AS {title}" for title, text in asked.items())
    frame = source.read(f"SELECT {shown} FROM {source.relation(public or None)} AS t")
    low, high = (values(frame[end])[0] for end in ("low", "high"))
    if not isinstance(low, int | float | Decimal) or not isinstance(high, int | float | Decimal):
        return None
    if not isfinite(low) or not isfinite(high):
        return None
    enough = (digits for digits, title in enumerate(finer) if not int(frame[title].values[0]))
    return _Facts(Fraction(low), Fraction(high), next(enough, None) if decimal else None)


def _with_observed_range(column: Column, facts: _Facts | None) -> Column:
    """A public column with the range that everybody sees it has."""
    if facts is None or column.type is None:
        return column
    ends = (_value(end, column.type, ceil) for end in (facts.low, facts.high))
    low, high = ends
    return replace(column, low=low, high=high, values=None, digits=facts.digits)


@dataclass(frozen=True)
class _Number:
    """A private column of numbers, and what it holds."""

    column: Column
    facts: _Facts

    @property
    def needed(self) -> int:
        """The power of ten below which its values are."""
        return len(str(ceil(max(abs(self.facts.low), abs(self.facts.high)))))

    @property
    def largest(self) -> int:
        """The power of ten up to which a range may be taken for granted."""
        kind = self.column.type or ColumnType.DOUBLE
        return min(LARGEST_POWER[kind], max(DEFAULT_POWER, self.needed + SPARE_POWERS))

    def within(self, power: int, digits: int) -> Column:
        """The column from -10^power to 10^power where it has no bounds, with so many digits."""
        low = -(10**power) if self.column.low is None else self.column.low
        high = 10**power if self.column.high is None else self.column.high
        fine = None if self.facts.digits is None else max(digits, self.facts.digits)
        return replace(self.column, low=low, high=high, digits=fine)


def _choose_ranges(
    numbers: Mapping[Reference, _Number], parts: Sequence[_FormulaPart]
) -> dict[Reference, Column]:
    """The private columns in the largest ranges in which most of the formulas are exact."""
    powers = {place: number.largest for place, number in numbers.items()}
    digits = dict.fromkeys(numbers, FRACTION_DIGITS)
    found: dict[Reference, Column] = {}
    for part in parts:
        mine = [place for place, _ in part.numbers if place in numbers]
        least = max([SMALLEST_POWER, *(numbers[place].needed for place in mine)])
        largest = range(min((powers[place] for place in mine), default=0), least - 1, -1)
        finest = range(min((digits[place] for place in mine), default=0), -1, -1)
        for power, fine in product(largest, finest):
            tried = {place: numbers[place].within(power, fine) for place in mine}
            if part.within(tried).is_exact:
                powers |= dict.fromkeys(mine, power)
                digits |= dict.fromkeys(mine, fine)
                found |= tried
                break
    return found


def _note(declared: Column, taken: Column) -> str | None:
    """What was taken for granted about a column, if anything was."""
    cut = taken.digits is not None and taken.digits < FRACTION_DIGITS
    fine = f" with at most {taken.digits} digits after the point" if cut else ""
    if declared.low is not None and declared.high is not None:
        said = f"any number of {taken.name}{fine}" if fine else None
    else:
        said = (
            f"{taken.name} has no declared bounds, so any number from {taken.low} to {taken.high}"
            f"{fine}"
        )
    if said is None:
        return None
    return f"{said} was taken to be possible: there what was published is computed exactly"


def _with_columns(policy: Policy, ranged: Mapping[Reference, Column]) -> Policy:
    tables = tuple(
        replace(table, columns=tuple(ranged.get((table.name, c.name), c) for c in table.columns))
        for table in policy.public_tables
    )
    columns = tuple(ranged.get(("", column.name), column) for column in policy.columns)
    return replace(policy, columns=columns, public_tables=tables)
