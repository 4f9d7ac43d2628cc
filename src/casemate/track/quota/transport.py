"""How claims reach a quota's server and orders reach its sites."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from casemate.track.quota.messages import Claim, Order

Receive = Callable[[Claim], None]
Take = Callable[[Order], None]


class Transport(Protocol):
    """A way for messages, which may lose, repeat and reorder them."""

    def serve(self, receive: Receive) -> None:
        """Deliver claims to this server from now on."""
        ...

    def join(self, site: str, take: Take) -> None:
        """Deliver orders for this site from now on."""
        ...

    def claim(self, claim: Claim) -> None:
        """Carry a claim to the server."""
        ...

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class InProcess:
    """Server and sites in one process: whoever sends comes back when all of it is dealt with.

    Messages are delivered one after another and never one within another, so that nobody is called
    in the middle of what it does.
    """

    def __init__(self) -> None:
        self._receive: Receive | None = None
        self._sites: dict[str, Take] = {}
        self._lock, self._delivering = threading.RLock(), False
        self._queue: deque[Callable[[], None]] = deque()
        self.messages = 0

    def serve(self, receive: Receive) -> None:
        """Deliver claims to this server from now on."""
        self._receive = receive

    def join(self, site: str, take: Take) -> None:
        """Deliver orders for this site from now on."""
        self._sites[site] = take

    def claim(self, claim: Claim) -> None:
        """Hand the claim over."""
        receive = self._receive
        if receive is not None:
            self._deliver(lambda: receive(claim))

    def order(self, site: str, order: Order) -> None:
        """Hand the order over."""
        take = self._sites.get(site)
        if take is not None:
            self._deliver(lambda: take(order))

    def close(self) -> None:
        """Nothing is held."""

    def _deliver(self, handing_over: Callable[[], None]) -> None:
        with self._lock:
            self.messages += 1
            self._queue.append(handing_over)
            if not self._delivering:
                self._empty()

    def _empty(self) -> None:
        self._delivering = True
        try:
            while self._queue:
                self._queue.popleft()()
        finally:
            self._delivering = False
