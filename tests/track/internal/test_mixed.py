"""Windows and sampling together: right whatever is planned, and never dear."""

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.engine import SiteTally
from casemate.track.protocols.boundary import failure_probability
from casemate.track.protocols.load_plans import (
    LightSites,
    Loads,
    LoadView,
    MixedPlan,
    Planner,
    Sampling,
    plan_windows,
    sampled_round,
    share_of,
)
from casemate.track.protocols.mixed import Mixed, allocated_tracker, automatic_tracker
from casemate.track.protocols.windows import (
    CentredReports,
    centred_rule,
    fixed_point_bounds,
    weight_of_top,
)
from casemate.track.reporting_rule import Growth, Sample
from casemate.track.setting import Setting
from casemate.track.simulate.adversary import named_adversary
from casemate.track.simulate.compiled_run import run_compiled
from casemate.track.simulate.runs import PlainRun

SITES = 6
alphas = st.sampled_from([0.02, 0.05, 0.1, 0.25, 0.5])
pieces = st.tuples(st.integers(0, SITES - 1), st.integers(0, SITES - 1), st.integers(1, 150))
streams = st.lists(pieces, min_size=1, max_size=40)


def items_of(stream: list[tuple[int, int, int]]) -> list[int]:
    """Runs of items that go to two sites in turn: loads that shift all the time."""
    return [(one, two)[i % 2] for one, two, many in stream for i in range(many)]


def run(engine: Mixed, items: list[int], sites: int = SITES) -> tuple[PlainRun, float]:
    """The run, and its largest error in counts relative to the truth."""
    plain, worst = PlainRun(sites, engine, draw=Random(0).random), 0.0
    for total, site in enumerate(items, start=1):
        plain.add(site)
        worst = max(worst, abs(plain.output - total) / total)
    return plain, worst


def centred_words(alpha: float, items: list[int], sites: int = SITES) -> int:
    return CentredReports(centred_rule(alpha)).words(np.bincount(items, minlength=sites))


def wild(seed: int) -> Planner:
    """A planner without any sense."""
    rng = Random(seed)

    def plan(view: LoadView) -> MixedPlan:
        most = int(view.tally.value())
        widths = np.array([float(rng.randint(0, most)) for _ in view.counts])
        kept = view.tally.top - view.tally.reported
        asked = np.array([rng.random() < 0.5 for _ in view.counts])
        light = np.zeros(len(widths), dtype=np.bool_)
        return MixedPlan(light, None, np.where(asked, widths, kept), 1.02 * view.tally.value())

    return plan


# Surely true, against anybody


@given(alphas, streams, st.integers(0, 99))
def test_windows_are_right_whatever_is_planned(
    alpha: float, stream: list[tuple[int, int, int]], seed: int
) -> None:
    _, worst = run(Mixed(SITES, alpha, wild(seed)), items_of(stream))
    assert worst <= alpha


@given(alphas, streams, st.integers(0, 99))
def test_words_are_at_most_twice_those_of_centred_windows_whatever_is_planned(
    alpha: float, stream: list[tuple[int, int, int]], seed: int
) -> None:
    items = items_of(stream)
    for planner in (plan_windows, wild(seed)):
        plain, _ = run(Mixed(SITES, alpha, planner), items)
        assert plain.server.words <= 2 * centred_words(alpha, items) + 7 * SITES + 1


@pytest.mark.parametrize(
    "make", [lambda: allocated_tracker(64, 0.01), lambda: automatic_tracker(64, 0.01, 0.01, 1e6)]
)
def test_a_single_busy_site_costs_what_it_costs_with_a_centred_window(
    make: Callable[[], Mixed],
) -> None:
    items = [7] * 30_000
    plain, _ = run(make(), items, 64)
    assert plain.server.words == centred_words(0.01, items, 64)


def test_a_plan_that_makes_everything_dear_is_given_up() -> None:
    """No site has a window any more; after its words are used up, everybody is centred again."""

    def no_windows(view: LoadView) -> MixedPlan:
        nobody = np.zeros(len(view.counts), dtype=np.bool_)
        return MixedPlan(nobody, None, np.zeros(len(view.counts)), np.inf)

    engine = Mixed(2, 0.1, no_windows)
    items = [i % 2 for i in range(3000)]
    plain, worst = run(engine, items, 2)
    assert plain.server.words_by_kind["answer"] > 0
    assert plain.server.rules == [centred_rule(0.1)] * 2
    assert plain.server.words <= 2 * centred_words(0.1, items, 2) + 15
    assert worst <= 0.1


# What a server asks


def test_a_call_from_outside_ends_a_mixture_with_centred_windows() -> None:
    sites = 256
    engine = automatic_tracker(sites, 0.2, 0.1, 1e6)
    rng = Random(2)
    plain, _ = run(engine, rng.choices(range(sites), k=40_000), sites)
    assert any(isinstance(rule, Sample) for rule in plain.server.rules)
    before = engine.estimate().confidence
    plain.server.call_round()
    assert engine.tally.low == 40_000
    assert set(plain.server.rules) == {centred_rule(0.2)}
    assert engine.estimate().confidence == before


def test_many_calls_from_outside_never_spend_more_than_delta() -> None:
    sites = 512
    engine = automatic_tracker(sites, 0.1, 0.2, 1e6)
    plain, _ = run(engine, Random(2).choices(range(sites), k=40_000), sites)
    plain.server.call_round()
    assert all(isinstance(rule, Sample) for rule in plain.server.rules)
    spent = 1 - engine.estimate().confidence
    assert spent > 0, "a round of samples may fail, and says so"
    for _ in range(100):
        plain.server.call_round()
        assert spent <= 1 - engine.estimate().confidence < 0.2
    assert {type(rule) for rule in plain.server.rules} == {Growth}  # nothing is left to spend


@pytest.mark.parametrize(
    ("sites", "alpha", "delta", "before", "between"),
    [(64, 0.5, 0.5, 300, 3), (256, 0.1, 0.9, 4_000, 2)],
)
def test_a_call_from_outside_costs_no_more_than_itself(
    sites: int, alpha: float, delta: float, before: int, between: int
) -> None:
    engine, random, items = automatic_tracker(sites, alpha, delta, 1e8), Random(1), []
    plain = PlainRun(sites, engine, draw=Random(2).random)
    for calls in range(1, 101):
        fresh = random.choices(range(sites), k=before if calls == 1 else between)
        for site in fresh:
            plain.add(site)
        items += fresh
        plain.server.call_round()
        most = 2 * centred_words(alpha, items, sites) + 7 * sites + 1 + 2 * sites * calls
        assert plain.server.words <= most


def view_of(loads: np.ndarray, items: float, alpha: float = 0.01) -> LoadView:
    """Centred windows at counts in proportion to the loads."""
    tally = SiteTally(len(loads), *fixed_point_bounds(alpha), weight_of_top(alpha))
    for site, load in enumerate(loads):
        count = int(load * items)
        tally.hold(site, count, centred_rule(alpha).top(count))
    return LoadView(tally, None, tally.counts(), loads / loads.sum(), 0.0)


def zipf(sites: int, exponent: float) -> np.ndarray:
    loads = np.arange(1, sites + 1) ** -exponent
    return np.asarray(loads / loads.sum())


def planned(loads: np.ndarray, items: float = 1e7) -> MixedPlan:
    return LightSites(0.01, 0.01, 1e8)(view_of(loads, items))


# Exactly true


def test_likely_counts_lie_in_the_windows_and_scale_draws_up() -> None:
    tally = SiteTally(3, *fixed_point_bounds(0.125), weight=0.25)
    tally.probability = 0.5
    tally.hold(0, 100, 140)
    tally.sample(1, 1000, 3)
    assert tally.counts().tolist() == [110, 1006, 0] and tally.value() == 110 + 1006


def test_a_rule_sent_to_a_site_widens_its_window_until_it_answers() -> None:
    tally = SiteTally(1)
    tally.hold(0, 100, 120)
    tally.widen(0, Growth(3, 2))
    assert (tally.reported[0], tally.top[0]) == (100, 180)  # it may have taken the rule at 120


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


def test_busy_sites_of_a_skewed_load_keep_windows_while_the_others_are_sampled() -> None:
    loads = zipf(1024, 1.0)
    plan = planned(loads)
    assert plan.sampling is not None
    assert 0 < np.count_nonzero(~plan.light) < 512
    assert loads[~plan.light].min() >= loads[plan.light].max()
    assert plan.widths[~plan.light].sum() > 0


def test_loads_that_differ_by_chance_only_are_even() -> None:
    counts = np.random.default_rng(0).poisson(20.0, 1000).astype(np.float64)
    loads = Loads(1000).update(counts)
    assert loads.sum() == pytest.approx(1.0)
    assert loads.std() < 0.3 * counts.std() / counts.sum()


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
