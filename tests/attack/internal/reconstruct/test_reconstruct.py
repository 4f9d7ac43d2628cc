"""The library function: rows and answers in, values with intervals out, mistakes in a sentence."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from casemate.attack.reconstruct import reconstruct
from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.attack.reconstruct.problem import Prior
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.errors import Misconfigured
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


def test_without_confidence_there_are_no_intervals() -> None:
    found = reconstruct(ROWS, ANSWERS, Prior(low=0.0), confidence=None, random=generator())
    assert found.low.tolist() == [0, 0, 0] and np.isinf(found.high).all()
    assert np.isnan(found.probability).all() and found.confidence == 0


def test_known_values_are_kept() -> None:
    found = reconstruct(HOSPITAL, SUMS, Prior(known={0: 4.0}), random=generator())
    assert found.values[0] == 4 and found.values[4] == pytest.approx(7.4)


@given(st.integers(0, 2**32))
def test_enough_exact_answers_give_everything(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, truth = random.integers(0, 2, (12, 5)), random.normal(size=5)
    if np.linalg.matrix_rank(rows) == 5:
        found = reconstruct(rows, rows @ truth, random=random)
        assert found.values == pytest.approx(truth, abs=1e-4)
        assert found.residual < 1e-5 and found.finished


def test_whole_numbers_are_counted_or_rounded() -> None:
    found = reconstruct([[1, 1, 0], [0, 1, 1]], [2, 1], Prior(0.0, 1.0, True), random=generator())
    assert found.values.tolist() == [1, 1, 0]


def test_the_same_generator_gives_the_same_values() -> None:
    one, other = (
        reconstruct(HOSPITAL, SUMS, solver="kaczmarz", random=generator()) for _ in range(2)
    )
    assert one.values.tolist() == other.values.tolist() and one.history == other.history


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


@pytest.mark.parametrize("law", ["cauchy:1", "laplace", "laplace:0", "gaussian:-1", "round:nan"])
def test_a_law_that_is_none_is_refused(law: str) -> None:
    with pytest.raises(Misconfigured, match="law of noise"):
        reconstruct(ROWS, ANSWERS, noise=law)


def test_a_law_may_be_written_or_given() -> None:
    rows = np.random.default_rng(1).integers(0, 2, (40, 6))
    answers = rows @ np.arange(6) + np.random.default_rng(2).normal(size=40)
    written, law = (
        reconstruct(rows, answers, noise=noise, random=generator())
        for noise in ("gaussian:1", NoiseLaw("gaussian", 1.0))
    )
    assert written.values.tolist() == law.values.tolist()
    assert (written.width > 0).all()
