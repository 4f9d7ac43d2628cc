import numpy as np
import pytest

from casemate.attack.solvers.kaczmarz import kaczmarz_blocks, shuffled_rows
from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Floats, Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])


@pytest.mark.theorem("002: Handling many queries (Kaczmarz)")
@pytest.mark.parametrize("size", [1, 2, 32])
def test_it_converges_to_the_solution_of_least_squares(size: int, seed: int) -> None:
    draws = np.random.default_rng(seed)
    found = kaczmarz_blocks(HOSPITAL, ANSWERS, random=draws, size=size, tolerance=1e-9)
    assert found.converged
    best = least_squares(HOSPITAL, ANSWERS, tolerance=1e-10)
    np.testing.assert_allclose(found.values, best.values, atol=1e-6)


def test_with_bounds_the_point_keeps_them_and_the_sums(seed: int) -> None:
    high = np.array([5.0, 10, 10, 10, 10, 10])
    draws = np.random.default_rng(seed)
    found = kaczmarz_blocks(HOSPITAL, ANSWERS, random=draws, low=3.0, high=high, tolerance=1e-8)
    assert found.converged
    assert (found.values >= 3).all() and (found.values <= high).all()
    assert 6.4 <= found.values[4] <= 8.4
    np.testing.assert_allclose(HOSPITAL.times(found.values) * HOSPITAL.lengths, ANSWERS, atol=1e-5)


def slowly(scaled: Floats, target: Floats, size: int, order: np.ndarray) -> Floats:
    """The step of a block, written out: the sum of the projections, as far as is nearest."""
    point: Floats = np.zeros(scaled.shape[1])
    for first in range(0, len(order), size):
        block = order[first : first + size]
        left = target[block] - scaled[block] @ point
        direction = scaled[block].T @ left
        length = float(direction @ direction)
        step = float(left @ left) / length if length > 0 else 0.0
        point = np.clip(point + step * direction, -2, 2)
    return point


@pytest.mark.parametrize("case", range(20))
def test_a_pass_is_one_step_for_each_block(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    dense = rng.choice([0, 0, 1, -2, 3] if case % 2 else [0, 1], (25, 8))
    right, size, order = rng.normal(size=25), int(rng.integers(1, 12)), rng.permutation(25)
    rows = Rows.of(System.of(dense.tolist()))
    found = kaczmarz_blocks(
        rows, right, random=rng, size=size, low=-2.0, high=2.0, order=lambda *_: order, most=1
    )
    scaled = dense / rows.lengths[:, None]
    expected = slowly(scaled, right / rows.lengths, size, order)
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


def test_noisy_equations_come_to_rest_at_least_squares_when_averaged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (240, 60))
    right = dense @ rng.normal(size=60) + rng.normal(size=240)
    rows = Rows.of(System.of(dense.tolist()))
    best = least_squares(rows, right, tolerance=1e-9)
    found = kaczmarz_blocks(rows, right, random=rng, averaged=True, tolerance=1e-3)
    assert found.converged
    assert found.residual <= 1.005 * best.residual
    last = kaczmarz_blocks(rows, right, random=rng, order=shuffled_rows, most=found.iterations)
    assert last.residual > 1.02 * best.residual


def test_a_block_of_nothing_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="at least one equation, not 0"):
        kaczmarz_blocks(HOSPITAL, ANSWERS, random=np.random.default_rng(seed), size=0)
