from collections.abc import Iterator

import numpy as np
import pytest

from casemate.attack.solvers.cgmn import swept_squares
from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Floats, Rows, System

HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]


@pytest.mark.theorem("002: Solving the equations (least squares)")
def test_the_hospital_has_the_solution_of_the_document() -> None:
    found = swept_squares(Rows.of(System.of(HOSPITAL)), np.array([32.1, 15.5, 11.4]))
    assert found.converged
    expected = [5.7, 5.2, 15.5 / 3, 15.5 / 3, 5.7, 15.5 / 3]
    np.testing.assert_allclose(found.values, expected, atol=1e-5)


@pytest.mark.parametrize("case", range(60))
def test_the_point_is_the_shortest_of_the_best(case: int, seed: int) -> None:
    """Against numpy's pseudo-inverse of the scaled rows; half of the systems contradict."""
    rng = np.random.default_rng([seed, case])
    height, width = (int(each) for each in rng.integers(1, 30, 2))
    dense = rng.choice([0, 0, 1, 1, -3] if case % 3 else [0, 1], (height, width))
    consistent = dense @ rng.normal(size=width)
    right = consistent if case % 2 else consistent + rng.normal(size=height)
    rows = Rows.of(System.of(dense.tolist()))
    found = swept_squares(rows, right, tolerance=1e-10)
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    best = np.linalg.lstsq(scaled, target)[0]
    np.testing.assert_allclose(found.values, best, atol=1e-6 * max(1, np.abs(best).max()))
    left = np.linalg.norm(scaled @ found.values - target)
    assert found.residual == pytest.approx(left / (np.linalg.norm(target) or 1.0), abs=1e-9)


def test_from_a_start_it_goes_to_the_nearest_point() -> None:
    rows = Rows.of(System.of([[1, 1]]))
    found = swept_squares(rows, np.array([6.0]), start=np.array([4.0, 0.0]), tolerance=1e-12)
    np.testing.assert_allclose(found.values, [5.0, 1.0])


def range_predicates(rng: np.random.Generator) -> Rows:
    """Sums over ranges of two columns of 300 records, 600 of them."""
    first, second = rng.integers(0, 100, (2, 300))
    lines: list[list[int]] = []
    while len(lines) < 600:
        low, high = np.sort(rng.integers(0, 100, (2, 2)), axis=0)
        inside = (first >= low[0]) & (first <= high[0]) & (second >= low[1]) & (second <= high[1])
        if inside.sum() >= 5:
            lines.append(inside.astype(int).tolist())
    return Rows.of(System.of(lines))


def test_range_predicates_take_less_than_half_of_the_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = range_predicates(rng)
    right = rows.times(rng.integers(0, 200, 300).astype(float)) * rows.lengths
    swept, plain = (each(rows, right, tolerance=1e-4) for each in (swept_squares, least_squares))
    assert swept.converged and plain.converged
    assert 2 * swept.iterations < plain.iterations


def test_progress_may_stop_it_with_the_point_so_far(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = range_predicates(rng)
    right = rows.times(rng.normal(size=300)) * rows.lengths
    seen: list[tuple[int, Floats]] = []

    def stop(steps: int, _: float, point: Floats) -> None:
        seen.append((steps, point.copy()))
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept_squares(rows, right, tolerance=1e-12, progress=stop)
    first, second = (np.linalg.norm(rows.times(p) - right / rows.lengths) for _, p in seen)
    assert [steps for steps, _ in seen] == [4, 8]
    assert second < first


def few_steps(rows: Rows, right: Floats) -> Iterator[tuple[int, int, bool]]:
    for most in (0, 1, 6):
        found = swept_squares(rows, right, tolerance=1e-12, most=most)
        yield most, found.iterations, found.converged


def test_too_few_steps_are_not_called_converged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = range_predicates(rng)
    right = rows.times(rng.normal(size=300)) * rows.lengths
    assert list(few_steps(rows, right)) == [(most, most, False) for most in (0, 1, 6)]
