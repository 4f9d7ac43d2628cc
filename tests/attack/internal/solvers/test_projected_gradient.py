from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.solvers.projected_gradient import projected_gradient
from casemate.exact import Floats, Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])


@pytest.mark.theorem("002: Handling many queries (gradient with a box)")
def test_the_hospital_with_bounds_keeps_them_and_its_sums() -> None:
    high = np.array([5.0, 10, 10, 10, 10, 10])
    found = projected_gradient(HOSPITAL, ANSWERS, low=3.0, high=high, tolerance=1e-9)
    assert found.converged
    assert 3 <= found.values[0] <= 5 and 6.4 <= found.values[4] <= 8.4 + 1e-6
    assert found.values[1] == pytest.approx(5.2)
    np.testing.assert_allclose(HOSPITAL.times(found.values) * HOSPITAL.lengths, ANSWERS, atol=1e-6)


def test_without_bounds_it_is_the_shortest_solution_of_least_squares() -> None:
    found = projected_gradient(HOSPITAL, ANSWERS, tolerance=1e-9)
    best = least_squares(HOSPITAL, ANSWERS, tolerance=1e-9)
    np.testing.assert_allclose(found.values, best.values, atol=1e-6)


@pytest.mark.parametrize("case", range(60))
def test_the_residual_is_the_least_within_the_box(case: int, seed: int) -> None:
    """Against SciPy's solver on the scaled rows; most systems contradict or press on bounds."""
    rng = np.random.default_rng([seed, case])
    height, width = (int(each) for each in rng.integers(1, 25, 2))
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.normal(size=height)
    low = rng.normal(size=width) - 0.5
    high = low + rng.choice([0.0, 0.2, 1.0, 3.0], width)
    rows = Rows.of(System.of(dense.tolist()))
    found = projected_gradient(rows, right, low=low, high=high, tolerance=1e-7)
    assert found.converged
    assert (found.values >= low).all() and (found.values <= high).all()
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    theirs = lsq_linear(scaled, target, (low, high + 1e-13), tol=1e-14, method="bvls")
    mine = 0.5 * float(np.sum((scaled @ found.values - target) ** 2))
    assert mine <= theirs.cost + 1e-6 * (1 + theirs.cost)


def test_values_that_are_mostly_at_bounds_are_no_harder(seed: int) -> None:
    """Yes/no values under much noise: most of the best point lies on the boundary."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (512, 128))
    right = dense @ rng.integers(0, 2, 128) + rng.normal(0, np.sqrt(128), 512)
    rows = Rows.of(System.of(dense.tolist()))
    found = projected_gradient(rows, right, low=0.0, high=1.0, tolerance=1e-6, most=2_000)
    assert found.converged
    assert np.mean((found.values == 0) | (found.values == 1)) > 0.5


def test_progress_is_told_of_every_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (60, 30))
    seen: list[tuple[int, float]] = []

    def note(steps: int, residual: float, point: Floats) -> None:
        assert (point >= 0).all()
        seen.append((steps, residual))

    rows = Rows.of(System.of(dense.tolist()))
    found = projected_gradient(rows, dense @ rng.random(30), low=0.0, progress=note)
    assert [steps for steps, _ in seen] == list(range(1, found.iterations + 1))
    assert seen[-1][1] == found.residual
    assert all(b - a == 1 for (a, _), (b, _) in pairwise(seen))


def test_too_few_steps_are_not_called_converged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (60, 30))
    rows = Rows.of(System.of(dense.tolist()))
    found = projected_gradient(rows, dense @ rng.random(30), tolerance=1e-9, most=3)
    assert (found.iterations, found.converged) == (3, False)
