"""Whether a server answers a site, and what is said where none does."""

import time

import pytest
from track.transport.eventually import eventually

from casemate.errors import UnknownSite
from casemate.track.instruction import Every
from casemate.track.messages import Order
from casemate.track.service import membership as answered
from casemate.track.service.membership import is_answered, not_taken, noting_silence
from casemate.track.site import Site
from casemate.track.transport.network import Notes


def made() -> Site:
    site = Site("berlin", lambda _: None)
    site.add(42)
    return site


def test_a_site_is_answered_once_it_was_given_an_order() -> None:
    site = made()
    assert not is_answered(site, 0.0)
    site.obey(Order(1, Every(), False))
    assert is_answered(site, 0.0)


def test_a_site_that_is_refused_is_told_so() -> None:
    site = made()
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
    monkeypatch.setattr(answered, "UNANSWERED", 0.01)
    site, said = made(), list[str]()
    match state:
        case "refused":
            site.refuse()
        case "answered":
            site.obey(Order(1, Every(), False))
    with noting_silence(site, "nats://h/s", Notes(said.append)):
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
