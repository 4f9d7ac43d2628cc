"""Sampled rounds: exact between them, and together never wrong more often than delta."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from casemate.track.engine import EndRound
from casemate.track.protocols.boundary import chernoff_failure, chernoff_slack, failure_probability
from casemate.track.protocols.sampled import (
    MAX_EXACT_REPORTS,
    Allowance,
    RoundDesign,
    Sampled,
    design,
    slack_for,
)
from casemate.track.reporting_rule import Every, Sample
from casemate.track.setting import Setting
from casemate.track.simulate.runs import PlainRun

SETTING = Setting(4, 0.2, 0.1, 10**4)


def fresh() -> Sampled:
    return Sampled(design(4, 0.2, 0.1, 1e4))


def sampling() -> tuple[Sampled, list[int], float]:
    """An engine in its first sampled round, with the exact counts and the probability."""
    engine = fresh()
    each = engine.design.exact_until(0.0) // 4 + 1
    for site in range(4):
        engine.hear(site, Every(), 0, each, each)
    rule = engine.summons()
    assert isinstance(rule, Sample)
    counts = [each] * 4
    engine.begin(counts)
    return engine, counts, rule.probability


# Exactly true


def test_at_first_every_item_is_reported_and_the_count_is_exact() -> None:
    engine = fresh()
    assert engine.opening() == Every()
    assert engine.hear(2, Every(), 0, 1, 7) is None  # a batch of seven
    estimate = engine.estimate()
    assert (estimate.value, estimate.lo, estimate.hi, estimate.confidence) == (7, 7, 7, 1)
    assert isinstance(engine.hear(1, Every(), 0, 1, 10**6), EndRound)


def test_a_round_begins_exact_and_every_report_stands_for_one_over_p() -> None:
    engine, counts, p = sampling()
    assert engine.estimate().value == sum(counts)
    engine.hear(0, Sample(p), counts[0], 1, counts[0] + 3)
    engine.hear(3, Sample(p), counts[3], 2, counts[3] + 5)
    assert engine.estimate().value == pytest.approx(sum(counts) + 3 / p)


def test_a_site_that_comes_back_begins_where_it_was_last_known_to_be() -> None:
    engine, counts, p = sampling()
    engine.hear(0, Sample(p), counts[0], 2, counts[0] + 9)
    engine.hear(0, Sample(p), counts[0] + 9, 0, counts[0] + 9)
    assert engine.estimate().value == sum(counts) + 9


def test_a_round_is_over_when_it_has_its_reports() -> None:
    engine, counts, p = sampling()
    reports = engine.design.round(sum(counts), p, 0.0).reports
    assert engine.hear(1, Sample(p), counts[1], reports - 1, counts[1] + 50) is None
    assert engine.hear(2, Sample(p), counts[2], 1, counts[2] + 5) == EndRound()


def test_the_interval_is_what_alpha_says_and_never_below_what_is_known() -> None:
    engine, counts, p = sampling()
    engine.hear(0, Sample(p), counts[0], 1, counts[0] + 1)
    estimate = engine.estimate()
    assert estimate.lo == max(estimate.value / 1.2, sum(counts) + 1)
    assert estimate.hi == pytest.approx(estimate.value / 0.8)
    assert estimate.confidence == pytest.approx(0.9)
    engine.hear(1, Sample(p), counts[1], 1, 10**7)  # a batch that no estimate has heard of
    late = engine.estimate()
    assert late.lo == late.value < late.hi == 10**7 + 3 * counts[0] + 1


def test_rounds_that_are_called_by_hand_never_take_more_than_delta() -> None:
    engine, counts, _ = sampling()
    for _ in range(2000):
        engine.summons()
        engine.begin(counts)
    assert engine.spent <= SETTING.delta and engine.estimate().confidence >= 1 - SETTING.delta


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400)), max_size=60), st.integers(0, 99))
def test_the_truth_is_in_the_interval_whenever_the_count_is_within_alpha(
    batches: list[tuple[int, int]], seed: int
) -> None:
    engine = fresh()
    run = PlainRun(4, engine, Random(seed).random)
    for site, n in batches:
        run.sites[site].add(n)
        truth, estimate = sum(each.count for each in run.sites), engine.estimate()
        right = abs(estimate.value - truth) <= 0.2 * truth
        inside = estimate.lo * (1 - 1e-12) <= truth <= estimate.hi * (1 + 1e-12)
        assert inside or not right
        assert engine.spent <= SETTING.delta


@given(st.integers(0, 10**6))
def test_the_largest_so_far_never_falls_and_is_no_worse_than_the_worst_so_far(seed: int) -> None:
    run = PlainRun(4, fresh(), Random(seed).random)
    largest = worst = 0.0
    for items in range(1, 400):
        run.add(items % 4)
        largest, worst = max(largest, run.output), max(worst, abs(run.output - items) / items)
        assert abs(largest - items) <= worst * items + 1e-9


settings_of_trackers = st.tuples(
    st.integers(1, 400),
    st.floats(0.005, 0.5),
    st.floats(1e-6, 0.3),
    st.floats(10.0, 1e10),
)

# What the guarantee rests on


@settings(max_examples=15)
@given(settings_of_trackers, st.floats(1.0, 1e4), st.floats(0.95, 1.05), st.floats(0.0, 1.0))
def test_no_round_fails_more_often_than_it_is_allowed_to(
    tracker: tuple[int, float, float, float], beyond: float, off: float, used: float
) -> None:
    """Whatever the count turns out to be: here it is off from what was published."""
    plan = design(*tracker)
    base, spent = math.ceil(plan.opening * beyond), used * 0.99 * plan.delta
    value = max(base * off, plan.opening)
    probability = plan.probability(value, min(base, value), spent)
    assume(probability < 1)
    now = plan.round(base, probability, spent)
    slack = probability * plan.alpha * base
    exact = failure_probability(now.reports, slack, plan.alpha, probability)
    assert now.failure == pytest.approx(exact, rel=1e-9)
    assert now.failure <= plan.allowance.for_round(base, spent)


def spent_by_rounds(plan: RoundDesign, until: float, rng: np.random.Generator) -> list[float]:
    """What the rounds of a run take of delta, with exact counts drawn as they come."""
    count = plan.exact_until(0.0)
    value, least, spent = float(count), float(count), [0.0]
    while count < until:
        probability = plan.probability(value, min(least, count), spent[-1])
        now = plan.round(count, probability, spent[-1])
        spent.append(spent[-1] + now.failure)
        value = count + now.reports / probability
        least = plan.least(count, probability, now.reports, now.reports)
        count += now.reports + int(rng.negative_binomial(now.reports, probability))
    return spent


@pytest.mark.parametrize(
    ("sites", "alpha", "delta", "horizon"),
    [
        (1, 0.1, 0.1, 1e5),
        (64, 0.05, 0.05, 1e6),
        (1024, 0.1, 0.01, 1e6),
        (3, 0.9, 0.3, 1e4),
    ],
)
def test_all_rounds_together_take_delta_at_most_and_most_of_it(
    sites: int, alpha: float, delta: float, horizon: float, seed: int
) -> None:
    plan, rng = design(sites, alpha, delta, horizon), np.random.default_rng(seed)
    spent = spent_by_rounds(plan, horizon, rng)
    assert 0.25 * delta < spent[-1] <= delta
    assert len(spent) < 4 + 3 * math.log(horizon / plan.opening) / math.log1p(plan.growth)
    assert spent_by_rounds(plan, horizon**2, rng)[-1] <= delta


def test_a_round_too_long_to_be_exact_is_proved_by_the_closed_bound() -> None:
    plan = design(100_000, 0.02, 0.01, 1e10)
    assert plan.reports > MAX_EXACT_REPORTS
    base = 10**8
    probability = plan.probability(base, base, 0.0) * 1.1
    now = plan.round(base, probability, 0.0)
    assert now.reports > MAX_EXACT_REPORTS
    slack = probability * plan.alpha * base
    assert chernoff_failure(now.reports, slack, plan.alpha) == now.failure
    assert now.failure <= plan.allowance.for_round(base, 0.0)


def test_a_count_far_below_the_published_one_makes_a_round_that_says_so() -> None:
    plan = design(16, 0.1, 0.05, 1e5)
    probability = plan.probability(1e7, 1e7, 0.0)
    now = plan.round(100, probability, 0.0)
    assert now.reports == 1 and now.failure > 0.9


# What it costs


def test_words_grow_as_the_square_root_of_sites_and_as_one_over_alpha() -> None:
    def rate(sites: int, alpha: float) -> float:
        plan = design(sites, alpha, 0.01, 1e8)
        return (plan.reports + 2 * sites) / math.log1p(plan.growth)

    assert rate(1024, 0.01) / rate(256, 0.01) == pytest.approx(2.0, abs=0.25)
    assert rate(256, 0.01) / rate(256, 0.02) == pytest.approx(2.0, abs=0.25)
    assert 10 < rate(256, 0.01) / (16 / 0.01) < 13


def test_after_a_jump_of_the_count_a_round_with_plenty_of_slack_is_proved_at_once() -> None:
    plan = design(600, 0.1, 0.5, 1e12)
    found = plan.round(base=6 * 10**11, probability=6.6e-6, spent=0.0)
    slack = 6.6e-6 * 0.1 * 6e11
    assert found.reports > 600
    assert found.failure == chernoff_failure(found.reports, slack, 0.1) < 1e-12


# The slack of a round, and the allowances of all


@given(st.integers(1, 300), st.floats(0.0, 0.9), st.floats(1e-9, 0.3))
def test_it_is_the_least_slack_that_fails_so_seldom(
    reports: int, slope: float, failure: float
) -> None:
    slack = slack_for(reports, slope, failure)
    assert failure_probability(reports, slack, slope) <= failure
    assert failure_probability(reports, slack * (1 - 1e-5) - 1e-9, slope) >= failure * (1 - 1e-5)


def test_the_reference_rounds_need_the_slack_that_is_known() -> None:
    assert slack_for(2318, 0.01, 1.366e-4) == pytest.approx(170.2, abs=0.1)
    assert slack_for(11091, 0.01, 3.763e-4) == pytest.approx(292.0, abs=0.1)


def test_beyond_the_longest_exact_round_the_closed_bound_is_taken() -> None:
    reports = MAX_EXACT_REPORTS + 1
    slack = slack_for(reports, 0.01, 1e-3)
    assert slack == pytest.approx(chernoff_slack(reports, 0.01, 1e-3), rel=1e-6)


deltas = st.floats(1e-12, 0.9)


def allowance(
    delta: float, share: float = 0.02, first: float = 9.0, span: float = 9.0
) -> Allowance:
    return Allowance(delta, share * delta, first, first + span)


@given(deltas, st.floats(1e-4, 0.9), st.lists(st.floats(0.0, 700.0), max_size=60))
def test_however_many_rounds_there_are_they_take_delta_at_most(
    delta: float, share: float, logs: list[float]
) -> None:
    """In any order of counts: rounds that are called out of turn are among them."""
    spread, spent = allowance(delta, share), 0.0
    for log in logs:
        spent += spread.for_round(math.exp(log), spent)
    assert spent <= delta * (1 + 1e-12)


@given(deltas, st.floats(1e-4, 0.9), st.floats(0.0, 700.0), st.floats(0.0, 700.0))
def test_it_increases_and_stays_below_delta(
    delta: float, share: float, one: float, other: float
) -> None:
    spread = allowance(delta, share)
    low, high = sorted((one, other))
    assert 0 < spread.until(math.exp(low)) <= spread.until(math.exp(high)) * (1 + 1e-12)
    assert spread.until(math.exp(high)) <= delta * (1 + 1e-12)
