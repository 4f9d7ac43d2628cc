"""What a bad network does to a count: repeats and reordering nothing, a loss of 5 % no harm."""

from collections.abc import Callable

import pytest
from track.service.world import World

from casemate.track.engine import Engine
from casemate.track.engines.sampled import Sampled
from casemate.track.engines.windows import Windows, centred_rule
from casemate.track.setting import Setting
from casemate.track.transport.faulty import Faults

SITES, ALPHA, DELTA, ITEMS = 64, 0.05, 1e-6, 30_000


def centred() -> Engine:
    return Windows(SITES, centred_rule(ALPHA))


def sampled() -> Engine:
    return Sampled(Setting(SITES, ALPHA, DELTA, 10**6))


def worst(engine: Callable[[], Engine], faults: Faults, seed: int, heartbeat: int = 0) -> float:
    world = World(SITES, engine(), faults, seed, heartbeat=heartbeat)
    world.attendant.open()
    for n in range(SITES * 4):  # a start without which one item in flight is more than alpha
        world.step(n % SITES)
    return world.worst_error(ITEMS, ALPHA)


def test_repeats_change_nothing_at_all(seed: int) -> None:
    """Every error, at every time, is the same as without them."""

    def errors(duplicate: float) -> list[float]:
        world = World(SITES, centred(), Faults(duplicate=duplicate), seed)
        world.attendant.open()
        found = []
        for n in range(5_000):
            world.step(n * n % SITES)
            found.append(world.value - world.truth)
        assert (world.transport.duplicated > 0) == (duplicate > 0)
        return found

    assert errors(0.2) == errors(0.0)


@pytest.mark.parametrize("engine", [centred, sampled])
def test_repeats_with_reordering_end_at_the_count_that_order_ends_at(
    engine: Callable[[], Engine], seed: int
) -> None:
    world = World(SITES, engine(), Faults(duplicate=0.2, delay=20, reorder=True), seed)
    world.attendant.open()
    world.worst_error(10_000, ALPHA)
    world.transport.faults = Faults()
    world.pass_time(100)
    for site in world.sites:
        site.report()
    count = world.attendant.read()
    assert count.lo <= world.truth <= count.hi
    world.attendant.server.poll()
    world.pass_time(100)
    assert world.attendant.read().lo == world.truth


@pytest.mark.slow
@pytest.mark.parametrize("engine", [centred, sampled])
def test_repeats_with_reordering_break_no_promise(engine: Callable[[], Engine], seed: int) -> None:
    faults = Faults(duplicate=0.2, delay=5, reorder=True)
    assert max(worst(engine, faults, seed + run) for run in range(5)) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("engine", [centred, sampled])
def test_a_loss_of_one_message_in_twenty_breaks_no_promise(
    engine: Callable[[], Engine], seed: int
) -> None:
    found = [worst(engine, Faults(drop=0.05), seed + run) for run in range(5)]
    assert max(found) <= 1.0


@pytest.mark.parametrize("engine", [centred, sampled])
def test_a_loss_of_one_message_in_twenty_breaks_no_promise_in_one_run(
    engine: Callable[[], Engine], seed: int
) -> None:
    assert worst(engine, Faults(drop=0.05), seed, heartbeat=2_000) <= 1.0


def test_a_loss_of_almost_everything_would_be_noticed(seed: int) -> None:
    assert worst(centred, Faults(drop=0.95), seed) > 1.0


def test_a_heartbeat_makes_good_what_was_lost(seed: int) -> None:
    world = World(SITES, centred(), Faults(drop=1.0), seed)
    for n in range(2_000):
        world.step(n % SITES)
    assert world.value == 0
    world.transport.faults = Faults()
    for site in world.sites:
        site.report()
    assert abs(world.value - 2_000) <= ALPHA * 2_000
