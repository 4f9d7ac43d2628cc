"""Many calls over a bad network, and the counts of messages over a good one."""

import random
from itertools import count

import pytest
from track.quota.bad_network import Fuse, Net, SiteDisk

from casemate.track.quota import Quota
from casemate.track.quota.messages import Claim, Order
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite


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


ZIPF = [1 / rank for rank in range(1, 65)]


@pytest.mark.parametrize(
    ("weights", "most"), [([1.0] * 64, 6), (ZIPF, 14), ([1.0] + 63 * [0.0], 4)]
)
def test_messages_are_few_and_99_percent_are_admitted_before_the_first_refusal(
    rng: random.Random, weights: list[float], most: int
) -> None:
    limit, quota = 200_000, Quota(200_000, sites=64)
    acquires = rng.choices([quota.site(name).acquire for name in quota.sites], weights, k=limit + 1)
    admitted = next(i for i, acquire in enumerate(acquires) if not acquire())
    assert 0.99 * limit <= admitted <= limit
    assert quota.messages <= most * 64
