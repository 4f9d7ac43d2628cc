import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from casemate.attack.solvers.projections import Allowed, TotalRange
from casemate.exact import Floats

seeds = st.integers(0, 2**32 - 1)


def some_region(rng: np.random.Generator) -> Allowed:
    """A box with absent and equal ends, and a total that some of its points have."""
    width = int(rng.integers(1, 7))
    low = np.where(rng.random(width) < 0.2, -np.inf, rng.normal(size=width))
    high = np.where(rng.random(width) < 0.2, np.inf, np.maximum(low, -3) + rng.integers(0, 4))
    inside = np.clip(rng.normal(size=width), low, high)
    weights = rng.choice([-2.0, 0.0, 1.0, 1.0, 3.0], width)
    reached = float(weights @ inside)
    return Allowed.of(
        width, low, high, TotalRange(weights, reached, reached + rng.choice([0.0, 0.5]))
    )


@given(seeds)
def test_the_nearest_point_is_allowed_and_no_way_from_it_leads_nearer(seed: int) -> None:
    """For every allowed y, (point - nearest) . (y - nearest) <= 0; the y are projections too."""
    rng = np.random.default_rng(seed)
    region = some_region(rng)
    total = region.total
    assert total is not None
    point = 4 * rng.normal(size=len(region.low))
    found = region.nearest(point)
    assert (region.low <= found).all() and (found <= region.high).all()
    slack = 1e-9 * (1 + float(np.abs(total.weights * found).sum()))
    assert total.low - slack <= total.weights @ found <= total.high + slack
    for _ in range(10):
        other = region.nearest(4 * rng.normal(size=len(point)))
        assert (point - found) @ (other - found) <= 1e-7 * (1 + np.abs(point).max() ** 2)


@given(seeds)
def test_what_is_allowed_already_stays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = some_region(rng)
    once = region.nearest(rng.normal(size=len(region.low)))
    np.testing.assert_allclose(region.nearest(once), once, atol=1e-12)


@given(seeds)
def test_no_allowed_point_is_better_than_the_pulled_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = some_region(rng)
    point, centre = 3 * rng.normal(size=(2, len(region.low)))
    strength = float(rng.choice([0.1, 1.0, 5.0]))

    def cost(x: Floats) -> float:
        return float(0.5 * np.sum((x - point) ** 2) + strength * np.abs(x - centre).sum())

    found = region.pulled(point, centre, strength)
    for _ in range(20):
        step = rng.choice([1e-3, 0.1, 2.0]) * rng.normal(size=len(point))
        assert cost(found) <= cost(region.nearest(found + step)) + 1e-7


@pytest.mark.parametrize("case", range(10))
def test_the_nearest_point_is_that_of_a_general_solver(case: int, seed: int) -> None:
    """Against SciPy's sequential quadratic programming."""
    rng = np.random.default_rng([seed, case])
    point = rng.normal(size=6)
    region = Allowed.of(6, -0.5, 0.7, TotalRange(rng.choice([-1.0, 1.0, 2.0], 6), 0.3, 0.3))
    total = region.total
    assert total is not None

    def cost(x: Floats) -> float:
        return float(0.5 * np.sum((x - point) ** 2))

    theirs = minimize(
        cost,
        np.zeros(6),
        bounds=[(-0.5, 0.7)] * 6,
        constraints=LinearConstraint(total.weights[None, :], 0.3, 0.3),
        method="SLSQP",
        tol=1e-14,
    )
    np.testing.assert_allclose(region.nearest(point), theirs.x, atol=1e-6)


def test_values_may_all_have_to_leave_an_end_first() -> None:
    """From far outside, where every value sits at an end, the total does not move at first."""
    region = Allowed.of(3, 0.0, 1.0, TotalRange.of(3, 1.5))
    np.testing.assert_allclose(region.nearest(np.full(3, 1e6)), 0.5)
    np.testing.assert_allclose(region.nearest(np.full(3, -1e6)), 0.5)


def test_totals_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="have the known total"):
        Allowed.of(2, 0.0, 1.0, TotalRange.of(2, 2.5))
    with pytest.raises(ValueError, match="have the known total"):
        Allowed.of(2, 0.0, np.inf, TotalRange.of(2, -1.0))
    with pytest.raises(ValueError, match="lower end of a total"):
        Allowed.of(2, 0.0, 1.0, TotalRange.of(2, 1.0, 0.5))
    Allowed.of(2, 0.0, np.inf, TotalRange(np.array([1.0, 0.0]), 5.0, 5.0))
