"""How messages of sites reach their server and its orders reach them; and within one process.

Trackers carry reports and quotas carry claims; what carries them is the same.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from casemate.track.messages import Order, Report

Up = TypeVar("Up")
Down = TypeVar("Down")
Receive = Callable[[Report], None]
Obey = Callable[[Order], None]


class Carrier(Protocol[Up, Down]):
    """A way for messages, which may lose, repeat and reorder them."""

    def serve(self, receive: Callable[[Up], None]) -> None:
        """Deliver what sites say to this server from now on."""
        ...

    def join(self, site: str, take: Callable[[Down], None]) -> None:
        """Deliver orders for this site from now on."""
        ...

    def report(self, report: Up) -> None:
        """Carry what a site says to the server."""
        ...

    def order(self, site: str, order: Down) -> None:
        """Carry an order to a site."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class Transport(Carrier[Report, Order], Protocol):
    """A way for the messages of a tracker."""

    def order_all(self, order: Order) -> None:
        """Carry one order to every site, in one message where it can."""
        ...


class DirectCarrier(Generic[Up, Down]):
    """Server and sites in one process: whoever sends comes back when all of it is dealt with.

    Messages are delivered one after another and never one within another, so that nobody is called
    in the middle of what it does; none is lost.
    """

    def __init__(self) -> None:
        self._receive: Callable[[Up], None] | None = None
        self._sites: dict[str, Callable[[Down], None]] = {}
        self.turn = threading.RLock()  # of whoever deals with the server
        self._delivering = False
        self._queue: deque[Callable[[], None]] = deque()

    def serve(self, receive: Callable[[Up], None]) -> None:
        """Deliver what sites say to this server from now on."""
        self._receive = receive

    def join(self, site: str, take: Callable[[Down], None]) -> None:
        """Deliver orders for this site from now on."""
        self._sites[site] = take

    def report(self, report: Up) -> None:
        """Hand over what a site says."""
        receive = self._receive
        if receive is not None:
            self._deliver(lambda: receive(report))

    def order(self, site: str, order: Down) -> None:
        """Hand the order over."""
        take = self._sites.get(site)
        if take is not None:
            self._deliver(lambda: take(order))

    def order_all(self, order: Down) -> None:
        """Hand the order to every site that joined, one after another."""
        for site in list(self._sites):
            self.order(site, order)

    def close(self) -> None:
        """Nothing is held."""

    def _deliver(self, handing_over: Callable[[], None]) -> None:
        with self.turn:
            self._queue.append(handing_over)
            if self._delivering:
                return
            self._delivering = True
            try:
                while self._queue:
                    self._queue.popleft()()
            finally:
                self._delivering = False


InProcess = DirectCarrier[Report, Order]
"""That of a tracker."""
