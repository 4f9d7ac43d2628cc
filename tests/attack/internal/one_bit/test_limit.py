import math
from collections.abc import Callable

import numpy as np
import pytest
from attack.one_bit_streams import two_humps
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.one_bit import one_bit_limit, parse_law
from casemate.attack.one_bit.laws import Gaussian, Laplace, Law, Triangular, Uniform
from casemate.attack.one_bit.limit import (
    LeastErrors,
    bit_information,
    box_covariance,
    deviations,
    half_of_everything,
    smooth_covariance,
)
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import Stream, generic, group_basis, near_basis, subsets


def plain_deviations(coordinates: Floats, covariance: Floats, information: float) -> Floats:
    """The definition: the information so far, inverted before each query."""
    gathered, found = np.linalg.inv(covariance), []
    for x in coordinates:
        found.append(math.sqrt(x @ np.linalg.inv(gathered) @ x))
        gathered = gathered + information * np.outer(x, x)
    return np.array(found)


@given(st.integers(1, 9), st.integers(0, 10_000), st.sampled_from([0.0, 1e-3, 1.0, 1e4]))
def test_deviations_are_those_of_the_inverted_information(
    size: int, start: int, information: float
) -> None:
    random = np.random.default_rng(start)
    coordinates = random.normal(size=(40, size))
    covariance = np.eye(size) + np.ones((size, size))
    np.testing.assert_allclose(
        deviations(coordinates, covariance, information),
        plain_deviations(coordinates, covariance, information),
        rtol=1e-9,
    )


def test_deviations_stay_numbers_where_there_is_almost_no_noise(seed: int) -> None:
    stream = generic(np.random.default_rng(seed), 32, 8, 20_000)
    found = deviations(stream.coordinates, box_covariance(stream.basis), 1e24)
    assert np.isfinite(found).all()
    assert found[-1] == pytest.approx(found[9_999] / math.sqrt(2), rel=0.5)


@pytest.mark.theorem("000: Theorem 2.1 (the limit it is measured against)")
@pytest.mark.parametrize(
    ("setting", "mean"),
    [
        ((16, 2, 1.0, 100_000), 0.1086),
        ((64, 4, 0.1, 100_000), 0.0629),
        ((4, 2, 0.1, 1_000_000), 0.000886),
    ],
)
def test_the_median_limit_of_uniform_noise_is_what_was_worked_out_elsewhere(
    setting: tuple[int, int, float, int], mean: float, seed: int
) -> None:
    size, dimensions, half_width, count = setting
    stream = near_basis(np.random.default_rng(seed), size, dimensions, count)
    limit = one_bit_limit(stream, Uniform(size * half_width))
    assert limit.kind == "none"
    assert limit.mean == pytest.approx(mean, rel=0.01)
    assert limit.mean == pytest.approx(limit.errors.mean())
    assert limit.mean < 2 * 1.596 * math.sqrt(dimensions) * size * half_width / math.sqrt(count)
    assert math.isnan(limit.price_of_the_oracle)


def test_in_the_long_run_only_the_number_of_directions_matters(seed: int) -> None:
    """The mean of sqrt(2/pi) |Sigma^-1/2 x| / sqrt(kappa T), twice because it is over all t."""
    count, law = 100_000, Gaussian(1.0)
    for dimensions in (2, 6):
        stream = subsets(np.random.default_rng(seed), 24, dimensions, count)
        x = stream.coordinates
        lengths = np.sqrt(np.sum((x @ np.linalg.inv(x.T @ x / count)) * x, axis=1))
        expected = math.sqrt(2 / math.pi) * lengths.mean() / math.sqrt(2 / math.pi * count)
        assert one_bit_limit(stream, law).mean == pytest.approx(2 * expected, rel=0.05)


def test_a_bit_is_as_good_as_an_answer_for_laplace_noise_and_costs_a_quarter_for_gaussian(
    seed: int,
) -> None:
    stream = generic(np.random.default_rng(seed), 16, 4, 20_000)
    laplace, gaussian = (one_bit_limit(stream, law) for law in (Laplace(1.0), Gaussian(1.0)))
    assert laplace.price_of_the_oracle == pytest.approx(1, abs=1e-6)
    assert laplace.mean == pytest.approx(laplace.full_mean, rel=1e-6)
    assert gaussian.price_of_the_oracle == pytest.approx(math.sqrt(math.pi / 2), rel=1e-5)
    assert gaussian.mean / gaussian.full_mean == pytest.approx(1.25, abs=0.01)


def test_more_levels_lower_the_limit_towards_the_whole_answer(seed: int) -> None:
    stream = generic(np.random.default_rng(seed), 16, 4, 5_000)
    means = [one_bit_limit(stream, Gaussian(1.0), levels=k).mean for k in (2, 3, 4, 8)]
    assert means == sorted(means, reverse=True)
    assert means[2] / one_bit_limit(stream, Gaussian(1.0)).full_mean == pytest.approx(
        1.064, abs=0.01
    )
    assert one_bit_limit(stream, Triangular(1.0)).full_mean == 0


def test_where_the_median_is_a_hollow_the_limit_is_that_of_the_best_threshold(seed: int) -> None:
    stream = generic(np.random.default_rng(seed), 16, 4, 20_000)
    limit = one_bit_limit(stream, two_humps(Gaussian(0.4), 1.0))
    assert limit.kind == "supremum"
    assert limit.information / limit.median_information == pytest.approx(193.6, abs=0.1)


def test_a_ratio_counts_only_where_the_limit_is_below_a_quarter_of_one_half() -> None:
    stream = generic(np.random.default_rng(0), 16, 2, 2_000)
    near, far = one_bit_limit(stream, Gaussian(0.5)), one_bit_limit(stream, Gaussian(500.0))
    assert near.ratio(2 * near.mean) == pytest.approx(2)
    assert far.ratio(far.mean) is None
    assert near.ratio(near.mean, baseline=3.9 * near.mean) is None
    assert near.ratio(near.mean, baseline=4.1 * near.mean) == 1


def test_answering_one_half_of_everything_errs_by_what_is_missing() -> None:
    queries = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert half_of_everything(queries, np.array([0.9, 0.3])) == pytest.approx((0.4 + 0.2) / 2)
    stream = generic(np.random.default_rng(1), 12, 3, 500)
    expected = one_bit_limit(stream, Laplace(1.0)).half
    worst = half_of_everything(stream.queries, np.ones(12))
    assert 0 < expected < worst


def test_an_empty_stream_has_no_error() -> None:
    limit = one_bit_limit(Stream(np.eye(2), np.empty((0, 2))), Gaussian(1.0))
    assert (limit.mean, limit.root_mean_square, limit.half) == (0.0, 0.0, 0.0)


# Van Trees' bound against the exact risk of learners, by walking the whole tree of answers

GRID = (np.arange(4_000) + 0.5) / 4_000
PRIOR = np.sin(np.pi * GRID) ** 2 / np.sum(np.sin(np.pi * GRID) ** 2)
Rule = Callable[[float, float], float]  # mean and deviation of what is believed: the threshold


def risks(law: Law, rule: Rule, weights: Floats) -> list[float]:
    """The exact mean squared error of the best answer before each query, over secrets and bits."""
    beliefs, found = [PRIOR], []
    for x in weights:
        means = [float(b @ GRID / b.sum()) for b in beliefs]
        spread = [float(b @ (GRID - m) ** 2) for b, m in zip(beliefs, means, strict=True)]
        found.append(x**2 * sum(spread))
        branches = []
        for belief, mean, variance in zip(beliefs, means, spread, strict=True):
            threshold = rule(x * mean, x * math.sqrt(variance / belief.sum()))
            above = 1 - law.cdf(threshold - x * GRID)
            branches += [belief * above, belief * (1 - above)]
        beliefs = [branch for branch in branches if branch.sum() > 1e-15]
    return found


LAWS: dict[str, Law] = {"gaussian": Gaussian(0.1), "laplace": Laplace(0.1)}
RULES: dict[str, Rule] = {
    "at the mean": lambda mean, _: mean,
    "to the side": lambda mean, spread: mean + spread,
    "fixed": lambda _, __: 0.5,
}
WEIGHTS = np.array([1.0, 0.5, 0.8, 1.0, 0.7, 1.0, 0.6, 0.9, 1.0])


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rule", RULES)
def test_no_rule_for_thresholds_beats_van_trees_bound_and_the_best_comes_near(
    name: str, rule: str
) -> None:
    bound = one_bit_limit(Stream(np.eye(1), WEIGHTS[:, None]), LAWS[name]).root_mean_square
    exact = math.sqrt(np.mean(risks(LAWS[name], RULES[rule], WEIGHTS)))
    assert exact >= bound
    assert exact < 1.35 * bound or rule != "at the mean"


def test_with_half_the_information_the_bound_would_be_wrong() -> None:
    law, ones = LAWS["gaussian"], np.ones((9, 1))
    last = risks(law, RULES["at the mean"], ones[:, 0])[-1]
    information, prior = bit_information(law).best, np.eye(1) / (4 * math.pi**2)
    assert last >= deviations(ones, prior, information)[-1] ** 2
    assert last < deviations(ones, prior, 0.5 * information)[-1] ** 2


def test_the_smooth_secrets_of_the_bound_lie_in_the_cube_and_take_the_wider_of_two_laws() -> None:
    """Groups of 4: levels of groups may vary by 1, so C w by 2; a single coordinate by 1."""
    np.testing.assert_allclose(smooth_covariance(group_basis(8, 2)), np.eye(2) / math.pi**2)
    turned = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)
    np.testing.assert_allclose(smooth_covariance(turned), np.eye(2) / (4 * math.pi**2))


# Limits carried along a stream in blocks ---------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace:30", "gaussian:1e-9", "uniform:30", "triangular:5"])
def test_limits_in_blocks_are_those_of_the_whole_stream(noise: str, seed: int) -> None:
    law, random = parse_law(noise), np.random.default_rng(seed)
    queries = random.random((700, 5)) * np.array([1.0, 5.0, 20.0, 3.0, 100.0])
    whole = one_bit_limit(Stream(np.eye(5), queries), law)
    parts = LeastErrors(law, np.eye(5))
    for block in np.split(queries, [1, 2, 10, 300]):
        parts.add(block)
    assert parts.queries == 700 and parts.kind == whole.kind
    assert parts.mean == pytest.approx(whole.mean, rel=1e-12)
    assert (parts.van_trees is None) == (parts.kind == "none")  # an edge leaves no bound
    assert (parts.full_mean is None) == (noise in ("uniform:30", "triangular:5"))
    assert (parts.full_mean or 0.0) == pytest.approx(whole.full_mean, rel=1e-12)
    assert (parts.van_trees or 0.0) == pytest.approx(whole.root_mean_square, rel=1e-12)
