import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from servers import NatsServer, RedisServer
from track.transport.loop import Loop

from casemate.track.quota import Quota
from casemate.track.quota.broker import CLAIMS, Broker
from casemate.track.quota.messages import Claim
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite
from casemate.track.transport.nats import NatsWire
from casemate.track.transport.network import Notes, Parcel, Wire
from casemate.track.transport.redis import RedisWire


def test_a_quota_is_the_same_over_a_wire(tmp_path: Path) -> None:
    wire, names = Broker(Loop(), look=0.0), ["eu.west", "b"]
    with Quota(100, names, remainder=0.0, transport=wire, journal=tmp_path) as quota:
        assert [quota.site("eu.west").acquire(70), quota.site("b").acquire(30)] == [True, True]
        assert not quota.site("eu.west").acquire()


def test_what_is_none_of_ours_is_noted_and_changes_nothing() -> None:
    wire, lines = Loop(), list[str]()
    broker = Broker(wire, Notes(say=lines.append))
    server = QuotaServer(100, ["a"], broker)
    for _ in range(3):
        wire.publish(Parcel(CLAIMS, b"hello"))
        broker.report(Claim(0, "unknown", 1, 0, 0, 0, 1))
    assert "no claim of casemate" in lines[0] and "'unknown' is none" in lines[1]
    assert len(lines) == 2, "one line a minute for each kind of mistake is enough"
    assert server.granted == 0


def admitted_by_four_sites(connect: Callable[[], Wire]) -> list[int]:
    """Each over a connection of its own, at the same time, until each has been refused."""
    wires = [connect() for _ in range(5)]
    admitted: list[int] = []

    def work(name: str, wire: Wire) -> None:
        site = QuotaSite(name, Broker(wire), patience=5.0)
        admitted.append(0)
        mine = len(admitted) - 1
        while site.acquire(7):
            admitted[mine] += 7

    with closing(wires[0]), closing(wires[1]), closing(wires[2]), closing(wires[3]):
        QuotaServer(7 * 3000, list("abcd"), Broker(wires[4]), remainder=0.0)
        threads = [
            threading.Thread(target=work, args=pair) for pair in zip("abcd", wires, strict=False)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wires[4].close()
    return admitted


@pytest.mark.nats
def test_four_sites_over_nats_admit_exactly_the_limit(nats_server: NatsServer) -> None:
    admitted = admitted_by_four_sites(lambda: NatsWire(nats_server.host, "test.quota"))
    assert sum(admitted) == 7 * 3000


@pytest.mark.redis
def test_four_sites_over_redis_admit_exactly_the_limit(redis_server: RedisServer) -> None:
    admitted = admitted_by_four_sites(lambda: RedisWire(f"{redis_server.host}/0", "test.quota"))
    assert sum(admitted) == 7 * 3000
