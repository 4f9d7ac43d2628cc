"""Quotas over a wire and over a bad network."""

import random
import threading
from contextlib import ExitStack, closing
from itertools import count

import pytest
from track.quota.bad_network import Fuse, Net, SiteDisk
from track.transport.hub import Hub

from casemate.track.quota.broker import CLAIMS, Broker
from casemate.track.quota.messages import Claim, Order
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite
from casemate.track.transport.address import open_wire
from casemate.track.transport.network import Notes, Parcel, Wire


def test_what_is_none_of_ours_is_noted_and_changes_nothing() -> None:
    wire, lines = Hub().wire(), list[str]()
    broker = Broker(wire, Notes(say=lines.append))
    server = QuotaServer(100, ["a"], broker)
    for _ in range(3):
        wire.publish(Parcel(CLAIMS, b"hello"))
        broker.report(Claim(0, "unknown", 1, 0, 0, 0, 1))
    assert "no claim of casemate" in lines[0] and "'unknown' is none" in lines[1]
    assert len(lines) == 2, "one line a minute for each kind of mistake is enough"
    assert server.granted == 0


def test_four_sites_over_a_broker_admit_exactly_the_limit(address: str) -> None:
    """Each over a connection of its own, at the same time, until each has been refused."""
    admitted: list[int] = []

    def work(name: str, wire: Wire) -> None:
        site, mine = QuotaSite(name, Broker(wire), patience=5.0), 0
        while site.acquire(7):
            mine += 7
        admitted.append(mine)

    with ExitStack() as stack:
        server, *wires = [stack.enter_context(closing(open_wire(address))) for _ in range(5)]
        QuotaServer(7 * 3000, list("abcd"), Broker(server), remainder=0.0)
        threads = [
            threading.Thread(target=work, args=pair) for pair in zip("abcd", wires, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(admitted) == 7 * 3000


class Lossy(Net):
    """Loses, repeats and holds back messages, by a seed."""

    def __init__(self, rng: random.Random, drop: float, duplicate: float, late: float) -> None:
        super().__init__()
        self.good = True
        self._rng, self._drop, self._duplicate, self._late = rng, drop, duplicate, late
        self._held: list[tuple[str, Claim | Order]] = []

    def _send(self, to: str, message: Claim | Order) -> None:
        draw = self._rng.random
        for _ in range(1 + (draw() < self._duplicate)):
            if draw() < self._late:
                self._held.append((to, message))
            elif draw() >= self._drop:
                super()._send(to, message)
        if self._held and draw() < 0.5:
            super()._send(*self._held.pop(self._rng.randrange(len(self._held))))


@pytest.mark.parametrize(
    ("drop", "duplicate", "late"), [(0.0, 0.2, 0.3), (0.05, 0.0, 0.0), (0.2, 0.2, 0.3)]
)
def test_a_bad_network_costs_messages_and_nothing_else(
    rng: random.Random, drop: float, duplicate: float, late: float
) -> None:
    net, ticks, limit = Lossy(rng, drop, duplicate, late), count(), 20_000
    names = [str(i) for i in range(16)]
    QuotaServer(limit, names, net, remainder=0.0, clock=lambda: float(next(ticks)), pause=20)
    sites = [QuotaSite(name, net, SiteDisk(1, Fuse())) for name in names]
    admitted = sum(rng.choice(sites).acquire() for _ in range(25_000))
    assert 0.99 * limit <= admitted <= limit
