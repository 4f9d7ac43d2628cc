"""Which sites are sampled, and what that may cost of delta."""

import math

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.instruction import ONE
from casemate.track.protocols.mixed import light as light_rounds
from casemate.track.protocols.mixed.light import LightSites, rounded, sampled_round, share_of
from casemate.track.protocols.mixed.mixed import Mixed
from casemate.track.protocols.mixed.plan import Loads, LoadView, MixedPlan, Sampling
from casemate.track.protocols.sampled.boundary import failure_probability
from casemate.track.protocols.windows import fixed, weight_of_top
from casemate.track.setting import Setting
from casemate.track.simulate.adversary import named_adversary
from casemate.track.simulate.compiled_run import run_compiled
from casemate.track.tally import SiteTally


def view_of(loads: np.ndarray, items: float, alpha: float = 0.01) -> LoadView:
    """Centred windows at counts in proportion to the loads."""
    a = fixed(alpha)
    tally = SiteTally(len(loads), ONE + a, ONE - a, weight_of_top(alpha))
    for site, load in enumerate(loads):
        count = int(load * items)
        tally.hold(site, count, count * (ONE + a) // (ONE - a))
    return LoadView(tally, None, tally.counts(), loads / loads.sum(), 0.0)


def zipf(sites: int, exponent: float) -> np.ndarray:
    loads = np.arange(1, sites + 1) ** -exponent
    return np.asarray(loads / loads.sum())


def planned(loads: np.ndarray, items: float = 1e7) -> MixedPlan:
    return LightSites(0.01, 0.01, 1e8)(view_of(loads, items))


# Exactly true


@pytest.mark.parametrize("horizon", [1.0, 2.0, 1e8])
def test_a_share_is_found_however_near_the_horizon_is(horizon: float) -> None:
    assert 0 < share_of(0.1, 0.25, 1e12, horizon) < 0.1


def test_a_round_that_would_fail_too_often_is_not_begun() -> None:
    assert sampled_round(100, 0.1, 1e4, 1e-30) is None


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=300), st.floats(2.0, 1e6))
def test_shares_of_rounds_never_add_up_to_more_than_delta(
    growths: list[float], value: float
) -> None:
    left = 0.01
    for growth in growths:
        left -= share_of(left, growth, value, 1e8)
        value *= math.exp(growth)
        assert left > 0


def test_shares_are_about_even_up_to_the_horizon() -> None:
    shares, left, value = [], 0.01, 1e4
    while value < 1e8:
        shares.append(share_of(left, 0.14, value, 1e8))
        left -= shares[-1]
        value *= math.exp(0.14)
    assert max(shares) < 1.1 * min(shares)
    assert sum(shares) > 0.9 * 0.01


@given(st.floats(1e-12, 0.5), st.integers(1, 16))
def test_rounded_numbers_are_just_below(failure: float, steps: int) -> None:
    assert failure / 2 ** (1.01 / steps) <= rounded(failure, steps) <= failure * (1 + 1e-12)


@pytest.mark.parametrize("taken", [300.0, 1000.0, 1e5])
def test_a_round_fails_no_more_than_it_may(taken: float) -> None:
    found = sampled_round(500, 0.02, taken, 1e-3)
    assert found is not None
    assert found.slack / found.probability == pytest.approx(taken)
    exact = failure_probability(found.draws, found.slack, 0.02, found.probability)
    assert exact == pytest.approx(found.failure)
    assert found.failure <= 1e-3


def test_even_loads_of_many_sites_are_sampled_by_all() -> None:
    plan = planned(np.full(1024, 1 / 1024))
    assert plan.light.all()
    assert plan.sampling is not None
    assert plan.sampling.slack / plan.sampling.probability <= 0.01 * 1e7


def test_even_loads_of_few_sites_keep_windows() -> None:
    plan = planned(np.full(64, 1 / 64))
    assert plan.sampling is None


def test_busy_sites_of_a_skewed_load_keep_windows_while_the_others_are_sampled() -> None:
    loads = zipf(1024, 1.0)
    plan = planned(loads)
    assert plan.sampling is not None
    assert 0 < np.count_nonzero(~plan.light) < 512
    assert loads[~plan.light].min() >= loads[plan.light].max()
    assert plan.widths[~plan.light].sum() > 0


def test_a_single_busy_site_keeps_its_window() -> None:
    loads = np.zeros(1024)
    loads[5] = 1.0
    plan = planned(loads)
    assert plan.sampling is None
    assert plan.widths[5] == int(1e7) * (ONE + fixed(0.01)) // (ONE - fixed(0.01)) - int(1e7)


def test_loads_that_differ_by_chance_only_are_even() -> None:
    counts = np.random.default_rng(0).poisson(20.0, 1000).astype(np.float64)
    loads = Loads(1000).update(counts)
    assert loads.sum() == pytest.approx(1.0)
    assert loads.std() < 0.3 * counts.std() / counts.sum()


def test_loads_follow_what_came_last() -> None:
    history = Loads(2)
    history.update(np.array([1000.0, 0.0]))
    shifted = history.update(np.array([1000.0, 3000.0]))
    assert shifted[1] > 0.9


# True with a stated probability


def broken(view: LoadView) -> MixedPlan:
    """The planner with a tenth of the draws, and of the slack, that it should have."""
    plan = LightSites(0.05, 0.2, 1e5)(view)
    on = plan.sampling
    if on is None or on is view.sampling:
        return plan
    tenth = Sampling(on.probability / 10, on.draws, on.slack / 10, on.failure, on.overdue)
    return MixedPlan(plan.light, tenth, plan.widths, plan.review)


def violations(planner: object, adversary: str, seed: int, runs: int) -> int:
    setting = Setting(512, 0.05, 0.2, 100_000)
    found = 0
    for rng in np.random.default_rng(seed).spawn(runs):
        one, two = rng.spawn(2)
        engine = Mixed(setting.sites, setting.alpha, planner)  # type: ignore[arg-type]  # a planner
        run = run_compiled(setting, engine, named_adversary(adversary, 512), (one, two))
        assert run.words_by_kind["answer"] > 1000  # it did sample
        found += run.violated
    return found


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["uniform", "zipf", "stop-on-change"])
def test_a_run_is_ever_wrong_with_probability_delta_at_most(adversary: str, seed: int) -> None:
    runs = 400
    found = violations(LightSites(0.05, 0.2, 1e5), adversary, seed, runs)
    assert_rate_at_most(found, runs, 0.2)


def test_a_tenth_of_the_draws_is_wrong_more_often(seed: int) -> None:
    with pytest.raises(AssertionError, match="probability"):
        assert_rate_at_most(violations(broken, "uniform", seed, 16), 16, 0.2)


def test_the_longest_rounds_are_those_that_can_be_computed() -> None:
    draws, slacks = light_rounds.possible_rounds(200_000, 0.01, 1e-4)
    assert draws.tolist() == [light_rounds._LONGEST]
    assert slacks[0] > 0
