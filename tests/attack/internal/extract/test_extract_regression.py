import numpy as np
import pytest
from scipy import optimize

from casemate.attack.extract.noisy import logistic_regression, with_one


def test_it_is_the_minimum_that_scipy_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = with_one(random.normal(size=(400, 4)))
    true = random.normal(size=5)
    above = random.random(400) < 1 / (1 + np.exp(-points @ true))
    signs = np.where(above, 1.0, -1.0)

    def loss(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(np.logaddexp(0, -signs * (points @ vector)).sum() + 0.05 * vector @ vector)

    expected = optimize.minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    found = logistic_regression(points, above, ridge=0.1)
    assert found.vector == pytest.approx(expected.x, abs=1e-5)
    aside = 1e-3 * np.eye(5)
    for i, j in [(0, 0), (1, 3), (4, 4)]:
        corners = [
            loss(found.vector + s * aside[i] + t * aside[j]) for s in (1, -1) for t in (1, -1)
        ]
        bend = (corners[0] - corners[1] - corners[2] + corners[3]) / 4e-6
        assert found.curvature[i, j] == pytest.approx(bend, abs=1e-3 * (1 + abs(bend)))


def test_separable_points_have_a_finite_fit() -> None:
    points = with_one(np.array([[-1.0], [-0.5], [0.5], [1.0]]))
    found = logistic_regression(points, points[:, 0] > 0, ridge=1e-6)
    assert np.isfinite(found.vector).all() and found.vector[0] > 5
    assert found.vector[1] == pytest.approx(0, abs=1e-6)
