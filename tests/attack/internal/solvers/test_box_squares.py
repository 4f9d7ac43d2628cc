import numpy as np
import pytest
from scipy.optimize import lsq_linear

from casemate.attack.solvers.box_squares import box_squares
from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])


@pytest.mark.theorem("002: Solving with constraints (bounds)")
def test_the_hospital_with_bounds_keeps_them_and_its_sums() -> None:
    """John's value is at most 5 and all are at least 3, as in the document."""
    high = np.array([5.0, *[np.inf] * 5])
    found = box_squares(HOSPITAL, ANSWERS, low=3.0, high=high, tolerance=1e-9)
    assert found.converged
    assert 3 <= found.values[0] <= 5
    assert 6.4 - 1e-9 <= found.values[4] <= 8.4 + 1e-9
    assert found.values[1] == pytest.approx(5.2)
    np.testing.assert_allclose(HOSPITAL.times(found.values) * HOSPITAL.lengths, ANSWERS, atol=1e-6)


@pytest.mark.parametrize("case", range(60))
def test_the_residual_is_the_least_within_the_box(case: int, seed: int) -> None:
    """Against SciPy's solver on the scaled rows; most systems contradict or press on bounds."""
    rng = np.random.default_rng([seed, case])
    height, width = (int(each) for each in rng.integers(1, 25, 2))
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.normal(size=height)
    low = rng.normal(size=width) - 0.5
    high = low + rng.choice([0.2, 1.0, 3.0], width)
    rows = Rows.of(System.of(dense.tolist()))
    found = box_squares(rows, right, low=low, high=high, tolerance=1e-9)
    assert found.converged
    assert (found.values >= low).all()
    assert (found.values <= high).all()
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    theirs = lsq_linear(scaled, target, (low, high), tol=1e-14, method="bvls")
    mine = 0.5 * float(np.sum((scaled @ found.values - target) ** 2))
    assert mine <= theirs.cost + 1e-7 * (1 + theirs.cost)


def test_a_box_that_is_wide_enough_changes_nothing() -> None:
    wide = box_squares(HOSPITAL, ANSWERS, low=-1e6, high=1e6, tolerance=1e-9)
    np.testing.assert_allclose(wide.values, least_squares(HOSPITAL, ANSWERS).values, atol=1e-4)


def test_values_that_are_known_stay_what_they_are() -> None:
    known = np.array([4.0, *[-np.inf] * 5]), np.array([4.0, *[np.inf] * 5])
    found = box_squares(HOSPITAL, ANSWERS, low=known[0], high=known[1], tolerance=1e-9)
    assert found.values[0] == 4
    assert found.values[4] == pytest.approx(7.4)


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="lower end"):
        box_squares(HOSPITAL, ANSWERS, low=1.0, high=0.0)
