"""Two servers of one quota, or one that lost its journal: refused, or stopped, and never silent."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from track.quota.bad_network import Fuse, Net, ServerDisk, SiteDisk
from track.quota.processes import started
from track.transport.eventually import eventually
from track.transport.hub import Hub

from casemate.errors import Misconfigured, Refused, UnknownSite
from casemate.track.quota import Quota
from casemate.track.quota import broker as presence
from casemate.track.quota.broker import Broker
from casemate.track.quota.messages import Claim, QuotaInProcess
from casemate.track.quota.quota import join
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite
from casemate.track.transport.network import Notes

ANOTHER = "another server of this quota"


@pytest.fixture
def hub() -> Hub:
    return Hub()


def broker(hub: Hub, lines: list[str] | None = None) -> Broker:
    kept = list[str]() if lines is None else lines
    return Broker(hub.wire(), Notes(say=kept.append), look=0.0)


# At its start


def test_a_server_that_others_can_reach_needs_a_journal(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="journal=FOLDER"):
        Quota(10, ["a"], transport=broker(hub))
    with pytest.raises(Misconfigured, match="journal=FOLDER"):
        Quota(10, ["a"], transport="nats://127.0.0.1:1/nobody")
    Quota(10, ["a"], transport=QuotaInProcess()).close()  # everybody ends together
    Quota(10, ["a"], transport=broker(hub), journal=tmp_path).close()


def test_a_second_server_is_refused_at_its_start(hub: Hub, tmp_path: Path) -> None:
    with Quota(1000, ["a", "b"], transport=broker(hub), journal=tmp_path / "1") as first:
        with pytest.raises(Refused, match=ANOTHER):
            Quota(1000, ["a", "b"], transport=broker(hub), journal=tmp_path / "2")
        assert first.site("a").acquire(500)
    Quota(1000, ["a", "b"], transport=broker(hub), journal=tmp_path / "2").close()


def test_a_new_journal_is_refused_where_workers_hold_leases_of_another(
    hub: Hub, tmp_path: Path
) -> None:
    with join(broker(hub), "a", tmp_path / "a") as site:
        with Quota(1000, ["a", "b"], transport=broker(hub), journal=tmp_path / "1"):
            assert site.acquire()
        with pytest.raises(Refused, match="'a' holds a lease of another journal"):
            Quota(1000, ["a", "b"], transport=broker(hub), journal=tmp_path / "2")
        with Quota(1000, ["a", "b"], transport=broker(hub), journal=tmp_path / "1"):
            assert site.acquire(499)


# Later: the start was not noticed


def two(hub: Hub, folder: Path, lines: list[str]) -> tuple[Quota, Quota]:
    """Two servers that did not hear each other when they started."""
    hub.deaf = True
    made = [
        Quota(1000, ["a", "b"], remainder=0.0, transport=broker(hub, lines), journal=folder / name)
        for name in ("1", "2")
    ]
    hub.deaf = False
    return made[0], made[1]


def test_the_server_without_leases_stops_before_its_first_one(hub: Hub, tmp_path: Path) -> None:
    lines = list[str]()
    first, second = two(hub, tmp_path, lines)
    with first, second, join(broker(hub), "b", patience=0.01) as b:
        first.server.receive(Claim(0, "a", 7, 0, 0, 0, 500))
        assert b.acquire(500) and not b.acquire()
        assert (first.server.granted, first.server.stopped) == (1000, False)
        assert (second.server.granted, second.server.stopped) == (0, True)
    assert any(ANOTHER in line for line in lines)


def test_two_servers_that_both_have_leased_both_stop(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "HAIL_INTERVAL_SECONDS", 0.0)
    lines, request = list[str](), Claim(0, "a", 7, 0, 0, 0, 1)
    first, second = two(hub, tmp_path, lines)
    hub.deaf = True
    for quota in (first, second):
        quota.server.receive(request)
    hub.deaf = False
    with first, second, join(broker(hub), "b", patience=0.01) as b:
        first.server.receive(request)  # and says with its order that it serves
        assert [first.server.stopped, second.server.stopped] == [True, True]
        with pytest.raises(Refused, match="leases nothing to site 'b'"):
            b.acquire()
        assert [first.server.granted, second.server.granted] == [500, 500]
    assert any(ANOTHER in line for line in lines)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 1000)), min_size=1, max_size=40))
def test_two_servers_that_did_not_hear_each_other_start_admit_no_more_than_one(
    asked: list[tuple[int, int]],
) -> None:
    hub, lines, admitted = Hub(), list[str](), 0
    with TemporaryDirectory() as folder:
        first, second = two(hub, Path(folder), lines)
        with (
            first,
            second,
            join(broker(hub), "a", patience=0.0) as a,
            join(broker(hub), "b", patience=0.0) as b,
        ):
            for place, n in asked:
                fits = admitted + n <= 1000
                assert (a, b)[place].acquire(n) is fits
                admitted += n * fits
            assert first.server.stopped is not second.server.stopped
    assert lines


def test_a_server_without_leases_stops_at_the_claim_of_another_window() -> None:
    net = Net(good=True)
    server = QuotaServer(10, ["a", "b"], net, journal=ServerDisk(window=2))
    with pytest.raises(Refused, match="'a' holds a lease of another journal"):
        server.receive(Claim(1, "a", 7, 3, 5, 5, 1))
    with pytest.raises(Refused, match="'a' holds a lease of another journal"):
        server.receive(Claim(0, "b", 8, 0, 0, 0, 1))
    assert (server.stopped, server.granted) == (True, 0)


def test_what_a_worker_of_another_window_holds_is_charged_to_the_limit() -> None:
    """It is known to be held, and the server is not told by whom else: it leases so much less."""
    net, disk = Net(good=True), ServerDisk(window=2)
    server = QuotaServer(10, ["a", "b"], net, remainder=0.0, journal=disk)
    site = QuotaSite("b", net, SiteDisk(1, Fuse()))
    assert site.acquire()
    for _ in range(3):
        with pytest.raises(Refused, match="another journal"):
            server.receive(Claim(1, "a", 7, 3, 4, 3, 1))
    assert (server.granted, disk.granted) == (9, 9)
    assert sum(site.acquire() for _ in range(20)) == 10 - 4 - 1
    server = QuotaServer(10, ["a", "b"], net, remainder=0.0, journal=disk)
    assert server.granted == 10 and not site.acquire()


# What a worker is told


def test_a_worker_that_the_server_does_not_know_is_told_so_and_an_old_word_does_not_hurt(
    hub: Hub, tmp_path: Path
) -> None:
    lines = list[str]()
    with join(broker(hub), "berlin", patience=0.01) as site:
        with (
            Quota(10, ["b"], transport=broker(hub, lines), journal=tmp_path / "1"),
            pytest.raises(UnknownSite, match="'berlin'"),
        ):
            site.acquire()
        assert len([line for line in lines if "berlin" in line]) == 1
        assert not site.acquire(), "nobody is there"
        with Quota(10, ["berlin"], transport=broker(hub), journal=tmp_path / "2"):
            assert site.acquire()


def test_a_worker_of_a_stopped_server_is_told_so(hub: Hub, tmp_path: Path) -> None:
    with (
        Quota(10, ["a", "b"], transport=broker(hub), journal=tmp_path / "1"),
        join(broker(hub), "a", tmp_path / "a") as a,
    ):
        assert a.acquire()
    with (
        Quota(10, ["a", "b"], transport=broker(hub), journal=tmp_path / "2"),
        join(broker(hub), "a", tmp_path / "a", patience=0.01) as a,
        join(broker(hub), "b", patience=0.01) as b,
    ):
        for site in (a, b):
            with pytest.raises(Refused, match="leases nothing to site"):
                site.acquire(9)
        assert a.acquire(4), "what it holds it may use"


# Real brokers, real processes


@contextmanager
def serving(address: str, folder: Path, *names: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A server of 1,000 in a process of its own, killed in the end."""
    process = started("server", address, str(folder), "1000", *names)
    assert process.stdout is not None and process.stdout.readline() == b"serving\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_server_at_an_address_is_refused_and_the_first_comes_back_after_a_kill(
    address: str, tmp_path: Path
) -> None:
    def server(name: str) -> Quota:
        folder = tmp_path / name
        return Quota(1000, ["a", "b"], remainder=0.0, transport=address, journal=folder)

    with (
        join(address, "a", tmp_path / "a") as a,
        join(address, "b", tmp_path / "b") as b,
    ):
        with serving(address, tmp_path / "1", "a", "b"):
            with pytest.raises(Refused, match=ANOTHER):
                server("2")
            assert a.acquire(500)
        with pytest.raises(Refused, match="'a' holds a lease of another journal"):
            server("2")
        with server("1"):
            assert [b.acquire(500), b.acquire(1), a.acquire(1)] == [True, False, False]


def refuses(site: QuotaSite, n: int) -> bool:
    try:
        site.acquire(n)
    except Refused:
        return True
    return False


def test_a_server_that_could_not_be_heard_for_a_while_and_its_successor_both_stop(
    address: str, tmp_path: Path
) -> None:
    """Nobody answers for the first, and no worker of its is there: the second cannot know."""
    names = ("a", "b", "c")
    with serving(address, tmp_path / "1", *names) as first:
        with join(address, "a", tmp_path / "a") as a:
            assert a.acquire()
        first.send_signal(signal.SIGSTOP)
        with Quota(1000, names, transport=address, journal=tmp_path / "2") as second:
            with join(address, "b", tmp_path / "b") as b:
                assert b.acquire()
            first.send_signal(signal.SIGCONT)
            eventually(lambda: second.server.stopped)
            with join(address, "c") as c:
                eventually(lambda: refuses(c, 1))
                assert c.used == 0
            with join(address, "a", tmp_path / "a") as a:
                assert refuses(a, 600)


def test_two_servers_that_start_at_once_at_an_address_are_one(address: str, tmp_path: Path) -> None:
    both = [started("server", address, str(tmp_path / name), "1000", "a") for name in "12"]
    try:
        eventually(lambda: any(process.poll() is not None for process in both))
        loser, winner = sorted(both, key=lambda process: process.poll() is None)
        assert loser.returncode == 1
        assert winner.stdout is not None and winner.stdout.readline() == b"serving\n"
    finally:
        for process in both:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
