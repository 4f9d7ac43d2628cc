from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attack.equations import subsets
from chance import assert_rate_at_most
from numpy.typing import NDArray

from casemate.attack.reconstruct import covariance as covariance_module
from casemate.attack.reconstruct.confidence import Confidence, confidence, trusted_equations
from casemate.attack.reconstruct.problem import Kind, NoiseLaw, Prior, Problem
from casemate.attack.solvers.decoding import least_deviations
from casemate.exact import Floats

HOSPITAL = np.array([[1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0]], np.float64)
SUGAR = np.array([4.0, 5.2, 5.0, 5.3, 7.4, 5.2])


def sure_of(problem: Problem, values: Floats | None = None, level: float = 0.9) -> Confidence:
    return confidence(problem, values, level=level, random=np.random.default_rng(0))


def covers(found: Confidence, truth: Floats) -> NDArray[np.bool_]:
    return np.asarray((found.low <= truth) & (truth <= found.high))


# Without noise ----------------------------------------------------------------------------------


@pytest.mark.theorem("002: Which records are exposed? (confidence)")
def test_what_equations_without_noise_determine_has_an_interval_of_rounding_width() -> None:
    found = sure_of(Problem.of(HOSPITAL, HOSPITAL @ SUGAR))
    assert found.identified.tolist() == [False, True, False, False, False, False]
    assert covers(found, SUGAR).all()
    assert found.high[1] - found.low[1] < 1e-9
    assert np.isinf(found.low[~found.identified]).all()
    assert np.isinf(found.high[~found.identified]).all()


@pytest.mark.theorem("002: Solving with constraints (confidence)")
def test_what_they_do_not_determine_has_the_range_that_equations_and_bounds_leave() -> None:
    prior = Prior(low=3.0, high=np.array([5.0, 10, 10, 10, 10, 10]))
    found = sure_of(Problem.of(HOSPITAL, HOSPITAL @ SUGAR, prior))
    assert found.low == pytest.approx([3, 5.2, 3, 3, 6.4, 3], abs=1e-5)
    assert found.high == pytest.approx([5, 5.2, 9.5, 9.5, 8.4, 9.5], abs=1e-5)
    assert covers(found, found.values).all()


@pytest.mark.parametrize("draw", [False, True])
def test_intervals_without_noise_hold_the_truth_computed_or_drawn(
    draw: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if draw:
        monkeypatch.setattr(covariance_module, "MOST_EXACT", 0)
    random = np.random.default_rng(seed)
    matrix, truth = subsets(random, 90, 60), random.uniform(0, 1e4, 60)
    found = sure_of(Problem.of(matrix, matrix @ truth))
    assert covers(found, truth).all()
    assert (found.high - found.low).max() < (1.0 if draw else 1e-6)


# With noise, exactly ----------------------------------------------------------------------------


def test_the_deviation_is_that_of_the_weighted_estimate(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, spread = subsets(random, 40, 6), random.uniform(0.5, 4, 40)
    plain = Problem.of(matrix, random.normal(size=40), noise=NoiseLaw("laplace", 2.0))
    problem = replace(plain, spread=spread)
    divided = matrix / (spread * 2 * np.sqrt(2))[:, None]
    expected = np.sqrt(np.diag(np.linalg.inv(divided.T @ divided)))
    assert sure_of(problem).deviation == pytest.approx(expected)


def test_noise_within_a_bound_leaves_no_value_that_it_excludes() -> None:
    found = sure_of(Problem.of([[1], [1]], [4.2, 5.8], noise=NoiseLaw("uniform", 1.0)))
    assert found.low == pytest.approx([4.8], abs=1e-5)
    assert found.high == pytest.approx([5.2], abs=1e-5)


def test_the_scale_of_noise_is_estimated_from_what_equations_leave() -> None:
    problem = Problem.of([[1], [1], [1]], [4.0, 5.0, 6.0])
    found = sure_of(problem)
    assert found.noise == pytest.approx(1)  # two degrees of freedom, squares 1 and 1
    student = 2.920 / np.sqrt(3)
    assert found.high - found.values == pytest.approx([student], rel=0.02)


def test_answers_that_a_robust_solver_outvoted_are_left_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, truth = subsets(random, 160, 40), random.uniform(0, 10, 40)
    answers, junk = matrix @ truth, random.random(160) < 0.1
    answers[junk] += random.choice([-30.0, 30.0], int(junk.sum()))
    problem = Problem.of(matrix, answers)
    values = least_deviations(problem.equations, answers).values
    kept = trusted_equations(problem, values)
    assert kept.tolist() == (~junk).tolist()
    random = np.random.default_rng(0)
    found = confidence(problem, values, random=random, trusted=kept)
    assert (found.high - found.low).max() < 1e-6 < (sure_of(problem).high - found.low).max()
    assert np.abs(found.values - truth).max() < 1e-6


# True with a stated probability -----------------------------------------------------------------

GROUPS, SEEDS = 20, 30  # small systems: BLAS threads would cost more than they bring


def design(name: str, random: np.random.Generator) -> Floats:
    """A few equations in 3 unknowns."""
    if name == "one":
        return np.eye(3)
    if name == "two":
        return np.vstack([np.eye(3), np.eye(3)])
    if name == "ranges":
        return np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]], np.float64)
    return np.vstack([np.eye(3), subsets(random, 9, 3)])


def missed(
    name: str,
    kind: Kind,
    seed: int,
    *,
    stated: float | None = 1.0,
    box: bool = False,
    averages: bool = False,
) -> int:
    """How many of independent unknowns, one of each group, are outside their 90 % intervals."""
    random, misses = np.random.default_rng([seed, len(name), box, averages]), 0
    law = NoiseLaw(kind, 2.0)
    claimed = None if stated is None else NoiseLaw(kind, 2.0 * stated)
    for _ in range(SEEDS):
        part = design(name, random)
        matrix = np.kron(np.eye(GROUPS), part)
        truth = random.uniform(0, 5, 3 * GROUPS) * (random.random(3 * GROUPS) < 0.6)
        spread = random.uniform(0.2, 5, len(matrix)) if averages else np.ones(len(matrix))
        answers = matrix @ truth + spread * law.laid_over(np.zeros(len(matrix)), random)
        plain = Problem.of(matrix, answers, Prior(low=0.0, high=5.0) if box else None, claimed)
        found = confidence(replace(plain, spread=spread), random=random)
        assert covers(found, found.values).all()
        misses += int((~covers(found, truth))[::3].sum())
    return misses


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("one", "two", "ranges", "subsets")),
    *(("subsets", options) for options in ({"box": True}, {"averages": True}, {"stated": None})),
]


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_intervals_cover_at_their_level(
    name: str, options: dict[str, Any], kind: Kind, seed: int
) -> None:
    """To within half a point for Laplace noise on a few answers.

    Without a law the scale is shared, but it comes from 180 degrees of freedom.
    """
    misses, trials = missed(name, kind, seed, **options), GROUPS * SEEDS
    assert_rate_at_most(misses, trials, 0.105)
    assert_rate_at_most(trials - misses, trials, 0.905)


@pytest.mark.parametrize("name", ["one", "subsets"])
def test_the_tests_above_would_notice_deviations_understated_by_30_percent(
    name: str, seed: int
) -> None:
    with pytest.raises(AssertionError):
        assert_rate_at_most(missed(name, "gaussian", seed, stated=0.7), GROUPS * SEEDS, 0.105)


def test_drawn_deviations_cover_at_their_level_too(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covariance_module, "MOST_EXACT", 0)
    test_intervals_cover_at_their_level("subsets", {}, "laplace", seed)
