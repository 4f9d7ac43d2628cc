"""The frame of both oblivious trackers, and that compiled runs are the runs of the objects."""

from collections.abc import Callable

import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from track.oblivious.runs import Simulate, attacked, three

from casemate.track.adversary.compiled import NAMES, named_adversary
from casemate.track.engine import Change, PublishedCount
from casemate.track.instruction import Every, Sample
from casemate.track.protocols.oblivious import block as blocks
from casemate.track.protocols.oblivious import huang_yi_zhang as hyz
from casemate.track.protocols.oblivious.doubling import Doubling, start, step_at
from casemate.track.setting import Setting
from casemate.track.simulate.simulate import PlainRun, run_plain

Make = Callable[[int, float], Doubling]
BOTH: list[tuple[Simulate, Make]] = [
    (hyz.simulate_huang_yi_zhang, hyz.huang_yi_zhang),
    (blocks.simulate_block, blocks.block),
]
PREDICTED: list[tuple[Simulate, Callable[[int, float, float, int], float]]] = [
    (hyz.simulate_huang_yi_zhang, hyz.predicted_words),
    (blocks.simulate_block, blocks.predicted_words),
]
ADVERSARIES = [name.replace("EXPONENT", "1.5") for name in NAMES]
SETTINGS = [
    Setting(1, 0.3, items=1500),
    Setting(5, 0.1, items=3000),
    Setting(16, 0.1, items=6000),
    Setting(40, 0.5, items=2500),
]


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize(("simulate", "make"), BOTH)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_compiled_run_is_word_for_word_and_error_for_error_the_plain_one(
    simulate: Simulate, make: Make, adversary: str, setting: Setting, seed: int
) -> None:
    sites, alpha = setting.sites, setting.alpha
    fast = simulate(setting, named_adversary(adversary, sites), three(seed))
    rngs = three(seed)
    object_ = named_adversary(adversary, sites).as_adversary(rngs[0])
    assert fast == run_plain(setting, make(sites, alpha), object_, rngs[1].random)
    assert fast.rounds > 1


@pytest.mark.parametrize(("_simulate", "make"), BOTH)
@given(st.integers(1, 30), st.floats(0.05, 0.9), st.data())
def test_the_count_is_exact_at_the_start_and_at_the_beginning_of_a_round(
    _simulate: Simulate, make: Make, sites: int, alpha: float, data: st.DataObject
) -> None:
    run = PlainRun(sites, make(sites, alpha), default_rng(data.draw(st.integers(0, 99))).random)
    rounds = 0
    for items in range(1, 300):
        run.add(data.draw(st.integers(0, sites - 1)) if items < 20 else items % sites)
        if run.server.rounds > rounds or not run.server.words_by_kind["rule"]:
            assert run.output == items
        rounds = run.server.rounds


@pytest.mark.parametrize(("simulate", "predicted"), PREDICTED)
@pytest.mark.parametrize(("sites", "alpha"), [(100, 0.05), (256, 0.02), (1024, 0.01)])
def test_words_are_as_predicted(
    simulate: Simulate,
    predicted: Callable[[int, float, float, int], float],
    sites: int,
    alpha: float,
    seed: int,
) -> None:
    items = 600_000
    run = simulate(
        Setting(sites, alpha, items=items), named_adversary("uniform", sites), three(seed)
    )
    assert run.words == pytest.approx(predicted(sites, alpha, 0.01, items), rel=0.06)


@pytest.mark.parametrize(("simulate", "predicted"), PREDICTED)
def test_a_word_an_item_before_reports_stand_for_two(
    simulate: Simulate, predicted: Callable[[int, float, float, int], float], seed: int
) -> None:
    run = simulate(Setting(64, 0.1, items=300), named_adversary("uniform", 64), three(seed))
    assert run.words == predicted(64, 0.1, 0.01, 300) == 300
    assert run.max_error_over_alpha == 0.0


def test_reporting_every_item_stops_when_a_report_stands_for_two() -> None:
    assert start(0.01, hyz.strength(1024)) == 25_600
    assert start(0.01, blocks.strength(1024)) == 14_400


@pytest.mark.parametrize(("simulate", "make"), BOTH)
def test_items_that_do_not_look_rarely_drive_the_error_past_alpha(
    simulate: Simulate, make: Make, seed: int
) -> None:
    errors = attacked(simulate, Setting(256, 0.02, items=200_000), "uniform", seed)
    assert_rate_at_most(sum(error > 1 for error in errors), 20, 0.05)
    assert min(errors) > 0.2  # they do err


@pytest.mark.parametrize(("simulate", "make"), BOTH)
def test_an_adversary_drives_the_error_past_alpha_much_more_often(
    simulate: Simulate, make: Make, seed: int
) -> None:
    errors = attacked(simulate, Setting(256, 0.02, items=200_000), "stop-on-change", seed)
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(error > 1 for error in errors), 20, 0.05)


def test_a_server_that_starts_again_goes_on_from_the_counts_it_is_told() -> None:
    engine = hyz.huang_yi_zhang(2, 0.1)
    assert engine.summons() == Every()  # it knows nothing
    engine.begin([5000, 3000])
    assert engine.estimate() == PublishedCount(8000.0, 8000.0, 8000.0, 1.0)
    wish = engine.hear(1, Every(), 3000, 1, 3001)
    rule = Sample(1.0 / step_at(8001, 0.1, hyz.strength(2)))
    assert wish == Change(wider={0: rule, 1: rule})
    assert engine.estimate().confidence == 0.0  # nothing is promised against an adversary


@pytest.mark.parametrize(("_simulate", "make"), BOTH)
def test_a_poll_makes_the_count_exact(_simulate: Simulate, make: Make, seed: int) -> None:
    run = PlainRun(4, make(4, 0.2), default_rng(seed).random)
    for items in range(1, 400):
        run.add(items % 4)
        if items % 37 == 0:
            run.server.call_round()
            assert run.server.read().value == items


@pytest.mark.parametrize("make", [hyz.huang_yi_zhang, blocks.block])
def test_a_strength_that_is_none_is_refused(make: Callable[[int, float, float], Doubling]) -> None:
    with pytest.raises(ValueError, match="positive factor"):
        make(4, 0.1, 0.0)
