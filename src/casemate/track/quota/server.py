"""The server of a quota: it leases parts of a limit to sites, and recalls what they have left.

Guarantee  The bounds of all incarnations of all sites add up to at most the limit, in the journal
           before any order leaves; docs/derivations/escrow.md proves that nothing more is admitted,
           whatever happens to messages, sites and servers, as long as this journal is kept and is
           the only one at its address. A server that finds out that it is not so stops: it leases
           nothing any more.
           A site is refused n only when fewer than n + remainder * limit are left, apart from what
           incarnations hold that do not answer any more.
Cost       See docs/derivations/escrow.md; a request and a lease are one message each, a recall and
           its answer as well.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from casemate.errors import JournalRewound, Misconfigured, Refused, UnknownSite
from casemate.track.quota.journals import Holding, Holdings, ServerJournal, ServerMemory
from casemate.track.quota.messages import (
    Claim,
    Lease,
    Numbered,
    QuotaTransport,
    Recall,
    other_journal,
)

# How much of what is left a site is leased, and how much of its lease it may keep ---------------
#
# A limit that is used up by everybody at the same moment needs no recall, so a site gets the share
# of what is left that it had of what was used. What others hold is known from their last messages
# only; half of it is taken for used. None of this matters for the guarantee, only for the messages.

RETAINED_FAIR_SHARES = 2
"""How many times its fair share of what is left a recalled site may keep (never above half)."""


@dataclass(frozen=True)
class QuotaState:
    """What a server knows of its quota."""

    limit: int
    sites: int
    free: int  # in no site's hands
    used: int  # what those who answer have said to have used
    bound: int  # what they may use in all

    @property
    def possible(self) -> int:
        """The most that can be left, unless somebody who was silent speaks again."""
        return self.free + self.bound - self.used

    @property
    def believed_used(self) -> int:
        """What is taken for used."""
        return (self.used + self.bound) // 2

    @property
    def believed_left(self) -> int:
        """What is taken for left."""
        return self.free + (self.bound - self.used + 1) // 2


def lease(state: QuotaState, used: int, need: int) -> int:
    """What to lease to a site that has used so much and needs so much more.

    >>> lease(QuotaState(limit=1000, sites=4, free=1000, used=0, bound=0), used=0, need=1)
    250
    >>> lease(QuotaState(limit=1000, sites=4, free=500, used=100, bound=500), used=100, need=1)
    233
    """
    if used == 0:
        fair = state.limit // state.sites  # taken for one of many alike
    else:
        fair = used * state.believed_left // max(1, state.believed_used)
    return min(state.free, max(need, fair))


def retention_share(state: QuotaState, held_by_others: int, need: int) -> tuple[int, int]:
    """What recalled sites keep, as a fraction of what each has used; nothing if all is needed.

    >>> state = QuotaState(limit=1000, sites=4, free=0, used=600, bound=1000)
    >>> retention_share(state, 400, need=1)
    (400, 800)
    >>> retention_share(state, 400, need=300)
    (0, 1)
    """
    if held_by_others // 2 < need:
        return 0, 1
    return RETAINED_FAIR_SHARES * state.believed_left, max(1, state.believed_used)


# The server --------------------------------------------------------------------------------------


LIMIT_BOUND = 1 << 62
"""A limit is smaller than this."""

RECALL_ATTEMPTS = 3
"""How often a recall is sent before its site is taken for gone."""

Clock = Callable[[], float]


class QuotaServer:
    """One limit, leased in parts to sites."""

    def __init__(
        self,
        limit: int,
        sites: Sequence[str],
        transport: QuotaTransport,
        *,
        remainder: float = 0.01,
        journal: ServerJournal | None = None,
        clock: Clock = time.monotonic,
        pause: float = 0.2,  # seconds until an unanswered recall is repeated
    ) -> None:
        _check(limit, sites, remainder)
        self._sites, self._share = frozenset(sites), remainder
        self._transport, self._clock, self._pause = transport, clock, pause
        self._journal = journal or ServerMemory()
        self._limit, leases = self._journal.load(limit)
        if self._limit != limit:
            raise Misconfigured(
                f"the journal of this quota says that its limit is {self._limit}, and not {limit}; "
                f"open it with that one and then raise or lower it"
            )
        self._wish = limit  # the limit is lowered to this as soon as leases come back
        self._holdings = Holdings(leases)
        self._waiting: dict[int, Holding] = {}  # for a lease
        self._recalled: dict[int, Holding] = {}  # asked to answer
        self._changed: dict[int, Holding] = {}  # not in the journal yet
        self._out: list[tuple[str, Numbered]] = []
        self._end: Refused | None = None  # why nothing is leased any more
        self._lock = threading.RLock()
        self.messages = {"request": 0, "answer": 0, "lease": 0, "refusal": 0, "recall": 0}
        transport.serve(self.receive)

    @property
    def limit(self) -> int:
        """The limit in force."""
        return self._limit

    @property
    def granted(self) -> int:
        """What all sites together may use by now; `limit - granted` is in nobody's hands."""
        return self._holdings.granted

    @property
    def heard(self) -> int:
        """What all sites together have said to have used; it may be more by now."""
        with self._lock:
            return sum(row.used for row in self._holdings)

    def reported_use(self, site: str, incarnation: int) -> int:
        """What an incarnation has said to have used."""
        row = self._holdings.find(site, incarnation)
        return 0 if row is None else row.used

    @property
    def stopped(self) -> bool:
        """Whether it leases nothing any more, because others lease from this limit as well."""
        return self._end is not None

    def stop(self, why: Refused) -> Refused:
        """Lease nothing any more; the reason, to be said."""
        with self._lock:
            self._end = self._end or why
            self._waiting.clear()
            return self._end

    def receive(self, claim: Claim) -> None:
        """Take a claim; one that is old or repeated changes nothing."""
        with self._lock:
            self._hear(claim)
            orders = self._settle()
        self._send(orders)

    def raise_limit(self, limit: int) -> None:
        """Allow more from now on."""
        with self._lock:
            if not _is_whole(limit) or not self._limit <= limit < LIMIT_BOUND:
                raise ValueError(
                    f"the limit is {self._limit}; it can be raised to a whole number below 2^62, "
                    f"got {limit!r}"
                )
            self._limit = self._wish = limit
            self._journal.keep(self._limit, ())
            self._reopen()
            orders = self._settle()
        self._send(orders)

    def lower_limit(self, limit: int) -> int:
        """Recall every lease, and allow less: the limit in force, which is at least what is used.

        Sites that answer later lower it further, down to what was asked for.
        """
        with self._lock:
            if not _is_whole(limit) or not 0 < limit <= self._limit:
                raise ValueError(
                    f"the limit is {self._limit}; it can be lowered to a whole number above 0, "
                    f"got {limit!r}"
                )
            self._wish = limit
            for row in self._holdings:
                if row.left and not row.silent:
                    self._recall(row, (0, 1))
            orders = self._settle()
        self._send(orders)
        return self._limit

    # What a claim says

    def _hear(self, claim: Claim) -> None:
        row = self._holder(claim)
        if (claim.sequence, claim.bound) > (row.sequence, row.bound):
            raise self.stop(JournalRewound())
        self.messages["request" if claim.wanted else "answer"] += 1
        self._speak(row)
        if claim.used > row.used:
            self._holdings.change(row, used=claim.used)
            self._changed[id(row)] = row
        if claim.sequence == row.sequence:
            self._agree(row, claim)
        elif claim.wanted:
            self._again(row)

    def _holder(self, claim: Claim) -> Holding:
        if claim.window not in (0, self._journal.window):
            self._charge(claim)
            raise other_journal(claim.site)
        if self._end is not None:
            raise self._end
        if claim.site not in self._sites:
            raise UnknownSite(claim.site)
        return self._find_or_add(claim)

    def _find_or_add(self, claim: Claim) -> Holding:
        row = self._holdings.find(claim.site, claim.incarnation)
        if row is None:
            row = self._holdings.add(claim.site, claim.incarnation)
            self._changed[id(row)] = row
        return row

    def _charge(self, claim: Claim) -> None:
        """Take what is held under another journal off this limit, or leave it to that journal.

        A server that has leased nothing yet is the one too many, or has lost its own journal: then
        others may hold leases of which it will never hear.
        """
        if not self.granted:
            self.stop(other_journal(claim.site))
            return
        row = self._find_or_add(claim)
        bound, used = max(row.bound, claim.bound), max(row.used, claim.used)
        self._holdings.change(row, bound=bound, used=used, silent=True)
        self._changed[id(row)] = row
        self._journal.keep(self._limit, self._changed.values())
        self._changed.clear()

    def _speak(self, row: Holding) -> None:
        """Who speaks is there; other incarnations of the same site are not."""
        for other in self._holdings.others(row):
            if not other.silent:
                self._silence(other)
        if row.silent:
            self._holdings.change(row, silent=False)
            if row.left:
                self._reopen()

    def _agree(self, row: Holding, claim: Claim) -> None:
        """The site follows the newest order, so its bound is the one it says."""
        self._recalled.pop(id(row), None)
        if claim.bound < row.bound:
            self._holdings.change(row, bound=claim.bound)
            self._changed[id(row)] = row
        if claim.wanted:  # an answer cancels no request: it may have been overtaken by it
            row.wanted = claim.wanted
            self._waiting[id(row)] = row

    # What follows from it

    def _settle(self) -> list[tuple[str, Numbered]]:
        """Serve whoever waits, write down what changed, and give what is to be sent then."""
        self._lower()
        for row in list(self._waiting.values()):
            self._repeat_recalls()
            self._serve(row)
        if self._changed:
            self._journal.keep(self._limit, self._changed.values())
            self._changed.clear()
        orders, self._out = self._out, []
        return orders

    def _lower(self) -> None:
        limit = max(self._wish, self._holdings.granted)
        if limit < self._limit:
            self._limit = limit
            self._journal.keep(limit, self._changed.values())

    def _snapshot(self) -> QuotaState:
        holdings = self._holdings
        free = max(0, self._limit - holdings.granted)
        return QuotaState(self._limit, len(self._sites), free, holdings.used, holdings.bound)

    def _serve(self, row: Holding) -> None:
        """Lease, refuse, or wait for what is recalled from others."""
        state, need = self._snapshot(), max(1, row.wanted - row.left)
        spare = state.possible - int(self._share * self._limit)
        if need <= state.free:
            self._grant(row, row.bound + lease(state, row.used, need), None)
        elif spare < row.wanted:
            self._grant(row, row.bound, max(0, spare))
        elif all(late.times > 1 for late in self._recalled.values()):
            self._recall_for(row, state, need)

    def _recall_for(self, row: Holding, state: QuotaState, need: int) -> None:
        """Recall from others, and from twice as many as have left a recall unanswered."""
        share = retention_share(state, state.bound - state.used - row.left, need)
        busy = {id(row), *self._recalled}
        for donor in self._holdings.donors(need, 2 * len(self._recalled), busy):
            self._recall(donor, share)

    def _grant(self, row: Holding, bound: int, ceiling: int | None) -> None:
        self._waiting.pop(id(row), None)
        self._recalled.pop(id(row), None)
        row.wanted, row.told_ceiling = 0, ceiling
        if bound != row.bound:
            self._holdings.change(row, bound=bound)
        number = row.sequence + 1
        self._issue(row, Lease(self._journal.window, row.incarnation, number, bound, ceiling))

    def _recall(self, row: Holding, share: tuple[int, int]) -> None:
        self._recalled[id(row)] = row
        number = row.sequence + 1
        self._issue(row, Recall(self._journal.window, row.incarnation, number, *share))

    def _issue(self, row: Holding, order: Numbered) -> None:
        row.sequence, row.order, row.times = order.sequence, order, 0
        self._changed[id(row)] = row
        self._again(row)

    def _again(self, row: Holding) -> None:
        """Send the newest order, perhaps once more; after a restart it is what is leased."""
        if row.order is None:
            window = self._journal.window
            row.order = Lease(window, row.incarnation, row.sequence, row.bound, None)
        row.sent, row.times = self._clock(), row.times + 1
        self.messages[_kind(row.order)] += 1
        self._out.append((row.site, row.order))

    def _repeat_recalls(self) -> None:
        """Recall once more from those who have not answered for a while, or give them up."""
        now = self._clock()
        for row in [row for row in self._recalled.values() if now - row.sent >= self._pause]:
            if row.times < RECALL_ATTEMPTS:
                self._again(row)
            else:
                self._silence(row)

    def _silence(self, row: Holding) -> None:
        self._recalled.pop(id(row), None)
        self._waiting.pop(id(row), None)
        self._holdings.change(row, silent=True)

    def _reopen(self) -> None:
        """There is more to ask for: tell those who were told that there is not."""
        for row in self._holdings:
            if row.told_ceiling is not None and not row.silent:
                self._grant(row, row.bound, None)

    def _send(self, orders: Sequence[tuple[str, Numbered]]) -> None:
        for site, order in orders:
            self._transport.order(site, order)


def _is_whole(number: object) -> bool:
    """Whether this is an int, and no yes or no."""
    return isinstance(number, int) and not isinstance(number, bool)


def _kind(order: Numbered) -> str:
    if isinstance(order, Recall):
        return "recall"
    return "lease" if order.ceiling is None else "refusal"


def _check(limit: int, sites: Sequence[str], remainder: float) -> None:
    if not _is_whole(limit) or not 0 < limit < LIMIT_BOUND:
        raise Misconfigured(
            f"a quota's limit is a whole number from 1 to less than 2^62, got {limit!r}"
        )
    if len(set(sites)) != len(sites) or not sites:
        raise Misconfigured("a quota needs at least one site, and each a name of its own")
    if not isinstance(remainder, int | float) or not 0 <= remainder < 1:
        raise Misconfigured(
            f"the remainder is a share of the limit from 0 to less than 1, got {remainder}"
        )
