import numpy as np
import pytest
from scipy.optimize import linprog

from casemate.attack.solvers.decoding import (
    NoSuchValues,
    least_absolute,
    within_noise,
)
from casemate.exact import Floats, Rows, System

Case = tuple[Floats, Floats, Floats, Floats]


def small_case(rng: np.random.Generator) -> Case:
    """Weighted equations with noise, in ranges some ends of which are absent or equal."""
    height, width = int(rng.integers(1, 20)), int(rng.integers(1, 9))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.standard_t(2, height)
    low = np.where(rng.random(width) < 0.3, -np.inf, rng.normal(size=width) - 0.5)
    high = np.where(rng.random(width) < 0.3, np.inf, np.where(np.isinf(low), 0.7, low + 1))
    known = rng.random(width) < 0.1
    return dense, right, np.where(known, 0.25, low), np.where(known, 0.25, high)


def least(dense: Floats, right: Floats, low: Floats, high: Floats, spread: Floats) -> float:
    """The least sum of absolute residuals, by SciPy in the primal form."""
    height, width = dense.shape
    eye = np.diag(spread)
    found = linprog(
        np.r_[np.zeros(width), np.ones(height)],
        A_ub=np.block([[dense, -eye], [-dense, -eye]]),
        b_ub=np.r_[right, -right],
        bounds=[*zip(low, high, strict=True), *[(0, None)] * height],
    ).fun
    assert found is not None
    return float(found)


def least_maximum(dense: Floats, right: Floats, low: Floats, high: Floats, spread: Floats) -> float:
    """The least largest residual, by SciPy in the primal form."""
    width = dense.shape[1]
    found = linprog(
        np.r_[np.zeros(width), 1],
        A_ub=np.block([[dense, -spread[:, None]], [-dense, -spread[:, None]]]),
        b_ub=np.r_[right, -right],
        bounds=[*zip(low, high, strict=True), (0, None)],
    ).fun
    assert found is not None
    return float(found)


@pytest.mark.parametrize("case", range(20))
def test_the_sum_of_absolute_residuals_is_the_least(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    dense, right, low, high = small_case(rng)
    spread = rng.choice([0.5, 1.0, 4.0], len(right))
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = least_absolute(rows, right, low=low, high=high, spread=spread)
    assert found.converged
    assert (low <= found.values).all() and (found.values <= high).all()
    mine = float(np.abs((dense @ found.values - right) / spread).sum())
    assert mine == pytest.approx(least(dense, right, low, high, spread), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("case", range(20))
def test_values_within_the_noise_are_found_exactly_where_there_are_some(
    case: int, seed: int
) -> None:
    """The least largest residual decides; half of the bounds are a bit above and half below it."""
    rng = np.random.default_rng([seed, case])
    dense, right, low, high = small_case(rng)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    bound = least_maximum(dense, right, low, high, np.ones(len(right)))
    found = within_noise(rows, right, bound=1.01 * bound + 1e-3, low=low, high=high)
    assert (np.abs(dense @ found.values - right) <= 1.01 * bound + 1.1e-3).all()
    if bound > 0.1:
        with pytest.raises(NoSuchValues, match="widen the bound"):
            within_noise(rows, right, bound=0.99 * bound - 1e-3, low=low, high=high)


def half_subsets(rng: np.random.Generator, people: int) -> tuple[Rows, Floats, Floats]:
    dense = rng.integers(0, 2, (4 * people, people))
    truth = rng.integers(0, 2, people).astype(np.float64)
    return Rows.of(System.of(dense.tolist())), dense @ truth, truth


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_junk_answers_are_outvoted(share: float, seed: int) -> None:
    """The setting of Dwork, McSherry and Talwar."""
    rng = np.random.default_rng([seed, round(100 * share)])
    rows, answers, truth = half_subsets(rng, 64)
    junk = rng.random(len(answers)) < share
    answers[junk] += rng.choice([-32, 32], int(junk.sum()))
    found = least_absolute(rows, answers, low=0.0, high=1.0)
    np.testing.assert_allclose(found.values, truth, atol=1e-5)


def test_small_bounded_noise_is_decoded(seed: int) -> None:
    """The setting of Dinur and Nissim: any point within the bound is close to the truth."""
    rng = np.random.default_rng(seed)
    rows, answers, truth = half_subsets(rng, 64)
    noise = rng.uniform(-0.8, 0.8, len(answers))
    found = within_noise(rows, answers + noise, bound=0.8, low=0.0, high=1.0)
    assert (found.values.round() == truth).all()


def test_one_person_in_two_places_with_different_answers_is_impossible() -> None:
    rows = Rows.of(System.of([[1], [1]]))
    with pytest.raises(NoSuchValues, match="within its noise bound"):
        within_noise(rows, np.array([1.0, 2.0]), bound=0.4)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_a_spread_that_is_none_is_refused(bad: float) -> None:
    rows = Rows.of(System.of([[1]]))
    with pytest.raises(ValueError, match="spread above 0"):
        least_absolute(rows, np.ones(1), spread=bad)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        within_noise(Rows.of(System.of([[1]])), np.ones(1), bound=-1.0)


def test_no_equations_leave_any_point_of_the_box() -> None:
    none = Rows(np.zeros(1, np.int64), np.zeros(0, np.uint32), None, 2)
    found = least_absolute(none, np.zeros(0), low=1.0, high=2.0)
    assert found.converged and (found.values >= 1).all() and (found.values <= 2).all()
    assert (within_noise(none, np.zeros(0), bound=0.0, low=1.0, high=2.0).values >= 1).all()
