"""Workers of a quota that runs elsewhere: over a wire, and over real brokers with real kills."""

import subprocess
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from track.crowd import Crowd
from track.quota.processes import started
from track.transport.eventually import eventually
from track.transport.hub import Hub

from casemate.errors import Misconfigured
from casemate.track.quota import Quota
from casemate.track.quota.broker import Broker
from casemate.track.quota.journals import QuotaFileJournal
from casemate.track.quota.quota import join


def served(hub: Hub, limit: int, names: list[str], folder: Path | str) -> Quota:
    return Quota(
        limit, names, remainder=0.0, transport=Broker(hub.wire(), look=0.0), journal=folder
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40)), max_size=60))
def test_workers_that_join_share_one_limit(asked: list[tuple[int, int]]) -> None:
    hub, used = Hub(), 0
    with (
        TemporaryDirectory() as folder,
        served(hub, 200, ["a", "b", "c"], folder) as quota,
        join(Broker(hub.wire()), "a", patience=0.0) as a,
        join(Broker(hub.wire()), "b", patience=0.0) as b,
    ):
        sites = [a, b, quota.site("c")]
        assert not a.acquire(201)
        for place, n in asked:
            fits = used + n <= 200
            assert sites[place].acquire(n) is fits
            used += n * fits
        assert quota.site("c").used <= quota.admitted() <= used


def test_what_was_admitted_is_known_when_workers_have_said_so(tmp_path: Path) -> None:
    hub = Hub()
    with served(hub, 10, ["a", "b"], tmp_path) as quota:
        with join(Broker(hub.wire()), "a", tmp_path / "a") as site:
            assert site.acquire() and site.acquire()
            assert quota.admitted() == 0 and quota.left() == 5
            assert site.acquire(4)
            assert quota.admitted() == 2
        assert quota.admitted() == 6, "it says so when it ends"
        assert quota.site("b").acquire() and quota.admitted() == 7
    with served(hub, 10, ["a", "b"], tmp_path) as quota:
        assert quota.admitted() == 6
        assert quota.site("b").used == 1 and quota.admitted() == 7


def test_a_worker_with_a_journal_goes_on_where_it_was(tmp_path: Path) -> None:
    hub = Hub()
    with served(hub, 10, ["a"], tmp_path / "server"):
        for used in (3, 6, 9):
            with join(Broker(hub.wire()), "a", tmp_path / "a") as site:
                assert site.acquire(3) and site.used == used
        with join(Broker(hub.wire()), "a", str(tmp_path / "a")) as site:
            assert [site.acquire(2), site.acquire(1), site.acquire(1)] == [False, True, False]


def test_what_the_lease_of_a_worker_without_a_journal_had_left_is_lost(tmp_path: Path) -> None:
    hub = Hub()
    with served(hub, 10, ["a", "b"], tmp_path) as quota:
        with join(Broker(hub.wire()), "a") as site:
            assert site.acquire()
            lost = site.left
        with join(Broker(hub.wire()), "a") as site:
            assert site.used == 0
            assert sum(site.acquire() for _ in range(20)) == 10 - 1 - lost == 5
        assert quota.server.granted == 10


def test_wrong_names_and_addresses_are_refused_and_hold_nothing(tmp_path: Path) -> None:
    hub, path = Hub(), tmp_path / "a"
    with pytest.raises(Misconfigured, match="a site's name is"):
        Quota(10, ["a\n"], transport=Broker(hub.wire()), journal=tmp_path)
    with pytest.raises(Misconfigured, match="no address of a message broker"):
        Quota(10, ["a"], transport="nowhere", journal=tmp_path)
    with (
        pytest.raises(Misconfigured, match="a site's name is"),
        join(Broker(hub.wire()), "a\n", path),
    ):
        pass
    with pytest.raises(Misconfigured, match="no address of a message broker"), join("x", "a", path):
        pass
    QuotaFileJournal(path).close()
    Quota(10, ["a"], transport=Broker(hub.wire()), journal=tmp_path).close()


# Real brokers, real processes


def test_a_worker_whose_server_is_away_says_no_and_goes_on_when_it_is_back(
    address: str, tmp_path: Path
) -> None:
    names = ["a", "b"]
    with join(address, "a") as site:
        assert not site.acquire() and not site.closed
        with Quota(100, names, remainder=0.0, transport=address, journal=tmp_path):
            assert site.acquire(50)
        assert not site.acquire(50) and not site.closed
        with Quota(100, names, remainder=0.0, transport=address, journal=tmp_path):
            assert [site.acquire(50), site.acquire(1)] == [True, False]


def started_and_serving(*arguments: str) -> "subprocess.Popen[bytes]":
    process = started(*arguments)
    if arguments[0] == "server":
        assert process.stdout is not None and process.stdout.readline() == b"serving\n"
    return process


def used(path: Path) -> int:
    journal = QuotaFileJournal(path)
    count = journal.cells[0]
    journal.close()
    return count


def test_a_server_and_workers_killed_at_any_moment_admit_exactly_the_limit(
    address: str, tmp_path: Path, seed: int
) -> None:
    """What a worker wrote was admitted; at each kill one may be used and not written."""
    names, random, limit, kills = ["a", "b", "c"], Random(seed), 200_000, 0

    def written() -> int:
        files = [tmp_path / f"{name}.admitted" for name in names]
        return sum(file.stat().st_size for file in files if file.exists())

    with Crowd(started_and_serving) as crowd:
        crowd.start("", "server", address, str(tmp_path / "server"), str(limit), *names)
        for name in names:
            crowd.start(name, "worker", address, str(tmp_path), name)
        for share in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
            eventually(lambda share=share: written() > share * limit)  # type: ignore[misc]  # bound now
            victim = random.choice(names)
            for name in (victim, ""):
                crowd.kill(name)
                time.sleep(random.random() / 5)
                crowd.start_again(name)
            kills += 1
        for name in names:
            assert crowd.running[name].wait(60) == 0
    assert sum(used(tmp_path / f"{name}.journal") for name in names) == limit
    assert limit - kills <= written() <= limit
