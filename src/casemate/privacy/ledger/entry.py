"""The rows of a ledger: what each says, the bytes that are hashed, and the chain they form.

A ledger is a list of rows that only grows. Row 0 states the terms; every other row is a charge,
the output of a charge, or amended terms. Each row's hash is SHA-256 over the previous row's hash
and the row's own fields, so a row cannot change without every later hash changing too. Each row
also carries the exact totals after it, so the newest row is all that a charge has to look at.

How a ledger grows by one row, and how a whole ledger is checked by growing it again.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Self, TypeVar

from casemate.errors import LedgerDamaged
from casemate.privacy.book.chain import START, Form, Head
from casemate.privacy.cost import Concentrated, Cost, Currency, Pure, Unbounded, price
from casemate.privacy.ledger.terms import FORMAT, NOTHING, Terms, Total

Parsed = TypeVar("Parsed")


class RowKind(StrEnum):
    """What a row records."""

    TERMS = "terms"
    CHARGE = "charge"
    OUTPUT = "output"


@dataclass(frozen=True)
class LedgerEntry:
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
        return replace(self, hash=FORM.digest(self, previous))


FORM = Form(
    name="ledger",
    version=FORMAT,
    table="entries",
    row=LedgerEntry,
    columns="""number {integer} PRIMARY KEY CHECK (number >= 0),
        kind TEXT NOT NULL CHECK (kind IN ('terms', 'charge', 'output')),
        key TEXT NOT NULL,
        principal TEXT NOT NULL,
        purpose TEXT NOT NULL,
        cost_text TEXT NOT NULL,
        output {bytes} NOT NULL,
        total_text TEXT NOT NULL,
        principal_total_text TEXT NOT NULL,
        units {integer} NOT NULL CHECK (units >= 0),
        at TEXT NOT NULL,
        hash {bytes} NOT NULL CHECK (length(hash) = 32)""",
    identity=("kind", "key"),
    group=("kind", "principal"),
    damaged=LedgerDamaged,
    entry="row",
    stopped="nothing can be charged to it",
    again="retry with the same key",
    alone=True,
)
damaged = FORM.damage


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


# Ledger chain -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """Everything a charge has to know about the rows before it."""

    number: int = -1  # of the newest row; -1 before the first
    hash: bytes = START
    total: Total = NOTHING
    currency: Currency = Currency.EPSILON
    budget: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        """What the budget still holds, in its currency."""
        return self.budget - self.total.amount


@dataclass(frozen=True)
class Draft:
    """What a new row says, before its number, totals and hash are known."""

    kind: RowKind
    key: str
    at: str
    principal: str = ""
    purpose: str = ""
    cost: Cost | None = None
    output: bytes = b""


def extended(state: State, draft: Draft, principal_total: Total) -> tuple[LedgerEntry, State]:
    """The row that the draft becomes after `state`, and the state after it."""
    number = state.number + 1
    total = _after(state.total, draft.cost, number, state.currency)
    own = _after(principal_total, draft.cost, number, state.currency)
    entry = LedgerEntry(
        number=number,
        kind=draft.kind.value,
        key=draft.key,
        principal=draft.principal,
        purpose=draft.purpose,
        cost_text="" if draft.cost is None else cost_to_text(draft.cost),
        output=draft.output,
        total_text=total.to_text(),
        principal_total_text=own.to_text(),
        units=total.units,
        at=draft.at,
    ).chained(state.hash)
    return entry, _moved(state, entry, total)


def _after(total: Total, cost: Cost | None, number: int, currency: Currency) -> Total:
    if cost is None:
        return total
    if isinstance(cost, Unbounded):
        return total if total.infinite else replace(total, infinite_since=number)
    paid = price(cost, currency)
    if paid is None:
        raise ValueError("a zCDP cost cannot be added to a pure epsilon total")
    return total.plus(paid)


def _moved(state: State, entry: LedgerEntry, total: Total) -> State:
    state = replace(state, number=entry.number, hash=entry.hash, total=total)
    if entry.kind == RowKind.TERMS:
        terms = Terms.from_text(entry.purpose)
        state = replace(state, currency=terms.currency, budget=terms.budget)
    return state


class Walk:
    """A check of a whole ledger, from its first row to its newest."""

    def __init__(self, expected: Collection[Head] = ()) -> None:
        self.state = State()
        self._totals: dict[str, Total] = {}
        self._awaited = {(head.number, head.hash) for head in expected}

    def add(self, entry: LedgerEntry) -> None:
        """Check the next row, which must be exactly what its own contents lead to."""
        charge = entry.kind == RowKind.CHARGE
        before = self._totals.get(entry.principal, NOTHING) if charge else NOTHING
        FORM.require_chained(self.state.number + 1, self.state.hash, entry)
        if entry.number == 0 and entry.kind != RowKind.TERMS:
            raise damaged(0, "it does not state the terms")
        again, self.state = _again(self.state, entry, before)
        if again != entry or self.state.left < 0:
            raise damaged(entry.number, "its totals do not follow from the rows before it")
        if charge:
            self._totals[entry.principal] = entry.principal_total
        self._awaited.discard((entry.number, entry.hash.hex()))
        if any(number == entry.number for number, _ in self._awaited):
            raise damaged(entry.number, "it is not the row that an earlier receipt vouches for")

    def finish(self, stored: State) -> Head:
        """Compare the end of the walk with what the store says, and return the newest head."""
        if self._awaited:
            number = max(number for number, _ in self._awaited)
            raise damaged(
                self.state.number + 1, f"it is missing, and a receipt vouches for row {number}"
            )
        if stored != self.state:
            raise damaged(self.state.number, "the ledger's head does not follow from it")
        return Head(self.state.number, self.state.hash.hex())


def _again(state: State, entry: LedgerEntry, principal_total: Total) -> tuple[LedgerEntry, State]:
    """Write the row once more, from what it says alone."""
    try:
        draft = Draft(
            RowKind(entry.kind),
            entry.key,
            entry.at,
            entry.principal,
            entry.purpose,
            entry.cost,
            entry.output,
        )
        return extended(state, draft, principal_total)
    except (ValueError, ArithmeticError, LookupError, TypeError) as reason:
        raise damaged(entry.number, "it cannot be read") from reason


def require_newest(stored: State, newest: LedgerEntry | None) -> None:
    """Refuse a store whose head does not name its newest row: rows were cut off or slipped in."""
    found = State() if newest is None else _at(stored, newest)
    if (stored.number, stored.hash, stored.total) != (found.number, found.hash, found.total):
        raise damaged(
            found.number + 1, f"the head counts {stored.number + 1} rows up to another newest one"
        )


def _at(stored: State, newest: LedgerEntry) -> State:
    return replace(stored, number=newest.number, hash=newest.hash, total=newest.total)
