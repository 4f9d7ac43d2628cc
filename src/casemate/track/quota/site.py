"""A site of a quota: it admits from its lease, and asks for more when that is used up.

Guarantee  What a site admits never exceeds its bound, and it writes down what it used before it
           says yes and a lower bound before it answers a recall: killed at any moment, it goes on
           as if nothing had happened. Any number of threads may acquire. A site that ever
           followed an order follows no server with another journal, and tells it so.
Cost       No message while the lease lasts; otherwise one to ask and one back, and those that it
           takes the server to recall what others have left.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

from casemate.errors import CasemateError, OtherWindow, Refused, UnknownSite
from casemate.track.journal import MemoryJournal, new_number
from casemate.track.messages import whole
from casemate.track.quota.journals import OrderStanding, SiteJournal
from casemate.track.quota.messages import (
    Claim,
    Denial,
    Lease,
    Numbered,
    Order,
    QuotaTransport,
    Recall,
    ServerCall,
    Why,
)

REQUEST_ATTEMPTS = 6
"""How often an unanswered question is asked before `acquire` gives up."""


class QuotaSite:
    """One of the places that share a limit.

    >>> from casemate.track.quota.messages import QuotaInProcess
    >>> from casemate.track.quota.server import QuotaServer
    >>> transport = QuotaInProcess()
    >>> server = QuotaServer(5, ["edge-7"], transport)
    >>> site = QuotaSite("edge-7", transport)
    >>> [site.acquire(2), site.acquire(2), site.acquire(2), site.acquire()]
    [True, True, False, True]
    """

    def __init__(
        self,
        name: str,
        transport: QuotaTransport,
        journal: SiteJournal | None = None,
        patience: float = 0.0,  # seconds for an answer; within one process it is there at once
    ) -> None:
        self.name = name
        self._transport, self._patience = transport, patience
        self._journal = journal or MemoryJournal(new_number())
        self._cells = self._journal.cells
        self._lock = threading.Lock()
        self._heard = threading.Condition(self._lock)
        self._denied: Why | None = None  # by some server, since somebody began to ask
        self._follow(self._journal.load() or OrderStanding())
        transport.join(name, self.take)

    @property
    def used(self) -> int:
        """Everything this site has admitted."""
        return self._cells[0]

    def unsaid(self, said: Callable[[str, int], int]) -> int:
        """What it has admitted beyond what it has said to the server."""
        return max(0, self.used - said(self.name, self._journal.incarnation))

    @property
    def left(self) -> int:
        """What it can admit without asking."""
        with self._lock:
            return self._bound - self._cells[0]

    @property
    def closed(self) -> bool:
        """Whether the server has said that there is no more to ask for."""
        return self._standing.ceiling == 0

    def acquire(self, n: int = 1) -> bool:
        """Admit n things at once, or none of them.

        It is False when too little is left, and when nobody answers; `closed` tells the two apart.
        A server that does not know this site, or that leases nothing any more, is an error.
        """
        if n.__class__ is not int:
            n = whole(n)
        with self._lock:
            used = self._cells[0] + n
            if n > 0 and used <= self._bound:
                self._cells[0] = used  # written down before the answer is known to anybody
                return True
        return self._acquire_more(n)

    def _acquire_more(self, n: int) -> bool:
        if n < 1:
            raise ValueError(f"a site admits at least one thing at a time, got n = {n!r}")
        unanswered, self._denied = 0, None
        while unanswered < REQUEST_ATTEMPTS:
            with self._lock:
                decision = self._decide_locally(n)
                if decision is not None:
                    return decision
                claim = self._claim(wanted=n)
            self._transport.report(claim)  # without the lock: the answer may come at once
            if not self._heard_since(claim.sequence):
                unanswered += 1
                self._complain(Why.UNKNOWN)
        self._complain(Why.STOPPED)  # only now: a server beside it may have been busy
        return False

    def _complain(self, why: Why) -> None:
        if self._denied is why:
            raise self._error(why)

    def _error(self, why: Why) -> CasemateError:
        if why is Why.UNKNOWN:
            return UnknownSite(self.name)
        return Refused(
            f"the server that answers leases nothing to site {self.name!r}, because it is not the "
            f"only server of this quota, or not the one with its journal; its notes say more"
        )

    def _heard_since(self, sequence: int) -> bool:
        """Wait for an order that is newer than this one."""
        with self._heard:
            return self._heard.wait_for(
                lambda: self._standing.sequence > sequence, timeout=self._patience
            )

    def _decide_locally(self, n: int) -> bool | None:
        """Admit or refuse without asking, or None."""
        used, ceiling = self._cells[0] + n, self._standing.ceiling
        if used <= self._bound:
            self._cells[0] = used
            return True
        return False if ceiling is not None and n > ceiling else None

    def tell(self) -> None:
        """Say what it has used, so that the server knows of it before it asks again."""
        with self._lock:
            window, claim = self._standing.window, self._claim(wanted=0)
        if window:
            self._transport.report(claim)

    def take(self, order: Order) -> None:
        """Follow an order; an old one is ignored, a repeated recall is answered again."""
        match order:
            case Denial():
                if order.incarnation == self._journal.incarnation:
                    self._denied = order.why
            case ServerCall():
                self._tell_apart(order.window)
            case _ if order.incarnation == self._journal.incarnation:
                if self._tell_apart(order.window):
                    raise OtherWindow(self.name)
                self._take_numbered(order)

    def _tell_apart(self, window: int) -> bool:
        """Whether that is a server with another journal; it is told whose this site is."""
        with self._lock:
            other = self._standing.window not in (0, window)
            answer = self._claim(wanted=0)
        if other:
            self._transport.report(answer)
        return other

    def _take_numbered(self, order: Numbered) -> None:
        answer = None
        with self._heard:
            if self._standing.window not in (0, order.window):
                raise OtherWindow(self.name)  # since a moment ago
            if order.sequence > self._standing.sequence:
                standing = self._result(order)
                self._journal.save(standing)
                self._follow(standing)
                self._heard.notify_all()
            if isinstance(order, Recall) and order.sequence == self._standing.sequence:
                answer = self._claim(wanted=0)
        if answer is not None:
            self._transport.report(answer)

    def _result(self, order: Numbered) -> OrderStanding:
        """Where the site stands once it follows the order."""
        if isinstance(order, Lease):
            return OrderStanding(order.window, order.sequence, order.bound, order.ceiling)
        used = self._cells[0]
        bound = used + order.retention(used, self._bound - used)
        return replace(self._standing, window=order.window, sequence=order.sequence, bound=bound)

    def _follow(self, standing: OrderStanding) -> None:
        self._standing, self._bound = standing, standing.bound

    def _claim(self, wanted: int) -> Claim:
        at, incarnation = self._standing, self._journal.incarnation
        used = self._cells[0]
        return Claim(at.window, self.name, incarnation, at.sequence, at.bound, used, wanted)

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
