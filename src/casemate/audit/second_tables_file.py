"""Second tables as a CSV: `table,record,column,value,exact`, a line for each secret of each table.

Every table is complete: all private values about which anything was published, those that are equal
to the true ones too, so that each published number can be computed from the file and the public
columns alone. Numbers are decimals. Where a number has no finite one, `value` is close to it and
`exact` is the number itself, a fraction such as 1/3, which is what is read back; else `exact` is
empty. An empty value is a missing one.
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

HEADER = ["table", "record", "column", "value", "exact"]
CLOSE_DIGITS = 15
"""Digits of a decimal that stands beside an exact fraction."""


def as_csv(found: SecondTables) -> str:
    """The tables, numbered from 1, in the order of the records."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    record = found.possible.case.equations.people.record
    for number, table in enumerate(found.tables, start=1):
        for place, name in found.possible.secrets:
            writer.writerow([number, record(place), name, *as_cells(table[place, name])])
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
        name: {as_cells(value)[0]: value for value in possible.case.declared_values(name)}
        for name in {name for _, name in possible.secrets}
    }
    tables: dict[str, dict[tuple[int, str], Value]] = {}
    for number, cells in enumerate(lines, start=2):
        where = f"{path}, line {number}"
        if len(cells) != len(HEADER):
            raise Misconfigured(f"{where} has {len(cells)} cells; expected {len(HEADER)}")
        table, record, name, value, exact = cells
        place = people.place(record)
        if place is None or name not in declared:
            raise Misconfigured(f"{where} is about a record or a column that was not asked about")
        tables.setdefault(table, {})[place, name] = _read(exact or value, declared[name], where)
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


def as_cells(value: Value) -> tuple[str, str]:
    """A value as the file has it, and the exact number beside one that is only close.

    >>> [as_cells(each)[0] for each in (Fraction("5.25"), Fraction(-7), None, True)]
    ['5.25', '-7', '', 'true']
    >>> as_cells(Fraction(-1, 3))
    ('-0.333333333333333', '-1/3')
    """
    if value is None:
        return "", ""
    if isinstance(value, bool):
        return str(value).lower(), ""
    if isinstance(value, Fraction):
        return _decimal(value)
    return value.isoformat() if isinstance(value, date) else str(value), ""


def _decimal(value: Fraction) -> tuple[str, str]:
    """A fraction with all its decimals where they end, else the first of them, and itself."""
    odd, twos, fives = value.denominator, 0, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    while odd % 5 == 0:
        odd, fives = odd // 5, fives + 1
    exactly = odd == 1
    size = len(str(value.denominator)) - len(str(abs(value.numerator)))
    digits = max(twos, fives) if exactly else max(0, size + CLOSE_DIGITS)
    scaled = round(abs(value) * 10**digits)
    whole, part = divmod(scaled, 10**digits)
    said = f"{'-' if value < 0 else ''}{whole}" + (f".{part:0{digits}}" if digits else "")
    return said, "" if exactly else str(value)
