import threading
from itertools import combinations, product

import numpy as np
import pytest
from attack.equations import bits, loss, stored, subsets
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from casemate.attack.solvers.answer_loss import AnswerLaw
from casemate.attack.solvers.decoding import (
    NoSuchValues,
    exact_decoding,
    least_absolute,
    least_deviations,
    within_noise,
)
from casemate.attack.solvers.iteration import relative_residual
from casemate.attack.solvers.watched_program import Program, as_sparse, run
from casemate.attack.solvers.whole_decoding import whole_decoding
from casemate.exact import Floats, Status

Box = tuple[Floats, Floats]

# Numbers, by linear programs


def least(dense: Floats, right: Floats, box: Box, slacks: Floats) -> float:
    """The least sum of what equations may be off, by SciPy in the primal form.

    A column of `slacks` is one number and by how much of it each equation may be off.
    """
    width, many = dense.shape[1], slacks.shape[1]
    found = linprog(
        np.r_[np.zeros(width), np.ones(many)],
        A_ub=np.block([[dense, -slacks], [-dense, -slacks]]),
        b_ub=np.r_[right, -right],
        bounds=[*zip(*box, strict=True), *[(0, None)] * many],
    ).fun
    assert found is not None
    return float(found)


def small_case(rng: np.random.Generator) -> tuple[Floats, Floats, Box]:
    """Weighted equations with noise, in ranges some ends of which are absent or equal."""
    height, width = int(rng.integers(1, 20)), int(rng.integers(1, 9))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.standard_t(2, height)
    low = np.where(rng.random(width) < 0.3, -np.inf, rng.normal(size=width) - 0.5)
    high = np.where(rng.random(width) < 0.3, np.inf, np.where(np.isinf(low), 0.7, low + 1))
    known = rng.random(width) < 0.1
    return dense, right, (np.where(known, 0.25, low), np.where(known, 0.25, high))


@pytest.mark.parametrize("case", range(6))
def test_the_sum_of_absolute_residuals_is_the_least(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    dense, right, box = small_case(rng)
    rows, spread = stored(dense), rng.choice([0.5, 1.0, 4.0], len(right))
    found = least_absolute(rows, right, low=box[0], high=box[1], spread=spread)
    assert found.converged
    assert (box[0] <= found.values).all() and (found.values <= box[1]).all()
    mine = float(np.abs((dense @ found.values - right) / spread).sum())
    assert mine == pytest.approx(least(dense, right, box, np.diag(spread)), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("case", range(6))
def test_without_a_program_it_is_about_the_least(case: int, seed: int) -> None:
    """Of the scaled rows, and without a box."""
    rng = np.random.default_rng([seed, case])
    height, width = int(rng.integers(5, 30)), int(rng.integers(1, 6))
    dense = rng.choice([0, 1, 1, 2], (height, width))
    rows, right = stored(dense), dense @ rng.normal(size=width) + rng.standard_t(2, height)
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    nowhere = np.full(width, np.inf)
    theirs = least(scaled, target, (-nowhere, nowhere), np.eye(height))
    mine = np.abs(scaled @ least_deviations(rows, right, tolerance=1e-9).values - target).sum()
    assert theirs - 1e-7 <= mine <= theirs * 1.01 + 1e-6


@pytest.mark.parametrize("case", range(6))
def test_values_within_the_noise_are_found_exactly_where_there_are_some(
    case: int, seed: int
) -> None:
    """The least largest residual decides; half of the bounds are a bit above and half below it."""
    rng = np.random.default_rng([seed, case])
    dense, right, (low, high) = small_case(rng)
    rows, bound = stored(dense), least(dense, right, (low, high), np.ones((len(right), 1)))
    found = within_noise(rows, right, bound=1.01 * bound + 1e-3, low=low, high=high)
    assert (np.abs(dense @ found.values - right) <= 1.01 * bound + 1.1e-3).all()
    if bound > 0.1:
        with pytest.raises(NoSuchValues, match="widen the bound"):
            within_noise(rows, right, bound=0.99 * bound - 1e-3, low=low, high=high)


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_junk_answers_are_outvoted(share: float, seed: int) -> None:
    """The setting of Dwork, McSherry and Talwar."""
    rng = np.random.default_rng([seed, round(100 * share)])
    dense, truth = subsets(rng, 256, 64), bits(rng, 64)
    answers, junk = dense @ truth, rng.random(256) < share
    answers[junk] += rng.choice([-32, 32], int(junk.sum()))
    found = least_absolute(stored(dense), answers, low=0.0, high=1.0)
    np.testing.assert_allclose(found.values, truth, atol=1e-5)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_a_spread_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="spread above 0"):
        least_absolute(stored([[1]]), np.ones(1), spread=bad)


# Whole numbers


def whole_case(rng: np.random.Generator, most: tuple[int, int]) -> tuple[Floats, Floats, Box]:
    """Weighted equations in whole numbers of small ranges, at most so many of both."""
    height, width = int(rng.integers(1, most[0])), int(rng.integers(2, most[1]))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    low = rng.integers(-2, 2, width)
    high = low + rng.integers(0, 4, width)
    right = dense @ rng.integers(low, high + 1) + rng.normal(size=height) * rng.choice([0, 2])
    return dense, right, (low.astype(np.float64), high.astype(np.float64))


@pytest.mark.parametrize("case", range(6))
def test_no_whole_point_deviates_less(case: int, seed: int) -> None:
    """Against trying all of them."""
    rng = np.random.default_rng([seed, case])
    dense, right, (low, high) = whole_case(rng, (12, 6))
    spread, start = rng.choice([0.5, 1.0, 3.0], len(right)), np.zeros(len(low))
    found = exact_decoding(stored(dense), right, low=low, high=high, start=start, spread=spread)
    ranges = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    least = min(float(np.abs((right - dense @ x) / spread).sum()) for x in product(*ranges))
    assert found.converged
    mine = np.abs((right - dense @ found.values) / spread).sum()
    assert mine == pytest.approx(least, abs=1e-6)


@pytest.mark.theorem("002: Solving with constraints (whole numbers)")
def test_exact_sums_of_sixty_yes_no_values_are_solved(seed: int) -> None:
    """Fewer equations than unknowns: real values would not be determined."""
    rng = np.random.default_rng(seed)
    dense, truth = subsets(rng, 40, 60), bits(rng, 60)
    found = exact_decoding(stored(dense), dense @ truth, low=0, high=1, start=np.zeros(60))
    assert found.converged and found.residual == 0
    assert (dense @ found.values == dense @ truth).all()


def test_without_time_the_best_so_far_is_given_and_not_called_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = subsets(rng, 120, 60)
    right = dense @ bits(rng, 60) + rng.normal(0, 0.15 * np.sqrt(60), 120)
    start, rows = np.zeros(60), stored(dense)
    found = exact_decoding(rows, right, low=0, high=1, start=start, seconds=0)
    assert not found.converged
    assert found.residual == pytest.approx(relative_residual(rows, right)(found.values))
    assert np.abs(right - dense @ found.values).sum() <= np.abs(right).sum()


@pytest.mark.parametrize("law", AnswerLaw)
@pytest.mark.parametrize("case", range(6))
def test_no_change_of_one_value_or_two_is_better(law: AnswerLaw, case: int, seed: int) -> None:
    """Against trying every single change and every pair of changes by one."""
    rng = np.random.default_rng([seed, case])
    dense, right, (low, high) = whole_case(rng, (30, 8))
    spread, start = rng.choice([0.5, 1.0, 3.0], len(right)), rng.normal(size=len(low))
    found = whole_decoding(
        stored(dense), right, start=start, low=low, high=high, law=law, spread=spread
    )
    assert found.converged
    values = found.values
    assert (low <= values).all() and (values <= high).all() and (values == values.round()).all()
    reached = loss(law, (right - dense @ values) / spread).sum()
    for one, two in combinations(range(len(low)), 2):
        for steps in product((-1, 0, 1), repeat=2):
            other = values.copy()
            other[[one, two]] += steps
            if (low <= other).all() and (other <= high).all():
                assert loss(law, (right - dense @ other) / spread).sum() >= reached - 1e-6


def test_exact_sums_of_random_halves_are_decoded_from_nearby(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense, truth, seen = subsets(rng, 120, 60), bits(rng, 60), list[int]()
    wrong = np.where(np.arange(60) < 3, 1 - truth, truth)
    found = whole_decoding(
        stored(dense),
        dense @ truth,
        start=wrong,
        low=0,
        high=1,
        progress=lambda steps, *_: seen.append(steps),
    )
    assert (found.values == truth).all() and found.residual == 0
    assert seen == list(range(1, found.iterations + 1))


# Programs that are watched


SUM = as_sparse(stored([[1, 1]]))
ONE, TWO = np.ones(1), np.ones(2)


def program(low: float, high: float) -> Program:
    """Minimise 2 x + 3 y from 0 on, where x + y lies between two ends and x is at most 1."""
    most = np.array([1.0, np.inf])
    return Program(np.array([2.0, 3.0]), 0 * TWO, most, low * ONE, high * ONE, SUM)


def test_a_small_program_is_solved_or_said_to_have_no_solution_or_no_end() -> None:
    found = run(program(2.5, 9.0), solver="simplex")
    assert found.status is Status.OPTIMAL
    assert found.point.tolist() == [1.0, 1.5] and found.cost == 6.5
    assert found.multipliers.tolist() == [3.0]
    assert run(program(3.0, 2.0)).status is Status.INFEASIBLE
    falls = Program(-TWO, 0 * TWO, np.inf * TWO, -np.inf * ONE, np.inf * ONE, SUM)
    assert run(falls, presolve="off").status is Status.UNBOUNDED


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_whatever_the_watcher_raises_stops_the_solver(kind: type[BaseException], seed: int) -> None:
    """A program that takes long: after the error no thread of it is left."""
    rng = np.random.default_rng(seed)
    dense = subsets(rng, 60, 60)
    right = dense @ bits(rng, 60) + rng.normal(0, 2, 60)
    parts = hstack([csr_array(dense), eye_array(60), -eye_array(60)])
    cost = np.r_[np.zeros(60), np.ones(120)]
    high = np.r_[np.ones(60), np.full(120, np.inf)]
    hard = Program(cost, np.zeros(180), high, right, right, parts, whole=60)

    def stop(steps: int, point: Floats | None) -> None:
        raise kind

    before = threading.active_count()
    with pytest.raises(kind):
        run(hard, watch=stop)
    assert threading.active_count() == before
