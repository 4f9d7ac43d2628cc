"""The rows of a ledger: what each says, the bytes that are hashed, and the chain they form.

A ledger is a list of rows that only grows. Row 0 states the terms; every other row is a charge,
the output of a charge, or amended terms. Each row's hash is SHA-256 over the previous row's hash
and the row's own fields, so a row cannot change without every later hash changing too. Each row
also carries the exact totals after it, so the newest row is all that a charge has to look at.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from operator import attrgetter
from typing import Self, TypeVar

from casemate.errors import LedgerDamaged
from casemate.privacy.cost import Concentrated, Cost, Pure, Unbounded
from casemate.privacy.ledger_terms import Total

START = bytes(32)
Parsed = TypeVar("Parsed")


class Kind(StrEnum):
    """What a row records."""

    TERMS = "terms"
    CHARGE = "charge"
    OUTPUT = "output"


@dataclass(frozen=True)
class Head:
    """A row's number and hash: kept elsewhere, it proves later that nothing before it changed."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


@dataclass(frozen=True)
class Entry:
    """One row, as stored; `cost` and `total` are read from their text when asked for."""

    number: int
    kind: str
    key: str
    principal: str
    purpose: str  # of a charge; the terms themselves in a row of terms
    cost_text: str
    output: bytes
    total_text: str  # of the dataset, after this row
    principal_total_text: str  # of this row's principal, after it
    units: int
    at: str
    hash: bytes = START

    @property
    def head(self) -> Head:
        """This row's number and hash."""
        return Head(self.number, self.hash.hex())

    @property
    def cost(self) -> Cost | None:
        """What was charged; None in a row that is not a charge."""
        return self._read(cost_from_text, self.cost_text) if self.cost_text else None

    @property
    def total(self) -> Total:
        """The dataset's total after this row."""
        return self._read(Total.from_text, self.total_text)

    @property
    def principal_total(self) -> Total:
        """The principal's total after this row."""
        return self._read(Total.from_text, self.principal_total_text)

    def _read(self, parse: Callable[[str], Parsed], text: str) -> Parsed:
        try:
            return parse(text)
        except (ValueError, ArithmeticError, TypeError) as reason:
            raise damaged(self.number, "it cannot be read") from reason

    def chained(self, previous: bytes) -> Self:
        """The same row with the hash that follows `previous`."""
        return replace(self, hash=self.digest(previous))

    def digest(self, previous: bytes) -> bytes:
        """SHA-256 over the previous hash and every field, each with its type and length."""
        return hashlib.sha256(previous + b"".join(self._fields())).digest()

    def _fields(self) -> Iterable[bytes]:
        for value in row_of(self)[:-1]:
            match value:
                case str():
                    tag, data = b"s", value.encode("utf-8", "surrogatepass")
                case int():
                    tag, data = b"i", str(value).encode()
                case bytes():
                    tag, data = b"b", value
                case _:
                    raise damaged(self.number, "a field has the wrong type")
            yield tag + len(data).to_bytes(8, "big") + data


COLUMNS = tuple(Entry.__dataclass_fields__)


row_of: Callable[[Entry], tuple[int | str | bytes, ...]] = attrgetter(*COLUMNS)
"""The fields in the order of COLUMNS, the hash last."""


def cost_to_text(cost: Cost) -> str:
    """A cost as it is stored: its kind and its exact amount or reason."""
    match cost:
        case Pure(epsilon):
            return f"pure {epsilon}"
        case Concentrated(rho):
            return f"zcdp {rho}"
        case Unbounded(reason):
            return f"unbounded {reason}"


def cost_from_text(text: str) -> Cost:
    """Read back what `cost_to_text` wrote."""
    kind, _, rest = text.partition(" ")
    match kind:
        case "pure":
            return Pure(Fraction(rest))
        case "zcdp":
            return Concentrated(Fraction(rest))
        case "unbounded":
            return Unbounded(rest)
    raise ValueError("a stored cost is pure, zcdp or unbounded")


def damaged(number: int, what: str) -> LedgerDamaged:
    """The error that names a row of the ledger."""
    return LedgerDamaged(
        f"row {number} of the ledger is damaged: {what}; nothing can be charged to it: "
        f"find out who changed it and restore it from a copy that verifies"
    )
