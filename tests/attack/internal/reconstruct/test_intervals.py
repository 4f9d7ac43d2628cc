import math
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from casemate.attack.reconstruct.intervals import (
    ErrorLaw,
    EstimateWithLaw,
    intervals,
    whole_numbers,
)
from casemate.attack.reconstruct.problem import Kind, NoiseLaw
from casemate.exact import Floats

MANY = 20_000


PEERS: dict[Kind, Any] = {
    "laplace": stats.laplace(scale=0.5**0.5),
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-(3**0.5), 12**0.5),
    "round": stats.uniform(-(3**0.5), 12**0.5),
}
HOEFFDING = math.sqrt(MANY * math.log(2 / 1e-9) / 2)
"""So far a sum of many independent numbers of range 1 is from its mean once in 1e9 times."""


def estimates(
    centre: Floats,
    kind: Kind = "gaussian",
    low: float = -np.inf,
    high: float = np.inf,
    deviation: float = 1.0,
) -> EstimateWithLaw:
    """Estimates that one answer decides each."""
    alike = [np.full(len(centre), each) for each in (deviation, low, high)]
    return EstimateWithLaw(centre, alike[0], ErrorLaw.of(kind, np.ones(len(centre))), *alike[1:])


@pytest.mark.parametrize("level", [0.2, 0.5, 0.9, 0.999])
def test_without_a_range_it_is_the_estimate_give_or_take_the_quantile(level: float) -> None:
    low, high = intervals(estimates(np.array([-3.0, 0.0, 1e6])), level)
    quantile = stats.norm.ppf((1 + level) / 2)
    assert high - low == pytest.approx(np.full(3, 2 * quantile), abs=1e-6)
    assert (low + high) / 2 == pytest.approx([-3.0, 0.0, 1e6], abs=1e-6)


@given(
    st.sampled_from(["laplace", "gaussian", "uniform"]),
    st.floats(-50, 50),
    st.floats(0, 20),
    st.floats(0.01, 0.99),
)
def test_an_interval_is_within_the_range_and_never_empty(
    kind: Kind, centre: float, span: float, level: float
) -> None:
    low, high = intervals(estimates(np.array([centre]), kind, 0.0, span), level)
    assert 0 <= low[0] <= high[0] <= span
    assert low[0] <= min(max(centre, 0.0), span) <= high[0]


# True with a stated probability -----------------------------------------------------------------


def misses(
    kind: Kind, truth: float, level: float, random: np.random.Generator, factor: float = 1.0
) -> int:
    """How many intervals in [0, 4] miss the truth if deviations are too small by a factor."""
    law = NoiseLaw(kind, 1.0)
    noise = law.laid_over(np.zeros(MANY), random) / law.deviation / factor
    low, high = intervals(estimates(truth + noise, kind, 0.0, 4.0), level)
    return int(((truth < low - 1e-9) | (truth > high + 1e-9)).sum())


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "uniform"])
@pytest.mark.parametrize(("truth", "level"), [(0.0, 0.9), (0.8, 0.9), (4.0, 0.9), (0.1, 0.3)])
def test_intervals_cover_at_their_level_wherever_in_the_range_the_truth_is(
    kind: Kind, truth: float, level: float, seed: int
) -> None:
    """At an end of the range, with a level below a half, they cover no less often."""
    random = np.random.default_rng([seed, round(10 * truth)])
    missed = misses(kind, truth, level, random)
    assert_rate_at_most(missed, MANY, 1 - level)
    assert_rate_at_most(MANY - missed, MANY, level)
    with pytest.raises(AssertionError):  # deviations that are understated by 30 percent
        assert_rate_at_most(misses(kind, truth, level, random, factor=0.7), MANY, 1 - level)
    assert_rate_at_most(misses(kind, 0.0, 0.3, random), MANY, 0.7)


def test_intervals_that_are_cut_off_at_the_range_cover_too_often(seed: int) -> None:
    """Why they are not cut off: an empty one is moved to the end, where the truth may be."""
    random = np.random.default_rng(seed)
    centre, quantile = random.normal(size=MANY), stats.norm.ppf(0.95)
    covered = int((np.clip(centre - quantile, 0, 4) <= 0).sum())
    with pytest.raises(AssertionError):
        assert_rate_at_most(covered, MANY, 0.9)


WAVES = np.linspace(1e-9, 400, 400_001)


def exact_cdf(point: float, shares: list[float], kind: Kind) -> float:
    """By the inversion of the characteristic function of a sum of independent noises."""
    product = np.ones_like(WAVES)
    for share in shares:
        if kind == "laplace":
            product /= 1 + WAVES**2 * share / 2
        else:
            product *= np.sinc(WAVES * np.sqrt(3 * share) / np.pi)
    return float(0.5 + np.trapezoid(np.sin(WAVES * point) / WAVES * product, WAVES) / np.pi)


@pytest.mark.parametrize("kind", PEERS)
def test_an_estimate_errs_like_the_noise_of_one_answer_or_of_many_like_a_bell(kind: Kind) -> None:
    points = np.linspace(-5, 5, 101)
    one, many = (ErrorLaw.of(kind, np.full(101, share)).cdf(points) for share in (1.0, 0.0))
    assert one == pytest.approx(PEERS[kind].cdf(points), abs=1e-5)
    assert many == pytest.approx(stats.norm.cdf(points), abs=1e-4)


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("concentration", [0.9, 0.4, 0.05])
def test_in_between_variance_and_kurtosis_are_those_of_the_sum(
    kind: Kind, concentration: float
) -> None:
    points = np.linspace(-30, 30, 20_001)
    below = ErrorLaw.of(kind, np.full(len(points), concentration)).cdf(points)
    middles, masses = (points[1:] + points[:-1]) / 2, np.diff(below)
    excess = {"laplace": 3.0, "gaussian": 0.0}.get(kind, -1.2) * concentration
    assert masses @ middles**2 == pytest.approx(1, abs=1e-4)
    assert masses @ middles**4 - 3 == pytest.approx(excess, abs=1e-3)


@pytest.mark.parametrize(
    "shares", [[0.5, 0.5], [1 / 3] * 3, [0.2] * 5, [0.7, 0.3], [0.8, 0.1, 0.1]]
)
@pytest.mark.parametrize(("kind", "points"), [("laplace", 0.005), ("uniform", 0.016)])
def test_a_few_answers_cost_at_most_the_stated_points_of_coverage(
    shares: list[float], kind: Kind, points: float
) -> None:
    law = ErrorLaw.of(kind, np.array([sum(share**2 for share in shares)]))
    for level in (0.8, 0.9, 0.95, 0.99):
        quantile = optimize.brentq(
            lambda z, p=(1 + level) / 2: law.cdf(np.array([z]))[0] - p, 0, 20
        )
        assert abs(2 * exact_cdf(quantile, shares, kind) - 1 - level) <= points


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("freedom", [3.0, 30.0, np.inf])
def test_the_density_is_the_slope_of_the_distribution_function(kind: Kind, freedom: float) -> None:
    points = np.linspace(-4, 4, 4_001)
    law = ErrorLaw.of(kind, np.full(len(points), 0.3), freedom)
    slope = np.gradient(law.cdf(points), points)
    density = np.exp(law.log_density(points))
    middle = 2_000
    assert density / density[middle] == pytest.approx(slope / slope[middle], abs=1e-4)


def coverage(freedom: float, level: float) -> float:
    """What Student's own quantile covers by our law."""
    quantile = np.array([stats.t(freedom).ppf((1 + level) / 2)])
    return float(2 * ErrorLaw.of("gaussian", np.zeros(1), freedom).cdf(quantile)[0] - 1)


@pytest.mark.parametrize("freedom", [2.0, 3.0, 5.0, 12.5, 32.0, 1e3, 1e15])
def test_an_estimated_deviation_gives_students_law(freedom: float) -> None:
    """With one degree of freedom it errs on the wide side."""
    for level in (0.8, 0.9, 0.95, 0.99):
        assert coverage(freedom, level) == pytest.approx(level, abs=0.004)
    assert 0.88 < coverage(1.0, 0.9) < 0.9


@given(st.floats(-3, 13), st.floats(0.05, 7.9), st.integers(0, 10))
def test_the_probability_of_a_number_is_its_share_of_the_density(
    centre: float, deviation: float, value: int
) -> None:
    weights = [math.exp(-(((centre - k) / deviation) ** 2) / 2) for k in range(11)]
    some = estimates(np.array([centre]), low=0, high=10, deviation=deviation)
    found = whole_numbers(some, np.array([float(value)]), 0.9)
    if sum(weights) > 1e-100:
        assert found[2][0] == pytest.approx(weights[value] / sum(weights), abs=1e-6)
        kept: list[int] = []  # the fewest numbers that are as likely as the level
        for number in sorted(range(11), key=lambda k: -weights[k]):
            if sum(weights[k] for k in kept) < 0.9 * sum(weights):
                kept.append(number)
        assert (found[0][0], found[1][0]) == (min(kept), max(kept))


def test_counting_and_integrating_agree_where_one_gives_way_to_the_other() -> None:
    centre, value = np.array([20.3]), np.array([21.0])
    just_below, just_above = (
        whole_numbers(estimates(centre, deviation=deviation), value, 0.9)
        for deviation in (7.999, 8.001)
    )
    assert just_below[2] == pytest.approx(just_above[2], rel=1e-3)
    assert all(abs(just_below[end] - just_above[end])[0] <= 1 for end in (0, 1))


# True with a stated probability -----------------------------------------------------------------


def experiment(
    kind: Kind, deviation: float, most: int, seed: int, claimed: float = 1.0
) -> tuple[int, float, int]:
    """How many rounded values are right, how many were expected to be, and how many are missed."""
    random = np.random.default_rng([seed, most, round(10 * deviation)])
    truth = random.integers(0, most + 1, MANY).astype(np.float64)
    law = NoiseLaw(kind, 1.0)
    noise = law.laid_over(np.zeros(MANY), random) / law.deviation * deviation
    some = estimates(truth + noise, kind, 0, most, claimed * deviation)
    values = np.clip(np.round(some.centre), 0, most)
    low, high, probability = whole_numbers(some, values, 0.9)
    missed = int(((truth < low) | (truth > high)).sum())
    return int((values == truth).sum()), float(probability.sum()), missed


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize(("deviation", "most"), [(0.3, 1), (0.6, 1), (1.2, 9), (12.0, 60)])
def test_as_many_values_are_right_as_probabilities_say(
    kind: Kind, deviation: float, most: int, seed: int
) -> None:
    right, expected, missed = experiment(kind, deviation, most, seed)
    assert abs(right - expected) <= HOEFFDING  # a sum of numbers of mean 0
    assert_rate_at_most(missed, MANY, 0.1)


def test_the_test_above_would_notice_deviations_understated_by_30_percent_of_whole_numbers(
    seed: int,
) -> None:
    right, expected, _ = experiment("gaussian", 0.6, 1, seed, claimed=0.7)
    assert abs(right - expected) > HOEFFDING


@pytest.mark.parametrize("prevalence", [0.02, 0.5, 0.8])
def test_for_yes_or_no_probabilities_are_right_at_every_prevalence(
    prevalence: float, seed: int
) -> None:
    random = np.random.default_rng([seed, round(100 * prevalence)])
    truth = (random.random(MANY) < prevalence).astype(np.float64)
    some = estimates(truth + 0.5 * random.normal(size=MANY), low=0, high=1, deviation=0.5)
    values = np.clip(np.round(some.centre), 0, 1)
    expected = whole_numbers(some, values, 0.9)[2].sum()
    assert abs((values == truth).sum() - expected) <= 1.5 * HOEFFDING
