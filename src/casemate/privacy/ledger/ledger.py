"""The ledger: what may still be asked of a dataset, decided before anything leaves it.

Guarantee  The sum of all charges never exceeds the budget, over all principals and processes, and
           whoever chooses the next mechanism and its cost may look at every earlier answer. Both
           sums are fully adaptive filters: pure epsilon by Rogers, Roth, Ullman and Vadhan,
           arXiv:1605.08294; rho by Feldman and Zrnic, arXiv:2008.11193 (the Rényi filter, here at
           every order at once) and Whitehouse, Ramdas, Rogers and Wu, arXiv:2203.05481. Why: on
           each path of answers the losses (at order alpha for zCDP) add up to at most the budget,
           because a charge that would pass it is refused before its mechanism runs.
           A mechanism that stays open while others run (a gate) must be pure and is charged in
           full when it opens: it is then a post-processing of one randomised response drawn at
           that moment (Vadhan and Wang, arXiv:2105.14427), so the same filters cover it.
Order      The charge is durable; then the noise is drawn; then the output is durable under the
           charge's key; then it is sent. A retry with the key gets the stored bytes. A charge
           without an output proves that nothing left, so one draw is still owed: `answer_once`.
Damage     Rows are hash-chained and a head row names the newest, so a changed, missing or
           truncated row is found when the ledger is opened, and a truncation also at the next
           charge. What cannot be found from the store alone: somebody who can write to it may
           recompute every hash, or put back an older copy of the whole. Keep a receipt's `head`
           where they cannot reach it and pass it to `verify`; then that is found too.
Amended    A policy may change its budget: the new terms become a row. The guarantee is then the
           largest budget that was ever in force.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Self

from casemate.errors import BudgetExhausted, Misconfigured, Refused, checked_path
from casemate.privacy.book.book import IN_MEMORY
from casemate.privacy.book.chain import Head
from casemate.privacy.cost import Cost, Unbounded, epsilon_of, price
from casemate.privacy.ledger.entry import (
    NOTHING,
    Draft,
    LedgerEntry,
    RowKind,
    State,
    Terms,
    Total,
    Walk,
    cost_to_text,
    require_text,
)
from casemate.privacy.ledger.store import (
    LedgerBook,
    LedgerInMemory,
    LedgerStore,
    is_there,
    open_database,
    open_sqlite,
)

# What a ledger allows: pure decisions about a cost, a quota and its terms -----------------------


def permit(cost: Cost, state: State, *, allow_unbounded: bool) -> None:
    """Refuse a cost that the dataset's budget cannot pay."""
    if state.total.infinite and not allow_unbounded:
        raise Refused(
            f"row {state.total.infinite_since} of the ledger left without noise, so the dataset's "
            f"total is infinite and no budget can be kept; 0 of {state.currency} is left"
        )
    if isinstance(cost, Unbounded):
        if allow_unbounded:
            return
        raise Refused(
            f"this would leave without noise ({cost.reason}) and make the dataset's total "
            f"infinite for ever; {_describe_remaining(state)}: add noise, or open the ledger to "
            f"allow it"
        )
    asked = price(cost, state.currency)
    if asked is None:
        raise Refused(
            f"a zCDP cost has no finite epsilon at delta = 0, and this budget has delta = 0; "
            f"{_describe_remaining(state)}: use a pure mechanism, or state a delta in the policy"
        )
    _afford(state.total, asked, state.budget, state.currency.value)


def _describe_remaining(state: State) -> str:
    return f"{float(state.left):.6g} of {state.currency} is left"


def permit_quota(
    cost: Cost, state: State, own: Total, principal: str, quota: Fraction | None
) -> None:
    """Refuse a cost that the dataset could pay, and that the principal's share of it cannot."""
    asked = None if isinstance(cost, Unbounded) else price(cost, state.currency)
    if asked is not None and quota is not None:
        _afford(own, asked, quota, f"the {state.currency} quota of {principal!r}")


def _afford(total: Total, asked: Fraction, budget: Fraction, unit: str) -> None:
    if total.plus(asked).amount > budget:
        raise BudgetExhausted(asked, max(Fraction(0), budget - total.amount), unit)


def agree(terms: Terms, stored: Terms | None, state: State) -> Terms:
    """The terms in force after a ledger with the `stored` ones is opened with `terms`."""
    if stored is not None:
        _require_same_promise(terms, stored)
        if (terms.policy, terms.epsilon, terms.delta) == (
            stored.policy,
            stored.epsilon,
            stored.delta,
        ):
            return stored
    if terms.budget < state.total.amount:
        raise Misconfigured(
            f"the policy's budget of {float(terms.budget):.6g} {terms.currency} is less than the "
            f"{float(state.total.amount):.6g} already spent; state a budget of at least that"
        )
    return terms


def _require_same_promise(terms: Terms, stored: Terms) -> None:
    """One ledger sums losses of one kind, about one dataset, in one currency."""
    for name in ("dataset", "neighbours", "protects", "currency"):
        asked, kept = getattr(terms, name), getattr(stored, name)
        if asked != kept:
            raise Misconfigured(
                f"this ledger was started with {name} = {str(kept)!r} and the policy now says "
                f"{str(asked)!r}; the two do not add up: give the new policy a ledger of its own"
            )


# The ledger -------------------------------------------------------------------------------------


ROWS_PER_PAGE = 1000
"""Rows read at a time when the whole history is walked."""

OUTPUT_BYTES_LIMIT = 1 << 28
"""Bytes of one stored output; more belongs into a file whose hash is stored."""


@dataclass(frozen=True)
class Receipt:
    """Proof of a durable charge, and the output stored under its key, if there is one already."""

    key: str
    cost: Cost
    principal: str
    head: Head
    at: str
    output: bytes | None


class _ThreadTotal(threading.local):
    """What each thread has charged."""

    amount = Fraction(0)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """One dataset's budget: check, then commit, then return.

    >>> from casemate.privacy.cost import Pure
    >>> ledger = open_ledger(IN_MEMORY, dataset="hospital", policy="", epsilon=Fraction(1))
    >>> receipt = ledger.charge(Pure(Fraction(1, 4)), key="q1", purpose="count of rows")
    >>> ledger.remaining()
    Fraction(3, 4)
    """

    def __init__(
        self,
        store: LedgerStore,
        terms: Terms | None,  # None: those that it has
        *,
        quotas: Mapping[str, Fraction] | None = None,
        allow_unbounded: bool = False,
        expected_heads: tuple[Head, ...] = (),
        clock: Callable[[], str] = now,
    ) -> None:
        self.quotas = {} if quotas is None else quotas
        self._store, self._allow_unbounded, self._clock = store, allow_unbounded, clock
        self._charged_here = _ThreadTotal()
        self._walk(expected_heads)
        if terms is not None:
            store.run(lambda book: self._agree(book, terms))

    # Charging ---------------------------------------------------------------------------------

    def charge(self, cost: Cost, *, key: str, purpose: str, principal: str = "") -> Receipt:
        """Charge a cost once under its key; when this returns the charge is durable.

        A key that was charged before gives the stored receipt, with its output if there is one,
        and charges nothing.
        """
        require_text("key", key, 1, 500)
        require_text("purpose", purpose, 0, 10_000)
        require_text("principal", principal, 0, 500)
        require_text("cost", cost_to_text(cost), 1, 10_000)
        draft = Draft(RowKind.CHARGE, key, self._clock(), principal, purpose, cost)
        receipt, amount = self._store.run(lambda book: self._charge(book, draft, cost))
        self._charged_here.amount += amount
        return receipt

    @property
    def charged(self) -> Fraction:
        """What this thread has charged through this object, in the budget's currency.

        What others spend in the meantime is not in it, nor is a charge that was found stored.
        """
        return self._charged_here.amount

    def record_output(self, key: str, output: bytes) -> bytes:
        """Store the output of a charge, once, and return what is stored: the first writer's."""
        require_text("key", key, 1, 500)
        if len(output) > OUTPUT_BYTES_LIMIT:
            raise ValueError(f"an output has at most {OUTPUT_BYTES_LIMIT} bytes, got {len(output)}")
        draft = Draft(RowKind.OUTPUT, key, self._clock(), output=bytes(output))
        return self._store.run(lambda book: _record(book, draft))

    def _charge(self, book: LedgerBook, draft: Draft, cost: Cost) -> tuple[Receipt, Fraction]:
        """The receipt, and what was charged now."""
        stored, output, amount = book.rows.find(RowKind.CHARGE, draft.key), None, Fraction(0)
        if stored is None:
            state, own = book.state, _total_of(book, draft.principal)
            permit(cost, state, allow_unbounded=self._allow_unbounded)
            permit_quota(cost, state, own, draft.principal, self.quotas.get(draft.principal))
            stored = book.extend(draft, own)
            amount = book.state.total.amount - state.total.amount
        elif stored.cost != cost:
            raise Refused(
                f"the key {draft.key!r} was charged with another cost before; "
                f"a different question needs a key of its own"
            )
        else:
            output = book.rows.find(RowKind.OUTPUT, draft.key)
        bytes_ = None if output is None else output.output
        receipt = Receipt(stored.key, cost, stored.principal, stored.head, stored.at, bytes_)
        return receipt, amount

    # Reading ----------------------------------------------------------------------------------

    def outcome(self, key: str) -> bytes | None:
        """The output stored under this key, or None: then nothing has left under it."""
        require_text("key", key, 1, 500)
        found = self._store.run(lambda book: book.rows.find(RowKind.OUTPUT, key))
        return None if found is None else found.output

    def spent(self, principal: str | None = None) -> Total:
        """The total over all principals, or of one of them, in the budget's currency."""
        if principal is None:
            return self._store.run(lambda book: book.state).total
        require_text("principal", principal, 0, 500)
        return self._store.run(lambda book: _total_of(book, principal))

    def remaining(self, principal: str | None = None) -> Fraction:
        """What can still be charged, in the budget's currency; within the quota of a principal."""
        state = self._store.run(lambda book: book.state)
        if state.total.infinite and not self._allow_unbounded:
            return Fraction(0)
        quota = None if principal is None else self.quotas.get(principal)
        if quota is None:
            return state.left
        return max(Fraction(0), min(state.left, quota - self.spent(principal).amount))

    def statement(self) -> str:
        """What is guaranteed so far, in one sentence."""
        total, terms = self.spent(), self.terms
        relation = f"neighbours {terms.neighbours}, protects {terms.protects}"
        if total.infinite:
            return (
                f"no finite guarantee: row {total.infinite_since} of the ledger left without "
                f"noise; the rest spent {float(total.amount):.6g} of {terms.currency} ({relation})"
            )
        epsilon = epsilon_of(total.amount, terms.delta) if terms.delta else total.amount
        return (
            f"spent epsilon {float(epsilon):.6g} of {float(terms.epsilon):.6g} "
            f"at delta {float(terms.delta):.6g} ({relation})"
        )

    @property
    def terms(self) -> Terms:
        """The terms in force, which another process may have amended."""
        terms = self._store.run(_terms_of)
        assert terms is not None, "an open ledger has terms"
        return terms

    def history(self) -> Iterator[LedgerEntry]:
        """Every row in order, read a page at a time."""
        first = 0
        while page := self._page(first)[0]:
            yield from page
            first += len(page)

    def verify(self, expected_head: Head | None = None) -> Head:
        """Walk the whole chain, up to and past a head kept elsewhere; return the newest head."""
        return self._walk(() if expected_head is None else (expected_head,))

    def _walk(self, expected: tuple[Head, ...]) -> Head:
        walk = Walk(expected)
        while True:
            page, state = self._page(walk.state.number + 1)
            if not page:
                return walk.finish(state)
            for entry in page:
                walk.add(entry)

    def _page(self, first: int) -> tuple[Sequence[LedgerEntry], State]:
        return self._store.run(lambda book: (book.rows.rows(first, ROWS_PER_PAGE), book.state))

    # Opening and closing ----------------------------------------------------------------------

    def _agree(self, book: LedgerBook, terms: Terms) -> None:
        """Write the terms into a new ledger, or into an old one if they amend it."""
        state, stored = book.state, _terms_of(book)
        agreed = agree(terms, stored, state)
        if agreed != stored:
            key, text = str(state.number + 1), agreed.to_text()
            draft = Draft(RowKind.TERMS, key, self._clock(), purpose=text)
            book.extend(draft, NOTHING)

    @property
    def commits(self) -> int:
        """How many transactions the store has committed."""
        return self._store.commits

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _record(book: LedgerBook, draft: Draft) -> bytes:
    """Append the output unless one is stored, and return the stored one."""
    stored = book.rows.find(RowKind.OUTPUT, draft.key)
    if stored is not None:
        return stored.output
    if book.rows.find(RowKind.CHARGE, draft.key) is None:
        raise Refused(
            f"nothing was charged under the key {draft.key!r}, so no output may leave under it; "
            f"charge first"
        )
    book.extend(draft, NOTHING)
    return draft.output


def _total_of(book: LedgerBook, principal: str) -> Total:
    newest = book.rows.latest(RowKind.CHARGE, principal)
    return NOTHING if newest is None else newest.principal_total


def _terms_of(book: LedgerBook) -> Terms | None:
    newest = book.rows.latest(RowKind.TERMS, "")
    return None if newest is None else Terms.from_text(newest.purpose)


def answer_once(
    ledger: Ledger,
    cost: Cost,
    key: str,
    purpose: str,
    draw: Callable[[], bytes],
    *,
    principal: str = "",
) -> bytes:
    """Charge, draw, store, and return what is stored: at most one output ever leaves per key.

    Two callers with one key both pay once and may both draw; the first to store wins, and the
    other's draw is forgotten. If `draw` fails the charge stands and a retry draws again.
    """
    receipt = ledger.charge(cost, key=key, purpose=purpose, principal=principal)
    if receipt.output is not None:
        return receipt.output
    return ledger.record_output(key, draw())


def open_ledger(
    where: str | Path,
    *,
    dataset: str,
    policy: str,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    neighbours: str = "add-remove",
    protects: str = "person",
    quotas: Mapping[str, Fraction] | None = None,
    allow_unbounded: bool = False,
    expected_head: Head | None = None,
) -> Ledger:
    """Open or start the ledger in an SQLite file, at a postgresql:// URL, or IN_MEMORY."""
    terms = Terms.of(
        dataset=dataset,
        policy=policy,
        neighbours=neighbours,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
    )
    store, kept = _store_at(where)
    try:
        return Ledger(
            store,
            terms,
            quotas=quotas,
            allow_unbounded=allow_unbounded,
            expected_heads=tuple(head for head in (kept, expected_head) if head is not None),
        )
    except BaseException:
        store.close()
        raise


def stored_outputs(where: str | Path, *, copy: bool = False) -> list[bytes] | None:
    """Every output in a ledger, which is walked and left as it is; None where there is none.

    Beside a `copy` stands no head, and whoever holds it need not own it alone.
    """
    if isinstance(where, Path) and not is_there(where):
        return None
    store, kept = (open_database(where), None) if copy else _store_at(where)
    with closing(store):
        ledger = Ledger(store, None, expected_heads=() if kept is None else (kept,))
        return [row.output for row in ledger.history() if row.kind == RowKind.OUTPUT]


def _store_at(where: str | Path) -> tuple[LedgerStore, Head | None]:
    """The store, and the head that its folder remembers."""
    checked_path(where, "an SQLite file, a postgresql:// URL, or :memory:")
    if where == IN_MEMORY:
        return LedgerInMemory(), None
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        return open_database(where), None
    return open_sqlite(Path(where))
