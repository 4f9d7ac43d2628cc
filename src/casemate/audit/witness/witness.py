"""Second tables: the proof, for everybody who is not exposed, that another value is possible.

Guarantee  Each table keeps the types, the bounds and every published number, checked in exact
           arithmetic on its values alone. Somebody is covered when a table differs in each of
           their secrets from the first one, which is the custodian's own wherever the published
           numbers are; `narrow` are those whom no table moves by the protection width.
Secrecy    A second table is not the true one, and yet equal to it in many places: whoever is
           exposed has the true value in it. It is for the custodian alone.

Second tables as a CSV: `table,record,column,value`, one line for each secret of each table.

Every table is complete: all private values about which anything was published, those that are equal
to the true ones too, so that each published number can be computed from the file and the public
columns alone. Numbers are exact: a decimal, or a fraction such as 1/3 where there is none. An empty
value is a missing one.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from pathlib import Path

from casemate.audit.order.audit import Ordered
from casemate.audit.region.second import Change
from casemate.audit.result import Exposed
from casemate.audit.time_limit import Clock
from casemate.audit.witness.possible import Possible, Secret, Value, Values
from casemate.audit.witness.search import SecondSearch, base_of
from casemate.errors import Misconfigured
from casemate.query.language import Scalar


@dataclass(frozen=True, eq=False, repr=False)
class SecondTables:
    """Possible tables that together differ in everybody covered.

    `uncovered` are records for which no second table was found within the limit, or none exists.
    """

    tables: tuple[Values, ...]
    covered: int
    narrow: tuple[Scalar, ...]
    uncovered: tuple[Scalar, ...]
    possible: Possible
    wanted: tuple[Secret, ...]
    width: Callable[[Secret], Fraction]
    file: Path | None = None

    def __repr__(self) -> str:
        """How many there are; never what is in them."""
        return f"<SecondTables: {len(self.tables)} tables that cover {self.covered} records>"

    @property
    def shown(self) -> set[Scalar]:
        """The records that the tables cover."""
        record = self.possible.case.equations.people.record
        return {record(place) for place, _ in self.wanted} - set(self.uncovered)

    def check(self) -> bool:
        """Whether every table is possible, and they cover whom they are said to cover."""
        if not all(self.possible.holds(table) for table in self.tables):
            return False
        found = coverage(self.possible, self.tables, self.wanted, self.width)
        return (self.covered, self.narrow, self.uncovered) == found


def second_tables(
    possible: Possible,
    exposed: Iterable[Exposed],
    ordered: Sequence[Ordered],
    changes: Iterable[Change],
    *,
    protect: Fraction,
    clock: Clock,
) -> SecondTables:
    """Find second tables for everybody who is not exposed; `changes` are known to lead to some."""
    wanted = tuple(wanted_secrets(possible, exposed))
    width = _widths(possible, protect)
    base = base_of(possible, clock)
    tables: tuple[Values, ...] = ()
    if base is not None and wanted:
        decided = {column for each in ordered for column in each.covered}
        search = SecondSearch(possible, base, wanted, width, decided)
        search.take_unseen()
        search.take_columns(changes)
        for each in ordered:
            search.take_order(each, clock)
        search.look(clock)
        tables = search.tables()
        if base != possible.truth:
            tables = (base, *tables)
    found = coverage(possible, tables, wanted, width)
    return SecondTables(tables, *found, possible, wanted, width)


def wanted_secrets(possible: Possible, exposed: Iterable[Exposed]) -> Iterable[Secret]:
    """Everything that was asked about, is not exposed and was not known before."""
    record = possible.case.equations.people.record
    known = {(each.record, each.column) for each in exposed}
    for place, name in possible.secrets:
        if (record(place), name) not in known and not _was_known(possible, (place, name)):
            yield place, name


def _was_known(possible: Possible, secret: Secret) -> bool:
    columns, (place, name) = possible.columns.get(secret, []), secret
    if any(possible.case.is_number(c) and possible.case.settled(c) for c in columns):
        return True
    log = possible.logs.get(name)
    low = None if log is None or columns else log.domain.low[place]
    return log is not None and low is not None and low == log.domain.high[place]


def _widths(possible: Possible, protect: Fraction) -> Callable[[Secret], Fraction]:
    """By how much a secret must differ: a share of the true number; a category by being another."""

    def width(secret: Secret) -> Fraction:
        true = possible.truth[secret]
        if possible.case.declared(secret[1]) or isinstance(true, str | None):
            return Fraction(1)
        return protect * abs(Fraction(true))  # type: ignore[arg-type]  # a number

    return width


def distance(one: Value, other: Value) -> Fraction:
    """How far two values are apart; 1 where they are not numbers and differ."""
    numbers = [each for each in (one, other) if isinstance(each, int | Fraction)]
    if len(numbers) == 2 and not any(isinstance(each, bool) for each in (one, other)):
        return abs(Fraction(numbers[0]) - Fraction(numbers[1]))
    return Fraction(one != other)


def coverage(
    possible: Possible,
    tables: Sequence[Values],
    wanted: Sequence[Secret],
    width: Callable[[Secret], Fraction],
) -> tuple[int, tuple[Scalar, ...], tuple[Scalar, ...]]:
    """How many records some table differs in, those only by less than their width, the others."""
    record = possible.case.equations.people.record
    first = tables[0] if tables and not possible.holds(possible.truth) else possible.truth
    open_, narrow, places = set[int](), set[int](), {place for place, _ in wanted}
    for secret in wanted:
        apart = max(
            (distance(table[secret], first[secret]) for table in tables), default=Fraction(0)
        )
        if not apart:
            open_.add(secret[0])
        elif apart < width(secret):
            narrow.add(secret[0])
    return (
        len(places - open_),
        tuple(record(place) for place in sorted(narrow - open_)),
        tuple(record(place) for place in sorted(open_)),
    )


# File -------------------------------------------------------------------------------------------


HEADER = ["table", "record", "column", "value"]


def as_csv(found: SecondTables) -> str:
    """The tables, numbered from 1, in the order of the records."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    record = found.possible.case.equations.people.record
    for number, table in enumerate(found.tables, start=1):
        for place, name in found.possible.secrets:
            writer.writerow([number, record(place), name, written(table[place, name])])
    return text.getvalue()


def read_back(path: Path, found: SecondTables) -> SecondTables:
    """The same second tables, with the values that are in a file."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, ValueError):
        raise Misconfigured(f"{path} cannot be read; expected {','.join(HEADER)}") from None
    if header != HEADER:
        raise Misconfigured(f"{path} must begin with {','.join(HEADER)}")
    return replace(found, tables=tuple(_tables(lines, found.possible, path)), file=path)


def _tables(lines: Sequence[Sequence[str]], possible: Possible, path: Path) -> Iterable[Values]:
    people = possible.case.equations.people
    readers = {name: _Reader(possible, name) for _, name in possible.secrets}
    tables: dict[str, dict[tuple[int, str], Value]] = {}
    for number, cells in enumerate(lines, start=2):
        where = f"{path}, line {number}"
        if len(cells) != len(HEADER):
            raise Misconfigured(f"{where} has {len(cells)} cells; expected {len(HEADER)}")
        table, record, name, value = cells
        place = people.place(record)
        if place is None or name not in readers:
            raise Misconfigured(f"{where} is about a record or a column that was not asked about")
        tables.setdefault(table, {})[place, name] = readers[name].read(value, where)
    return tables.values()


class _Reader:
    """Reads the values of one column as they are written."""

    def __init__(self, possible: Possible, name: str) -> None:
        declared = possible.case.declared(name)
        self._declared: dict[str, Scalar] = {written(value): value for value in declared}

    def read(self, text: str, where: str) -> Value:
        """One value; never quoted in a message."""
        if self._declared:
            if text not in self._declared:
                raise Misconfigured(f"{where} holds a value that is not declared")
            return self._declared[text]
        try:
            return Fraction(text) if text else None
        except (ValueError, ZeroDivisionError):
            raise Misconfigured(f"{where} holds something that is not a number") from None


def written(value: Value) -> str:
    """A value as the file has it.

    >>> [written(each) for each in (Fraction("5.25"), Fraction(-7), Fraction(1, 3), None, True)]
    ['5.25', '-7', '1/3', '', 'true']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Fraction):
        return _decimal(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _decimal(value: Fraction) -> str:
    """A fraction with all its decimals, where they end."""
    digits, rest = 0, value.denominator
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest //= prime
            count += 1
        digits = max(digits, count)
    if rest != 1 or not digits:
        return str(value)
    whole, part = divmod(abs(value.numerator) * 10**digits // value.denominator, 10**digits)
    return f"{'-' if value < 0 else ''}{whole}.{part:0{digits}}"
