"""The library function: rows and answers in, values with intervals out, mistakes in a sentence."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from casemate.attack.reconstruct import reconstruct
from casemate.attack.reconstruct.online import RecursiveSquares
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.exact import Floats

ROWS = [[1, 1, 0], [0, 1, 1], [0, 1, 0]]
ANSWERS = [11.0, 9.0, 4.0]
HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]
SUMS = [32.1, 15.5, 11.4]
FLAT = [5.7, 5.2, 31 / 6, 31 / 6, 5.7, 31 / 6]
LINEAR = [
    Solver.LEAST_SQUARES,
    Solver.BOX,
    Solver.CONVEX,
    Solver.ROBUST,
    Solver.LP,
    Solver.KACZMARZ,
    Solver.SGD,
]


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


# Exactly --------------------------------------------------------------------------------------


@pytest.mark.theorem("002: least squares of the hospital example")
@pytest.mark.parametrize("solver", LINEAR)
def test_the_documents_solution_whatever_the_solver(solver: Solver) -> None:
    found = reconstruct(HOSPITAL, SUMS, solver=solver, confidence=None, random=generator())
    assert found.solver is solver
    if solver is not Solver.LP:  # which has many best points, and takes one of them
        assert found.values == pytest.approx(FLAT, abs=1e-3)
    assert np.array(HOSPITAL) @ found.values == pytest.approx(SUMS, abs=1e-3)


@pytest.mark.theorem("002: background knowledge as constraints")
@pytest.mark.parametrize("solver", [Solver.BOX, Solver.CONVEX, Solver.KACZMARZ, Solver.SGD])
def test_with_bounds_values_are_inside_and_sums_are_kept(solver: Solver) -> None:
    """With x1 <= 5 and all of them 3 to 10, x1 is left 3 to 5 and x5 6.4 to 8.4."""
    prior = Prior(low=3.0, high=np.array([5.0, 10, 10, 10, 10, 10]))
    found = reconstruct(HOSPITAL, SUMS, prior, solver=solver, random=generator())
    assert 3 - 1e-3 <= found.values[0] <= 5 + 1e-3
    assert 6.4 - 1e-3 <= found.values[4] <= 8.4 + 1e-3
    assert np.array(HOSPITAL) @ found.values == pytest.approx(SUMS, abs=1e-2)
    assert found.low[[0, 4]] == pytest.approx([3, 6.4], abs=1e-3)
    assert found.high[[0, 4]] == pytest.approx([5, 8.4], abs=1e-3)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_array, list])
def test_rows_come_in_any_form(form: Any) -> None:
    found = reconstruct(form(np.array(ROWS)), ANSWERS, random=generator())
    assert found.values == pytest.approx([7, 4, 5])
    assert found.low == pytest.approx([7, 4, 5]) and found.high == pytest.approx([7, 4, 5])


# Interrupted ----------------------------------------------------------------------------------


class Stop:
    """Somebody who presses Ctrl-C at the third step."""

    def __init__(self) -> None:
        self.point: Floats | None = None

    def __call__(self, steps: int, _: float, point: Floats) -> None:
        self.point = point.copy()
        if steps >= 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", [Solver.LEAST_SQUARES, Solver.KACZMARZ, Solver.SGD, None])
def test_an_interrupt_leaves_the_best_so_far(solver: Solver | None) -> None:
    random, stop = np.random.default_rng(3), Stop()
    rows = random.integers(0, 2, (60, 40))
    found = reconstruct(
        rows, rows @ random.normal(size=40), solver=solver, random=random, progress=stop
    )
    assert not found.finished and stop.point is not None
    assert found.values == pytest.approx(stop.point)
    assert 0 < found.residual < 1 and np.isnan(found.probability).all()


# One sentence for each mistake ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"answers": [11, 9]}, "there are 3 queries and 2 answers"),
        ({"answers": [11, 9, float("nan")]}, "not a finite number"),
        ({"answers": [11, 9, float("inf")]}, "not a finite number"),
        ({"aggregates": [1, 1, 1]}, "must be a matrix"),
        ({"aggregates": [[1, float("nan"), 1]] * 3}, "coefficient of a query"),
        ({"knowledge": Prior(low=5.0, high=3.0)}, "must not be above"),
        ({"knowledge": Prior(low=float("nan"))}, "a bound is not a number"),
        ({"knowledge": Prior(low=5.0, known={1: 4.0})}, "contradicts its bounds"),
        ({"knowledge": Prior(known={3: 4.0})}, "number 3 is none of them"),
        ({"knowledge": Prior(known={-1: 4.0})}, "number -1 is none of them"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"confidence": float("nan")}, "between 0 and 1"),
        ({"solver": "guess"}, "least-squares, box, convex, robust, lp, integer, kaczmarz, sgd"),
    ],
)
def test_wrong_arguments_are_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"aggregates": ROWS, "answers": ANSWERS}
    with pytest.raises(ValueError, match=sentence):
        reconstruct(**{**arguments, **wrong})


BITS = Prior(0.0, 1.0, whole=True)


@pytest.fixture
def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def halves(people: int, queries: int, random: np.random.Generator) -> Floats:
    return (random.random((queries, people)) < 0.5).astype(np.float64)


def test_without_bounds_or_noise_it_is_least_squares(draws: np.random.Generator) -> None:
    found = reconstruct([[1, 1], [0, 1]], [5.0, 2.0], random=draws)
    assert found.solver is Solver.LEAST_SQUARES
    assert found.values == pytest.approx([3, 2])


def test_with_bounds_it_is_the_box(draws: np.random.Generator) -> None:
    found = reconstruct([[1, 1]], [5.0], Prior(low=0.0, high=np.array([1.0, 9.0])), random=draws)
    assert found.solver is Solver.BOX
    assert found.values.sum() == pytest.approx(5)


def test_a_known_total_or_sparsity_makes_it_convex(draws: np.random.Generator) -> None:
    rows, answers = [[1, 1, 0, 0]], [4.0]
    assert reconstruct(rows, answers, Prior(total=9.0), random=draws).solver is Solver.CONVEX
    assert reconstruct(rows, answers, Prior(sparse=0.01), random=draws).solver is Solver.CONVEX


def test_noisy_bits_are_counted(draws: np.random.Generator) -> None:
    rows, truth = halves(48, 192, draws), draws.integers(0, 2, 48)
    answers = rows @ truth + draws.normal(0, 1, 192)
    stated = reconstruct(rows, answers, BITS, noise="gaussian:1", random=draws)
    silent = reconstruct(rows, answers, BITS, random=draws)
    assert stated.solver is silent.solver is Solver.INTEGER
    assert (stated.values == truth).all() and (silent.values == truth).all()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
def test_junk_answers_are_outvoted_without_being_asked(
    share: float, draws: np.random.Generator
) -> None:
    people = 128
    rows, truth = halves(people, 4 * people, draws), draws.integers(0, 2, people)
    answers = rows @ truth
    wrong = draws.permutation(4 * people)[: round(share * 4 * people)]
    answers[wrong] += draws.uniform(-people / 2, people / 2, len(wrong))
    found = reconstruct(rows, answers, BITS, random=draws)
    assert found.solver is Solver.ROBUST
    assert (found.values == truth).all()


def test_answers_that_miss_by_a_law_without_junk_are_not_called_junk(
    draws: np.random.Generator,
) -> None:
    rows, truth = halves(60, 240, draws), draws.random(60)
    for noise in (draws.normal(0, 1, 240), draws.laplace(0, 1, 240), draws.uniform(-1, 1, 240)):
        found = reconstruct(rows, rows @ truth + noise, random=draws)
        assert found.solver is Solver.LEAST_SQUARES


def test_bits_that_sums_do_not_determine_are_made_whole(draws: np.random.Generator) -> None:
    rows, truth = halves(24, 14, draws), draws.integers(0, 2, 24)
    found = reconstruct(rows, rows @ truth, BITS, random=draws)
    assert found.solver is Solver.INTEGER
    assert (rows @ found.values == rows @ truth).all()


def test_every_solver_may_be_asked_for_by_name(draws: np.random.Generator) -> None:
    rows, truth = halves(12, 40, draws), draws.integers(0, 2, 12)
    problem_prior = Prior(0.0, 1.0, whole=True)
    for solver in Solver:
        found = reconstruct(rows, rows @ truth, problem_prior, solver=solver.value, random=draws)
        assert found.solver is solver
        assert (found.values == truth).all(), solver


def test_the_problem_does_not_show_what_was_published() -> None:
    problem = Problem.of([[1, 1]], [31415.0])
    assert "31415" not in repr(problem)


def test_the_history_is_that_of_the_chosen_solver_alone(draws: np.random.Generator) -> None:
    rows, truth = halves(40, 160, draws), draws.integers(0, 2, 40)
    found = reconstruct(rows, rows @ truth + draws.normal(0, 1, 160), BITS, random=draws)
    steps = [step for step, _ in found.history]
    assert steps == sorted(steps)
    assert steps[-1] <= found.iterations
    assert all(0 <= residual < 10 for _, residual in found.history)


@pytest.mark.theorem("002: Handling many queries (each seen once)")
def test_the_hospital_is_exact_after_one_pass() -> None:
    seen = RecursiveSquares(6)
    seen.see(np.arange(6), 32.1)
    seen.see(np.array([2, 3, 5]), 15.5)
    seen.see(np.array([0, 4]), 11.4)
    expected = [5.7, 5.2, 15.5 / 3, 15.5 / 3, 5.7, 15.5 / 3]
    np.testing.assert_allclose(seen.point, expected, atol=1e-12)


@pytest.mark.parametrize("case", range(5))
def test_after_every_equation_it_is_the_least_squares_of_all_so_far(case: int, seed: int) -> None:
    """Against numpy on all rows, noisy or not, of full rank or not, past several triangles."""
    rng = np.random.default_rng([seed, case])
    width = int(rng.integers(1, 9))
    dense = rng.choice([0, 0, 1, -2], (8 * width + 9, width))
    right = dense @ rng.normal(size=width) + (case % 2) * rng.normal(size=len(dense))
    seen = RecursiveSquares(width)
    for count, (line, answer) in enumerate(zip(dense, right, strict=True), start=1):
        columns = np.flatnonzero(line)
        seen.see(columns, answer, line[columns])
        if count % 5 and count < len(dense):
            continue
        lengths = np.maximum(np.linalg.norm(dense[:count], axis=1), 1)
        best = np.linalg.lstsq(dense[:count] / lengths[:, None], right[:count] / lengths)[0]
        np.testing.assert_allclose(seen.point, best, atol=1e-8)
