"""Real brokers: passwords, breaks of the connection, and what Redis keeps."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from servers import NatsServer, RedisServer, service_or_skip
from track.transport.eventually import eventually

from casemate.errors import Misconfigured
from casemate.track.messages import Order, SiteReport
from casemate.track.reporting_rule import Growth
from casemate.track.transport.address import open_transport
from casemate.track.transport.network import Notes

BROKERS = pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param("NATS", NatsServer.start, marks=pytest.mark.nats),
        pytest.param("Redis", RedisServer.start, marks=pytest.mark.redis),
    ],
)
Start = Callable[..., Any]


def report(count: int, site: str = "a") -> SiteReport:
    return SiteReport(site, 7, 0, 0, 0, count)


def no_thread_is_left() -> bool:
    return not any(thread.name.startswith("casemate-") for thread in threading.enumerate())


@BROKERS
def test_a_server_that_was_away_is_found_again(name: str, start: Start) -> None:
    """Both directions work again after the broker was killed and came back."""
    said, received, obeyed = list[str](), list[SiteReport](), list[Order]()
    with service_or_skip(name, start) as broker:
        address = broker.address()
        server, sites = open_transport(address, Notes(say=said.append)), open_transport(address)
        server.serve(received.append)
        sites.join("a", obeyed.append)
        broker.kill()
        for count in range(100):
            sites.report(report(count))
        server.order("a", Order(1, None, True))
        broker.start_again()

        def both_ways() -> bool:
            sites.report(report(100))
            server.order("a", Order(2, None, True))
            return report(100) in received and Order(2, None, True) in obeyed

        eventually(both_ways)
        eventually(lambda: len(said) == 2)
        assert said[0].startswith("the broker at ") and said[0].endswith("trying to reach it again")
        assert said[1].startswith("the broker at ") and said[1].endswith("is back")
        sites.close()
        server.close()
        assert len(said) == 2
    assert no_thread_is_left()


@BROKERS
def test_closing_while_it_is_away_does_not_hang(name: str, start: Start) -> None:
    with service_or_skip(name, start) as broker:
        transport = open_transport(broker.address())
        broker.kill()
        transport.report(report(1))
        transport.close()
        transport.close()
    assert no_thread_is_left()


@pytest.mark.parametrize(
    ("name", "start", "options", "address"),
    [
        pytest.param("NATS", NatsServer.start, ("--user", "me", "--pass", "s3cret"),
                     "nats://{}127.0.0.1:{}/x", marks=pytest.mark.nats),
        pytest.param("Redis", RedisServer.start, ("--requirepass", "s3cret"),
                     "redis://{}127.0.0.1:{}/0", marks=pytest.mark.redis),
    ],
)  # fmt: skip
def test_a_password_is_used_and_never_shown(
    name: str, start: Start, options: tuple[str, ...], address: str
) -> None:
    user = "me" if name == "NATS" else ""
    with service_or_skip(name, lambda: start(*options)) as broker:
        open_transport(address.format(f"{user}:s3cret@", broker.port)).close()
        for wrong in (f"{user}:hunter2@", ""):
            with pytest.raises(Misconfigured, match="refuses this user or password") as caught:
                open_transport(address.format(wrong, broker.port))
            assert "hunter2" not in str(caught.value)


def test_an_order_to_all_reaches_all_once(address: str) -> None:
    server, sites = open_transport(address), open_transport(address)
    obeyed: dict[str, list[Order]] = {str(i): [] for i in range(20)}
    for name, orders in obeyed.items():
        sites.join(name, orders.append)
    server.order_all(order := Order(5, Growth(3, 2), False))
    eventually(lambda: all(obeyed.values()))
    assert all(orders == [order] for orders in obeyed.values())
    sites.close()
    server.close()


@pytest.mark.redis
def test_redis_keeps_the_newest_report_of_each_site(redis_server: RedisServer) -> None:
    address, kept = redis_server.address(), list[SiteReport]()
    sites = open_transport(address)
    for count in range(50):
        sites.report(report(count, "a"))
        sites.report(report(count, "b"))
    sites.close()
    server = open_transport(address)
    server.recall(kept.append)
    server.close()
    assert sorted(kept, key=lambda each: each.site) == [report(49, "a"), report(49, "b")]
