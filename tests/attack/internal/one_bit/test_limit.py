"""What a bit, one of several answers and a whole answer carry, and the least error they leave.

The last part is the last theorem of the source, with the oracle off: queries (x, 1), whole answers.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from attack.one_bit_streams import CUT, two_humps
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.optimize import linprog

from casemate.attack.one_bit import one_bit_limit, parse_law
from casemate.attack.one_bit.kalman import level_offsets
from casemate.attack.one_bit.laws import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    Logistic,
    MixtureLaw,
    RaisedCosine,
    Shifted,
    StudentT,
    Triangular,
    Truncated,
    Uniform,
)
from casemate.attack.one_bit.limit import (
    LeastErrors,
    Precision,
    bit_information,
    box_covariance,
    cells_information,
    edge_pays_after,
    full_information,
    half_of_everything,
    level_information,
    smooth_covariance,
)
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import Stream, generic, group_basis, near_basis, subsets

ROOT3 = math.sqrt(3)
HUMPS = two_humps(Gaussian(0.4), 1.0)
SMOOTH: dict[str, tuple[Law, float, float]] = {  # deviation 1: the median bit, the whole answer
    "triangular (an edge in a straight line)": (Triangular(math.sqrt(6)), 2 / 3, math.inf),
    "gaussian": (Gaussian(1.0), 2 / math.pi, 1.0),
    "laplace": (Laplace(1 / math.sqrt(2)), 2.0, 2.0),
    "logistic": (Logistic(ROOT3 / math.pi), math.pi**2 / 12, math.pi**2 / 9),
    "student": (StudentT(3.0, 1 / ROOT3), 16 / math.pi**2, 2.0),
    "cauchy (of scale 1)": (Cauchy(1.0), 4 / math.pi**2, 0.5),
    "cosine (of half width 2)": (RaisedCosine(2.0), 1.0, (math.pi / 2) ** 2),
}
EDGED: dict[str, tuple[Law, float]] = {  # the median bit
    "uniform": (Uniform(ROOT3), 1 / 3),
    "exponential": (Exponential(1.0), 1.0),
    "cut at 2": (CUT, 0.6987607),
    "cut at 3": (Truncated(Gaussian(1.0), -3.0, 3.0), 0.6400712),
    "cut off centre": (Truncated(Gaussian(1.0), -1.0, 6.0), math.nan),
    "cut to almost nothing": (Truncated(Gaussian(1.0), -1e-8, 1e-8), 1e16),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_median_is_best_for_the_usual_laws_and_carries_what_is_known(name: str) -> None:
    """At an edge that falls in a line the bit is bounded, and the whole answer is not."""
    law, median, full = SMOOTH[name]
    found = bit_information(law)
    assert (found.kind, found.offset) == ("median", 0.0)
    assert found.best == found.median == pytest.approx(median, rel=1e-9)
    assert full_information(law) == pytest.approx(full, rel=1e-3 if "cosine" in name else 1e-5)


@pytest.mark.parametrize("name", EDGED)
def test_an_edge_with_a_jump_has_no_best_threshold(name: str) -> None:
    law, median = EDGED[name]
    found = bit_information(law)
    assert (found.kind, found.best, full_information(law)) == ("none", math.inf, math.inf)
    if not math.isnan(median):
        assert found.median == pytest.approx(median, rel=1e-6)
    edge = found.offset + float(law.quantile(0.5))
    inward = math.copysign(min(law.scale, law.edges[1] - law.edges[0]), -found.offset)
    near = [cells_information(law, np.array([edge + inward * 10.0**-k])) for k in (3, 4, 5)]
    assert near[0] < near[1] < near[2]


def test_between_two_humps_the_median_is_194_times_worse_than_the_best() -> None:
    found = bit_information(HUMPS)
    assert found.kind == "supremum"
    assert found.best / found.median == pytest.approx(193.644, abs=0.01)
    assert abs(found.offset) == pytest.approx(1.176, abs=0.001)


@pytest.mark.parametrize(
    "law",
    [
        HUMPS,
        MixtureLaw((Shifted(Laplace(0.2), -3.0), Gaussian(2.0)), (0.3, 0.7)),
        MixtureLaw((Gaussian(0.01), Gaussian(1.0)), (0.02, 0.98)),
        MixtureLaw((Shifted(Uniform(0.3), 0.5), Gaussian(1.0)), (0.3, 0.7)),
        Shifted(StudentT(2.0, 1.0), 5.0),
        Truncated(Cauchy(1.0), -math.inf, math.inf),
    ],
)
def test_no_threshold_of_a_dense_scan_is_better(law: Law) -> None:
    places = law.quantile(np.linspace(1e-6, 1 - 1e-6, 30_001))
    below = law.cdf(places)
    scan = float((law.density(places) ** 2 / (below * (1 - below))).max())
    assert scan * (1 - 1e-3) <= bit_information(law).best <= scan * (1 + 1e-3)


@pytest.mark.parametrize("law", [HUMPS, Logistic(0.7), RaisedCosine(1.0)])
def test_what_a_whole_answer_carries_is_the_integral_of_the_squared_score(law: Law) -> None:
    step = 1e-6

    def squared_score(x: float) -> float:
        slope = float(law.density(x + step) - law.density(x - step)) / (2 * step)
        return slope**2 / float(law.density(x))

    low, high = law.quantile([1e-9, 1 - 1e-9])
    value, _ = integrate.quad(squared_score, low, high, limit=500)
    assert full_information(law) == pytest.approx(value, rel=2e-3)


def test_a_jump_inside_has_a_best_threshold_and_no_end_to_the_whole_answer() -> None:
    law = MixtureLaw((Uniform(1.0), Gaussian(1.0)), (0.5, 0.5))
    assert bit_information(law).kind != "none"
    assert full_information(law) == math.inf


@pytest.mark.parametrize("factor", [1e-6, 1e-2, 1e4])
def test_information_goes_with_the_inverse_square_of_the_scale(factor: float) -> None:
    for law, scaled in ((Gaussian(1.0), Gaussian(factor)), (StudentT(3.0), StudentT(3.0, factor))):
        assert bit_information(scaled).best * factor**2 == pytest.approx(bit_information(law).best)
        assert full_information(scaled) * factor**2 == pytest.approx(full_information(law))


def test_an_edge_pays_the_sooner_the_higher_it_is() -> None:
    assert edge_pays_after(Uniform(3.0)) == pytest.approx(8.5, abs=0.01)
    cut = [edge_pays_after(Truncated(Gaussian(1.0), -at, at)) for at in (2.0, 3.0, 4.0)]
    assert 100 < cut[0] < 1_000
    assert 1e4 < cut[1] < 1e5
    assert cut[2] > 1e6
    assert edge_pays_after(Gaussian(1.0)) == edge_pays_after(Triangular(1.0)) == math.inf


# One of several answers ---------------------------------------------------------------------------


def gaussian_information(ends: Floats) -> float:
    """What cells with these ends say about the location of unit Gaussian noise."""
    ends = np.sort(ends)
    chance = np.diff(stats.norm.cdf(ends), prepend=0, append=1)
    return float((np.diff(stats.norm.pdf(ends), prepend=0, append=0) ** 2 / chance).sum())


@pytest.mark.parametrize(
    ("levels", "ends", "information"),
    [
        (2, [0], 0.6366),
        (3, [-0.612, 0.612], 0.8098),
        (4, [-0.982, 0, 0.982], 0.8825),
        (8, [-1.748, -1.050, -0.501, 0, 0.501, 1.050, 1.748], 0.9655),
    ],
)
def test_for_gaussian_noise_the_best_levels_are_the_best_quantiser(
    levels: int, ends: list[float], information: float
) -> None:
    """The score of Gaussian noise is the noise: cells end where the tables of Lloyd and Max say."""
    assert level_offsets(levels) == pytest.approx(ends, abs=6e-4)
    assert level_information(Gaussian(1.0), levels).best == pytest.approx(information, abs=1e-4)


@pytest.mark.parametrize("levels", [3, 5, 6, 16])
def test_no_cells_nearby_say_more(levels: int, seed: int) -> None:
    own = np.array(level_offsets(levels))
    best = gaussian_information(own)
    assert level_information(Gaussian(1.0), levels).best == pytest.approx(best, rel=1e-9)
    draw = np.random.default_rng(seed)
    for width in (1e-3, 1e-2, 1e-1):
        others = own + width * draw.normal(size=(200, levels - 1))
        assert max(gaussian_information(ends) for ends in others) < best


@pytest.mark.parametrize("law", [Gaussian(1.0), Laplace(2.0), Cauchy(1.0), HUMPS])
def test_no_triple_of_a_scan_is_better(law: Law) -> None:
    places = law.quantile(np.linspace(0.02, 0.98, 15))
    scan = max(
        cells_information(law, np.array(triple)) for triple in itertools.combinations(places, 3)
    )
    assert level_information(law, 4).best >= scan


@pytest.mark.parametrize("law", [Gaussian(1.0), Cauchy(2.0), HUMPS])
def test_more_levels_carry_more_up_to_the_whole_answer(law: Law) -> None:
    carried = [level_information(law, levels).best for levels in (2, 3, 4, 8, 16)]
    assert carried[0] == pytest.approx(bit_information(law).best, rel=1e-6)
    assert carried == sorted(carried)
    assert carried[-1] < full_information(law) * (1 + 1e-4)


def test_at_an_edge_there_are_no_best_levels() -> None:
    assert level_information(Uniform(1.0), 3).best == math.inf
    assert level_information(Uniform(1.0), 3).thresholds == ()


# Deviations along a stream ------------------------------------------------------------------------


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
        Precision(covariance, information).add(coordinates),
        plain_deviations(coordinates, covariance, information),
        rtol=1e-9,
    )


def test_deviations_stay_numbers_where_there_is_almost_no_noise(seed: int) -> None:
    stream = generic(np.random.default_rng(seed), 32, 8, 20_000)
    found = Precision(box_covariance(stream.basis), 1e24).add(stream.coordinates)
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


SHARP: dict[str, Law] = {"gaussian": Gaussian(0.1), "laplace": Laplace(0.1)}
RULES: dict[str, Rule] = {
    "at the mean": lambda mean, _: mean,
    "to the side": lambda mean, spread: mean + spread,
    "fixed": lambda _, __: 0.5,
}
WEIGHTS = np.array([1.0, 0.5, 0.8, 1.0, 0.7, 1.0, 0.6, 0.9, 1.0])


@pytest.mark.parametrize("name", SHARP)
@pytest.mark.parametrize("rule", RULES)
def test_no_rule_for_thresholds_beats_van_trees_bound_and_the_best_comes_near(
    name: str, rule: str
) -> None:
    bound = one_bit_limit(Stream(np.eye(1), WEIGHTS[:, None]), SHARP[name]).root_mean_square
    exact = math.sqrt(np.mean(risks(SHARP[name], RULES[rule], WEIGHTS)))
    assert exact >= bound
    assert exact < 1.35 * bound or rule != "at the mean"


def test_with_half_the_information_the_bound_would_be_wrong() -> None:
    law, ones = SHARP["gaussian"], np.ones((9, 1))
    last = risks(law, RULES["at the mean"], ones[:, 0])[-1]
    information, prior = bit_information(law).best, np.eye(1) / (4 * math.pi**2)
    assert last >= Precision(prior, information).add(ones)[-1] ** 2
    assert last < Precision(prior, 0.5 * information).add(ones)[-1] ** 2


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
    for figure in ("mean", "half", "full_mean", "root_mean_square"):
        assert getattr(parts, figure) == pytest.approx(getattr(whole, figure), rel=1e-12)
    assert (parts.root_mean_square == 0) == (parts.kind == "none")  # an edge leaves no bound
    assert (parts.full_mean == 0) == (noise in ("uniform:30", "triangular:5"))
    assert parts.half == pytest.approx(
        math.sqrt(2 / math.pi) * Precision(box_covariance(np.eye(5)), 0.0).add(queries).mean()
    )


# Without the oracle -------------------------------------------------------------------------------

SECRET = np.array([0.3, 0.6])
Fit = Callable[[Floats, Floats], Floats]


def lines(count: int, rng: np.random.Generator) -> Floats:
    return np.column_stack((rng.random(count), np.ones(count)))


def least_squares(queries: Floats, answers: Floats) -> Floats:
    found, *_ = np.linalg.lstsq(queries, answers)
    return np.asarray(found)


def least_worst(queries: Floats, answers: Floats) -> Floats:
    """Chebyshev's fit: the line whose largest residual is smallest."""
    side = np.ones((len(queries), 1))
    found = linprog(
        [0, 0, 1],
        A_ub=np.block([[queries, -side], [-queries, -side]]),
        b_ub=np.concatenate((answers, -answers)),
        bounds=[(None, None), (None, None), (0, None)],
    )
    assert found.x is not None
    return np.asarray(found.x[:2])


def mean_errors(fit: Fit, law: Law, count: int, runs: int, seed: int) -> Floats:
    """The average error on the queries that were learnt from, once for each run."""
    rng, found = np.random.default_rng([seed, count]), np.empty(runs)
    for run in range(runs):
        queries = lines(count, rng)
        fitted = fit(queries, queries @ SECRET + law.sample(rng, count))
        found[run] = np.abs(queries @ (fitted - SECRET)).mean()
    return found


def whole_answer_bound(law: Law, count: int) -> float:
    """Van Trees' bound on what is known at the end of a stream that an adversary sees whole."""
    queries = lines(count, np.random.default_rng(0))
    gathered = full_information(law) * queries.T @ queries + 4 * math.pi**2 * np.eye(2)
    return math.sqrt(np.mean(np.sum((queries @ np.linalg.inv(gathered)) * queries, axis=1)))


@pytest.mark.theorem("000: Theorem 6.1 (for smooth noise)")
def test_for_smooth_noise_no_algorithm_beats_one_over_the_root_even_without_the_oracle() -> None:
    law = RaisedCosine(1.0)
    bounds = [whole_answer_bound(law, 10**k) * math.sqrt(10**k) for k in (4, 5, 6)]
    assert bounds == pytest.approx([bounds[-1]] * 3, rel=0.01)
    assert bounds[-1] > 0.4


@pytest.mark.theorem("000: Theorem 6.1 (attained for smooth noise)")
def test_for_smooth_noise_least_squares_has_that_rate(seed: int) -> None:
    runs, law = 50, RaisedCosine(1.0)
    for count in (300, 3_000):
        reached = mean_errors(least_squares, law, count, runs, seed)
        hits = int((reached * math.sqrt(count) > 1.6).sum())
        assert_rate_at_most(hits, runs, 0.05)
        with pytest.raises(AssertionError):
            assert_rate_at_most(int((reached * count > 8).sum()), runs, 0.05)


@pytest.mark.theorem("000: Theorem 6.1 (erratum: not for every noise)")
def test_for_uniform_noise_chebyshevs_fit_errs_like_one_over_the_number_of_queries(
    seed: int,
) -> None:
    runs, law = 30, Uniform(1.0)
    assert full_information(law) == math.inf
    for count in (100, 1_600):
        reached = mean_errors(least_worst, law, count, runs, seed)
        assert_rate_at_most(int((reached * count > 8).sum()), runs, 0.05)
    squares = mean_errors(least_squares, law, 1_600, runs, seed)
    with pytest.raises(AssertionError):
        assert_rate_at_most(int((squares * 1_600 > 8).sum()), runs, 0.05)


@pytest.mark.theorem("000: Theorem 6.1 (erratum: the mean of symmetric noise)")
def test_the_mean_of_symmetric_noise_is_above_a_positive_number_at_most_half_the_time(
    seed: int,
) -> None:
    """The printed proof needs a chance of 1 - o(1); it holds of the size of the mean only."""
    count, runs = 1_000, 4_000
    noise = Uniform(1.0).sample(np.random.default_rng(seed), count * runs).reshape(runs, count)
    means, bar = noise.mean(axis=1), 1 / math.sqrt(count * math.log(count))
    assert_rate_at_most(int((means > bar).sum()), runs, 0.5)
    with pytest.raises(AssertionError):
        assert_rate_at_most(int((means <= bar).sum()), runs, 0.5)
