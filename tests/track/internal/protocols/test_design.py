import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.protocols.sampled.boundary import chernoff_failure, failure_probability
from casemate.track.protocols.sampled.design import (
    LONGEST_EXACT,
    RoundDesign,
    design,
    predicted_words,
)
from casemate.track.setting import Setting

CENTRED = {1024: 416_800, 4096: 1_384_212}  # words of the centred deterministic tracker

settings_of_trackers = st.tuples(
    st.integers(1, 400),
    st.floats(0.005, 0.5),
    st.floats(1e-6, 0.3),
    st.floats(10.0, 1e10),
)

# What the guarantee rests on


@settings(max_examples=25)
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
        (16, 0.1, 0.05, 1e5),
        (64, 0.05, 0.05, 1e6),
        (256, 0.02, 0.01, 1e7),
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
    assert plan.reports > LONGEST_EXACT
    base = 10**8
    probability = plan.probability(base, base, 0.0) * 1.1
    now = plan.round(base, probability, 0.0)
    assert now.reports > LONGEST_EXACT
    slack = probability * plan.alpha * base
    assert chernoff_failure(now.reports, slack, plan.alpha) == now.failure
    assert now.failure <= plan.allowance.for_round(base, 0.0)


def test_a_count_far_below_the_published_one_makes_a_round_that_says_so() -> None:
    plan = design(16, 0.1, 0.05, 1e5)
    probability = plan.probability(1e7, 1e7, 0.0)
    now = plan.round(100, probability, 0.0)
    assert now.reports == 1 and now.failure > 0.9


# What it costs


def test_the_reference_design_is_the_known_one() -> None:
    plan = design(1024, 0.01, 0.01, 1e8)
    assert plan.reports == pytest.approx(2318, rel=0.1)
    assert plan.slack == pytest.approx(170.2, rel=0.04)
    rate = (plan.reports + 2 * 1024) / math.log1p(plan.growth)
    assert rate == pytest.approx((2318 + 2048) / math.log1p(0.01 * 2318 / 170.2), rel=0.01)


@pytest.mark.parametrize(("sites", "share"), [(1024, 0.72), (4096, 0.37)])
def test_it_needs_far_fewer_words_than_windows(sites: int, share: float) -> None:
    assert predicted_words(Setting(sites, 0.01)) <= share * CENTRED[sites]


def test_words_grow_with_sites_and_horizon_and_fall_with_alpha_and_delta() -> None:
    def words(
        sites: int = 64, alpha: float = 0.05, delta: float = 0.05, until: float = 1e6
    ) -> float:
        return predicted_words(Setting(sites, alpha, delta, round(until)))

    assert words() < words(sites=128) < 2 * words()
    assert words() < words(until=1e7) < words(until=1e8)
    assert words() > words(alpha=0.1)
    assert words() > words(delta=0.2)
    assert words(until=10.0) == 10.0


def test_words_grow_as_the_square_root_of_sites_and_as_one_over_alpha() -> None:
    def rate(sites: int, alpha: float) -> float:
        plan = design(sites, alpha, 0.01, 1e8)
        return (plan.reports + 2 * sites) / math.log1p(plan.growth)

    assert rate(1024, 0.01) / rate(256, 0.01) == pytest.approx(2.0, abs=0.25)
    assert rate(256, 0.01) / rate(256, 0.02) == pytest.approx(2.0, abs=0.25)
    assert 10 < rate(256, 0.01) / (16 / 0.01) < 13


def test_with_many_sites_a_round_multiplies_the_count() -> None:
    plan = design(1024, 0.1, 0.01, 1e8)  # k > 1 / alpha^2
    assert plan.growth > 3
    assert predicted_words(Setting(1024, 0.1)) < 1024 * 30


@settings(max_examples=25)
@given(settings_of_trackers)
def test_sampling_begins_when_it_is_worth_it(tracker: tuple[int, float, float, float]) -> None:
    plan = design(*tracker)
    first = plan.exact_until(0.0)
    assert plan.probability(plan.opening - 1, 1, 0.0) == 1.0
    assert plan.probability(first, first, 0.0) <= 0.81
    assert plan.probability(first * 100.0, first * 100.0, 0.0) < 0.1


@pytest.mark.parametrize(
    "wrong", [(0, 0.1, 0.1, 10.0), (1, 1.0, 0.1, 10.0), (1, 0.1, 0.0, 10.0), (1, 0.1, 0.1, 0.0)]
)
def test_a_tracker_that_cannot_be_is_refused(wrong: tuple[int, float, float, float]) -> None:
    with pytest.raises(Misconfigured, match=r"need sites|between 0 and 1"):
        design(*wrong)


def test_after_a_jump_of_the_count_a_round_with_plenty_of_slack_is_proved_at_once() -> None:
    plan = design(600, 0.1, 0.5, 1e12)
    found = plan.round(base=6 * 10**11, probability=6.6e-6, spent=0.0)
    slack = 6.6e-6 * 0.1 * 6e11
    assert found.reports > 600
    assert found.failure == chernoff_failure(found.reports, slack, 0.1) < 1e-12


@pytest.mark.parametrize(
    ("sites", "alpha", "delta", "horizon"),
    [(1024, 0.01, 0.01, 1e8), (16, 0.2, 0.1, 1e4), (100, 0.001, 0.01, 1e9), (256, 0.02, 0.2, 3e4)],
)
def test_predicted_words_are_the_rates_of_many_rounds_summed_up(
    sites: int, alpha: float, delta: float, horizon: float
) -> None:
    plan = design(sites, alpha, delta, horizon)
    logs = np.linspace(math.log(plan.opening), math.log(horizon), 60)
    rates = []
    for base in np.exp(logs).round().astype(int).tolist():
        spent = plan.allowance.until(base) - plan.failure
        p = plan.probability(base, base, spent)
        reports = plan.round(base, p, spent).reports
        rates.append((reports + 2 * sites) / math.log1p(reports / (p * base)))
    words = plan.opening + 2 * sites + float(np.trapezoid(rates, logs))
    assert predicted_words(Setting(sites, alpha, delta, round(horizon))) == pytest.approx(
        words, rel=0.005
    )
