"""Many values are exchanged at once between the box and its ends, until none wants to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from casemate.attack.solvers.box_squares import pivoting
from casemate.exact import Floats, Rows, System


def system(random: np.random.Generator, height: int, width: int) -> tuple[Rows, Floats]:
    matrix = (random.random((height, width)) < 0.5).astype(int)
    return Rows.of(System.of(matrix.tolist())), matrix.astype(float)


@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([0.1, 1.0, 5.0]))
def test_a_converged_point_is_the_best_of_the_box(seed: int, width: int, noise: float) -> None:
    random = np.random.default_rng(seed)
    rows, matrix = system(random, 3 * width + 3, width)
    right = matrix @ random.random(width) + random.normal(0, noise, len(matrix))
    found = pivoting(rows, right, low=0.0, high=1.0, start=np.zeros(width), tolerance=1e-10)
    assert ((found.values >= 0) & (found.values <= 1)).all()
    scaled = matrix / rows.lengths[:, None]
    other = lsq_linear(scaled, right / rows.lengths, (0, 1), tol=1e-12)
    size = np.linalg.norm(right / rows.lengths) or 1.0
    best = np.sqrt(2 * other.cost) / size
    if found.converged:
        assert found.residual == pytest.approx(best, abs=1e-6)
    else:
        assert found.residual >= best - 1e-6


def test_it_takes_a_few_rounds_however_hard_the_box_presses() -> None:
    random = np.random.default_rng(3)
    rows, matrix = system(random, 400, 100)
    truth = random.integers(0, 2, 100)
    for noise in (1.0, 10.0, 50.0):
        right = matrix @ truth + random.normal(0, noise, 400)
        found = pivoting(rows, right, low=0.0, high=1.0, start=np.zeros(100))
        assert found.converged
        assert found.iterations < 200


def test_known_values_stay_where_they_are() -> None:
    rows = Rows.of(System.of([[1, 1, 1]]))
    low, high = np.array([2.0, 0.0, 0.0]), np.array([2.0, 9.0, 9.0])
    found = pivoting(rows, np.array([8.0]), low=low, high=high, start=np.zeros(3))
    assert found.converged
    assert found.values == pytest.approx([2, 3, 3])


def test_progress_counts_on_from_round_to_round() -> None:
    random = np.random.default_rng(5)
    rows, matrix = system(random, 60, 20)
    right = matrix @ random.integers(0, 2, 20) + random.normal(0, 3, 60)
    steps: list[int] = []
    found = pivoting(
        rows,
        right,
        low=0.0,
        high=1.0,
        start=np.zeros(20),
        progress=lambda done, *_: steps.append(done),
    )
    assert steps == sorted(steps)
    assert steps[-1] == found.iterations
