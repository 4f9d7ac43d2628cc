"""A place in a tracker for the length of a block, and where its items come from."""

import os
import threading
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.bad_network import Faults, Faulty
from servers import RedisServer
from track.transport.eventually import eventually

from casemate.errors import Misconfigured, UnknownSite
from casemate.track.messages import Order, SiteReport
from casemate.track.protocols.windows import centred_windows
from casemate.track.reporting_rule import Every, Growth
from casemate.track.server import Server
from casemate.track.service import membership as answered
from casemate.track.service.attendant import Attendant, Timing
from casemate.track.service.membership import (
    Numbers,
    at_rate,
    each_line,
    is_answered,
    join,
    not_taken,
    note_silence,
    read_pipe,
)
from casemate.track.site import Site
from casemate.track.transport.address import open_transport
from casemate.track.transport.network import InProcess, Notes


def test_a_journal_that_is_not_ours_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    transport, received = InProcess(), list[SiteReport]()
    transport.serve(received.append)
    with join(transport, "lima", journal=tmp_path / "journal"):
        said = len(received)
        for name in ("lima", "tokyo"):
            with (
                pytest.raises(Misconfigured, match="held by another process"),
                join(transport, name, journal=tmp_path / "journal"),
            ):
                pass
        assert len(received) == said
    said = len(received)
    with (
        pytest.raises(Misconfigured, match="belongs to site 'lima'; name another file for 'tokyo'"),
        join(transport, "tokyo", journal=tmp_path / "journal"),
    ):
        pass
    assert len(received) == said


def test_the_last_report_is_repeated_in_silence() -> None:
    transport = Faulty(Faults(), Random(0))
    received: list[SiteReport] = []
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


def made() -> Site:
    site = Site("berlin", lambda _: None)
    site.add(42)
    return site


def test_a_site_is_answered_once_it_was_given_an_order_and_told_if_it_is_refused() -> None:
    site = made()
    assert not is_answered(site, 0.0)
    site.obey(Order(1, Every(), False))
    assert is_answered(site, 0.0)
    site.refuse()
    with pytest.raises(UnknownSite, match="'berlin'"):
        is_answered(site)


@pytest.mark.parametrize(
    ("place", "journal", "kept"),
    [
        ("nats://h/s", "b.journal", "it is kept in the journal b.journal: run the site again"),
        ("redis://h/0?prefix=s", None, "the broker keeps it for a server that starts"),
        ("nats://h/s", None, "it is lost: give the site a journal"),
    ],
)
def test_what_becomes_of_a_count_that_nobody_took_is_said(
    place: str, journal: str | None, kept: str
) -> None:
    sentence = not_taken(made(), place, journal)
    assert f"no server at {place} answered site 'berlin', so its count 42 was not" in sentence
    assert f"; {kept}" in sentence and sentence.endswith("or start the server")


@pytest.mark.parametrize("state", ["silence", "refused", "answered"])
def test_after_a_while_silence_is_said_and_a_refusal(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answered, "UNANSWERED_SECONDS", 0.01)
    site, said = made(), list[str]()
    match state:
        case "refused":
            site.refuse()
        case "answered":
            site.obey(Order(1, Every(), False))
    with note_silence(site, "nats://h/s", Notes(said.append)):
        if state == "answered":
            time.sleep(0.1)
        else:
            eventually(lambda: bool(said))
    expected = {
        "silence": ["no server has answered yet at nats://h/s; start one, or check the address and "
                    "the name 'berlin'"],
        "refused": [str(UnknownSite("berlin"))],
        "answered": [],
    }  # fmt: skip
    assert said == expected[state]


def through_a_pipe(pieces: list[bytes], numbers: bool, said: list[str]) -> int:
    read, write = os.pipe()
    feed = read_pipe(read, Numbers(Notes(said.append)) if numbers else each_line, threading.Event())
    total = 0
    for piece in pieces:
        os.write(write, piece)
        total += next(feed)
    os.close(write)
    total += sum(feed)
    os.close(read)
    return total


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=10))
def test_every_line_is_an_item_however_the_pipe_cuts_them(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    lines = whole.count(b"\n") + (bool(whole) and not whole.endswith(b"\n"))
    assert through_a_pipe(pieces, False, []) == lines


@given(st.lists(st.integers(0, 10**17), max_size=20), st.integers(1, 7))
def test_numbers_are_summed_however_the_pipe_cuts_them(numbers: list[int], size: int) -> None:
    text = "".join(f"{n}\n" for n in numbers).encode()
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert through_a_pipe(pieces, True, []) == sum(numbers)


@pytest.mark.parametrize("bad", ["-5", "3.5", "x", "1e3", "9" * 30, "\xff", "²"])
def test_a_line_that_is_no_number_is_noted_and_counts_nothing(bad: str) -> None:
    said: list[str] = []
    assert through_a_pipe([f"4\n{bad}\n{bad}\n5".encode()], True, said) == 9
    assert len(said) == 1 and bad not in said[0]


def test_a_feed_that_is_over_ends_though_the_pipe_does_not() -> None:
    read, write = os.pipe()
    over = threading.Event()
    threading.Timer(0.05, over.set).start()
    assert list(read_pipe(read, each_line, over)) == []
    os.close(read)
    os.close(write)


def test_a_rate_makes_items_until_it_is_over() -> None:
    over, total = threading.Event(), 0
    for items in at_rate(1e6, over):
        total += items
        if total >= 1000:
            over.set()
    assert total >= 1000
