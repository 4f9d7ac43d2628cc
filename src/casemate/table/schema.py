"""The policy as frozen values: which columns there are, what protects them, and at what budget.

A `Policy` says everything about a protected table that is public. It never holds a value of a
record, so it may be printed, logged and compared; addresses, which may carry a password, are left
out of what is printed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TypeGuard

Value = bool | int | Decimal | str | date | datetime
"""A value a policy may name: a bound, or a member of a declared domain."""


class Role(StrEnum):
    """Who knows a column: everybody, nobody, or nobody may even ask about it."""

    PUBLIC = "public"
    PRIVATE = "private"
    IDENTIFIER = "identifier"


class ColumnType(StrEnum):
    """The seven types SQL sees; engines' own types map onto them."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"


NUMBERS = (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.DOUBLE)


class Provenance(StrEnum):
    """Where bounds, values and bins come from; `DATA` makes every guarantee conditional."""

    PUBLIC = "public"
    DATA = "data"
    PRIVATE = "private"


class PerPerson(StrEnum):
    """Whether one person's rows all carry the same value of a column."""

    CONSTANT = "constant"
    VARYING = "varying"


class Missing(StrEnum):
    """Whether a value may be missing, and whether everybody knows in which rows it is.

    Private answers protect it like the value itself, whatever a policy says.
    """

    NONE = "none"
    SECRET = "secret"
    PUBLIC = "public"


class Neighbours(StrEnum):
    """Which two tables must look alike."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class Protects(StrEnum):
    """Whether presence in the table is secret too, or only the private columns."""

    PERSON = "person"
    PRIVATE_COLUMNS = "private-columns"


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: what stands for a missing value, and how numbers look."""

    markers: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str = "."
    currency: str | None = None  # before or after a number

    @property
    def rewrites(self) -> bool:
        """Whether numbers are written otherwise than plainly."""
        return self.thousands is not None or self.currency is not None or self.decimal != "."

    def mistake(self) -> tuple[str, str] | None:
        """The policy key that makes no sense, and what is wrong with it."""
        for key, mark in (("thousands", self.thousands), ("decimal", self.decimal)):
            if mark is not None and (len(mark) > 1 or not _is_mark(mark) or mark.isalpha()):
                return key, 'must be one mark such as "," that is no digit, letter or sign'
        if self.thousands == self.decimal:
            return "thousands", "must not be the decimal mark; declare another `decimal` too"
        if self.currency is not None and not all(map(_is_mark, self.currency)):
            return "currency", 'must be a word or a sign such as "$", without digits, + and -'
        if not all(each.isprintable() for each in self.markers):
            return "missing_markers", 'must hold what stands for a missing value, such as "NA"'
        return None


def _is_mark(letter: str) -> bool:
    """Whether a letter may part or mark a number."""
    printable = letter.isprintable() or letter in "\u00a0\u202f"
    return printable and not letter.isdigit() and letter not in "+-[]^\\"


@dataclass(frozen=True)
class Column:
    """One column of a protected table, as the policy describes it."""

    name: str
    role: Role = Role.PUBLIC
    type: ColumnType | None = None  # None until a source that knows it is opened
    low: Value | None = None
    high: Value | None = None
    values: tuple[Value, ...] | None = None
    unbounded: bool = False  # any number is possible, and nobody can say more
    bins: int | None = None
    provenance: Provenance = Provenance.PUBLIC
    missing: Missing = Missing.NONE
    per_person: PerPerson = PerPerson.VARYING
    format: CellFormat = CellFormat()
    digits: int | None = None  # after the point, where an audit knows that there are no more
    kept: bool = False  # constant for each person as far as their rows agree, in stacked tables

    @property
    def nullable(self) -> bool:
        """Whether a value may be missing at all."""
        return self.missing is not Missing.NONE


@dataclass(frozen=True)
class PublicTable:
    """A table everybody may see, joined to the protected one by a unique key."""

    name: str
    source: str | None  # None: a table of this name in the protected table's own database
    key: str
    columns: tuple[Column, ...] = ()  # filled in when the source is opened


@dataclass(frozen=True)
class Budget:
    """What may be spent on the table in all, over all principals."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    protects: Protects = Protects.PERSON
    ledger: str | None = field(default=None, repr=False)  # None: casemate.ledger beside the file


class Strategy(StrEnum):
    """How questions are answered privately."""

    AUTO = "auto"  # what the plan predicts to be best when nothing is known of the questions
    WARM = "warm"  # tables first, then only surprises are paid for
    COLD = "cold"  # only surprises are paid for, from nothing
    TABLES = "tables"  # all tables of few attributes, and nothing checks what they cannot say
    HISTOGRAM = "histogram"  # every cell once
    GAUSSIAN = "gaussian"  # noise on every answer
    LAPLACE = "laplace"


class Exhausted(StrEnum):
    """What happens to a question that can no longer be checked."""

    REFUSE = "refuse"
    UNVERIFIED = "unverified"  # the stand-in answers, and says that nothing is proven


@dataclass(frozen=True)
class Answering:
    """How the budget is used to answer questions."""

    strategy: Strategy = Strategy.AUTO
    start: Fraction = Fraction(1, 2)  # of the budget, for the tables that come first
    surprises: int = 8  # how many questions may find the stand-in wrong
    ration: int | None = None  # the same for one principal; None: no limit of its own
    questions: int | None = None  # how many are expected; needed where each is paid for
    declared: str | None = None  # a file of questions that are named before anything is measured
    confidence: Fraction = Fraction(19, 20)
    exhausted: Exhausted = Exhausted.REFUSE
    prior: str | None = None  # a public table that the stand-in starts from


@dataclass(frozen=True)
class Policy:
    """One protected table: where it is, what its columns are, and what may be spent on it.

    Without columns it speaks of a source that has no policy (`plain_source`): every column is there
    and public, and `missing` is said of those that are then named private. `format` is that of
    the columns it does not name.
    """

    source: str = field(repr=False)
    columns: tuple[Column, ...]
    key: str | None = None
    person: str | None = None
    rows_per_person: int = 1
    public_tables: tuple[PublicTable, ...] = ()
    budget: Budget | None = None
    answering: Answering = Answering()
    missing: Missing = Missing.NONE
    format: CellFormat = CellFormat()
    version: str = "1"  # of the data: what was answered about another one is not about this
    path: Path | None = field(default=None, compare=False)

    def column(self, name: str) -> Column | None:
        """The column of exactly this name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def format_of(self, name: str) -> CellFormat:
        """How the cells of a column are written."""
        column = self.column(name)
        return self.format if column is None else column.format

    def private(self) -> tuple[Column, ...]:
        """The columns that are protected."""
        return tuple(column for column in self.columns if column.role is Role.PRIVATE)


# Bounds and values of a column, and whether they suit its type -----------------------------------


KINDS: dict[ColumnType, tuple[type, ...]] = {
    ColumnType.BOOLEAN: (bool,),
    ColumnType.INTEGER: (int,),
    ColumnType.DECIMAL: (int, Decimal),
    ColumnType.DOUBLE: (int, Decimal),
    ColumnType.TEXT: (str,),
    ColumnType.DATE: (date,),
    ColumnType.TIMESTAMP: (datetime,),
}
"""The Python types of the values a column of each type may hold: exactly these, no subclasses."""

EXPECTED = {
    ColumnType.BOOLEAN: "true or false",
    ColumnType.INTEGER: "whole numbers",
    ColumnType.DECIMAL: "numbers",
    ColumnType.DOUBLE: "numbers",
    ColumnType.TEXT: "strings",
    ColumnType.DATE: "dates such as 2020-12-31",
    ColumnType.TIMESTAMP: "date-times such as 2020-12-31T23:59:59",
}

ORDERED = frozenset(KINDS) - {ColumnType.BOOLEAN, ColumnType.TEXT}
"""The types that bounds make sense for."""


def is_value(value: object) -> TypeGuard[Value]:
    """Whether a policy may name this value: finite, and without a time zone."""
    if isinstance(value, Decimal):
        return value.is_finite()
    if isinstance(value, datetime):
        return value.tzinfo is None
    return type(value) in (bool, int, str, date)


def of_one_kind(values: Iterable[Value]) -> bool:
    """Whether some column type could hold all of these."""
    present = {type(value) for value in values}
    return any(present <= set(kinds) for kinds in KINDS.values())


def misfit(column: Column, type_: ColumnType) -> tuple[str, str] | None:
    """The policy key of a column that contradicts its type, and what is wrong with it."""
    kinds, expected = KINDS[type_], EXPECTED[type_]
    for key, bound in (("min", column.low), ("max", column.high)):
        if bound is not None and type_ not in ORDERED:
            return key, f"does not suit a {type_} column; list its `values` instead"
        if bound is not None and type(bound) not in kinds:
            return key, f"does not suit a {type_} column; expected {expected}"
    if any(type(value) not in kinds for value in column.values or ()):
        return "values", f"does not suit a {type_} column; expected {expected}"
    return None
