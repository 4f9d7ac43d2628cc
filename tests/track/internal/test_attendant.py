"""Who is there, who is waited for, and how old a count is."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.bad_network import BadNetwork as World
from oracles.bad_network import Faults

from casemate.errors import Misconfigured
from casemate.track.engine import Change, Rules, Wish
from casemate.track.instruction import Every, Rule
from casemate.track.messages import Order, Report
from casemate.track.modes import TRACKERS, make_engine
from casemate.track.protocols.sampled.design import design
from casemate.track.protocols.sampled.sampled import Sampled
from casemate.track.protocols.windows import Windows
from casemate.track.protocols.windows import centred as centred_windows
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Timing
from casemate.track.setting import Setting
from casemate.track.site import Site
from casemate.track.transport.network import silent

ALPHA = 0.1


def centred(sites: int = 3) -> Windows:
    return centred_windows(sites, ALPHA)


def test_a_server_that_starts_is_exact_after_one_call() -> None:
    world = World(3, centred(), Faults(), 0)
    for n in range(100):
        world.step(n % 3)
    world.serve(Windows(3, Every()))
    world.attendant.open()
    assert (world.value, world.attendant.read().words) == (100, 2 * 3)
    assert world.attendant.server.rounds == 1


def test_a_lost_call_is_repeated_until_it_is_answered() -> None:
    world = World(3, centred(), Faults(drop=0.7), 1, timing=Timing(20, 5000, 1))
    world.attendant.open()
    world.pass_time(4900)
    assert world.attendant.server.rounds == 1 and world.attendant.server.awaited == []


def test_a_round_begins_without_a_site_that_stays_away_and_names_it_stale() -> None:
    world = World(3, centred(), Faults(), 0, heartbeat=50)
    world.step(0)
    world.step(1)
    world.step(2)
    world.sites.pop()
    world.transport.leave("2")
    world.attendant.open()
    assert world.attendant.server.awaited == ["2"] and world.attendant.server.rounds == 0
    world.pass_time(220)
    count = world.attendant.read()
    assert world.attendant.server.rounds == 1
    assert count.stale_sites == ("2",) and count.lo == 3


def test_who_is_known_to_be_away_is_not_waited_for_again() -> None:
    world = World(3, centred(), Faults(), 0, heartbeat=50)
    world.sites.pop()
    world.transport.leave("2")
    world.attendant.open()
    world.pass_time(220)
    world.attendant.server.call_round()
    world.pass_time(2 * 20)
    assert not world.attendant.server.collecting
    called = world.attendant.server.words_by_kind["call"]
    world.pass_time(1000)
    assert world.attendant.server.words_by_kind["call"] == called


@pytest.mark.parametrize("engine", ["centred", "sampled"])
def test_a_site_that_comes_back_brings_a_round_and_everything_is_exact(engine: str) -> None:
    world = World(3, made(engine), Faults(), 0, heartbeat=50)
    away = world.sites.pop()
    world.transport.leave("2")
    world.attendant.open()
    world.pass_time(220)
    rounds = world.attendant.server.rounds
    away.add(1000)
    world.transport.join("2", away.obey)
    world.sites.append(away)
    world.pass_time(120)
    count = world.attendant.read()
    assert world.attendant.server.rounds > rounds and count.stale_sites == ()
    assert count.lo <= 1000 <= count.hi and abs(count.value - 1000) <= ALPHA * 1000


def made(engine: str) -> Windows | Sampled:
    return centred() if engine == "centred" else Sampled(design(3, ALPHA, 0.01, 1e6))


@pytest.mark.parametrize("engine", ["centred", "sampled"])
def test_a_site_without_its_journal_is_a_new_one_and_the_old_count_stays(engine: str) -> None:
    world = World(3, made(engine), Faults(), 0, heartbeat=50)
    world.attendant.open()
    for n in range(900):
        world.step(n % 3)
    old = world.sites[2]
    old.report()
    late = Report("2", 1, old.epoch, 0, 10**6, old.count + 7)
    world.sites[2] = world.make(2, incarnation=2)
    world.sites[2].add(50)
    world.pass_time(60)
    world.attendant.server.poll()
    assert world.attendant.read().lo == 900 + 50
    for _ in range(2):
        world.attendant.receive(late)
        world.pass_time(100)
        assert world.attendant.read().lo == 900 + 50 + 7
    assert world.said == []


def start_second(world: World) -> tuple[Site, Site]:
    """Two processes that report as site 1 from now on: the one that there is, and another."""
    first, second = world.sites[1], world.make(1, incarnation=2)
    world.sites.append(second)

    def obey(order: Order) -> None:
        first.obey(order)
        second.obey(order)

    world.transport.join("1", obey)
    return first, second


@pytest.mark.parametrize("mode", TRACKERS)
def test_two_processes_of_one_name_are_counted_both_and_said_and_named(mode: str) -> None:
    world = World(2, make_engine(mode, Setting(2, ALPHA, 0.01, 10**6)), Faults(), 0, heartbeat=50)
    world.attendant.open()
    start_second(world)
    for n in range(3000):
        world.step(n % 3)
    assert world.attendant.read().stale_sites == ("1",)
    world.pass_time(100)
    world.attendant.server.poll()
    world.pass_time(100)
    assert world.attendant.server.heard == world.truth == 3000
    assert abs(world.attendant.read().value - 3000) <= ALPHA * 3000
    assert set(world.said) == {
        "two processes report as site '1'; stop one of them, or give it another name"
    }
    assert len(world.said) <= 1 + world.now // 60


def doubled(mode: str) -> tuple[World, Site, Site]:
    """Two processes that report as site 1, after both have counted."""
    engine = make_engine(mode, Setting(2, ALPHA, 1e-9, 10**6))
    world = World(2, engine, Faults(), 0, heartbeat=50)
    world.attendant.open()
    for n in range(600):
        world.step(n % 2)
    first, second = start_second(world)
    for n in range(900):
        world.step(n % 3)
    assert world.attendant.read().stale_sites == ("1",)
    return world, first, second


def stop(world: World, site: Site, left: Site) -> int:
    """End one of the two in order: what it counted stays counted."""
    site.report()
    world.sites.remove(site)
    world.transport.join("1", left.obey)
    return site.count


@pytest.mark.parametrize("mode", TRACKERS)
@pytest.mark.parametrize("newer", [True, False])
def test_when_one_of_two_processes_of_a_name_is_stopped_the_other_is_counted_by_itself(
    mode: str, newer: bool
) -> None:
    world, first, second = doubled(mode)
    gone, left = (second, first) if newer else (first, second)
    stopped = stop(world, gone, left)
    world.pass_time(200 + 2 * 50)  # its patience, and a moment for calls
    count = world.attendant.read()
    assert (count.stale_sites, world.attendant.server.heard) == ((), world.truth + stopped)
    assert count.lag <= 50
    words = count.words
    world.pass_time(1000)
    most = 2 * 1000 / 50 * (2 if mode == "robust" else 1)  # it answers who is silent in a round
    assert world.attendant.read().words - words <= most  # nothing but heartbeats
    for n in range(600):
        world.step(n % 2)
    world.attendant.server.poll()
    world.pass_time(50)
    truth = world.truth + stopped
    assert world.attendant.server.heard == truth == 2100
    assert abs(world.attendant.read().value - truth) <= ALPHA * truth
    assert world.attendant.read().stale_sites == ()


@pytest.mark.parametrize("mode", TRACKERS)
def test_who_comes_back_with_its_journal_after_a_double_without_one_is_counted(mode: str) -> None:
    """The older process was killed, a newer one without its journal was started and stopped."""
    world, first, second = doubled(mode)
    world.sites.remove(first)
    world.transport.join("1", second.obey)
    world.pass_time(300)
    gone = second.count
    world.sites.remove(second)
    world.transport.leave("1")
    world.pass_time(300)
    assert world.attendant.read().stale_sites == ("1",)
    world.transport.join("1", first.obey)
    world.sites.append(first)
    first.add(50)
    world.pass_time(200)
    count = world.attendant.read()
    assert (count.stale_sites, world.attendant.server.heard) == ((), world.truth + gone)
    assert count.lag <= 50


def test_a_late_report_of_one_that_is_gone_takes_nobodys_place_for_long() -> None:
    world, first, second = doubled("deterministic")
    late = Report("1", 1, first.epoch, 0, 0, first.count)
    stopped = stop(world, first, second)
    world.heartbeat = 0
    world.pass_time(250)
    world.attendant.receive(late)  # the other was silent, but lives
    world.heartbeat = 50
    world.pass_time(400)
    count = world.attendant.read()
    assert (count.stale_sites, world.attendant.server.heard) == ((), world.truth + stopped)


@pytest.mark.parametrize("mode", TRACKERS)
def test_the_lag_is_as_before_once_a_stale_site_came_back_though_nothing_is_counted(
    mode: str,
) -> None:
    world = World(3, make_engine(mode, Setting(3, ALPHA, 0.01, 10**6)), Faults(), 0, heartbeat=50)
    world.attendant.open()
    for n in range(300):
        world.step(n % 3)
    away = world.sites.pop()
    world.transport.leave("2")
    world.pass_time(700)
    assert world.attendant.read().stale_sites == ("2",)
    world.transport.join("2", away.obey)
    world.sites.append(away)
    world.pass_time(150)
    count = world.attendant.read()
    assert count.stale_sites == () and count.lag <= 50


@pytest.mark.parametrize("mode", TRACKERS)
@given(seed=st.integers(0, 2**32), gap=st.integers(0, 300))
@settings(max_examples=5)
def test_sites_that_have_ended_are_counted_as_they_said_last(
    *, mode: str, seed: int, gap: int
) -> None:
    engine = make_engine(mode, Setting(3, ALPHA, 1e-9, 10**12))
    world = World(3, engine, Faults(), seed, heartbeat=50)
    world.attendant.open()
    for _ in range(3):
        for site in world.sites:
            site.add(50_000)
        world.pass_time(7)
    for site in list(world.sites):
        site.add(50_000)
        site.report()
        world.transport.leave(site.name)
        world.sites.remove(site)
        world.pass_time(gap)
    world.pass_time(300)
    count, hair = world.attendant.read(), 1e-3
    assert world.attendant.server.heard == 600_000 and count.stale_sites == ("0", "1", "2")
    assert abs(count.value - 600_000) <= ALPHA * 600_000
    assert count.lo - hair <= 600_000 <= count.hi + hair
    words = count.words
    world.pass_time(1000)
    assert world.attendant.read().words == words


@pytest.mark.parametrize("mode", sorted(set(TRACKERS) - {"robust", "robust-tuned"}))
def test_the_interval_never_begins_below_what_was_heard(mode: str) -> None:
    faults = Faults(drop=0.3, delay=3, reorder=True)
    world = World(3, make_engine(mode, Setting(3, ALPHA, 0.01, 10**6)), faults, 4, heartbeat=50)
    world.attendant.open()
    for n in range(1500):
        world.step(n % 3)
        count = world.attendant.read()
        assert world.attendant.server.heard <= count.lo <= count.value <= count.hi


@pytest.mark.parametrize("mode", ["robust", "robust-tuned"])
def test_where_reports_are_hidden_the_interval_says_nothing_of_them(mode: str) -> None:
    world = World(3, make_engine(mode, Setting(3, ALPHA, 0.01, 10**6)), Faults(), 4)
    world.attendant.open()
    for _ in range(30):
        for site in world.sites:
            site.add(10_000)
        world.pass_time()
    for site in world.sites:
        site.add(1)
        site.report()
    server = world.attendant.server
    assert server.hides
    assert world.attendant.read().lo == server.read().lo < server.heard


def test_when_all_are_stale_the_lag_is_the_age_of_the_newest_news() -> None:
    world = World(2, centred(2), Faults(), 0)
    world.attendant.open()
    world.pass_time(100)
    world.sites[1].report()
    for name in world.names:
        world.transport.leave(name)
    world.pass_time(500)
    count = world.attendant.read()
    assert count.stale_sites == ("0", "1") and count.lag == 500


def test_a_server_says_of_whom_it_knows_nothing_since_it_started() -> None:
    world = World(3, centred(), Faults(), 0, heartbeat=50)
    for _ in range(2):
        world.sites.pop()
    world.transport.leave("1")
    world.transport.leave("2")
    world.attendant.open()
    world.pass_time(220)
    assert world.attendant.read().stale_sites == ("1", "2")
    assert world.said == [
        "nothing was heard from 1, 2 since this server started: what was counted there before is "
        "in no count until they are back with their journals"
    ]
    world.pass_time(1000)
    assert len(world.said) == 1


def test_a_server_says_nothing_of_a_site_that_fell_silent_after_it_had_answered() -> None:
    world = World(3, centred(), Faults(), 0, heartbeat=50)
    world.attendant.open()
    world.sites.pop()
    world.transport.leave("2")
    world.pass_time(500)
    assert world.attendant.read().stale_sites == ("2",) and world.said == []


def test_an_unknown_site_is_told_so() -> None:
    told: list[str] = []
    server = Server(["a"], centred(1), lambda _site, _order: None)
    attendant = Attendant(server, ["a"], Timing(), notes=silent(), disown=told.append)
    attendant.receive(Report("a", 1, 0, 0, 1, 1))
    attendant.receive(Report("berlin", 1, 0, 0, 1, 1))
    assert told == ["berlin"]


def test_reports_that_cannot_be_taken_are_noted_and_change_nothing() -> None:
    world = World(2, centred(2), Faults(), 0)
    world.attendant.open()
    before = world.attendant.read()
    for _ in range(3):
        world.attendant.receive(Report("stranger", 1, 0, 0, 1, 1))
        world.attendant.receive(Report("0", 1, 10**15, 0, 1, 10**6))
    assert world.attendant.read() == before
    assert len(world.said) == 2
    assert "none of the sites here" in world.said[0] and "the clock is" in world.said[1]


def test_a_server_whose_clock_was_behind_gets_through_when_it_is_right_again() -> None:
    world = World(2, centred(2), Faults(), 0, heartbeat=50)
    world.now = 500
    world.attendant.open()
    world.step(0)
    world.step(1)
    world.now = 0
    world.serve(centred(2))
    world.attendant.open()
    world.pass_time(100)
    assert world.attendant.server.rounds == 0 and len(world.said) == 1
    world.pass_time(700)
    assert world.attendant.server.rounds > 0 and world.attendant.read().lo == 2
    assert world.attendant.read().stale_sites == ()


class Collecting:
    """An engine that collects exact counts first and sends its rule afterwards."""

    def __init__(self, sites: int) -> None:
        self._windows = Windows(sites, Every())
        self.hear, self.estimate = self._windows.hear, self._windows.estimate

    def opening(self) -> Rules:
        return Every()

    def summons(self) -> None:
        return None

    def begin(self, counts: Sequence[int]) -> Rules:
        self._windows.begin(counts)
        return Every()


def test_a_rule_that_was_lost_is_sent_again_after_a_heartbeat() -> None:
    world = World(1, Collecting(1), Faults(), 0, heartbeat=50)
    site = world.sites[0]
    world.transport.join("0", lambda order: site.obey(order) if order.rule is None else None)
    world.attendant.open()
    site.add(5)
    assert world.attendant.server.rounds == 1 and world.value == 0
    world.transport.join("0", site.obey)
    world.pass_time(50)
    assert world.value == 5
    words = world.attendant.server.words_by_kind["rule"]
    site.add()
    world.pass_time(500)
    assert world.value == 6 and world.attendant.server.words_by_kind["rule"] == words


def test_a_site_that_reports_faster_than_orders_travel_is_told_a_few_times_only() -> None:
    world = World(1, centred(1), Faults(delay=100), 0)
    world.attendant.open()
    world.pass_time(300)
    world.transport.leave("0")
    world.sites[0] = world.make(0, incarnation=2)
    before = world.attendant.server.words_by_kind["rule"]
    for _ in range(250):
        world.step(0)
    assert 1 <= world.attendant.server.words_by_kind["rule"] - before <= 9


# How old a count is


def test_the_lag_is_the_age_of_the_oldest_news_and_the_time_of_travel() -> None:
    world = World(2, centred(2), Faults(delay=5), 0)
    world.attendant.open()
    world.pass_time(10)
    assert world.attendant.read().lag == 10  # five steps there, five back, and no age yet
    world.pass_time(7)
    assert world.attendant.read().lag == 17
    for site in world.sites:
        site.report()
    world.pass_time(5)
    assert world.attendant.read().lag == 10


def test_a_poll_after_a_long_silence_makes_no_count_older() -> None:
    for delay in (0, 5):
        world = World(2, centred(2), Faults(delay=delay), 0, heartbeat=50)
        world.attendant.open()
        world.pass_time(1010)
        world.attendant.poll()
        world.pass_time(2 * delay)
        assert world.attendant.read().lag == 2 * delay


def test_while_answers_are_collected_the_count_grows_old() -> None:
    world = World(2, centred(2), Faults(), 0, heartbeat=5)
    world.attendant.open()
    world.transport.leave("0")
    world.transport.leave("1")
    world.attendant.server.call_round()
    world.pass_time(30)
    assert world.attendant.read().lag >= 30


def test_a_report_that_was_overtaken_makes_no_count_younger() -> None:
    world = World(1, centred(1), Faults(), 0)
    world.attendant.open()
    old = Report("0", 1, world.sites[0].epoch, 0, 0, 0)
    world.step(0)
    world.pass_time(30)
    world.attendant.receive(old)
    assert world.attendant.read().lag == 31


class Changing(Windows):
    """Exact counting that wishes for one change at the fifth report."""

    def __init__(self, wish: Change) -> None:
        super().__init__(2, Every())
        self._wishes: list[Wish] = [None, None, None, None, wish]

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        super().hear(site, rule, begun, reports, count)
        return self._wishes.pop(0) if self._wishes else None


def test_an_order_that_was_not_taken_makes_the_count_old_though_its_site_reports() -> None:
    world = World(2, Changing(Change(wider={0: Every()})), Faults(), 0, heartbeat=1)
    world.attendant.open()
    world.transport.leave("0")
    for _ in range(20):
        world.step(0)
    assert world.value == 5 and world.attendant.read().lag == 16
    world.transport.join("0", world.sites[0].obey)
    world.pass_time(20)
    assert world.value == 20 and world.attendant.read().lag == 0


def test_a_count_is_held_until_the_sites_of_a_change_have_answered() -> None:
    world = World(2, Changing(Change(narrower={1: Every()})), Faults(), 0, heartbeat=1)
    world.attendant.open()
    world.transport.leave("1")
    for _ in range(20):
        world.step(0)
    assert world.value == 4 and world.attendant.read().lag == 16
    world.transport.join("1", world.sites[1].obey)
    world.pass_time(20)
    assert world.value == 20 and not world.attendant.server.holding


def test_a_change_is_not_waited_for_when_its_site_is_gone() -> None:
    """Without its answer a round is called, which begins without it."""
    world = World(2, Changing(Change(narrower={1: Every()})), Faults(), 0, heartbeat=1)
    world.attendant.open()
    world.sites.pop()
    world.transport.leave("1")
    for _ in range(300):
        world.step(0)
    count = world.attendant.read()
    assert (count.value, count.stale_sites) == (300, ("1",))
    assert world.attendant.server.rounds == 2 and not world.attendant.server.holding


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
    engine = make_engine(mode, Setting(8, ALPHA, 1e-9, 10**6))
    world = World(8, engine, faults, seed, heartbeat=heartbeat, timing=timing)
    world.attendant.open()
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
    world = World(1, centred(1), Faults(drop=0.5), 0)
    world.attendant.open()
    errors = []
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
