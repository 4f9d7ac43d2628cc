"""The library function: rows and answers in, values with intervals out, mistakes in a sentence."""

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from attack.equations import ANSWERS, HIGH, HOSPITAL, SHORTEST, bits, stored, subsets
from scipy import sparse

from casemate.attack.reconstruct import reconstruct
from casemate.attack.reconstruct.online import RecursiveSquares
from casemate.attack.reconstruct.problem import Prior
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.exact import Floats

ROWS = [[1, 1, 0], [0, 1, 1], [0, 1, 0]]
TOTALS = [11.0, 9.0, 4.0]
BITS = Prior(0.0, 1.0, whole=True)


def generator() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


# Exactly --------------------------------------------------------------------------------------


@pytest.mark.theorem("002: least squares of the hospital example")
@pytest.mark.parametrize("solver", [each for each in Solver if each is not Solver.INTEGER])
def test_the_documents_solution_whatever_the_solver(solver: Solver) -> None:
    found = reconstruct(HOSPITAL, ANSWERS, solver=solver, confidence=None, random=generator())
    assert found.solver is solver
    if solver is not Solver.LP:  # which has many best points, and takes one of them
        assert found.values == pytest.approx(SHORTEST, abs=1e-3)
    assert HOSPITAL.sums(found.values) == pytest.approx(ANSWERS, abs=1e-3)


@pytest.mark.theorem("002: background knowledge as constraints")
@pytest.mark.parametrize("solver", [Solver.BOX, Solver.CONVEX, Solver.KACZMARZ, Solver.SGD])
def test_with_bounds_values_are_inside_and_sums_are_kept(solver: Solver) -> None:
    """With x1 <= 5 and all of them 3 to 10, x1 is left 3 to 5 and x5 6.4 to 8.4."""
    prior = Prior(low=3.0, high=HIGH)
    found = reconstruct(HOSPITAL, ANSWERS, prior, solver=solver, random=generator())
    assert 3 - 1e-3 <= found.values[0] <= 5 + 1e-3
    assert 6.4 - 1e-3 <= found.values[4] <= 8.4 + 1e-3
    assert HOSPITAL.sums(found.values) == pytest.approx(ANSWERS, abs=1e-2)
    assert found.low[[0, 4]] == pytest.approx([3, 6.4], abs=1e-3)
    assert found.high[[0, 4]] == pytest.approx([5, 8.4], abs=1e-3)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_array, list, stored])
def test_rows_come_in_any_form(form: Any) -> None:
    found = reconstruct(form(np.array(ROWS)), TOTALS, random=generator())
    assert found.values == pytest.approx([7, 4, 5])
    assert found.low == pytest.approx([7, 4, 5]) and found.high == pytest.approx([7, 4, 5])


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_any_confidence_between_0_and_1_may_be_asked_for(level: float) -> None:
    found = reconstruct(ROWS, TOTALS, noise="gaussian:1", confidence=level, random=generator())
    half = NormalDist().inv_cdf((1 + level) / 2)
    assert found.width[1] == pytest.approx(2 * half, rel=1e-3)  # one answer decides it


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
        ({"aggregates": sparse.csr_array([[1, np.inf, 1]] * 3)}, "coefficient of a query"),
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
    arguments: dict[str, Any] = {"aggregates": ROWS, "answers": TOTALS}
    with pytest.raises(ValueError, match=sentence):
        reconstruct(**{**arguments, **wrong})


# Which solver ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "prior", "solver"),
    [
        (5.0, Prior(), Solver.LEAST_SQUARES),
        (5.0, Prior(low=0.0, high=np.array([1.0, 9.0, 9.0])), Solver.BOX),
        (4.0, Prior(total=9.0), Solver.CONVEX),
        (4.0, Prior(sparse=0.01), Solver.CONVEX),
    ],
)
def test_it_is_the_one_that_what_is_known_asks_for(
    answer: float, prior: Prior, solver: Solver, draws: np.random.Generator
) -> None:
    found = reconstruct([[1, 1, 0]], [answer], prior, random=draws)
    assert found.solver is solver
    assert found.values[:2].sum() == pytest.approx(answer, abs=0.05)
    assert prior.total is None or found.values.sum() == pytest.approx(prior.total)


def test_noisy_bits_are_counted_and_the_history_is_that_of_the_counting_alone(
    draws: np.random.Generator,
) -> None:
    rows, truth = subsets(draws, 192, 48), bits(draws, 48)
    answers = rows @ truth + draws.normal(0, 1, 192)
    for noise in ("gaussian:1", None):
        found = reconstruct(rows, answers, BITS, noise=noise, random=draws)
        assert found.solver is Solver.INTEGER
        assert (found.values == truth).all()
        steps = [step for step, _ in found.history]
        assert steps == sorted(steps) and steps[-1] <= found.iterations
        assert all(0 <= residual < 10 for _, residual in found.history)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
def test_junk_answers_are_outvoted_without_being_asked(
    share: float, draws: np.random.Generator
) -> None:
    people = 128
    rows, truth = subsets(draws, 4 * people, people), bits(draws, people)
    answers = rows @ truth
    wrong = draws.permutation(4 * people)[: round(share * 4 * people)]
    answers[wrong] += draws.uniform(-people / 2, people / 2, len(wrong))
    found = reconstruct(rows, answers, BITS, random=draws)
    assert found.solver is Solver.ROBUST
    assert (found.values == truth).all()


def test_answers_that_miss_by_a_law_without_junk_are_not_called_junk(
    draws: np.random.Generator,
) -> None:
    rows, truth = subsets(draws, 240, 60), draws.random(60)
    for noise in (draws.normal(0, 1, 240), draws.laplace(0, 1, 240), draws.uniform(-1, 1, 240)):
        found = reconstruct(rows, rows @ truth + noise, random=draws)
        assert found.solver is Solver.LEAST_SQUARES


def test_bits_that_sums_do_not_determine_are_made_whole(draws: np.random.Generator) -> None:
    rows, truth = subsets(draws, 14, 24), bits(draws, 24)
    found = reconstruct(rows, rows @ truth, BITS, random=draws)
    assert found.solver is Solver.INTEGER
    assert (rows @ found.values == rows @ truth).all()


@pytest.mark.parametrize("solver", Solver)
def test_every_solver_may_be_asked_for_by_name(solver: Solver, draws: np.random.Generator) -> None:
    rows, truth = subsets(draws, 40, 12), bits(draws, 12)
    found = reconstruct(rows, rows @ truth, BITS, solver=solver.value, random=draws)
    assert found.solver is solver and (found.values == truth).all()


# One equation at a time -----------------------------------------------------------------------


@pytest.mark.theorem("002: Handling many queries (each seen once)")
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
