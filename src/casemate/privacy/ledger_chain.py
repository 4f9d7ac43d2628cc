"""How a ledger grows by one row, and how a whole ledger is checked by growing it again."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from casemate.privacy.cost import Cost, Currency, Unbounded, price
from casemate.privacy.ledger_entry import START, Entry, Head, Kind, cost_to_text, damaged
from casemate.privacy.ledger_terms import NOTHING, Terms, Total


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

    kind: Kind
    key: str
    at: str
    principal: str = ""
    purpose: str = ""
    cost: Cost | None = None
    output: bytes = b""


def extended(state: State, draft: Draft, principal_total: Total) -> tuple[Entry, State]:
    """The row that the draft becomes after `state`, and the state after it."""
    number = state.number + 1
    total = _after(state.total, draft.cost, number, state.currency)
    own = _after(principal_total, draft.cost, number, state.currency)
    entry = Entry(
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


def _moved(state: State, entry: Entry, total: Total) -> State:
    state = replace(state, number=entry.number, hash=entry.hash, total=total)
    if entry.kind == Kind.TERMS:
        terms = Terms.from_text(entry.purpose)
        state = replace(state, currency=terms.currency, budget=terms.budget)
    return state


class Walk:
    """A check of a whole ledger, from its first row to its newest."""

    def __init__(self, expected: Collection[Head] = ()) -> None:
        self.state = State()
        self._totals: dict[str, Total] = {}
        self._awaited = {(head.number, head.hash) for head in expected}

    def add(self, entry: Entry) -> None:
        """Check the next row, which must be exactly what its own contents lead to."""
        charge = entry.kind == Kind.CHARGE
        before = self._totals.get(entry.principal, NOTHING) if charge else NOTHING
        _require_chained(self.state, entry)
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


def _require_chained(state: State, entry: Entry) -> None:
    if entry.number != state.number + 1:
        raise damaged(state.number + 1, "it is missing")
    if entry.number == 0 and entry.kind != Kind.TERMS:
        raise damaged(0, "it does not state the terms")
    if entry.digest(state.hash) != entry.hash:
        raise damaged(entry.number, "its contents do not have its hash")


def _again(state: State, entry: Entry, principal_total: Total) -> tuple[Entry, State]:
    """Write the row once more, from what it says alone."""
    try:
        draft = Draft(
            Kind(entry.kind),
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


def require_newest(stored: State, newest: Entry | None) -> None:
    """Refuse a store whose head does not name its newest row: rows were cut off or slipped in."""
    found = State() if newest is None else _at(stored, newest)
    if (stored.number, stored.hash, stored.total) != (found.number, found.hash, found.total):
        raise damaged(
            found.number + 1, f"the head counts {stored.number + 1} rows up to another newest one"
        )


def _at(stored: State, newest: Entry) -> State:
    return replace(stored, number=newest.number, hash=newest.hash, total=newest.total)
