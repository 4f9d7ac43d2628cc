"""Channels, names and counts; what is refused is noted once and changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from track.transport.hub import Hub

from casemate.errors import Misconfigured, UnknownSite
from casemate.track.messages import Order, SiteReport, encode
from casemate.track.reporting_rule import Sample
from casemate.track.setting import Count
from casemate.track.transport.network import (
    REPEAT_NOTE_SECONDS,
    Network,
    Notes,
    Outbox,
    Parcel,
    token,
)

REPORT = SiteReport("a", 7, 3, 10, 2, 15)
COUNT = Count(10.5, 9, 12, 0.99, 0.25, 7, ("b",), 33)


def test_an_order_to_all_is_one_message() -> None:
    wire = Hub().wire()
    network, obeyed = Network(wire), list[Order]()
    for name in ("a", "b", "c"):
        network.join(name, obeyed.append)
    network.order_all(Order(1, Sample(0.5), True))
    assert len(wire.sent) == 1 and len(obeyed) == 3


def test_counts_are_shown_to_who_watches_and_who_watches_asks_for_one() -> None:
    network, seen = Network(Hub().wire()), list[Count]()
    network.when_asked(lambda: network.show(COUNT))
    network.watch(seen.append)
    assert seen == [COUNT]


def test_a_site_that_is_unknown_is_told_and_no_other() -> None:
    network, told = Network(Hub().wire()), list[str]()
    for name in ("a", "eu.west/2"):
        network.when_disowned(name, lambda name=name: told.append(name))  # type: ignore[misc]  # bound now
    for name in ("eu.west/2", "b", "", "\0"):  # the last two cannot travel
        network.disown(name)
    assert told == ["eu.west/2"]


def test_what_the_broker_kept_is_delivered_like_a_report() -> None:
    received: list[SiteReport] = []
    Network(Hub().wire((encode(REPORT), b"?"))).recall(received.append)
    assert received == [REPORT]


@pytest.mark.parametrize("channel", ["report", "orders", "order.a", "count"])
@given(data=st.binary(max_size=40))
def test_a_message_that_is_none_is_noted_and_changes_nothing(channel: str, data: bytes) -> None:
    wire, said, taken = Hub().wire(), list[str](), list[object]()
    network = Network(wire, Notes(said.append))
    network.serve(taken.append)
    network.join("a", taken.append)
    network.watch(taken.append)
    wire.takers[channel](data)
    assert taken == [] and len(said) == 1
    assert "give the tracker a subject of its own" in said[0]


def test_what_a_receiver_refuses_is_noted_and_the_next_is_delivered() -> None:
    said: list[str] = []
    wire = Hub().wire()
    network = Network(wire, Notes(said.append))
    taken: list[SiteReport] = []

    def receive(report: SiteReport) -> None:
        taken.append(report)
        raise UnknownSite(report.site)

    network.serve(receive)
    network.report(REPORT)
    network.report(REPORT)
    assert taken == [REPORT, REPORT] and said == [str(UnknownSite("a"))]


def test_the_same_trouble_is_worth_another_line_after_a_minute() -> None:
    said: list[str] = []
    time = [0.0]
    notes = Notes(said.append, clock=lambda: time[0])
    for now in (0.0, 1.0, REPEAT_NOTE_SECONDS, REPEAT_NOTE_SECONDS + 1):
        time[0] = now
        notes.say("trouble", about="x")
    notes.say("other", about="y")
    assert said == ["trouble", "trouble", "other"]


@given(st.lists(st.text(min_size=1, max_size=50).filter(str.isprintable), unique=True))
def test_tokens_are_words_of_a_subject_and_differ_where_names_do(names: list[str]) -> None:
    tokens = [token(name) for name in names]
    assert len(set(tokens)) == len(tokens)
    assert all(t.isascii() and t.isprintable() and not set(t) & set(".*> ") for t in tokens)


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "x" * 201])
def test_a_name_that_cannot_travel_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(Misconfigured, match="a site's name is 1 to 200 letters"):
        Network(Hub().wire()).join(name, lambda _: None)


parcels = st.builds(
    Parcel, st.sampled_from("ab"), st.binary(max_size=2), st.sampled_from(["", "k"])
)


@given(st.lists(parcels))
def test_an_outbox_keeps_the_newest_of_each_key_and_all_without_one(given: list[Parcel]) -> None:
    box = Outbox()
    for parcel in given:
        box.put(parcel)
    newest = {(p.channel, p.key): p for p in given if p.key}
    taken = box.take()
    assert [p for p in taken if not p.key] == [p for p in given if not p.key]
    assert {(p.channel, p.key): p for p in taken if p.key} == newest
    assert len(taken) == len(newest) + sum(not p.key for p in given) and box.take() == []


def test_what_could_not_be_sent_comes_back_unless_something_newer_came() -> None:
    box = Outbox()
    box.put(Parcel("r", b"new", "a"))
    box.put_back([Parcel("r", b"old", "a"), Parcel("r", b"old", "b"), Parcel("o", b"order")])
    assert {p.key: p.data for p in box.take()} == {"a": b"new", "b": b"old"}
