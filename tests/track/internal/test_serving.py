"""The loop of a server process: it shows the count, answers who asks, and is not stalled."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from track.transport.eventually import eventually
from track.transport.hub import Hub

from casemate.errors import Misconfigured, Refused, UnknownSite
from casemate.track.protocols.windows import Windows, centred_windows
from casemate.track.reporting_rule import Every
from casemate.track.service.attendant import Flag, Timing
from casemate.track.service.membership import join
from casemate.track.service.serving import Serving, ensure_alone
from casemate.track.setting import Count
from casemate.track.site import Site
from casemate.track.transport.address import open_transport
from casemate.track.transport.network import Network, Notes, silent


class Until:
    """Over after a while."""

    def __init__(self, seconds: float) -> None:
        self._end, self.looks = time.monotonic() + seconds, 0

    def is_set(self) -> bool:
        self.looks += 1
        return time.monotonic() >= self._end


def test_the_count_is_shown_now_and_then_and_to_who_asks() -> None:
    network, seen = Network(Hub().wire()), list[Count]()
    for name, items in (("a", 7), ("b", 0)):
        site = Site(name, network.report)
        network.join(name, site.obey)
        site.add(items)
    network.watch(seen.append)
    Serving(network, ["a", "b"], Windows(2, Every()), Timing(interval=0.05)).run(Until(0.3))
    assert len(seen) >= 2 and all(count.value == 7 for count in seen)
    assert seen[0].words == 2 + 2  # one message calls both


def test_nothing_is_shown_before_anything_is_known() -> None:
    network, seen = Network(Hub().wire()), list[Count]()
    network.watch(seen.append)
    Serving(network, ["a"], Windows(1, Every()), Timing(interval=0.01)).run(Until(0.2))
    assert seen == []


def test_it_says_that_it_serves_once_it_listens() -> None:
    wire, listened = Hub().wire(), list[set[str]]()
    serving = Serving(Network(wire), ["a"], Windows(1, Every()))
    serving.run(Until(0.0), lambda: listened.append(set(wire.takers)))
    assert listened == [{"report", "ask"}]


def test_where_another_server_shows_counts_there_is_no_second() -> None:
    network, shown = Network(Hub().wire()), Count(7, 7, 7, 1.0, 0.0, 1, (), 2)
    network.when_asked(lambda: network.show(shown))
    with pytest.raises(Refused, match="another server shows counts at here; stop it, or use"):
        ensure_alone(network, Flag(), "here")


def test_where_nobody_answers_a_server_is_alone_and_looks_at_nothing_more() -> None:
    network = Network(Hub().wire())
    ensure_alone(network, Flag(), "here", seconds=0.05)
    network.show(Count(7, 7, 7, 1.0, 0.0, 1, (), 2))
    ensure_alone(network, Flag(), "here", seconds=0.05)


def test_a_name_that_cannot_travel_is_refused_before_anything_is_sent() -> None:
    wire = Hub().wire()
    with pytest.raises(Misconfigured, match="a site's name"):
        Serving(Network(wire), ["a", ""], Windows(2, Every()))
    assert wire.sent == []


def test_signals_do_not_stall_the_server() -> None:
    """A wait that is interrupted at its very end must still end."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.00097, 0.00097)
    over = Until(1.5)
    try:
        timing = Timing(repeat=0.004)
        Serving(Network(Hub().wire()), ["a"], Windows(1, Every()), timing).run(over)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert over.looks > 1


def test_a_flag_can_be_set_where_it_is_being_set() -> None:
    over = Flag()
    assert not over.is_set()
    before = signal.signal(signal.SIGALRM, lambda *_: over.set())
    signal.raise_signal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, before)
    assert over.is_set()


@contextmanager
def running(address: str, sites: list[str]) -> Iterator[Serving]:
    """A server in a thread of this process."""
    network, over = open_transport(address, silent()), threading.Event()
    timing = Timing(repeat=0.1, patience=1.0, interval=0.1)
    serving = Serving(network, sites, centred_windows(len(sites), 0.1), timing, silent())
    thread = threading.Thread(target=serving.run, args=(over,))
    thread.start()
    try:
        yield serving
    finally:
        over.set()
        thread.join()
        network.close()


def test_when_the_newer_of_two_processes_of_a_name_is_stopped_the_older_is_counted_again(
    address: str,
) -> None:
    with (
        running(address, ["paris", "lima"]) as serving,
        join(address, "lima", heartbeat=0.2) as lima,
        join(address, "paris", heartbeat=0.2) as first,
    ):

        def is_well(truth: int) -> bool:
            count = serving.read()
            return count.lo == truth and count.stale_sites == () and count.lag < 1

        lima.add(100)
        first.add(1000)
        eventually(lambda: is_well(1100))
        with join(address, "paris", heartbeat=0.2) as second:
            second.add(10)
            eventually(lambda: serving.read().lo == 1110)
            eventually(lambda: serving.read().stale_sites == ("paris",))
        eventually(lambda: is_well(1110))
        first.add(200)
        eventually(lambda: is_well(1310))


def add_until_refused(site: Site) -> None:
    eventually(lambda: site.refused)
    site.add()


def test_who_joins_by_a_name_that_the_server_does_not_know_is_told_so(
    address: str,
) -> None:
    with running(address, ["paris"]), join(address, "paris", notes=silent()) as paris:
        eventually(lambda: paris.epoch > 0)
        with (
            pytest.raises(UnknownSite, match="'berlin' is none of the sites here"),
            join(address, "berlin", notes=silent()) as berlin,
        ):
            add_until_refused(berlin)
        with pytest.raises(UnknownSite, match="'rome'"), join(address, "rome", notes=silent()):
            pass  # it ends before it could be told
        paris.add(5)
        assert not paris.refused


def test_who_joins_where_no_server_is_says_so_at_the_end(
    address: str,
) -> None:
    said: list[str] = []
    with join(address, "berlin", notes=Notes(said.append)) as site:
        site.add(42)
    assert len(said) == 1
    assert said[0].startswith(f"no server at {address} answered site 'berlin', so its count 42 was")
