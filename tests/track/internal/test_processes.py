"""Real processes and a real broker: killed at any moment, the count comes back."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest
from servers import NatsServer, service_or_skip
from track.crowd import Crowd
from track.service.processes import ALPHA, started
from track.transport.eventually import eventually

from casemate.track.journal import FileJournal
from casemate.track.service.membership import join
from casemate.track.setting import Count
from casemate.track.transport.address import open_transport

pytestmark = pytest.mark.nats


class Watcher:
    """The newest count that a server showed."""

    def __init__(self, address: str) -> None:
        self.count: Count | None = None
        self.network = open_transport(address)
        self.network.watch(self._look)

    def _look(self, count: Count) -> None:
        self.count = count

    def forget(self) -> None:
        self.count = None

    def shows(self, lo: int) -> bool:
        """Whether the count is this one, nobody is stale, and its promise is kept."""
        found = self.count
        return (
            found is not None
            and found.lo == lo
            and not found.stale_sites
            and abs(found.value - lo) <= ALPHA * lo
        )


@contextmanager
def watching(address: str) -> Iterator[Watcher]:
    watcher = Watcher(address)
    yield watcher
    watcher.network.close()


def counted(path: Path) -> int:
    journal = FileJournal(path)
    count = journal.cells[0]
    journal.close()
    return count


def test_a_server_killed_and_started_again_is_exact_after_one_call(
    nats_server: NatsServer,
) -> None:
    """It keeps nothing: k calls, k answers, and the count is back."""
    address, names = nats_server.address(), [f"edge-{i}" for i in range(8)]
    with Crowd(started) as crowd, watching(address) as watcher, ExitStack() as stack:
        sites = [stack.enter_context(join(address, name, heartbeat=600)) for name in names]
        crowd.start("server", "server", address, "centred", *names)
        eventually(lambda: watcher.count is not None and not watcher.count.stale_sites)
        for n, site in enumerate(sites):
            site.add(1000 + n)
        truth = sum(site.count for site in sites)
        crowd.kill("server")
        watcher.forget()
        crowd.start_again("server")
        eventually(lambda: watcher.count is not None)
        count = watcher.count
        assert count is not None
        assert (count.lo, count.words, count.stale_sites) == (truth, 2 * len(names), ())


def test_a_site_killed_and_started_again_reports_nothing_twice_and_loses_nothing(
    nats_server: NatsServer, tmp_path: Path, seed: int
) -> None:
    address, names, random = nats_server.address(), ["a", "b", "c"], Random(seed)
    go = tmp_path / "go"
    go.touch()
    with Crowd(started) as crowd, watching(address) as watcher:
        crowd.start("server", "server", address, "centred", *names)
        for name in names:
            crowd.start(name, "site", address, name, str(tmp_path / name), str(go))
        eventually(lambda: watcher.count is not None and watcher.count.lo > 0)
        for _ in range(8):
            name = random.choice(names)
            time.sleep(random.random() / 2)
            crowd.kill(name)
            before = counted(tmp_path / name)
            crowd.start_again(name)
            assert counted_by_now(tmp_path / name) >= before
        go.unlink()
        eventually(lambda: watcher.shows(counted_together(tmp_path, names)))
        assert all(crowd.stop(name) == 0 for name in [*names, "server"])
        assert watcher.shows(sum(counted(tmp_path / name) for name in names))


def counted_by_now(path: Path) -> int:
    """The count in a journal that a process may hold."""
    return int.from_bytes(path.read_bytes()[16:24], "little")


def counted_together(folder: Path, names: Sequence[str]) -> int:
    return sum(counted_by_now(folder / name) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["centred", "sampled", "auto"])
def test_a_network_that_drops_repeats_delays_and_dies_harms_nothing_for_long(
    engine: str, tmp_path: Path, seed: int
) -> None:
    names, random, go = [f"s{i}" for i in range(4)], Random(seed), tmp_path / "go"
    go.touch()
    with (
        service_or_skip("NATS", NatsServer.start) as broker,
        Crowd(partial(started, chaos=True)) as crowd,
        watching(address := broker.address()) as watcher,
    ):
        crowd.start("server", "server", address, engine, *names)
        for name in names:
            crowd.start(name, "site", address, name, str(tmp_path / name), str(go))
        eventually(lambda: watcher.count is not None and watcher.count.lo > 0)
        for _ in range(10):
            time.sleep(random.random() / 2)
            victim = random.choice([*names, "server", "broker"])
            if victim == "broker":
                broker.kill()
                time.sleep(random.random() / 2)
                broker.start_again()
            else:
                crowd.kill(victim)
                crowd.start_again(victim)
        go.unlink()
        eventually(lambda: settled(watcher.count, counted_together(tmp_path, names)))


def settled(count: Count | None, truth: int) -> bool:
    """Whether nobody is stale and the promise is kept."""
    return (
        count is not None
        and not count.stale_sites
        and count.lo <= truth <= count.hi
        and abs(count.value - truth) <= ALPHA * truth
    )
