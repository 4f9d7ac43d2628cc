"""The server of a quota, and what it knows of who holds what."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from track.quota.bad_network import Fuse, Net, ServerDisk, SiteDisk

from casemate.errors import JournalRewound, Misconfigured, OtherWindow, Refused
from casemate.track.quota.journals import Holding, Holdings, ServerFile
from casemate.track.quota.messages import Claim, Lease, Order
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite


def test_a_repeated_request_is_answered_with_the_same_lease() -> None:
    net = Net()
    server = QuotaServer(100, ["a", "b"], net, journal=ServerDisk())
    for _ in range(3):
        server.receive(Claim(0, "a", 7, 0, 0, 0, wanted=1))
    assert net.travelling == [("a", Lease(1, 7, 1, 50))] * 3
    assert server.granted == 50


def test_an_answer_that_was_overtaken_by_the_next_request_does_not_cancel_it() -> None:
    net = Net()
    server = QuotaServer(10, ["a", "b"], net, remainder=0.0, journal=ServerDisk())
    server.receive(Claim(0, "b", 8, 0, 0, 0, wanted=10))
    server.receive(Claim(0, "a", 7, 0, 0, 0, wanted=2))
    server.receive(Claim(0, "a", 7, 0, 0, 0, wanted=0))
    server.receive(Claim(1, "b", 8, 2, 6, 3, wanted=0))
    assert [to for to, _ in net.travelling] == ["b", "b", "a"]
    assert net.travelling[-1][1] == Lease(1, 7, 1, 4)


def test_a_journal_put_back_from_an_old_copy_is_noticed_and_leases_nothing_more() -> None:
    net = Net(good=True)
    QuotaServer(10, ["a", "b"], net, journal=ServerDisk())
    site = QuotaSite("a", net, SiteDisk(1, Fuse()))
    assert site.acquire(5)
    server = QuotaServer(10, ["a", "b"], net, journal=ServerDisk())
    with pytest.raises(JournalRewound):
        site.acquire(1)
    with pytest.raises(JournalRewound):
        QuotaSite("b", net, SiteDisk(2, Fuse())).acquire()
    assert server.granted == 0


def test_a_site_does_not_follow_a_server_that_lost_its_journal_and_tells_it_whose_it_is() -> None:
    net = Net(good=True)
    QuotaServer(10, ["a"], net, journal=ServerDisk(window=1))
    site = QuotaSite("a", net, SiteDisk(1, Fuse()))
    assert site.acquire(5)
    QuotaServer(10, ["a"], net, journal=ServerDisk(window=2))
    with pytest.raises(Refused, match="another journal"):
        site.acquire(6)
    net.good = False
    with pytest.raises(OtherWindow, match="another window"):
        site.take(Lease(2, 1, 9, 10))
    assert net.travelling == [("", Claim(1, "a", 1, 1, 10, 5, 0))]
    assert site.left == 5


def told(site: QuotaSite) -> int | None:
    return site._standing.ceiling


def test_a_site_that_never_answers_is_given_up_and_the_others_go_on() -> None:
    net, now = Net(good=True), [0.0]
    QuotaServer(90, ["a", "b", "c"], net, remainder=0.0, clock=lambda: now[0], pause=1.0)
    gone, left, right = (QuotaSite(name, net, SiteDisk(1, Fuse())) for name in "abc")
    assert [gone.acquire(), left.acquire(30), right.acquire(29)] == [True, True, True]
    net.join("a", list[Order]().append)
    assert not left.acquire(2)  # nobody knows yet that 29 are lost
    assert told(left) is None
    answers = []
    for _ in range(5):
        now[0] += 1.0
        answers.append(left.acquire(2))
    assert not any(answers) and told(left) == 1
    assert left.acquire(1)  # what the third site had left
    assert not left.acquire(1)
    assert told(left) == 0
    net.join("a", gone.take)
    assert gone.acquire(30 - 1)  # it was only away


def test_a_server_journal_is_durable_before_an_order_leaves(tmp_path: Path) -> None:
    net, seen = Net(), []
    path = tmp_path / "quota.sqlite"
    journal = ServerFile(path)
    server = QuotaServer(100, ["a"], net, journal=journal)

    def look(site: str, order: object) -> None:
        with sqlite3.connect(path) as other:
            seen.extend(other.execute("SELECT site, sequence, bound FROM lease").fetchall())

    net.order = look  # type: ignore[method-assign]  # a spy
    server.receive(Claim(0, "a", 7, 0, 0, 0, wanted=1))
    assert seen == [("a", 1, 100)]
    journal.close()


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE something (x)")
    with pytest.raises(Misconfigured, match="no quota's journal"):
        ServerFile(tmp_path / "other")
    (tmp_path / "text").write_text("neither is this" * 100)
    with pytest.raises(Misconfigured, match="could not be used"):
        ServerFile(tmp_path / "text")
    with pytest.raises(Misconfigured, match="cannot be opened"):
        ServerFile(tmp_path / "missing" / "quota")


changes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 50), st.integers(0, 50), st.booleans()),
    max_size=400,
)


@given(changes, st.integers(1, 60), st.integers(0, 4), st.sets(st.integers(0, 5)))
def test_sums_and_donors_are_those_of_a_plain_list(
    changed: list[tuple[int, int, int, bool]], need: int, many: int, busy: set[int]
) -> None:
    holdings = Holdings(())
    rows = [holdings.add(str(i), 1) for i in range(6)]
    for i, used, left, silent in changed:
        holdings.change(rows[i], bound=used + left, used=used, silent=silent)
    heard = [row for row in rows if not row.silent]
    assert holdings.granted == sum(row.bound for row in rows)
    assert (holdings.bound, holdings.used) == (
        sum(row.bound for row in heard),
        sum(row.used for row in heard),
    )
    for _ in range(2):  # looking changes nothing
        found = holdings.donors(need, many, {id(rows[i]) for i in busy})
        assert [row.left for row in found] == _plain(heard, need, many, [rows[i] for i in busy])


def _plain(heard: list[Holding], need: int, many: int, busy: list[Holding]) -> list[int]:
    lefts = sorted((row.left for row in heard if row not in busy and row.left), reverse=True)
    chosen: list[int] = []
    for left in lefts:
        if sum((each + 1) // 2 for each in chosen) >= need and len(chosen) >= many:
            break
        chosen.append(left)
    return chosen
