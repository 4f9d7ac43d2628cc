"""Second tables as a CSV: `table,record,column,value`, one line for each secret of each table.

Every table is complete: all private values about which anything was published, those that are equal
to the true ones too, so that each published number can be computed from the file and the public
columns alone. Numbers are exact: a decimal, or a fraction such as 1/3 where there is none. An empty
value is a missing one.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

from casemate.audit.second_tables import Possible, SecondTables, Value, Values
from casemate.errors import Misconfigured
from casemate.query.language import Scalar

HEADER = ["table", "record", "column", "value"]


def as_csv(found: SecondTables) -> str:
    """The tables, numbered from 1, in the order of the records."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    record = found.possible.case.equations.people.record
    for number, table in enumerate(found.tables, start=1):
        for place, name in found.possible.secrets:
            writer.writerow([number, record(place), name, as_text(table[place, name])])
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
    declared = {
        name: {as_text(value): value for value in possible.case.declared_values(name)}
        for name in {name for _, name in possible.secrets}
    }
    tables: dict[str, dict[tuple[int, str], Value]] = {}
    for number, cells in enumerate(lines, start=2):
        where = f"{path}, line {number}"
        if len(cells) != len(HEADER):
            raise Misconfigured(f"{where} has {len(cells)} cells; expected {len(HEADER)}")
        table, record, name, value = cells
        place = people.place(record)
        if place is None or name not in declared:
            raise Misconfigured(f"{where} is about a record or a column that was not asked about")
        tables.setdefault(table, {})[place, name] = _read(value, declared[name], where)
    return tables.values()


def _read(text: str, declared: Mapping[str, Scalar], where: str) -> Value:
    """One value as it is written; never quoted in a message."""
    if declared and text not in declared:
        raise Misconfigured(f"{where} holds a value that is not declared")
    if declared:
        return declared[text]
    try:
        return Fraction(text) if text else None
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(f"{where} holds something that is not a number") from None


def as_text(value: Value) -> str:
    """A value as the file has it.

    >>> [as_text(each) for each in (Fraction("5.25"), Fraction(-7), Fraction(1, 3), None, True)]
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
