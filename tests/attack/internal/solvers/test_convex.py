import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, lsq_linear, minimize

from casemate.attack.solvers.convex import Allowed, RangeConstraints, TotalRange, convex
from casemate.exact import Floats, Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])


# The hospital of the document


def test_of_the_points_that_fit_the_nearest_to_the_centre_is_found() -> None:
    """John and Joseph share 11.4: from (4, 6.5) each takes half of the 0.9 that is missing."""
    centre = np.array([4.0, 6.5, 6.5, 6.5, 6.5, 6.5])
    high = np.array([5.0, 10, 10, 10, 10, 10])
    found = convex(HOSPITAL, ANSWERS, low=3.0, high=high, centre=centre, tolerance=1e-9)
    np.testing.assert_allclose(found.values[[0, 4]], [4.45, 6.95], atol=1e-6)
    pressed = convex(HOSPITAL, ANSWERS, low=3.0, high=high, centre=9.0, tolerance=1e-9)
    np.testing.assert_allclose(pressed.values[[0, 4]], [5.0, 6.4], atol=1e-5)


# Against slower solvers


def random_case(rng: np.random.Generator) -> tuple[Rows, Floats, Floats, Floats, Floats]:
    height, width = int(rng.integers(1, 12)), int(rng.integers(2, 9))
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.normal(size=height)
    low = rng.normal(size=width) - 0.5
    high = low + rng.choice([0.2, 1.0, 3.0], width)
    return Rows.of(System.of(dense.tolist())), dense.astype(np.float64), right, low, high


@pytest.mark.parametrize("case", range(6))
def test_the_point_is_the_nearest_of_the_best(case: int, seed: int) -> None:
    """Against SciPy's solver, twice: for the best fit, and for the centre among such fits."""
    rng = np.random.default_rng([seed, case])
    rows, dense, right, low, high = random_case(rng)
    centre = rng.normal(size=len(low))
    found = convex(rows, right, low=low, high=high, centre=centre, tolerance=1e-8)
    assert found.converged
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    best = lsq_linear(scaled, target, (low, high), tol=1e-14, method="bvls")
    both = np.vstack([1e4 * scaled, np.eye(len(low))])
    goal = np.r_[1e4 * scaled @ best.x, centre]
    nearest = lsq_linear(both, goal, (low, high), tol=1e-15, method="bvls")
    np.testing.assert_allclose(scaled @ found.values, scaled @ best.x, atol=2e-6)
    np.testing.assert_allclose(found.values, nearest.x, atol=2e-5)


@pytest.mark.parametrize("case", range(6))
def test_with_a_total_and_other_sums_no_allowed_point_fits_better(case: int, seed: int) -> None:
    """Against SciPy's sequential quadratic programming."""
    rng = np.random.default_rng([seed, case])
    rows, dense, right, low, high = random_case(rng)
    width = len(low)
    inside = low + rng.random(width) * (high - low)
    total = TotalRange(rng.choice([1.0, 2.0, -1.0], width), *2 * [0.0])
    total = TotalRange(total.weights, *2 * [float(total.weights @ inside)])
    extra = rng.choice([-1, 0, 1], (2, width))
    also = RangeConstraints(
        Rows.of(System.of(extra.tolist())), extra @ inside - 0.1, extra @ inside + 0.1
    )
    found = convex(rows, right, low=low, high=high, total=total, also=also, tolerance=1e-8)
    assert found.converged
    assert found.values @ total.weights == pytest.approx(inside @ total.weights, abs=1e-9)
    assert (np.abs(extra @ (found.values - inside)) <= 0.1 + 1e-6).all()
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths

    def cost(x: Floats) -> float:
        return 0.5 * float(np.sum((scaled @ x - target) ** 2))

    kept = [
        LinearConstraint(total.weights[None, :], total.low, total.high),
        LinearConstraint(extra, also.low, also.high),
    ]
    theirs = minimize(
        cost, inside, bounds=list(zip(low, high, strict=True)), constraints=kept, method="SLSQP"
    )
    assert cost(found.values) <= cost(inside) + 1e-9
    if theirs.success:
        assert cost(found.values) <= cost(theirs.x) + 1e-5


@pytest.mark.parametrize("case", range(6))
def test_a_sparse_solution_keeps_the_conditions_of_a_minimum(case: int, seed: int) -> None:
    """The gradient is the weight where a value departs, and at most that where it does not."""
    rng = np.random.default_rng([seed, case])
    rows, dense, right, _, _ = random_case(rng)
    centre, weight = rng.normal(size=dense.shape[1]), 0.3
    found = convex(rows, right, sparsity=weight, centre=centre, tolerance=1e-9)
    assert found.converged
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    slope = scaled.T @ (scaled @ found.values - target)
    apart = found.values - centre
    assert (np.abs(slope) <= weight + 1e-6).all()
    np.testing.assert_allclose(slope[apart != 0], -weight * np.sign(apart[apart != 0]), atol=1e-6)


# What is refused, and what is told


def test_constraints_that_contradict_are_refused() -> None:
    also = RangeConstraints(
        Rows.of(System.of([[1, 1, 0, 0, 0, 0]])), np.full(1, 50.0), np.full(1, 60.0)
    )
    with pytest.raises(ValueError, match="no values keep all constraints"):
        convex(HOSPITAL, ANSWERS, low=3.0, high=10.0, also=also)
    with pytest.raises(ValueError, match="have the known total"):
        convex(HOSPITAL, ANSWERS, low=3.0, high=4.0, total=TotalRange.of(6, 32.1))
    with pytest.raises(ValueError, match="as many low and high ends"):
        convex(HOSPITAL, ANSWERS, also=RangeConstraints(also.rows, np.zeros(2), np.ones(2)))
    with pytest.raises(ValueError, match="lower end of a constraint"):
        convex(HOSPITAL, ANSWERS, also=RangeConstraints(also.rows, np.ones(1), np.zeros(1)))


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
def test_no_allowed_point_is_better_than_the_pulled_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = some_region(rng)
    point, centre = 3 * rng.normal(size=(2, len(region.low)))
    strength = float(rng.choice([0.1, 1.0, 5.0]))

    def cost(x: Floats) -> float:
        return float(0.5 * np.sum((x - point) ** 2) + strength * np.abs(x - centre).sum())

    found = region.proximal_point(point, centre, strength)
    for _ in range(20):
        step = rng.choice([1e-3, 0.1, 2.0]) * rng.normal(size=len(point))
        assert cost(found) <= cost(region.nearest(found + step)) + 1e-7


@pytest.mark.parametrize("case", range(6))
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


def test_totals_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="have the known total"):
        Allowed.of(2, 0.0, 1.0, TotalRange.of(2, 2.5))
    with pytest.raises(ValueError, match="have the known total"):
        Allowed.of(2, 0.0, np.inf, TotalRange.of(2, -1.0))
    with pytest.raises(ValueError, match="lower end of a total"):
        Allowed.of(2, 0.0, 1.0, TotalRange.of(2, 1.0, 0.5))
    Allowed.of(2, 0.0, np.inf, TotalRange(np.array([1.0, 0.0]), 5.0, 5.0))
