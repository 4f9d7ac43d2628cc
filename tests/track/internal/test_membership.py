"""A place in a tracker for the length of a block."""

from pathlib import Path
from random import Random

import pytest
from oracles.bad_network import Faults, Faulty
from servers import RedisServer
from track.transport.eventually import eventually

from casemate.errors import Misconfigured
from casemate.track.instruction import Growth
from casemate.track.messages import Order, Report
from casemate.track.protocols.windows import centred as centred_windows
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Timing
from casemate.track.service.membership import join
from casemate.track.transport.address import open_transport
from casemate.track.transport.in_process import InProcess


def heard(transport: InProcess) -> list[Report]:
    received: list[Report] = []
    transport.serve(received.append)
    return received


def test_who_joins_says_so_and_who_leaves_says_its_count() -> None:
    transport = InProcess()
    received = heard(transport)
    with join(transport, "a") as site:
        assert [report.count for report in received] == [0]
        transport.order("a", Order(1, Growth(10, 1), False))
        site.add(5)
        site.add(2)
    assert received[-1].count == 7


def test_a_journal_carries_count_and_incarnation_over(tmp_path: Path) -> None:
    transport = InProcess()
    received = heard(transport)
    for _ in range(2):
        with join(transport, "a", journal=tmp_path / "a") as site:
            site.add(10)
    assert received[-1].count == 20
    assert len({report.incarnation for report in received}) == 1


def test_without_a_journal_everybody_is_somebody_new() -> None:
    transport = InProcess()
    received = heard(transport)
    for _ in range(2):
        with join(transport, "a") as site:
            site.add(10)
    assert received[-1].count == 10
    assert len({report.incarnation for report in received}) == 2


def test_a_journal_in_use_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    transport = InProcess()
    received = heard(transport)
    with join(transport, "a", journal=tmp_path / "a"):
        said = len(received)
        with (
            pytest.raises(Misconfigured, match="held by another process"),
            join(transport, "a", journal=tmp_path / "a"),
        ):
            pass
        assert len(received) == said


def test_a_journal_of_another_site_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    transport = InProcess()
    received = heard(transport)
    with join(transport, "lima", journal=tmp_path / "journal") as site:
        site.add(10)
    said = len(received)
    with (
        pytest.raises(Misconfigured, match="belongs to site 'lima'; name another file for 'tokyo'"),
        join(transport, "tokyo", journal=tmp_path / "journal"),
    ):
        pass
    assert len(received) == said


def test_the_last_report_is_repeated_in_silence() -> None:
    transport = Faulty(Faults(), Random(0))
    received: list[Report] = []
    transport.serve(received.append)
    with join(transport, "a", heartbeat=0.01) as site:
        transport.order("a", Order(1, Growth(10, 1), False))
        site.add(5)
        eventually(lambda: sum(report.count == 5 for report in received) >= 3)


@pytest.mark.parametrize("heartbeat", [0.0, -1.0, float("nan")])
def test_a_heartbeat_that_means_nothing_is_refused(heartbeat: float) -> None:
    with (
        pytest.raises(Misconfigured, match="a heartbeat is a number of seconds"),
        join(InProcess(), "a", heartbeat=heartbeat),
    ):
        pass


@pytest.mark.redis
def test_with_redis_a_server_that_starts_knows_the_count_of_a_site_that_is_down(
    redis_server: RedisServer,
) -> None:
    address = redis_server.address()
    with join(address, "a") as site:
        site.add(30)
    network = open_transport(address)
    server = Server(["a"], centred_windows(1, 0.1), network.order)
    now = [0.0]
    attendant = Attendant(server, ["a"], Timing(patience=5), clock=lambda: now[0])
    attendant.open()
    network.recall(attendant.receive)
    now[0] = 6.0
    attendant.tick()
    assert attendant.read().lo == 30 and attendant.read().stale_sites == ("a",)
    network.close()
