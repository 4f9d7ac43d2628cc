"""What a bad network does to a count: repeats and reordering nothing, a loss of 5 % no harm."""

from itertools import accumulate
from random import Random

import pytest
from chance import assert_rate_at_most
from oracles.bad_network import BadNetwork as World
from oracles.bad_network import Faults, Faulty

from casemate.track.engine import Engine
from casemate.track.messages import SiteReport
from casemate.track.modes import TRACKERS, make_engine
from casemate.track.setting import Setting

SITES, ALPHA, DELTA = 64, 0.05, 1e-6
BEAT = 4  # steps: something new that was lost is said again after so many, and after four times
modes = pytest.mark.parametrize("mode", TRACKERS)
LOADS = {
    "even": [1.0] * SITES,
    "skewed": [(i + 1) ** -1.5 for i in range(SITES)],
    "single": [1.0] + [0.0] * (SITES - 1),
}


def engine(mode: str) -> Engine:
    return make_engine(mode, Setting(SITES, ALPHA, DELTA, 10**6))


def worst(
    mode: str, faults: Faults, seed: int, items: int, load: str = "even", *, beat: int = BEAT
) -> float:
    """The largest error over alpha at any time."""
    world = World(SITES, engine(mode), faults, seed, beat=beat)
    world.attendant.open()
    for n in range(SITES * 4):  # a start without which one item in flight is more than alpha
        world.step(n % SITES)
    found, weights = 0.0, list(accumulate(LOADS[load]))
    for site in world.random.choices(range(SITES), cum_weights=weights, k=items):
        world.step(site)
        found = max(found, abs(world.value - world.truth) / (ALPHA * world.truth))
    return found


def test_repeats_change_nothing_at_all(seed: int) -> None:
    """Every error, at every time, is the same as without them."""

    def errors(duplicate: float) -> list[float]:
        world = World(SITES, engine("deterministic"), Faults(duplicate=duplicate), seed)
        world.attendant.open()
        found = []
        for n in range(5_000):
            world.step(n * n % SITES)
            found.append(world.value - world.truth)
        assert (world.transport.duplicated > 0) == (duplicate > 0)
        return found

    assert errors(0.2) == errors(0.0)


@modes
def test_repeats_with_reordering_end_at_the_count_that_order_ends_at(mode: str, seed: int) -> None:
    world = World(SITES, engine(mode), Faults(duplicate=0.2, delay=20, reorder=True), seed)
    world.attendant.open()
    for _ in range(5_000):
        world.step(world.random.randrange(SITES))
    world.transport.faults = Faults()
    world.pass_time(100)
    for site in world.sites:
        site.report()
    count = world.attendant.read()
    assert count.lo <= world.truth <= count.hi
    world.attendant.server.poll()
    assert world.attendant.server.heard == world.truth and not world.attendant.server.awaited


@modes
@pytest.mark.parametrize("load", LOADS)
def test_a_loss_of_one_message_in_twenty_breaks_no_promise(mode: str, load: str, seed: int) -> None:
    assert worst(mode, Faults(drop=0.05), seed, 2_000, load) <= 1.0


def test_without_saying_it_again_a_lost_report_of_a_single_site_breaks_it(seed: int) -> None:
    runs = range(seed, seed + 4)
    found = [
        worst("deterministic", Faults(drop=0.05), run, 8_000, "single", beat=0) for run in runs
    ]
    assert max(found) > 1.5


def received(faults: Faults, seed: int, messages: int) -> int:
    got: list[SiteReport] = []
    transport = Faulty(faults, Random(seed))
    transport.serve(got.append)
    for number in range(messages):
        transport.report(SiteReport("a", 0, 0, 0, 0, number))
    return len(got)


# True with a stated probability


def test_messages_are_lost_and_repeated_as_often_as_stated(seed: int) -> None:
    lost = 5_000 - received(Faults(drop=0.05), seed, 5_000)
    assert_rate_at_most(lost, 5_000, 0.05)
    assert_rate_at_most(5_000 - lost, 5_000, 0.95)
    extra = received(Faults(duplicate=0.2), seed, 5_000) - 5_000
    assert_rate_at_most(extra, 5_000, 0.2)
    assert_rate_at_most(5_000 - extra, 5_000, 0.8)
    lost = 5_000 - received(Faults(drop=0.08), seed, 5_000)
    with pytest.raises(AssertionError):  # another rate is noticed
        assert_rate_at_most(lost, 5_000, 0.05)
