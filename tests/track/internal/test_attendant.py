"""Who is there, who is waited for, and how old a count is."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.bad_network import BadNetwork, Faults

from casemate.errors import Misconfigured
from casemate.track.engine import Engine, RuleChange, Wish
from casemate.track.messages import Order, SiteReport
from casemate.track.modes import TRACKERS, make_engine
from casemate.track.protocols.windows import Windows, centred_windows
from casemate.track.reporting_rule import Every, Rule
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Timing
from casemate.track.setting import Setting
from casemate.track.site import Site
from casemate.track.transport.network import silent

ALPHA = 0.1
modes = pytest.mark.parametrize("mode", TRACKERS)
some_modes = pytest.mark.parametrize("mode", ["deterministic", "auto", "sampled", "robust"])


class World(BadNetwork):
    """A tracker of so many sites, opened unless it is not to be, whose sites come and go."""

    def __init__(
        self,
        sites: int = 3,
        engine: Engine | str = "deterministic",
        faults: Faults = Faults(),  # noqa: B008 - immutable
        seed: int = 0,
        *,
        opened: bool = True,
        heartbeat: int = 50,
        **rest: Any,
    ) -> None:
        if isinstance(engine, str):
            engine = make_engine(engine, Setting(sites, ALPHA, 1e-9, 10**6))
        super().__init__(sites, engine, faults, seed, heartbeat=heartbeat, **rest)
        if opened:
            self.attendant.open()

    @property
    def server(self) -> Server:
        return self.attendant.server

    def go_away(self, *sites: Site) -> None:
        for site in sites:
            self.sites.remove(site)
            self.transport.leave(site.name)

    def come_back(self, site: Site) -> None:
        self.transport.join(site.name, site.obey)
        self.sites.append(site)

    def take_turns(self, items: int, among: int | None = None) -> None:
        for n in range(items):
            self.step(n % (among or len(self.sites)))


# Calls and patience


def test_a_lost_call_is_repeated_until_it_is_answered() -> None:
    world = World(faults=Faults(drop=0.7), seed=1, heartbeat=0, timing=Timing(20, 5000, 1))
    world.pass_time(4900)
    assert world.server.rounds == 1 and world.server.awaited == []


def test_a_round_begins_without_who_stays_away_and_nobody_waits_for_it_again() -> None:
    world = World(opened=False)
    world.take_turns(3)
    world.go_away(world.sites[2])
    world.attendant.open()
    assert world.server.awaited == ["2"] and world.server.rounds == 0
    world.pass_time(220)
    count = world.attendant.read()
    assert world.server.rounds == 1 and count.stale_sites == ("2",) and count.lo == 3
    world.server.call_round()
    world.pass_time(2 * 20)
    assert not world.server.collecting
    called = world.server.words_by_kind["call"]
    world.pass_time(1000)
    assert world.server.words_by_kind["call"] == called


@modes
@pytest.mark.parametrize("known", [False, True])
def test_a_site_that_comes_back_brings_a_round_and_everything_is_right(
    mode: str, known: bool
) -> None:
    """It was heard of and counted nothing while it was away, or it was not and did."""
    world = World(engine=mode, opened=known)
    if known:
        world.take_turns(300)
    away = world.sites[2]
    world.go_away(away)
    if not known:
        world.attendant.open()
    world.pass_time(700)
    assert world.attendant.read().stale_sites == ("2",)
    assert bool(world.said) != known
    rounds = world.server.rounds
    if not known:
        away.add(1000)
    world.come_back(away)
    world.pass_time(150)
    count = world.attendant.read()
    assert world.server.rounds > rounds and count.stale_sites == () and count.lag <= 50
    assert count.lo <= world.truth <= count.hi
    assert abs(count.value - world.truth) <= ALPHA * world.truth


@pytest.mark.parametrize("mode", ["deterministic", "sampled"])
def test_a_site_without_its_journal_is_a_new_one_and_the_old_count_stays(mode: str) -> None:
    world = World(engine=mode)
    world.take_turns(900)
    old = world.sites[2]
    old.report()
    late = SiteReport("2", 1, old.epoch, 0, 10**6, old.count + 7)
    world.sites[2] = world.make(2, incarnation=2)
    world.sites[2].add(50)
    world.pass_time(60)
    world.server.poll()
    assert world.attendant.read().lo == 900 + 50
    for _ in range(2):
        world.attendant.receive(late)
        world.pass_time(100)
        assert world.attendant.read().lo == 900 + 50 + 7
    assert world.said == []


@some_modes
@given(seed=st.integers(0, 2**32), gap=st.integers(0, 300))
@settings(max_examples=4)
def test_sites_that_have_ended_are_counted_as_they_said_last(
    *, mode: str, seed: int, gap: int
) -> None:
    world = World(engine=mode, seed=seed)
    for _ in range(3):
        for site in world.sites:
            site.add(50_000)
        world.pass_time(7)
    for site in list(world.sites):
        site.add(50_000)
        site.report()
        world.go_away(site)
        world.pass_time(gap)
    world.pass_time(300)
    count, hair = world.attendant.read(), 1e-3
    assert world.server.heard == 600_000 and count.stale_sites == ("0", "1", "2")
    assert abs(count.value - 600_000) <= ALPHA * 600_000
    assert count.lo - hair <= 600_000 <= count.hi + hair
    world.pass_time(1000)
    assert world.attendant.read().words == count.words


def test_a_server_says_of_whom_it_knows_nothing_since_it_started() -> None:
    world = World(opened=False)
    world.go_away(*world.sites[1:])
    world.attendant.open()
    world.pass_time(1220)
    assert world.attendant.read().stale_sites == ("1", "2")
    assert world.said == [
        "nothing was heard from 1, 2 since this server started: what was counted there before is "
        "in no count until they are back with their journals"
    ]


# Two processes of one name


def doubled(mode: str) -> tuple[World, Site, Site]:
    """Two processes that report as site 1, after both have counted."""
    world = World(2, mode)
    world.take_turns(600)
    first, second = world.sites[1], world.make(1, incarnation=2)
    world.sites.append(second)

    def obey(order: Order) -> None:
        first.obey(order)
        second.obey(order)

    world.transport.join("1", obey)
    world.take_turns(900)
    assert world.attendant.read().stale_sites == ("1",)
    return world, first, second


@modes
def test_two_processes_of_one_name_are_counted_both_and_said_and_named(mode: str) -> None:
    world, _, _ = doubled(mode)
    world.pass_time(100)
    world.server.poll()
    world.pass_time(100)
    assert world.server.heard == world.truth == 1500
    assert abs(world.attendant.read().value - 1500) <= ALPHA * 1500
    assert set(world.said) == {
        "two processes report as site '1'; stop one of them, or give it another name"
    }
    assert len(world.said) <= 1 + world.now // 60


@some_modes
@pytest.mark.parametrize("newer", [True, False])
def test_when_one_of_two_processes_of_a_name_is_stopped_the_other_is_counted_by_itself(
    mode: str, newer: bool
) -> None:
    world, first, second = doubled(mode)
    gone, left = (second, first) if newer else (first, second)
    gone.report()
    late = SiteReport("1", 1 + newer, gone.epoch, 0, 0, gone.count)
    world.go_away(gone)
    world.transport.join("1", left.obey)
    world.pass_time(200 + 2 * 50)  # its patience, and a moment for calls
    count = world.attendant.read()
    assert (count.stale_sites, world.server.heard) == ((), world.truth + gone.count)
    assert count.lag <= 50 and world.server.is_double(late) != newer
    world.pass_time(1000)
    most = 2 * 1000 / 50 * (2 if mode == "robust" else 1)  # it answers who is silent in a round
    assert world.attendant.read().words - count.words <= most  # nothing but heartbeats
    world.take_turns(600)
    world.server.poll()
    world.pass_time(50)
    truth = world.truth + gone.count
    assert world.server.heard == truth == 2100
    assert abs(world.attendant.read().value - truth) <= ALPHA * truth
    assert world.attendant.read().stale_sites == ()


@some_modes
def test_who_comes_back_with_its_journal_after_a_double_without_one_is_counted(mode: str) -> None:
    """The older process was killed, a newer one without its journal was started and stopped."""
    world, first, second = doubled(mode)
    world.go_away(first)
    world.transport.join("1", second.obey)
    world.pass_time(300)
    world.go_away(second)
    world.pass_time(300)
    assert world.attendant.read().stale_sites == ("1",)
    world.come_back(first)
    first.add(50)
    world.pass_time(200)
    count = world.attendant.read()
    assert (count.stale_sites, world.server.heard) == ((), world.truth + second.count)
    assert count.lag <= 50


def test_a_late_report_of_one_that_is_gone_takes_nobodys_place_for_long() -> None:
    world, first, second = doubled("deterministic")
    late = SiteReport("1", 1, first.epoch, 0, 0, first.count)
    first.report()
    world.go_away(first)
    world.transport.join("1", second.obey)
    world.heartbeat = 0
    world.pass_time(250)
    world.attendant.receive(late)  # the other was silent, but lives
    world.heartbeat = 50
    world.pass_time(400)
    count = world.attendant.read()
    assert (count.stale_sites, world.server.heard) == ((), world.truth + first.count)


# The interval


@pytest.mark.parametrize("mode", sorted(set(TRACKERS) - {"robust", "robust-tuned"}))
def test_the_interval_never_begins_below_what_was_heard(mode: str) -> None:
    world = World(engine=mode, faults=Faults(drop=0.3, delay=3, reorder=True), seed=4)
    for n in range(800):
        world.step(n % 3)
        count = world.attendant.read()
        assert world.server.heard <= count.lo <= count.value <= count.hi


@pytest.mark.parametrize("mode", ["robust", "robust-tuned"])
def test_where_reports_are_hidden_the_interval_says_nothing_of_them(mode: str) -> None:
    world = World(engine=mode, seed=4)
    for _ in range(30):
        for site in world.sites:
            site.add(10_000)
        world.pass_time()
    for site in world.sites:
        site.add(1)
        site.report()
    assert world.server.hides
    assert world.attendant.read().lo == world.server.read().lo < world.server.heard


# What cannot be taken


def test_reports_that_cannot_be_taken_are_noted_and_change_nothing() -> None:
    world, told = World(2), list[str]()
    before = world.attendant.read()
    for _ in range(3):
        world.attendant.receive(SiteReport("stranger", 1, 0, 0, 1, 1))
        world.attendant.receive(SiteReport("0", 1, 10**15, 0, 1, 10**6))
    assert world.attendant.read() == before
    assert len(world.said) == 2
    assert "none of the sites here" in world.said[0] and "the clock is" in world.said[1]
    server = Server(["a"], centred_windows(1, ALPHA), lambda _site, _order: None)
    attendant = Attendant(server, ["a"], Timing(), notes=silent(), disown=told.append)
    for name in ("a", "berlin"):
        attendant.receive(SiteReport(name, 1, 0, 0, 1, 1))
    assert told == ["berlin"]


def test_a_server_whose_clock_was_behind_gets_through_when_it_is_right_again() -> None:
    world = World(2, opened=False)
    world.now = 500
    world.attendant.open()
    world.take_turns(2)
    world.now = 0
    world.serve(centred_windows(2, ALPHA))
    world.attendant.open()
    world.pass_time(100)
    assert world.server.rounds == 0 and len(world.said) == 1
    world.pass_time(700)
    assert world.server.rounds > 0 and world.attendant.read().lo == 2
    assert world.attendant.read().stale_sites == ()


class Collecting:
    """An engine that collects exact counts first and sends its rule afterwards."""

    def __init__(self, sites: int) -> None:
        self._windows = Windows(sites, Every())
        self.hear, self.estimate = self._windows.hear, self._windows.estimate

    def opening(self) -> Rule:
        return Every()

    def summons(self) -> None:
        return None

    def begin(self, counts: Sequence[int]) -> Rule:
        self._windows.begin(counts)
        return Every()


def test_a_rule_that_was_lost_is_sent_again_after_a_heartbeat() -> None:
    world = World(1, Collecting(1), opened=False)
    site = world.sites[0]
    world.transport.join("0", lambda order: site.obey(order) if order.rule is None else None)
    world.attendant.open()
    site.add(5)
    assert world.server.rounds == 1 and world.value == 0
    world.transport.join("0", site.obey)
    world.pass_time(50)
    assert world.value == 5
    words = world.server.words_by_kind["rule"]
    site.add()
    world.pass_time(500)
    assert world.value == 6 and world.server.words_by_kind["rule"] == words


def test_a_site_that_reports_faster_than_orders_travel_is_told_a_few_times_only() -> None:
    world = World(1, faults=Faults(delay=100), heartbeat=0)
    world.pass_time(300)
    world.transport.leave("0")
    world.sites[0] = world.make(0, incarnation=2)
    before = world.server.words_by_kind["rule"]
    world.take_turns(250)
    assert 1 <= world.server.words_by_kind["rule"] - before <= 9


# How old a count is


def test_the_lag_is_the_age_of_the_oldest_news_and_the_time_of_travel() -> None:
    world = World(2, faults=Faults(delay=5), heartbeat=0)
    world.pass_time(10)
    assert world.attendant.read().lag == 10  # five steps there, five back, and no age yet
    world.pass_time(7)
    assert world.attendant.read().lag == 17
    for site in world.sites:
        site.report()
    world.pass_time(5)
    assert world.attendant.read().lag == 10
    world.pass_time(100)
    world.sites[1].report()
    world.pass_time(5)
    world.go_away(*world.sites)
    world.pass_time(500)
    count = world.attendant.read()  # all are stale: the age of the newest news
    assert count.stale_sites == ("0", "1") and count.lag == 510


def test_a_report_that_was_overtaken_makes_no_count_younger() -> None:
    world = World(1, heartbeat=0)
    old = SiteReport("0", 1, world.sites[0].epoch, 0, 0, 0)
    world.step(0)
    world.pass_time(30)
    world.attendant.receive(old)
    assert world.attendant.read().lag == 31


class Changing(Windows):
    """Exact counting that wishes for one change at the fifth report."""

    def __init__(self, wish: RuleChange) -> None:
        super().__init__(2, Every())
        self._wishes: list[Wish] = [None, None, None, None, wish]

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        super().hear(site, rule, begun, reports, count)
        return self._wishes.pop(0) if self._wishes else None


@pytest.mark.parametrize(
    ("wish", "site", "held", "lag"),
    [(RuleChange(wider={0: Every()}), 0, 5, 0), (RuleChange(narrower={1: Every()}), 1, 4, 20)],
    ids=["it was not taken though its site reports", "its answer is awaited"],
)
def test_a_count_is_old_while_a_change_did_not_arrive(
    wish: RuleChange, site: int, held: int, lag: int
) -> None:
    world = World(2, Changing(wish), heartbeat=1)
    world.transport.leave(str(site))
    world.take_turns(20, among=1)
    assert world.value == held and world.attendant.read().lag == 16
    world.transport.join(str(site), world.sites[site].obey)
    world.pass_time(20)
    assert world.value == 20 and not world.server.holding
    assert world.attendant.read().lag == lag


def test_a_change_is_not_waited_for_when_its_site_is_gone() -> None:
    """Without its answer a round is called, which begins without it."""
    world = World(2, Changing(RuleChange(narrower={1: Every()})), heartbeat=1)
    world.go_away(world.sites[1])
    world.take_turns(300)
    count = world.attendant.read()
    assert (count.value, count.stale_sites) == (300, ("1",))
    assert world.server.rounds == 2 and not world.server.holding


@pytest.mark.parametrize("mode", ["deterministic", "deterministic-paper", "allocated", "auto"])
@given(
    loads=st.lists(st.integers(0, 7), min_size=1, max_size=300),
    seed=st.integers(0, 2**32),
    drop=st.floats(0, 0.9),
    heartbeat=st.sampled_from([0, 7, 40]),
    delay=st.integers(0, 10),
)
def test_whatever_is_lost_the_count_is_right_for_a_moment_within_the_lag(
    *, mode: str, loads: list[int], seed: int, drop: float, heartbeat: int, delay: int
) -> None:
    """Between the truth `lag` ago and the truth now there is one from which it is alpha away."""
    timing = Timing(repeat=20, patience=10**6, interval=1)
    faults = Faults(drop=drop, duplicate=0.2, delay=delay, reorder=True)
    world = World(8, mode, faults, seed, heartbeat=heartbeat, timing=timing)
    truths = [0]
    for site in loads:
        world.step(site if seed % 2 else site // 7)  # even, or almost all at one site
        truths.append(world.truth)
        count = world.attendant.read()
        since = truths[max(0, len(truths) - 1 - int(count.lag))]
        hair = 1e-9 * world.truth
        assert (1 - ALPHA) * since - hair <= count.value <= (1 + ALPHA) * world.truth + hair
        assert count.lo <= world.truth and count.hi >= since


def test_the_test_above_would_notice_a_lag_that_is_left_out() -> None:
    world, errors = World(1, faults=Faults(drop=0.5), heartbeat=0), list[bool]()
    for _ in range(300):
        world.step(0)
        errors.append(world.truth - world.value > ALPHA * world.truth)
    assert any(errors)


@pytest.mark.parametrize(
    "wrong", [{"repeat": 0}, {"repeat": 10.0}, {"interval": 0}, {"patience": 0.1}]
)
def test_waiting_times_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(Misconfigured, match="need 0 < repeat < patience"):
        Timing(**wrong)
