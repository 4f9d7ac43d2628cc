"""Messages within one process: delivered at once, in order, none lost.

Messages within one process that are dropped, repeated, delayed and overtaken, by a seed.

Time is counted in steps of whoever runs it, for example one for each item. With no faults every
message arrives before the call that sent the first of them returns.
"""

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random
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


# Faulty -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faults:
    """What may happen to a message on its way."""

    drop: float = 0.0  # the probability that a copy of it is lost
    duplicate: float = 0.0  # the probability that there are two copies
    delay: int = 0  # in steps
    reorder: bool = False  # each copy takes from 0 to `delay` steps, instead of `delay`

    def __post_init__(self) -> None:
        if not (0 <= self.drop <= 1 and 0 <= self.duplicate <= 1 and self.delay >= 0):
            raise ValueError(f"need probabilities and a delay of at least 0, got {self}")


class Faulty:
    """A transport within one process that does to messages what a bad network does."""

    def __init__(self, faults: Faults, random: Random) -> None:
        self.faults = faults
        self._random = random
        self._receive: Receive | None = None
        self._sites: dict[str, Obey] = {}
        self._now, self._number, self._busy = 0, count(), False
        self._travelling: list[tuple[int, int, str, Report | Order]] = []
        self.dropped = self.duplicated = 0

    def serve(self, receive: Receive) -> None:
        """Deliver reports to this server from now on."""
        self._receive = receive

    def join(self, site: str, obey: Obey) -> None:
        """Deliver orders for this site from now on."""
        self._sites[site] = obey

    def leave(self, site: str) -> None:
        """Deliver nothing to this site any more: it is gone."""
        self._sites.pop(site, None)

    def report(self, report: Report) -> None:
        """Carry a report to the server, perhaps."""
        self._send("", report)

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site, perhaps."""
        self._send(site, order)

    def order_all(self, order: Order) -> None:
        """Carry an order to every site, to each of them perhaps."""
        for site in list(self._sites):
            self._send(site, order)

    def step(self, steps: int = 1) -> None:
        """Let time pass, and deliver what has arrived by then."""
        self._now += steps
        self._deliver()

    def close(self) -> None:
        """What travels is lost."""
        self._travelling.clear()

    def _send(self, to: str, message: Report | Order) -> None:
        copies = 2 if self._random.random() < self.faults.duplicate else 1
        self.duplicated += copies - 1
        for _ in range(copies):
            if self._random.random() < self.faults.drop:
                self.dropped += 1
                continue
            due = self._now + self._travel_time()
            heapq.heappush(self._travelling, (due, next(self._number), to, message))
        self._deliver()

    def _travel_time(self) -> int:
        most = self.faults.delay
        return self._random.randint(0, most) if self.faults.reorder else most

    def _deliver(self) -> None:
        """One after another, never one within another: what is sent meanwhile queues up."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._travelling and self._travelling[0][0] <= self._now:
                _, _, to, message = heapq.heappop(self._travelling)
                self._hand_over(to, message)
        finally:
            self._busy = False

    def _hand_over(self, to: str, message: Report | Order) -> None:
        if isinstance(message, Order):
            obey = self._sites.get(to)
            if obey is not None:
                obey(message)
        elif self._receive is not None:
            self._receive(message)
