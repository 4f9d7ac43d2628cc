"""Real brokers: passwords, breaks of the connection, and what Redis keeps."""

import threading

import pytest
from servers import NatsServer, RedisServer, service_or_skip
from track.transport.eventually import eventually

from casemate.errors import Misconfigured
from casemate.track.messages import Order, Report
from casemate.track.transport.address import open_transport
from casemate.track.transport.network import Notes


def report(count: int, site: str = "a") -> Report:
    return Report(site, 7, 0, 0, 0, count)


def survives(broker: NatsServer | RedisServer) -> None:
    """Both directions work again after the broker was killed and came back."""
    address = broker.address()
    said: list[str] = []
    server, sites = open_transport(address, Notes(say=said.append)), open_transport(address)
    received: list[Report] = []
    obeyed: list[Order] = []
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


def no_thread_is_left() -> bool:
    return not any(thread.name.startswith("casemate-") for thread in threading.enumerate())


@pytest.mark.nats
def test_a_nats_server_that_was_away_is_found_again() -> None:
    with service_or_skip("NATS", NatsServer.start) as broker:
        survives(broker)
    assert no_thread_is_left()


@pytest.mark.redis
def test_a_redis_server_that_was_away_is_found_again() -> None:
    with service_or_skip("Redis", RedisServer.start) as broker:
        survives(broker)
    assert no_thread_is_left()


@pytest.mark.nats
def test_closing_while_nats_is_away_does_not_hang() -> None:
    with service_or_skip("NATS", NatsServer.start) as broker:
        transport = open_transport(broker.address())
        broker.kill()
        transport.report(report(1))
        transport.close()
        transport.close()
    assert no_thread_is_left()


@pytest.mark.redis
def test_closing_while_redis_is_away_does_not_hang() -> None:
    with service_or_skip("Redis", RedisServer.start) as broker:
        transport = open_transport(broker.address())
        broker.kill()
        transport.report(report(1))
        transport.close()
        transport.close()
    assert no_thread_is_left()


@pytest.mark.nats
def test_a_password_of_nats_is_used_and_never_shown() -> None:
    with service_or_skip("NATS", lambda: NatsServer.start("--user", "me", "--pass", "s3cret")) as b:
        where = f"127.0.0.1:{b.port}/x"
        open_transport(f"nats://me:s3cret@{where}").close()
        for wrong in ("me:hunter2@", ""):
            with pytest.raises(Misconfigured, match="refuses this user or password") as caught:
                open_transport(f"nats://{wrong}{where}")
            assert "hunter2" not in str(caught.value)


@pytest.mark.redis
def test_a_password_of_redis_is_used_and_never_shown() -> None:
    with service_or_skip("Redis", lambda: RedisServer.start("--requirepass", "s3cret")) as b:
        where = f"127.0.0.1:{b.port}/0"
        open_transport(f"redis://:s3cret@{where}").close()
        for wrong in (":hunter2@", ""):
            with pytest.raises(Misconfigured, match="refuses this user or password") as caught:
                open_transport(f"redis://{wrong}{where}")
            assert "hunter2" not in str(caught.value)


@pytest.mark.redis
def test_redis_keeps_the_newest_report_of_each_site(redis_server: RedisServer) -> None:
    address = redis_server.address()
    sites = open_transport(address)
    for count in range(50):
        sites.report(report(count, "a"))
        sites.report(report(count, "b"))
    sites.close()
    kept: list[Report] = []
    server = open_transport(address)
    server.recall(kept.append)
    server.close()
    assert sorted(kept, key=lambda each: each.site) == [report(49, "a"), report(49, "b")]
