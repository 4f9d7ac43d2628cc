import numpy as np
import pytest
from scipy.optimize import LinearConstraint, lsq_linear, minimize

from casemate.attack.solvers.convex import convex
from casemate.attack.solvers.convex_losses import RangeConstraints
from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.solvers.projections import TotalRange
from casemate.exact import Floats, Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])


def sums(point: Floats) -> Floats:
    return HOSPITAL.times(point) * HOSPITAL.lengths


# The hospital of the document


def test_of_the_points_that_fit_the_nearest_to_the_centre_is_found() -> None:
    """John and Joseph share 11.4: from (4, 6.5) each takes half of the 0.9 that is missing."""
    centre = np.array([4.0, 6.5, 6.5, 6.5, 6.5, 6.5])
    high = np.array([5.0, 10, 10, 10, 10, 10])
    found = convex(HOSPITAL, ANSWERS, low=3.0, high=high, centre=centre, tolerance=1e-9)
    np.testing.assert_allclose(found.values[[0, 4]], [4.45, 6.95], atol=1e-6)
    pressed = convex(HOSPITAL, ANSWERS, low=3.0, high=high, centre=9.0, tolerance=1e-9)
    np.testing.assert_allclose(pressed.values[[0, 4]], [5.0, 6.4], atol=1e-5)


def test_a_known_total_is_kept_exactly() -> None:
    """The first answer is left out and given as the total instead."""
    rows = Rows.of(System.of([[0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
    found = convex(rows, ANSWERS[1:], low=3.0, total=TotalRange.of(6, 32.1), tolerance=1e-9)
    assert found.converged
    assert found.values.sum() == pytest.approx(32.1, abs=1e-12)
    assert found.values[1] == pytest.approx(5.2, abs=1e-6)


def test_another_sum_in_a_range_is_kept() -> None:
    """John's and Jeremy's values differ by at least 1, and John's is the greater."""
    also = RangeConstraints(
        Rows.of(System.of([[1, -1, 0, 0, 0, 0]])), np.ones(1), np.full(1, np.inf)
    )
    found = convex(HOSPITAL, ANSWERS, low=3.0, also=also, tolerance=1e-8)
    assert found.converged
    assert found.values[0] - found.values[1] >= 1 - 1e-6
    np.testing.assert_allclose(found.values[[0, 4]], [6.2, 5.2], atol=1e-5)
    np.testing.assert_allclose(sums(found.values), ANSWERS, atol=1e-5)


def test_categories_of_a_person_add_up_to_at_most_one() -> None:
    """Three people, two categories each; who is in the first is known of one, and both counts."""
    rows = Rows.of(System.of([[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1], [1, 0, 0, 0, 0, 0]]))
    people = Rows.of(System.of([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]))
    also = RangeConstraints(people, np.zeros(3), np.ones(3))
    right = np.array([2.0, 1.0, 1.0])
    found = convex(rows, right, low=0.0, high=1.0, also=also, tolerance=1e-7)
    assert found.converged
    np.testing.assert_allclose(found.values, [1, 0, 0.5, 0.5, 0.5, 0.5], atol=1e-5)


# Against slower solvers


def random_case(rng: np.random.Generator) -> tuple[Rows, Floats, Floats, Floats, Floats]:
    height, width = int(rng.integers(1, 12)), int(rng.integers(2, 9))
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.normal(size=height)
    low = rng.normal(size=width) - 0.5
    high = low + rng.choice([0.2, 1.0, 3.0], width)
    return Rows.of(System.of(dense.tolist())), dense.astype(np.float64), right, low, high


@pytest.mark.parametrize("case", range(20))
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


@pytest.mark.parametrize("case", range(15))
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


@pytest.mark.parametrize("case", range(15))
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


def test_sparse_values_are_found_in_fewer_equations_than_unknowns(seed: int) -> None:
    """Four of sixty values are not 0; forty random sums show which."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (40, 60))
    truth = np.zeros(60)
    truth[rng.choice(60, 4, replace=False)] = rng.choice([-2.0, 3.0], 4)
    rows, right = Rows.of(System.of(dense.tolist())), dense @ truth
    found = convex(rows, right, sparsity=0.02, tolerance=1e-8)
    assert found.converged
    np.testing.assert_allclose(found.values, truth, atol=0.1)
    plain = least_squares(rows, right).values
    assert np.abs(plain - truth).max() > 0.3


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


def test_progress_counts_on_through_both_descents() -> None:
    seen: list[int] = []
    found = convex(
        HOSPITAL, ANSWERS, low=3.0, high=6.0, progress=lambda steps, *_: seen.append(steps)
    )
    assert seen == list(range(1, found.iterations + 1))
