"""Messages within one process: delivered at once, in order, none lost."""

import threading
from collections.abc import Callable
from typing import Protocol

from casemate.track.messages import Order, Report

Receive = Callable[[Report], None]
Obey = Callable[[Order], None]


class Transport(Protocol):
    """How reports reach a server and orders reach sites."""

    def serve(self, receive: Receive) -> None:
        """Deliver reports to this server from now on."""
        ...

    def join(self, site: str, obey: Obey) -> None:
        """Deliver orders for this site from now on."""
        ...

    def report(self, report: Report) -> None:
        """Carry a report to the server."""
        ...

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site."""
        ...

    def order_all(self, order: Order) -> None:
        """Carry one order to every site, in one message where it can."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class InProcess:
    """Sites and server in one process; one report at a time is dealt with."""

    def __init__(self) -> None:
        self._receive: Receive | None = None
        self._sites: dict[str, Obey] = {}
        self.turn = threading.RLock()  # of whoever deals with the server

    def serve(self, receive: Receive) -> None:
        """Deliver reports to this server from now on."""
        self._receive = receive

    def join(self, site: str, obey: Obey) -> None:
        """Deliver orders for this site from now on."""
        self._sites[site] = obey

    def report(self, report: Report) -> None:
        """Hand the report over, and come back when it has been dealt with."""
        with self.turn:
            if self._receive is not None:
                self._receive(report)

    def order(self, site: str, order: Order) -> None:
        """Hand the order over, and come back when it has been obeyed."""
        if site in self._sites:
            self._sites[site](order)

    def order_all(self, order: Order) -> None:
        """Hand the order to every site that joined, one after another."""
        for obey in list(self._sites.values()):
            obey(order)

    def close(self) -> None:
        """Nothing is held."""
