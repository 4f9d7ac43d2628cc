"""The slow obvious model: every message lost, repeated or late, everybody killed at every point."""

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from track.quota.bad_network import Fuse, Killed, Net, ServerDisk, SiteDisk

from casemate.track.quota import site as site_module
from casemate.track.quota.journals import OrderStanding
from casemate.track.quota.messages import Claim, Lease, Order, Recall
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite

SITES = ("a", "b", "c")
who = st.sampled_from(SITES)
places = st.integers(0, 1_000)
moments = st.sampled_from(["before", "after"])


class BadWorld(RuleBasedStateMachine):
    """Three sites, a server, and everything that can go wrong; it counts what is admitted."""

    @initialize(limit=st.integers(1, 60), remainder=st.sampled_from([0.0, 0.1]))
    def begin(self, limit: int, remainder: float) -> None:
        self.limit, self.remainder = limit, remainder
        self.admitted, self.largest = 0, limit
        self.net, self.disk, self.fuses = Net(), ServerDisk(), {name: Fuse() for name in SITES}
        self.numbers = count(1)
        self.disks: list[SiteDisk] = []  # of every incarnation there ever was
        self.sites: dict[str, QuotaSite] = {}
        self.live: dict[str, SiteDisk] = {}
        self.names: dict[int, str] = {}
        self.start_server()
        for name in SITES:
            self.start_site(name, new=True)

    def start_server(self) -> None:
        """From what the journal says, which is all that is left of the last one."""
        self.limit = self.disk.limit or self.limit
        ticks = count()
        self.server = QuotaServer(
            self.limit,
            SITES,
            self.net,
            remainder=self.remainder,
            journal=self.disk,
            clock=lambda: float(next(ticks)),
            pause=3,
        )

    def start_site(self, name: str, new: bool) -> None:
        if new:
            self.live[name] = SiteDisk(next(self.numbers), self.fuses[name])
            self.disks.append(self.live[name])
            self.names[self.live[name].incarnation] = name
        self.fuses[name].lit = None
        self.sites[name] = QuotaSite(name, self.net, self.live[name])

    @rule(name=who, n=st.integers(1, 12))
    def acquire(self, name: str, n: int) -> None:
        """Whatever it asks for travels, and nothing arrives while it waits."""
        if self.sites[name].acquire(n):
            self.admitted += n

    def hand_over(self, to: str, message: Claim | Order) -> None:
        try:
            self.net.hand_over(to, message)
        except Killed:
            if isinstance(message, Claim):
                self.disk.fuse.lit = None
                self.start_server()
            else:
                self.start_site(to, new=False)

    @rule(which=places, keep=st.booleans())
    def deliver(self, which: int, keep: bool) -> None:
        """Any message that travels, whatever was sent before it, perhaps not for the last time."""
        if self.net.travelling:
            i = which % len(self.net.travelling)
            to, message = self.net.travelling[i] if keep else self.net.travelling.pop(i)
            self.hand_over(to, message)

    @rule()
    def deliver_everything_that_travels(self) -> None:
        travelling, self.net.travelling = self.net.travelling, []
        for to, message in travelling:
            self.hand_over(to, message)

    @rule(which=places)
    def lose(self, which: int) -> None:
        if self.net.travelling:
            self.net.travelling.pop(which % len(self.net.travelling))

    @rule(name=who)
    def kill_site(self, name: str) -> None:
        self.start_site(name, new=False)

    @rule(name=who)
    def lose_journal(self, name: str) -> None:
        self.start_site(name, new=True)

    @rule()
    def kill_server(self) -> None:
        self.start_server()

    @rule(name=who, moment=moments)
    def kill_site_at_its_next_write(self, name: str, moment: str) -> None:
        self.fuses[name].lit = moment

    @rule(moment=moments)
    def kill_server_at_its_next_write(self, moment: str) -> None:
        self.disk.fuse.lit = moment

    @rule(more=st.integers(0, 20))
    def raise_limit(self, more: int) -> None:
        try:
            self.server.raise_limit(self.limit + more)
            self.limit += more
        except Killed:
            self.start_server()

    @rule(less=st.integers(0, 20))
    def lower_limit(self, less: int) -> None:
        try:
            self.server.lower_limit(max(1, self.limit - less))
        except Killed:
            self.start_server()

    @invariant()
    def never_more_than_the_limit(self) -> None:
        if hasattr(self, "server"):
            self.limit = self.server.limit  # it is lowered when leases come back
            self.largest = max(self.largest, self.limit)
            assert self.admitted <= self.limit

    @invariant()
    def bounds_add_up_to_no_more_than_the_limit(self) -> None:
        """The invariant of the proof: used <= bound at the site <= bound in the journal."""
        if not hasattr(self, "server"):
            return
        assert self.disk.granted <= (self.disk.limit or self.limit)
        for disk in self.disks:
            row = self.disk.rows.get((self.names[disk.incarnation], disk.incarnation))
            assert (
                disk.cells[0] <= (disk.load() or OrderStanding()).bound <= (row.bound if row else 0)
            )

    def teardown(self) -> None:
        """In a good network all is admitted but the remainder and what lost incarnations held."""
        if not hasattr(self, "server"):
            return
        self.disk.fuse.lit = None
        self.net.travelling, self.net.good = [], True
        for name in SITES:
            self.start_site(name, new=False)
        self.start_server()
        while any(self.sites[name].acquire() for name in SITES):
            pass
        kept = {disk.incarnation for disk in self.live.values()}
        lost = sum(row.bound for key, row in self.disk.rows.items() if key[1] not in kept)
        used = sum(disk.cells[0] for disk in self.live.values())
        assert 0 <= self.server.limit - used - lost <= int(self.remainder * self.largest)


TestBadWorld = BadWorld.TestCase
TestBadWorld.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


class ForgetsToWriteDown(SiteDisk):
    """A broken site: what it answers to a recall is not in its journal."""

    def save(self, record: OrderStanding) -> None:
        if record.bound >= (self.load() or OrderStanding()).bound:
            super().save(record)


def over_admitted(disk: SiteDisk) -> bool:
    """Lease, recall, kill the site that was recalled, lease to another: more than the limit?"""
    net, journal = Net(good=True), ServerDisk()
    QuotaServer(10, ["a", "b"], net, remainder=0.0, journal=journal)
    first, second = QuotaSite("a", net, disk), QuotaSite("b", net, SiteDisk(2, Fuse()))
    admitted = 1 * first.acquire() + 9 * second.acquire(9)
    return admitted + QuotaSite("a", net, disk).left > 10


def test_a_recall_is_written_down_before_it_is_answered() -> None:
    assert not over_admitted(SiteDisk(1, Fuse()))


def test_the_test_above_would_notice_a_recall_that_is_not_written_down() -> None:
    assert over_admitted(ForgetsToWriteDown(1, Fuse()))


def test_a_lease_that_was_overtaken_by_its_recall_is_worth_nothing() -> None:
    net = Net()
    disk = SiteDisk(1, Fuse())
    site = QuotaSite("a", net, disk)
    site.take(Recall(1, 1, sequence=2, numerator=0))
    site.take(Lease(1, 1, sequence=1, bound=10))
    assert site.left == 0
    assert disk.load() == OrderStanding(window=1, sequence=2, bound=0)


def test_a_site_asks_a_few_times_and_then_says_no() -> None:
    net = Net()
    assert not QuotaSite("a", net, SiteDisk(1, Fuse())).acquire()
    assert len(net.travelling) == site_module.REQUEST_ATTEMPTS


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_killed_at_a_write_has_leased_nothing_twice(moment: str) -> None:
    net, journal = Net(good=True), ServerDisk()
    QuotaServer(10, ["a"], net, journal=journal)
    site = QuotaSite("a", net, SiteDisk(1, Fuse()))
    journal.fuse.lit = moment
    with pytest.raises(Killed):
        site.acquire()
    assert journal.granted == (10 if moment == "after" else 0)
    QuotaServer(10, ["a"], net, journal=journal)
    assert [site.acquire(10), site.acquire()] == [True, False]
    assert journal.granted == 10
