"""The loop of a server process: it shows the count, answers who asks, and is not stalled."""

import signal
import time

import pytest
from track.transport.loop import Loop

from casemate.errors import Misconfigured, Refused
from casemate.track.count import Count
from casemate.track.engines.windows import Windows, exact_rule
from casemate.track.service.attendant import Timing
from casemate.track.service.over import Flag
from casemate.track.service.serving import Serving, ensure_alone, serve
from casemate.track.site import Site
from casemate.track.transport.network import Network


class Until:
    """Over after a while."""

    def __init__(self, seconds: float) -> None:
        self._end, self.looks = time.monotonic() + seconds, 0

    def is_set(self) -> bool:
        self.looks += 1
        return time.monotonic() >= self._end


def test_the_count_is_shown_now_and_then_and_to_who_asks() -> None:
    network, seen = Network(Loop()), list[Count]()
    site = Site("a", network.report)
    network.join("a", site.obey)
    site.add(7)
    network.watch(seen.append)
    serve(network, ["a"], Windows(1, exact_rule()), Until(0.3), timing=Timing(interval=0.05))
    assert len(seen) >= 2 and all(count.value == 7 for count in seen)
    assert seen[0].words == 2


def test_nothing_is_shown_before_anything_is_known() -> None:
    network, seen = Network(Loop()), list[Count]()
    network.watch(seen.append)
    serve(network, ["a"], Windows(1, exact_rule()), Until(0.2), timing=Timing(interval=0.01))
    assert seen == []


def test_it_says_that_it_serves_once_it_listens() -> None:
    wire, listened = Loop(), list[set[str]]()
    serve(
        Network(wire),
        ["a"],
        Windows(1, exact_rule()),
        Until(0.0),
        ready=lambda: listened.append(set(wire.takers)),
    )
    assert listened == [{"report", "ask"}]


def test_where_another_server_shows_counts_there_is_no_second() -> None:
    network, shown = Network(Loop()), Count(7, 7, 7, 1.0, 0.0, 1, (), 2)
    network.when_asked(lambda: network.show(shown))
    with pytest.raises(Refused, match="another server shows counts at here; stop it, or use"):
        ensure_alone(network, Flag(), "here")


def test_where_nobody_answers_a_server_is_alone_and_looks_at_nothing_more() -> None:
    network = Network(Loop())
    ensure_alone(network, Flag(), "here", seconds=0.05)
    network.show(Count(7, 7, 7, 1.0, 0.0, 1, (), 2))
    ensure_alone(network, Flag(), "here", seconds=0.05)


def test_a_name_that_cannot_travel_is_refused_before_anything_is_sent() -> None:
    wire = Loop()
    with pytest.raises(Misconfigured, match="a site's name"):
        Serving(Network(wire), ["a", ""], Windows(2, exact_rule()))
    assert wire.sent == []


def test_signals_do_not_stall_the_server() -> None:
    """A wait that is interrupted at its very end must still end."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.00097, 0.00097)
    over = Until(1.5)
    try:
        timing = Timing(repeat=0.004)
        serve(Network(Loop()), ["a"], Windows(1, exact_rule()), over, timing=timing)
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
