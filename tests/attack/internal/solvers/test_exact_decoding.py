from itertools import product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from casemate.attack.solvers.decoding import exact_decoding
from casemate.exact import Floats, Rows, System


@pytest.mark.parametrize("case", range(12))
def test_no_whole_point_deviates_less(case: int, seed: int) -> None:
    """Against trying all of them."""
    rng = np.random.default_rng([seed, case])
    height, width = int(rng.integers(1, 12)), int(rng.integers(1, 6))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    low = rng.integers(-2, 2, width)
    high = low + rng.integers(0, 4, width)
    right = dense @ rng.integers(low, high + 1) + rng.normal(size=height) * rng.choice([0, 2])
    spread = rng.choice([0.5, 1.0, 3.0], height)
    found = exact_decoding(
        Rows.of(System.of(dense.astype(int).tolist())),
        right,
        low=low.astype(np.float64),
        high=high.astype(np.float64),
        start=np.zeros(width),
        spread=spread,
    )
    ranges = [range(int(a), int(b) + 1) for a, b in zip(low, high, strict=True)]
    least = min(float(np.abs((right - dense @ x) / spread).sum()) for x in product(*ranges))
    assert found.proved
    assert found.deviation == pytest.approx(least, abs=1e-6)
    mine = np.abs((right - dense @ found.values) / spread).sum()
    assert found.deviation == pytest.approx(float(mine), abs=1e-9)


def half_subsets(seed: int, people: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (2 * people, people)).astype(np.float64)
    truth = rng.integers(0, 2, people).astype(np.float64)
    return dense, dense @ truth + rng.normal(0, 0.15 * np.sqrt(people), len(dense)), truth


def test_its_deviation_is_that_of_another_model(seed: int) -> None:
    """Against SciPy's MILP on the two-sided form."""
    dense, right, _ = half_subsets(seed, 18)
    height, width = dense.shape
    eye = np.eye(height)
    theirs = milp(
        np.r_[np.zeros(width), np.ones(height)],
        integrality=np.r_[np.ones(width), np.zeros(height)],
        bounds=Bounds(np.zeros(width + height), np.r_[np.ones(width), np.full(height, np.inf)]),
        constraints=LinearConstraint(
            np.block([[dense, -eye], [-dense, -eye]]), ub=np.r_[right, -right]
        ),
    )
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = exact_decoding(rows, right, low=0, high=1, start=np.zeros(rows.width))
    assert found.proved
    assert found.deviation == pytest.approx(theirs.fun, abs=1e-5)


@pytest.mark.theorem("002: Solving with constraints (whole numbers)")
def test_exact_sums_of_sixty_yes_no_values_are_solved(seed: int) -> None:
    """Fewer equations than unknowns: real values would not be determined."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (40, 60))
    truth = rng.integers(0, 2, 60)
    right = (dense @ truth).astype(np.float64)
    rows = Rows.of(System.of(dense.tolist()))
    found = exact_decoding(rows, right, low=0, high=1, start=np.zeros(rows.width))
    assert found.proved and found.deviation == 0
    assert (dense @ found.values == dense @ truth).all()


def test_without_time_the_best_so_far_is_given_and_not_called_proved(seed: int) -> None:
    dense, right, _ = half_subsets(seed, 60)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = exact_decoding(rows, right, low=0, high=1, start=np.zeros(rows.width), seconds=0)
    assert not found.proved
    assert found.deviation == pytest.approx(float(np.abs(right - dense @ found.values).sum()))


def test_whoever_watches_may_stop_it(seed: int) -> None:
    dense, right, _ = half_subsets(seed, 60)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    shown: list[Floats] = []

    def stop(steps: int, residual: float, point: Floats) -> None:
        shown.append(point)
        if len(shown) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exact_decoding(rows, right, low=0, high=1, start=np.zeros(rows.width), progress=stop)
    assert all(set(point.round(6).tolist()) <= {0.0, 1.0} for point in shown)
