from itertools import pairwise

import numpy as np
import pytest

from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Rows, System

HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]


@pytest.mark.theorem("002: Solving the equations (least squares)")
def test_the_hospital_has_the_solution_of_the_document() -> None:
    found = least_squares(Rows.of(System.of(HOSPITAL)), np.array([32.1, 15.5, 11.4]))
    assert found.converged
    expected = [5.7, 5.2, 15.5 / 3, 15.5 / 3, 5.7, 15.5 / 3]
    np.testing.assert_allclose(found.values, expected, atol=1e-5)


@pytest.mark.parametrize("case", range(40))
def test_the_point_is_the_shortest_of_the_best(case: int, seed: int) -> None:
    """Against numpy's pseudo-inverse of the scaled rows; half of the systems contradict."""
    rng = np.random.default_rng([seed, case])
    height, width = (int(each) for each in rng.integers(1, 30, 2))
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    consistent = dense @ rng.normal(size=width)
    right = consistent if case % 2 else consistent + rng.normal(size=height)
    rows = Rows.of(System.of(dense.tolist()))
    found = least_squares(rows, right, tolerance=1e-10)
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    best = np.linalg.lstsq(scaled, target)[0]
    np.testing.assert_allclose(found.values, best, atol=1e-6 * max(1, np.abs(best).max()))
    left = np.linalg.norm(scaled @ found.values - target)
    assert found.residual == pytest.approx(left / (np.linalg.norm(target) or 1.0), abs=1e-9)


def test_a_start_that_keeps_the_equations_stays_where_it_is() -> None:
    start = np.array([4.0, 5.2, 5.5, 5.0, 7.4, 5.0])
    right = np.array(HOSPITAL) @ start
    found = least_squares(Rows.of(System.of(HOSPITAL)), right, start=start)
    assert (found.iterations, found.converged) == (0, True)
    assert found.values.tolist() == start.tolist()


def test_progress_sees_a_residual_that_falls() -> None:
    rng = np.random.default_rng(3)
    dense = rng.integers(0, 2, (200, 100))
    seen: list[float] = []
    found = least_squares(
        Rows.of(System.of(dense.tolist())),
        dense @ rng.normal(size=100),
        tolerance=1e-8,
        progress=lambda _, residual, __: seen.append(residual),
    )
    assert found.converged
    assert len(seen) == found.iterations > 2
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(seen))


def test_too_few_steps_are_not_called_converged() -> None:
    rng = np.random.default_rng(4)
    dense = rng.integers(0, 2, (200, 100))
    found = least_squares(
        Rows.of(System.of(dense.tolist())), dense @ rng.normal(size=100), tolerance=1e-9, most=2
    )
    assert (found.iterations, found.converged) == (2, False)
