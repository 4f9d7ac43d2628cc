import threading

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array, hstack

from casemate.attack.solvers.watched_program import Program, as_sparse, run
from casemate.exact import Floats, Rows, Status, System

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


def test_whole_columns_come_first() -> None:
    found = run(program(2.5, 9.0, whole=2))
    assert found.point.round(6).tolist() == [1.0, 2.0]


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


def test_time_that_is_up_is_not_called_impossible() -> None:
    assert run(program(2.5, 9.0, whole=2), seconds=0.0).status is not Status.INFEASIBLE
