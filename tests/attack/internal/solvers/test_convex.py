import numpy as np
import pytest
from attack.equations import ANSWERS, HIGH, HOSPITAL, stored
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, lsq_linear, minimize

from casemate.attack.solvers.convex import Allowed, RangeConstraints, convex
from casemate.exact import Floats, Rows


def test_of_the_points_that_fit_the_nearest_to_the_centre_is_found() -> None:
    """John and Joseph share 11.4: from (4, 6.5) each takes half of the 0.9 that is missing."""
    centre = np.array([4.0, 6.5, 6.5, 6.5, 6.5, 6.5])
    found = convex(HOSPITAL, ANSWERS, low=3.0, high=HIGH, centre=centre, tolerance=1e-9)
    np.testing.assert_allclose(found.values[[0, 4]], [4.45, 6.95], atol=1e-6)
    pressed = convex(HOSPITAL, ANSWERS, low=3.0, high=HIGH, centre=9.0, tolerance=1e-9)
    np.testing.assert_allclose(pressed.values[[0, 4]], [5.0, 6.4], atol=1e-5)


# Against slower solvers


def random_case(rng: np.random.Generator) -> tuple[Rows, Floats, Floats, Floats, Floats]:
    """Equations, the same scaled with their right sides, and a box."""
    height, width = int(rng.integers(1, 12)), int(rng.integers(2, 9))
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.normal(size=height)
    low = rng.normal(size=width) - 0.5
    high = low + rng.choice([0.2, 1.0, 3.0], width)
    rows = stored(dense)
    return rows, dense / rows.lengths[:, None], right / rows.lengths, low, high


@pytest.mark.parametrize("case", range(6))
def test_the_point_is_the_nearest_of_the_best(case: int, seed: int) -> None:
    """Against SciPy's solver, twice: for the best fit, and for the centre among such fits."""
    rng = np.random.default_rng([seed, case])
    rows, scaled, target, low, high = random_case(rng)
    centre, right = rng.normal(size=len(low)), target * rows.lengths
    found = convex(rows, right, low=low, high=high, centre=centre, tolerance=1e-8)
    assert found.converged
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
    rows, scaled, target, low, high = random_case(rng)
    inside = low + rng.random(len(low)) * (high - low)
    extra, total = rng.choice([-1, 0, 1], (2, len(low))), float(inside.sum())
    also = RangeConstraints(stored(extra), extra @ inside - 0.1, extra @ inside + 0.1)
    found = convex(
        rows, target * rows.lengths, low=low, high=high, total=total, also=also, tolerance=1e-8
    )
    assert found.converged
    assert found.values.sum() == pytest.approx(total, abs=1e-9)
    assert (np.abs(extra @ (found.values - inside)) <= 0.1 + 1e-6).all()

    def cost(x: Floats) -> float:
        return 0.5 * float(np.sum((scaled @ x - target) ** 2))

    kept = [
        LinearConstraint(np.ones((1, len(low))), total, total),
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
    rows, scaled, target, _, _ = random_case(rng)
    centre, weight = rng.normal(size=scaled.shape[1]), 0.3
    found = convex(rows, target * rows.lengths, sparsity=weight, centre=centre, tolerance=1e-9)
    assert found.converged
    slope = scaled.T @ (scaled @ found.values - target)
    apart = found.values - centre
    assert (np.abs(slope) <= weight + 1e-6).all()
    np.testing.assert_allclose(slope[apart != 0], -weight * np.sign(apart[apart != 0]), atol=1e-6)


def some_region(rng: np.random.Generator) -> Allowed:
    """A box with absent and equal ends, and a total that some of its points have."""
    width = int(rng.integers(1, 7))
    low = np.where(rng.random(width) < 0.2, -np.inf, rng.normal(size=width))
    high = np.where(rng.random(width) < 0.2, np.inf, np.maximum(low, -3) + rng.integers(0, 4))
    return Allowed.of(width, low, high, float(np.clip(rng.normal(size=width), low, high).sum()))


@given(st.integers(0, 2**32 - 1))
def test_the_nearest_allowed_point_is_that_of_a_general_solver(seed: int) -> None:
    """Against SciPy's, which takes the total for an equation that counts a lot."""
    rng = np.random.default_rng(seed)
    region = some_region(rng)
    width, point = len(region.low), rng.normal(size=len(region.low))
    both = np.vstack([np.eye(width), np.full(width, 1e4)])
    goal = np.r_[point, 1e4 * (region.total or 0.0)]
    theirs = lsq_linear(both, goal, (region.low, region.high + 1e-12), tol=1e-15, method="bvls")
    np.testing.assert_allclose(region.nearest(point), theirs.x, atol=1e-5)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 5.0]))
def test_no_allowed_point_is_better_than_the_pulled_one(seed: int, strength: float) -> None:
    rng = np.random.default_rng(seed)
    region = some_region(rng)
    point, centre = 3 * rng.normal(size=(2, len(region.low)))

    def cost(x: Floats) -> float:
        return float(0.5 * np.sum((x - point) ** 2) + strength * np.abs(x - centre).sum())

    found = region.proximal_point(point, centre, strength)
    assert found.sum() == pytest.approx(region.total, abs=1e-9)
    for _ in range(20):
        step = rng.choice([1e-3, 0.1, 2.0]) * rng.normal(size=len(point))
        assert cost(found) <= cost(region.nearest(found + step)) + 1e-7


# What is refused

ALSO = stored([[1, 1, 0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({"also": (50.0, 60.0), "low": 3.0, "high": 10.0}, "no values keep all constraints"),
        ({"also": ([0.0, 0.0], [1.0, 1.0])}, "as many low and high ends"),
        ({"also": (1.0, 0.0)}, "lower end of a constraint"),
        ({"total": 32.1, "low": 3.0, "high": 4.0}, "have the known total"),
        ({"total": 17.0, "low": 3.0}, "have the known total"),
        ({"total": 20.0, "low": 3.0, "high": 10.0, "also": (15.0, 16.0)}, "no values keep all"),
    ],
)
def test_knowledge_that_contradicts_itself_is_refused(
    known: dict[str, object], sentence: str
) -> None:
    if "also" in known:
        ends = (np.atleast_1d(end) for end in known["also"])  # type: ignore[attr-defined]  # a pair
        known = {**known, "also": RangeConstraints(ALSO, *ends)}
    with pytest.raises(ValueError, match=sentence):
        convex(HOSPITAL, ANSWERS, **known)  # type: ignore[arg-type]  # wrong on purpose
