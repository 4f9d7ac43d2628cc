"""What every solver of linear equations promises, one row of a table each."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from attack.equations import ANSWERS, HIGH, HOSPITAL, SHORTEST, bits, stored, subsets
from scipy.optimize import lsq_linear

from casemate.attack.solvers.box_squares import box_squares, pivoting
from casemate.attack.solvers.convex import convex, projected_gradient
from casemate.attack.solvers.decoding import least_absolute, least_deviations
from casemate.attack.solvers.iteration import Solved, relative_residual
from casemate.attack.solvers.kaczmarz import kaczmarz_blocks, swept_squares
from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.solvers.sgd import sgd
from casemate.exact import Floats, Rows

Solve = Callable[..., Solved]


def drawing(solve: Solve) -> Solve:
    """A solver that draws, from the same seed in every run."""

    def solve_from_seed(*given: object, **options: object) -> Solved:
        return solve(*given, random=np.random.default_rng(5), **options)

    return solve_from_seed


FREE: dict[str, Solve] = {
    "least squares": least_squares,
    "sweeps": swept_squares,
    "projected gradient": projected_gradient,
    "convex": convex,
    "Kaczmarz": drawing(partial(kaczmarz_blocks, size=1)),
    "blocks": drawing(kaczmarz_blocks),
    "averaged blocks": drawing(partial(kaczmarz_blocks, averaged=True)),
    "stochastic gradient": drawing(sgd),
    "averaged stochastic gradient": drawing(partial(sgd, averaged=True)),
    "wide box": partial(box_squares, low=-1e6, high=1e6),
    "least deviations": least_deviations,
}
NO_BOX = ("least squares", "sweeps", "wide box", "least deviations")
BOXED = {name: each for name, each in FREE.items() if name not in NO_BOX} | {
    "box": box_squares,
    "least absolute": least_absolute,
}
STEPPED = {name: each for name, each in FREE.items() if name not in NO_BOX[2:]}
WATCHED: dict[str, Solve] = FREE | {"least absolute": least_absolute}


def system(rng: np.random.Generator, height: int, width: int) -> tuple[Rows, Floats]:
    dense = rng.choice([0, 0, 1, 1, -3], (height, width))
    return stored(dense), dense.astype(np.float64)


def halves(rng: np.random.Generator, noise: float = 0.0) -> tuple[Rows, Floats]:
    """Sums of random halves of sixty numbers."""
    dense = subsets(rng, 240, 60)
    return stored(dense), dense @ rng.normal(size=60) + noise * rng.normal(size=240)


@pytest.mark.theorem("002: Solving the equations (least squares)")
@pytest.mark.theorem("002: Handling many queries (Kaczmarz)")
@pytest.mark.parametrize("solve", FREE.values(), ids=FREE)
def test_the_hospital_has_the_solution_of_the_document(solve: Solve) -> None:
    found = solve(HOSPITAL, ANSWERS, tolerance=1e-8)
    assert found.converged
    np.testing.assert_allclose(found.values, SHORTEST, atol=1e-5)


@pytest.mark.theorem("002: Solving with constraints (bounds)")
@pytest.mark.theorem("002: Solving with constraints (convex)")
@pytest.mark.theorem("002: Handling many queries (box)")
@pytest.mark.theorem("002: Handling many queries (gradient with a box)")
@pytest.mark.theorem("002: Handling many queries (stochastic gradient, sigmoid)")
@pytest.mark.parametrize("solve", BOXED.values(), ids=BOXED)
def test_the_hospital_with_bounds_keeps_them_and_its_sums(solve: Solve) -> None:
    """John's value is at most 5 and all are at least 3, as in the document."""
    precise = {} if solve is least_absolute else {"tolerance": 1e-8}
    found = solve(HOSPITAL, ANSWERS, low=3.0, high=HIGH, **precise)
    assert found.converged
    assert (found.values >= 3).all() and (found.values <= HIGH).all()
    assert 6.4 - 1e-5 <= found.values[4] <= 8.4 + 1e-5
    assert found.values[1] == pytest.approx(5.2, abs=1e-5)
    np.testing.assert_allclose(HOSPITAL.sums(found.values), ANSWERS, atol=1e-5)


@pytest.mark.parametrize("solve", [least_squares, swept_squares, convex])
@pytest.mark.parametrize("case", range(6))
def test_the_point_is_the_shortest_of_the_best(solve: Solve, case: int, seed: int) -> None:
    """Against numpy's pseudo-inverse of the scaled rows; half of the systems contradict."""
    rng = np.random.default_rng([seed, case])
    rows, dense = system(rng, *rng.integers(1, 30, 2).tolist())
    right = dense @ rng.normal(size=rows.width) + (case % 2) * rng.normal(size=rows.height)
    found = solve(rows, right, tolerance=1e-9)
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    best = np.linalg.lstsq(scaled, target)[0]
    np.testing.assert_allclose(found.values, best, atol=1e-5 * max(1, np.abs(best).max()))
    left = np.linalg.norm(scaled @ found.values - target)
    assert found.residual == pytest.approx(left / (np.linalg.norm(target) or 1.0), abs=1e-9)


@pytest.mark.parametrize("solve", [box_squares, projected_gradient, convex, pivoting])
@pytest.mark.parametrize("case", range(6))
def test_the_residual_is_the_least_within_the_box(solve: Solve, case: int, seed: int) -> None:
    """Against SciPy's solver on the scaled rows; most systems contradict or press on bounds."""
    rng = np.random.default_rng([seed, case])
    rows, dense = system(rng, *rng.integers(1, 25, 2).tolist())
    right = dense @ rng.normal(size=rows.width) + rng.choice([0, 1]) * rng.normal(size=rows.height)
    low = rng.normal(size=rows.width) - 0.5
    high = low + rng.choice([0.0, 0.2, 1.0, 3.0], rows.width)
    start = {"start": np.zeros(rows.width)} if solve is pivoting else {}
    found = solve(rows, right, low=low, high=high, tolerance=1e-8, **start)
    assert found.converged or solve is pivoting
    assert (found.values >= low).all() and (found.values <= high).all()
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    theirs = lsq_linear(scaled, target, (low, high + 1e-13), tol=1e-14, method="bvls").cost
    mine = 0.5 * float(np.sum((scaled @ found.values - target) ** 2))
    assert mine <= theirs + 1e-6 * (1 + theirs) or not found.converged


@pytest.mark.parametrize("name", ["averaged blocks", "averaged stochastic gradient"])
def test_noisy_equations_come_to_rest_at_least_squares_when_averaged(name: str, seed: int) -> None:
    rows, right = halves(np.random.default_rng(seed), noise=1.0)
    best = least_squares(rows, right, tolerance=1e-9)
    found = FREE[name](rows, right, tolerance=1e-3)
    assert found.converged and found.residual <= 1.005 * best.residual
    assert found.residual == pytest.approx(relative_residual(rows, right)(found.values))
    last = FREE[name.removeprefix("averaged ")](rows, right, most=found.iterations)
    assert not last.converged and last.residual > 1.02 * best.residual


@pytest.mark.parametrize("solve", STEPPED.values(), ids=STEPPED)
def test_too_few_steps_are_not_called_converged(solve: Solve, seed: int) -> None:
    rows, right = halves(np.random.default_rng(seed))
    found = solve(rows, right, tolerance=1e-12, most=4)
    assert (found.iterations <= 8, found.converged) == (True, False)


@pytest.mark.parametrize("solve", WATCHED.values(), ids=WATCHED)
def test_whoever_watches_sees_the_steps_and_may_stop_it(solve: Solve, seed: int) -> None:
    rows, right = halves(np.random.default_rng(seed), noise=0.1)
    steps: list[int] = []

    def stop(done: int, residual: float, point: Floats) -> None:
        assert np.isfinite(residual) and len(point) == 60
        steps.append(done)
        if len(steps) == 2:
            raise KeyboardInterrupt

    try:
        solve(rows, right, progress=stop)
    except KeyboardInterrupt:
        assert len(steps) == 2
    assert steps and all(a <= b for a, b in pairwise(steps))


@pytest.mark.parametrize("solve", BOXED.values(), ids=BOXED)
def test_a_range_without_values_is_refused(solve: Solve) -> None:
    with pytest.raises(ValueError, match="lower end"):
        solve(HOSPITAL, ANSWERS, low=1.0, high=0.0)


# Single methods ---------------------------------------------------------------------------------


def test_sweeps_over_range_predicates_take_less_than_half_of_the_steps(seed: int) -> None:
    """Sums over ranges of two columns of 300 records, 600 of them."""
    rng = np.random.default_rng(seed)
    records = rng.integers(0, 100, (2, 300))
    ends = np.sort(rng.integers(0, 100, (4_000, 2, 2)), axis=2)
    both = (ends[:, :, :1] <= records) & (records <= ends[:, :, 1:])
    inside = both[:, 0] & both[:, 1]
    rows = stored(inside[inside.sum(axis=1) >= 5][:600])
    right = rows.sums(rng.integers(0, 200, 300).astype(float))
    swept, plain = (each(rows, right, tolerance=1e-4) for each in (swept_squares, least_squares))
    assert swept.converged and plain.converged
    assert 2 * swept.iterations < plain.iterations


def test_pivoting_takes_a_few_rounds_however_hard_the_box_presses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense, truth = subsets(rng, 400, 100), bits(rng, 100)
    rows = stored(dense)
    for noise in (1.0, 10.0, 50.0):
        right = dense @ truth + rng.normal(0, noise, 400)
        found = pivoting(rows, right, low=0.0, high=1.0, start=np.zeros(100))
        assert found.converged and found.iterations < 200


def test_where_pivoting_gives_up_projected_gradients_go_on(seed: int) -> None:
    """Noisy sums over ranges of yes/no values: counts of progress go on, too."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, 201, (400, 2)), axis=1)
    inside = (ends[:, :1] <= np.arange(200)) & (np.arange(200) < ends[:, 1:])
    rows, steps = stored(inside), list[int]()
    right = inside @ rng.integers(0, 2, 200) + rng.normal(0, 30, 400)
    assert not pivoting(rows, right, low=0.0, high=1.0, start=np.zeros(200)).converged
    found = box_squares(
        rows, right, low=0.0, high=1.0, progress=lambda done, *_: steps.append(done)
    )
    assert found.converged and steps == sorted(steps) and steps[-1] == found.iterations
    best = lsq_linear(inside / rows.lengths[:, None], right / rows.lengths, (0, 1), tol=1e-12)
    size = float(np.linalg.norm(right / rows.lengths))
    assert found.residual == pytest.approx(np.sqrt(2 * best.cost) / size, rel=1e-4)
