import threading
from itertools import combinations, product

import numpy as np
import pytest
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
from casemate.attack.solvers.watched_program import Program, as_sparse, run
from casemate.attack.solvers.whole_decoding import whole_decoding
from casemate.exact import Floats, Rows, Status, System

Case = tuple[Floats, Floats, Floats, Floats]


def small_case(rng: np.random.Generator) -> Case:
    """Weighted equations with noise, in ranges some ends of which are absent or equal."""
    height, width = int(rng.integers(1, 20)), int(rng.integers(1, 9))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    right = dense @ rng.normal(size=width) + rng.choice([0, 1]) * rng.standard_t(2, height)
    low = np.where(rng.random(width) < 0.3, -np.inf, rng.normal(size=width) - 0.5)
    high = np.where(rng.random(width) < 0.3, np.inf, np.where(np.isinf(low), 0.7, low + 1))
    known = rng.random(width) < 0.1
    return dense, right, np.where(known, 0.25, low), np.where(known, 0.25, high)


def least(dense: Floats, right: Floats, low: Floats, high: Floats, spread: Floats) -> float:
    """The least sum of absolute residuals, by SciPy in the primal form."""
    height, width = dense.shape
    eye = np.diag(spread)
    found = linprog(
        np.r_[np.zeros(width), np.ones(height)],
        A_ub=np.block([[dense, -eye], [-dense, -eye]]),
        b_ub=np.r_[right, -right],
        bounds=[*zip(low, high, strict=True), *[(0, None)] * height],
    ).fun
    assert found is not None
    return float(found)


def least_maximum(dense: Floats, right: Floats, low: Floats, high: Floats, spread: Floats) -> float:
    """The least largest residual, by SciPy in the primal form."""
    width = dense.shape[1]
    found = linprog(
        np.r_[np.zeros(width), 1],
        A_ub=np.block([[dense, -spread[:, None]], [-dense, -spread[:, None]]]),
        b_ub=np.r_[right, -right],
        bounds=[*zip(low, high, strict=True), (0, None)],
    ).fun
    assert found is not None
    return float(found)


@pytest.mark.parametrize("case", range(6))
def test_the_sum_of_absolute_residuals_is_the_least(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    dense, right, low, high = small_case(rng)
    spread = rng.choice([0.5, 1.0, 4.0], len(right))
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = least_absolute(rows, right, low=low, high=high, spread=spread)
    assert found.converged
    assert (low <= found.values).all() and (found.values <= high).all()
    mine = float(np.abs((dense @ found.values - right) / spread).sum())
    assert mine == pytest.approx(least(dense, right, low, high, spread), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("case", range(6))
def test_values_within_the_noise_are_found_exactly_where_there_are_some(
    case: int, seed: int
) -> None:
    """The least largest residual decides; half of the bounds are a bit above and half below it."""
    rng = np.random.default_rng([seed, case])
    dense, right, low, high = small_case(rng)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    bound = least_maximum(dense, right, low, high, np.ones(len(right)))
    found = within_noise(rows, right, bound=1.01 * bound + 1e-3, low=low, high=high)
    assert (np.abs(dense @ found.values - right) <= 1.01 * bound + 1.1e-3).all()
    if bound > 0.1:
        with pytest.raises(NoSuchValues, match="widen the bound"):
            within_noise(rows, right, bound=0.99 * bound - 1e-3, low=low, high=high)


def half_subsets(rng: np.random.Generator, people: int) -> tuple[Rows, Floats, Floats]:
    dense = rng.integers(0, 2, (4 * people, people))
    truth = rng.integers(0, 2, people).astype(np.float64)
    return Rows.of(System.of(dense.tolist())), dense @ truth, truth


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_junk_answers_are_outvoted(share: float, seed: int) -> None:
    """The setting of Dwork, McSherry and Talwar."""
    rng = np.random.default_rng([seed, round(100 * share)])
    rows, answers, truth = half_subsets(rng, 64)
    junk = rng.random(len(answers)) < share
    answers[junk] += rng.choice([-32, 32], int(junk.sum()))
    found = least_absolute(rows, answers, low=0.0, high=1.0)
    np.testing.assert_allclose(found.values, truth, atol=1e-5)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_a_spread_that_is_none_is_refused(bad: float) -> None:
    rows = Rows.of(System.of([[1]]))
    with pytest.raises(ValueError, match="spread above 0"):
        least_absolute(rows, np.ones(1), spread=bad)


@pytest.mark.parametrize("case", range(6))
def test_the_absolute_residuals_are_about_the_least(case: int, seed: int) -> None:
    """Against the linear program on the scaled rows."""
    rng = np.random.default_rng([seed, case])
    height, width = int(rng.integers(5, 30)), int(rng.integers(1, 6))
    dense = rng.choice([0, 1, 1, 2], (height, width))
    right = dense @ rng.normal(size=width) + rng.standard_t(2, height)
    rows = Rows.of(System.of(dense.tolist()))
    scaled, target = dense / rows.lengths[:, None], right / rows.lengths
    eye = np.eye(height)
    theirs = linprog(
        np.r_[np.zeros(width), np.ones(height)],
        A_ub=np.block([[scaled, -eye], [-scaled, -eye]]),
        b_ub=np.r_[target, -target],
        bounds=[(None, None)] * width + [(0, None)] * height,
    ).fun
    assert theirs is not None
    found = least_deviations(rows, right, tolerance=1e-9)
    mine = float(np.abs(scaled @ found.values - target).sum())
    assert theirs - 1e-7 <= mine <= theirs * 1.01 + 1e-6


@pytest.mark.parametrize("case", range(6))
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


def half_subsets_of_exact_decoding(seed: int, people: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (2 * people, people)).astype(np.float64)
    truth = rng.integers(0, 2, people).astype(np.float64)
    return dense, dense @ truth + rng.normal(0, 0.15 * np.sqrt(people), len(dense)), truth


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
    dense, right, _ = half_subsets_of_exact_decoding(seed, 60)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = exact_decoding(rows, right, low=0, high=1, start=np.zeros(rows.width), seconds=0)
    assert not found.proved
    assert found.deviation == pytest.approx(float(np.abs(right - dense @ found.values).sum()))


def loss(law: AnswerLaw, rest: Floats) -> float:
    """The loss of residuals in spreads, written out."""
    size = np.abs(rest)
    each = {
        AnswerLaw.GAUSSIAN: rest**2 / 2,
        AnswerLaw.LAPLACE: size,
        AnswerLaw.UNIFORM: np.maximum(0, size - 1 - 1e-9),
    }
    return float(each[law].sum())


def small_case_of_whole_decoding(
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    height, width = int(rng.integers(1, 30)), int(rng.integers(2, 8))
    dense = rng.choice([0, 1, 1, -2, 3], (height, width)).astype(np.float64)
    low = rng.integers(-2, 2, width)
    high = low + rng.integers(0, 4, width)
    right = dense @ rng.integers(low, high + 1) + rng.normal(size=height) * rng.choice([0, 2])
    ends = low.astype(np.float64), high.astype(np.float64)
    return dense, right, *ends, rng.choice([0.5, 1.0, 3.0], height)


@pytest.mark.parametrize("law", AnswerLaw)
@pytest.mark.parametrize("case", range(6))
def test_no_change_of_one_value_or_two_is_better(law: AnswerLaw, case: int, seed: int) -> None:
    """Against trying every single change and every pair of changes by one."""
    rng = np.random.default_rng([seed, case])
    dense, right, low, high, spread = small_case_of_whole_decoding(rng)
    rows = Rows.of(System.of(dense.astype(int).tolist()))
    found = whole_decoding(
        rows, right, start=rng.normal(size=len(low)), low=low, high=high, law=law, spread=spread
    )
    assert found.converged
    values = found.values
    assert (low <= values).all() and (values <= high).all() and (values == values.round()).all()
    reached = loss(law, (right - dense @ values) / spread)
    for one, two in combinations(range(len(low)), 2):
        for steps in product((-1, 0, 1), repeat=2):
            other = values.copy()
            other[[one, two]] += steps
            if (low <= other).all() and (other <= high).all():
                assert loss(law, (right - dense @ other) / spread) >= reached - 1e-6


def test_exact_sums_of_random_halves_are_decoded_from_nearby(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (120, 60))
    truth = rng.integers(0, 2, 60).astype(np.float64)
    wrong = truth.copy()
    wrong[:3] = 1 - wrong[:3]
    seen: list[int] = []
    found = whole_decoding(
        Rows.of(System.of(dense.tolist())),
        dense @ truth,
        start=wrong,
        low=0,
        high=1,
        progress=lambda steps, *_: seen.append(steps),
    )
    assert (found.values == truth).all() and found.residual == 0
    assert seen == list(range(1, found.iterations + 1))


SUM = as_sparse(Rows.of(System.of([[1, 1]])))
ONE, TWO = np.ones(1), np.ones(2)


def program(low: float, high: float, whole: int = 0) -> Program:
    """Minimise 2 x + 3 y from 0 on, where x + y lies between two ends and x is at most 1."""
    most = np.array([1.0, np.inf])
    return Program(np.array([2.0, 3.0]), 0 * TWO, most, low * ONE, high * ONE, SUM, whole)


def test_a_small_program_is_solved_with_its_multipliers() -> None:
    found = run(program(2.5, 9.0), solver="simplex")
    assert found.status is Status.OPTIMAL
    assert found.point.tolist() == [1.0, 1.5] and found.cost == 6.5
    assert found.multipliers.tolist() == [3.0]


def test_what_cannot_be_and_what_has_no_end_are_told_apart() -> None:
    assert run(program(3.0, 2.0)).status is Status.INFEASIBLE
    falls = Program(-TWO, 0 * TWO, np.inf * TWO, -np.inf * ONE, np.inf * ONE, SUM)
    assert run(falls, presolve="off").status is Status.UNBOUNDED


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_whatever_the_watcher_raises_stops_the_solver(kind: type[BaseException], seed: int) -> None:
    """A program that takes long: after the error no thread of it is left."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (60, 60))
    right = dense @ rng.integers(0, 2, 60) + rng.normal(0, 2, 60)
    parts = hstack([csr_array(dense.astype(float)), eye_array(60), -eye_array(60)])
    cost = np.r_[np.zeros(60), np.ones(120)]
    high = np.r_[np.ones(60), np.full(120, np.inf)]
    hard = Program(cost, np.zeros(180), high, right, right, parts, whole=60)

    def stop(steps: int, point: Floats | None) -> None:
        raise kind

    before = threading.active_count()
    with pytest.raises(kind):
        run(hard, watch=stop)
    assert threading.active_count() == before
