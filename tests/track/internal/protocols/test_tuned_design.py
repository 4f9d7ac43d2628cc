import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tuned_steps import improvements

from casemate.track.protocols.tuned.design import (
    TunedDesign,
    best_budget,
    block_size,
    design,
    predicted_words,
    share,
    start,
    windows_words,
)
from casemate.track.protocols.tuned.walk import Lengths
from casemate.track.setting import Setting

CENTRED = {1024: 416_800, 4096: 1_384_212, 16_384: 4_403_467}  # words at alpha = .01, 1e8 items


def test_all_rounds_together_spend_at_most_delta() -> None:
    spent = sum(share(0.01, number) for number in range(100_000))
    assert 0.007 < spent <= 0.01


@settings(max_examples=8)
@given(st.integers(1, 1000), st.floats(0.002, 0.9), st.floats(1e-6, 0.5), st.floats(1, 4))
def test_a_design_fails_no_more_than_it_may(
    sites: int, alpha: float, failure: float, times: float
) -> None:
    plan = design(sites, alpha, failure, times * best_budget(sites, alpha, failure))
    assert plan.failure <= failure
    assert plan.failure == plan.proved_failure() or not plan.noise_scale
    assert plan.room >= 0 and plan.growth > 1


def test_the_budget_is_what_lag_tilt_spread_and_the_walk_need_together() -> None:
    plan = TunedDesign(
        sites=100, alpha=0.1, budget=60.0, threshold=20, phases=5, noise_scale=2.0, spread=4.0
    )
    mean = Lengths(20, math.exp(-0.5)).mean
    assert plan.epsilon == 0.5
    assert plan.slack == pytest.approx(100 * math.tanh(0.125) + 4)
    assert plan.room == pytest.approx(60 - plan.slack - 0.9 * (mean - 1) / 2)
    assert plan.slope == pytest.approx(0.1 * (mean - 1))


def test_a_design_whose_walk_has_no_room_is_not_called_right() -> None:
    plan = design(1024, 0.01, 1e-4, best_budget(1024, 0.01, 1e-4))
    wider = TunedDesign(
        plan.sites,
        plan.alpha,
        plan.budget,
        plan.threshold + 40,
        plan.phases,
        plan.noise_scale,
        plan.spread,
    )
    assert plan.proved_failure() <= 1e-4 < wider.proved_failure()


@pytest.mark.parametrize(("sites", "alpha"), [(5000, 1e-3), (100, 0.3)])
def test_a_tiny_delta_is_met_with_noise_and_not_with_a_window_for_every_coin(
    sites: int, alpha: float
) -> None:
    failure = share(1e-12, 0)
    plan = design(sites, alpha, failure, best_budget(sites, alpha, failure))
    assert plan.noise_scale > 0 and 0 < plan.failure <= failure
    assert plan.budget < sites


def test_blocks_are_found_at_once_where_the_count_may_be_a_thousandth() -> None:
    failure = share(0.01, 3)
    count = 1e15
    size = block_size(100, 0.05, failure, count, count / 1000)
    assert size > 1
    assert design(100, 0.05, failure, 0.05 * count / 1000 / size).failure <= failure


@pytest.mark.parametrize("sites", [1, 100])
def test_a_budget_far_larger_than_needed_is_used_in_part(sites: int) -> None:
    plan = design(sites, 0.5, 1e-3, 1e12)
    assert plan.failure <= 1e-3 and plan.budget < 1e5 and plan.growth > 1


def test_with_a_hopeless_budget_the_first_report_ends_the_round_and_nothing_is_promised() -> None:
    plan = design(1024, 0.01, 1e-4, 20.0)
    assert (plan.phases, plan.threshold, plan.failure) == (1, 1, 1.0)


def test_few_sites_need_no_noise_and_are_right_for_sure() -> None:
    plan = design(4, 0.05, 1e-4, best_budget(4, 0.05, 1e-4))
    assert plan.noise_scale == 0 and plan.failure == plan.proved_failure() == 0
    assert plan.slack == 4


def test_blocks_are_smaller_where_the_count_may_be() -> None:
    failure = share(0.01, 3)
    budget = best_budget(1024, 0.05, failure)
    count = 5.5 * budget / 0.05
    assert block_size(1024, 0.05, failure, count, count) == 5
    assert block_size(1024, 0.05, failure, count, 0.5 * count) < 5


@settings(max_examples=15)
@given(st.integers(1, 2000), st.floats(0.005, 0.9))
def test_some_round_is_always_right_where_rounds_begin(sites: int, alpha: float) -> None:
    begin, failure = start(sites, alpha, 0.01), share(0.01, 0)
    least = begin / (1 + alpha)
    size = block_size(sites, alpha, failure, begin, least)
    assert design(sites, alpha, failure, alpha * least / size).failure <= failure


@pytest.mark.parametrize(("sites", "ratio"), [(1024, 0.8), (4096, 0.5), (16_384, 0.33)])
def test_fewer_words_are_predicted_than_centred_windows_send(sites: int, ratio: float) -> None:
    assert predicted_words(Setting(sites, 0.01)) <= ratio * CENTRED[sites]
    assert windows_words(sites, 0.01, 1e8) == pytest.approx(CENTRED[sites], rel=0.01)


@pytest.mark.parametrize(("sites", "alpha", "literal"), [(1024, 0.01, 6.98), (4096, 0.01, 4.10)])
def test_each_step_from_the_source_to_here_saves_words(
    sites: int, alpha: float, literal: float
) -> None:
    costs = list(improvements(sites, alpha, 0.01, 10**8).values())
    assert costs[0] == pytest.approx(literal, abs=0.01)
    assert costs == sorted(costs, reverse=True) and costs[-1] < 0.1 * costs[0]


def test_before_rounds_begin_the_words_are_those_of_windows() -> None:
    assert predicted_words(Setting(1024, 0.01, items=1000)) == 1000
