import numpy as np
import pytest
from scipy.optimize import linprog

from casemate.attack.reconstruct import leftover as module
from casemate.attack.reconstruct.leftover import leftover
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.solvers.convex_losses import RangeConstraints
from casemate.exact import Floats, Rows, System


def by_programs(problem: Problem, matrix: Floats, slack: Floats) -> tuple[Floats, Floats]:
    """The same by SciPy, from the matrix."""
    above = np.vstack([matrix, -matrix])
    right = np.concatenate([problem.answers + slack, -(problem.answers - slack)])
    box = list(zip(problem.low, problem.high, strict=True))
    ends = []
    for sign in (1, -1):
        found = [linprog(sign * unit, above, right, bounds=box) for unit in np.eye(matrix.shape[1])]
        assert all(each.status == 0 for each in found)
        ends.append(np.array([sign * float(each.fun or 0.0) for each in found]))
    return ends[0], ends[1]


def example(case: int, seed: int) -> tuple[Problem, Floats, Floats, Floats]:
    random = np.random.default_rng([seed, case])
    matrix = random.choice([0.0, 1.0, 1.0, -2.0], (4, 6))
    truth, slack = random.uniform(0, 10, 6), random.uniform(0, 1, 4)
    answers = matrix @ truth + slack * random.uniform(-1, 1, 4)
    return Problem.of(matrix, answers, Prior(low=0.0, high=10.0)), matrix, slack, truth


@pytest.mark.parametrize("case", range(10))
def test_small_systems_get_the_least_and_the_greatest_value(case: int, seed: int) -> None:
    problem, matrix, slack, _ = example(case, seed)
    low, high = leftover(problem, slack, np.arange(6))
    expected = by_programs(problem, matrix, slack)
    assert low == pytest.approx(expected[0], abs=1e-5)
    assert high == pytest.approx(expected[1], abs=1e-5)


@pytest.mark.parametrize("case", range(30))
def test_propagation_alone_excludes_no_possible_value(
    case: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PROGRAM_WORK", 0)
    problem, _, slack, truth = example(case, seed)
    low, high = leftover(problem, slack, np.arange(6))
    assert (low <= truth).all() and (truth <= high).all()
    assert (low >= problem.low).all() and (high <= problem.high).all()


def test_propagation_finds_what_one_equation_leaves_and_what_follows_from_that() -> None:
    matrix = [[1, 1, 0], [0, 1, -1]]
    problem = Problem.of(matrix, [10.0, 0.0], Prior(low=0.0, high=np.array([3.0, 20.0, np.inf])))
    low, high = leftover(problem, np.array([0.5, 0.0]), np.arange(0))
    assert low == pytest.approx([0, 6.5, 6.5], abs=1e-6)
    assert high == pytest.approx([3, 10.5, 10.5], abs=1e-6)


def test_limits_and_a_total_are_used() -> None:
    limits = RangeConstraints(Rows.of(System.of([[1, -1, 0]])), np.array([0.0]), np.array([np.inf]))
    stated = Problem.of([[0, 0, 1]], [2.0], Prior(low=0.0, high=9.0, total=8.0))
    problem = Problem(
        stated.equations,
        stated.answers,
        stated.low,
        stated.high,
        stated.whole,
        limits=limits,
        total=8.0,
    )
    low, high = leftover(problem, np.zeros(1), np.arange(3))
    assert low == pytest.approx([3, 0, 2], abs=1e-5)
    assert high == pytest.approx([6, 3, 2], abs=1e-5)


def test_equations_that_contradict_the_slack_leave_the_range_known_before() -> None:
    problem = Problem.of([[1, 0], [1, 0]], [2.0, 5.0], Prior(low=0.0, high=9.0))
    low, high = leftover(problem, np.zeros(2), np.arange(2))
    assert low.tolist() == [0, 0] and high.tolist() == [9, 9]


def test_an_answer_of_endless_slack_says_nothing() -> None:
    problem = Problem.of([[1, 0], [1, 1]], [2.0, 5.0], Prior(low=0.0, high=9.0))
    low, high = leftover(problem, np.array([0.0, np.inf]), np.arange(2))
    assert low == pytest.approx([2, 0], abs=1e-5) and high == pytest.approx([2, 9], abs=1e-5)
