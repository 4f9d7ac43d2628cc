"""The rows of a ledger: its terms, its charges and totals, and the chain by which it grows.

A ledger is a list of rows that only grows. Row 0 states the terms; every other row is a charge,
the output of a charge, or amended terms. Each row's hash is SHA-256 over the previous row's hash
and the row's own fields, so a row cannot change without every later hash changing too. Each row
also carries the exact totals after it, in rationals, so the newest row is all that a charge has to
look at. A whole ledger is checked by growing it again.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Self, TypeVar

from casemate.errors import LedgerDamaged, Misconfigured
from casemate.privacy.book.chain import START, Form, Head, canonical_json
from casemate.privacy.cost import Concentrated, Cost, Currency, Pure, Unbounded, price, rho_of

UNIT = Fraction(1, 10**12)
"""What one integer of the store is worth, in epsilon or in rho.

Totals are exact rationals; beside each the store keeps its whole units, rounded up, so that a
CHECK of the database itself refuses an overspending. Rounding the total once, not each charge,
lets n charges of budget/n fill a budget exactly.
"""

LARGEST_EPSILON = 10**6
"""No budget may be larger: it protects nobody, and its units must fit into 63 bits."""

FORMAT = "casemate.ledger/2"


@dataclass(frozen=True)
class Terms:
    """What one ledger is about; only the policy's hash and the budget may be amended later."""

    dataset: str
    policy: str
    neighbours: str
    protects: str
    epsilon: Fraction
    delta: Fraction
    budget: Fraction  # epsilon itself, or the rho it is worth at delta

    @classmethod
    def of(
        cls,
        *,
        dataset: str,
        policy: str,
        neighbours: str,
        protects: str,
        epsilon: Fraction,
        delta: Fraction,
    ) -> Self:
        """State the terms, converting (epsilon, delta) to rho when delta is not 0."""
        _require_word("neighbours", neighbours, ("add-remove", "replace"))
        _require_word("protects", protects, ("person", "private-columns"))
        require_text("dataset", dataset, 1, 500)
        require_text("policy", policy, 0, 500)
        exact = isinstance(epsilon, Fraction) and isinstance(delta, Fraction)
        if not exact or not 0 < epsilon <= LARGEST_EPSILON or not 0 <= delta < 1:
            raise ValueError(
                f"a budget needs Fractions with 0 < epsilon <= {LARGEST_EPSILON} and "
                f"0 <= delta < 1, got {epsilon!r} and {delta!r}"
            )
        budget = rho_of(epsilon, delta) if delta else epsilon
        return cls(dataset, policy, neighbours, protects, epsilon, delta, budget)

    @property
    def currency(self) -> Currency:
        """Pure epsilon when delta is 0, rho otherwise."""
        return Currency.RHO if self.delta else Currency.EPSILON

    def to_text(self) -> str:
        """The terms as one line of JSON, always the same for the same terms."""
        facts = {name: str(value) for name, value in asdict(self).items()}
        return canonical_json({"format": FORMAT, **facts})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read back what `to_text` wrote."""
        facts = json.loads(text)
        FORM.require_version(facts.pop("format"))
        numbers = {name: Fraction(facts[name]) for name in ("epsilon", "delta", "budget")}
        return cls(**(facts | numbers))


@dataclass(frozen=True)
class Total:
    """A sum of costs in the budget's currency, and the first row that made it infinite, if any."""

    amount: Fraction = Fraction(0)
    infinite_since: int | None = None

    @property
    def infinite(self) -> bool:
        """Whether something left without noise, so that no finite guarantee is left."""
        return self.infinite_since is not None

    def plus(self, amount: Fraction) -> Self:
        """Add a price; past 512 bits the sum is rounded up, so that a ledger cannot be clogged."""
        total = self.amount + amount
        if total.denominator.bit_length() > 512:
            total = Fraction(-(-(total.numerator << 256) // total.denominator), 1 << 256)
        return replace(self, amount=total)

    @property
    def units(self) -> int:
        """The finite part in whole units, rounded up."""
        return whole_units(self.amount)

    def to_text(self) -> str:
        """The total as it is stored."""
        return str(self.amount) + (f" infinite {self.infinite_since}" if self.infinite else "")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read back what `to_text` wrote."""
        amount, _, since = text.partition(" infinite ")
        return cls(Fraction(amount), int(since) if since else None)


def whole_units(amount: Fraction) -> int:
    """The amount in the integer units of the store, rounded up."""
    return -(-amount // UNIT)


NOTHING = Total()


def require_text(name: str, value: str, least: int, most: int) -> None:
    """Demand text that every store can keep."""
    if not isinstance(value, str) or not least <= len(value) <= most or "\0" in value:
        raise ValueError(f"{name} must be text of {least} to {most} characters without NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that UTF-8 can express") from None


def _require_word(name: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        raise Misconfigured(f"{name} must be one of {', '.join(allowed)}, got {word!r}")


# One row ----------------------------------------------------------------------------------------


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

    def with_hash(self, previous: bytes) -> Self:
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


# How a ledger grows by a row, and is checked by growing again -----------------------------------


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


def next_row(state: State, draft: Draft, principal_total: Total) -> tuple[LedgerEntry, State]:
    """The row that the draft becomes after `state`, and the state after it."""
    number = state.number + 1
    total = _add_cost(state.total, draft.cost, number, state.currency)
    own_total = _add_cost(principal_total, draft.cost, number, state.currency)
    entry = LedgerEntry(
        number=number,
        kind=draft.kind.value,
        key=draft.key,
        principal=draft.principal,
        purpose=draft.purpose,
        cost_text="" if draft.cost is None else cost_to_text(draft.cost),
        output=draft.output,
        total_text=total.to_text(),
        principal_total_text=own_total.to_text(),
        units=total.units,
        at=draft.at,
    ).with_hash(state.hash)
    return entry, _advance(state, entry, total)


def _add_cost(total: Total, cost: Cost | None, number: int, currency: Currency) -> Total:
    if cost is None:
        return total
    if isinstance(cost, Unbounded):
        return total if total.infinite else replace(total, infinite_since=number)
    paid = price(cost, currency)
    if paid is None:
        raise ValueError("a zCDP cost cannot be added to a pure epsilon total")
    return total.plus(paid)


def _advance(state: State, entry: LedgerEntry, total: Total) -> State:
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
        rewritten, self.state = _rewrite(self.state, entry, before)
        if rewritten != entry or self.state.left < 0:
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


def _rewrite(state: State, entry: LedgerEntry, principal_total: Total) -> tuple[LedgerEntry, State]:
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
        return next_row(state, draft, principal_total)
    except (ValueError, ArithmeticError, LookupError, TypeError) as reason:
        raise damaged(entry.number, "it cannot be read") from reason


def require_newest(stored: State, newest: LedgerEntry | None) -> None:
    """Refuse a store whose head does not name its newest row: rows were cut off or slipped in."""
    found = (-1, START, NOTHING)
    if newest is not None:
        found = (newest.number, newest.hash, newest.total)
    if (stored.number, stored.hash, stored.total) != found:
        raise damaged(
            found[0] + 1, f"the head counts {stored.number + 1} rows up to another newest one"
        )
