import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from casemate.attack.reconstruct.error_law import ErrorLaw, normal_cdf
from casemate.attack.reconstruct.noise import Kind
from casemate.exact import Floats

KINDS: list[Kind] = ["laplace", "gaussian", "uniform", "round"]
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


def test_the_normal_distribution_function_is_exact_in_both_tails() -> None:
    points = np.linspace(-37, 37, 301)
    assert normal_cdf(points) == pytest.approx(stats.norm.cdf(points), rel=1e-12)
    assert normal_cdf(np.zeros((2, 3))).tolist() == [[0.5] * 3] * 2


@pytest.mark.parametrize(
    ("kind", "peer"),
    [
        ("laplace", stats.laplace(scale=0.5**0.5)),
        ("gaussian", stats.norm()),
        ("uniform", stats.uniform(-(3**0.5), 12**0.5)),
        ("round", stats.uniform(-(3**0.5), 12**0.5)),
    ],
)
def test_an_estimate_that_one_answer_decides_errs_like_its_noise(
    kind: Kind, peer: stats.rv_continuous
) -> None:
    points = np.linspace(-5, 5, 101)
    law = ErrorLaw.of(kind, np.ones(101))
    assert law.cdf(points) == pytest.approx(peer.cdf(points), abs=1e-5)
    inside = np.abs(points) < 1.7
    assert np.exp(law.log_density(points))[inside] / np.exp(law.log_density(np.zeros(101)))[
        inside
    ] == pytest.approx(peer.pdf(points[inside]) / peer.pdf(0), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_that_many_answers_decide_errs_like_a_bell(kind: Kind) -> None:
    points = np.linspace(-5, 5, 101)
    assert ErrorLaw.of(kind, np.zeros(101)).cdf(points) == pytest.approx(
        stats.norm.cdf(points), abs=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
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


@given(
    st.sampled_from(KINDS),
    st.floats(0, 1),
    st.one_of(st.just(np.inf), st.floats(1, 1e6)),
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20),
)
def test_a_distribution_function_rises_from_0_to_1_and_is_symmetric(
    kind: Kind, concentration: float, freedom: float, given: list[float]
) -> None:
    points = np.sort(given)
    law = ErrorLaw.of(kind, np.full(len(points), concentration), freedom)
    below = law.cdf(points)
    assert (np.diff(below) >= -1e-9).all() and (below >= 0).all() and (below <= 1).all()
    assert law.cdf(-points) == pytest.approx(1 - below, abs=1e-9)
    assert np.isfinite(law.log_density(points)).all()


@pytest.mark.parametrize("kind", KINDS)
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
    for level in (0.8, 0.9, 0.95, 0.99):
        assert coverage(freedom, level) == pytest.approx(level, abs=0.004)


def test_with_one_degree_of_freedom_it_errs_on_the_wide_side() -> None:
    assert 0.88 < coverage(1.0, 0.9) < 0.9


def test_some_laws_are_those_of_the_unknowns_asked_for() -> None:
    law = ErrorLaw.of("laplace", np.array([0.1, 0.5, 1.0]), np.array([3.0, 9.0, np.inf]))
    points: Floats = np.array([0.5, 1.5, 2.5])
    which = np.array([2, 0])
    assert law.some(which).cdf(points[which]).tolist() == law.cdf(points)[which].tolist()
    assert law.cdf(np.tile(points[:, None], 4))[:, 3].tolist() == law.cdf(points).tolist()
