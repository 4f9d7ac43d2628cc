from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.attack.reconstruct.problem import Prior, Problem, rows_of
from casemate.attack.score.leave_one_out import release_without, sums
from casemate.attack.solvers.convex_losses import RangeConstraints
from casemate.attack.solvers.least_squares import Freed, least_squares
from casemate.exact import Floats, Rows

seeds = st.integers(0, 2**32 - 1)


def case(seed: int) -> tuple[Floats, Floats, Floats]:
    """Small whole coefficients, values and noise, so that nothing is ever rounded."""
    rng = np.random.default_rng(seed)
    height, width = (int(each) for each in rng.integers(2, 12, 2))
    matrix = rng.choice([0, 1, 1, -2], (height, width)).astype(np.float64)
    truth, noise = (rng.integers(-9, 10, size).astype(np.float64) for size in (width, height))
    return matrix, truth, noise


@given(seeds)
def test_it_is_the_release_of_the_others_with_the_same_noise(seed: int) -> None:
    matrix, truth, noise = case(seed)
    problem = Problem.of(
        matrix, matrix @ truth + noise, Prior(low=-9.0, high=9.0, total=truth.sum())
    )
    found = release_without(problem, truth, np.array([0]))
    assert found.answers.tolist() == (matrix[:, 1:] @ truth[1:] + noise).tolist()
    assert found.total == truth[1:].sum()
    assert (found.low[0], found.high[0]) == (0, 0)
    others = matrix.copy()
    others[:, 0] = 0
    point = np.arange(1.0, len(truth) + 1)
    assert sums(found.equations, point).tolist() == (others @ point).tolist()


@given(seeds, st.integers(-99, 99))
def test_nothing_of_it_depends_on_what_is_struck(seed: int, other: int) -> None:
    matrix, truth, noise = case(seed)
    changed = truth.copy()
    changed[0] = other
    releases = [
        release_without(Problem.of(matrix, matrix @ x + noise), x, np.array([0]))
        for x in (truth, changed)
    ]
    assert releases[0].answers.tolist() == releases[1].answers.tolist()


@given(seeds, st.integers(-99, 99))
def test_a_rounded_sum_is_rounded_again_because_the_rest_depends_on_everybody(
    seed: int, other: int
) -> None:
    matrix, truth, _ = case(seed)
    law = NoiseLaw("round", 5.0)
    changed = truth.copy()
    changed[0] = other
    for x in (truth, changed):
        shown = law.laid_over(matrix @ x, np.random.default_rng(0))
        found = release_without(Problem.of(matrix, shown, noise=law), x, np.array([0]))
        others = law.laid_over(matrix[:, 1:] @ truth[1:], np.random.default_rng(0))
        assert found.answers.tolist() == others.tolist()


def test_limits_are_struck_as_equations_are() -> None:
    rows = rows_of(np.array([[1.0, 1.0]]))
    assert isinstance(rows, Rows)
    limits = RangeConstraints(rows, np.array([0.0]), np.array([5.0]))
    problem = replace(Problem.of(rows, [4.0], Prior(low=0.0, high=9.0)), limits=limits)
    found = release_without(problem, np.array([3.0, 1.0]), np.array([0])).limits
    assert found is not None
    assert (found.low.tolist(), found.high.tolist()) == ([-3.0], [2.0])
    assert sums(found.rows, np.array([7.0, 1.0])).tolist() == [1.0]


@given(seeds)
def test_equations_that_are_not_stored_lose_the_same_unknowns(seed: int) -> None:
    matrix, truth, noise = case(seed)
    stored = Problem.of(matrix, matrix @ truth + noise)
    hidden = Problem.of(Freed(stored.equations, np.ones(len(truth), np.bool_)), stored.answers)
    one, other = (release_without(each, truth, np.array([0])) for each in (stored, hidden))
    np.testing.assert_allclose(other.answers, one.answers, atol=1e-9)
    point = np.arange(1.0, len(truth) + 1)
    np.testing.assert_allclose(sums(other.equations, point), sums(one.equations, point), atol=1e-9)
    weights = np.ones(len(matrix))
    assert other.equations.transposed(weights)[0] == one.equations.transposed(weights)[0] == 0


# The closed form of docs/derivations/leave_one_out.md -------------------------------------------


def by_one_update(matrix: Floats, answers: Floats, place: int, value: float) -> Floats:
    """The shortest least squares of the others, from that of all and one column of an inverse."""
    everybody = np.linalg.pinv(matrix) @ answers
    inverse = np.linalg.pinv(matrix.T @ matrix)
    free = np.eye(matrix.shape[1]) - inverse @ (matrix.T @ matrix)
    along = free[:, place] if free[place, place] > 1e-9 else inverse[:, place]
    if along[place] > 1e-9:
        everybody = everybody + along * (value - everybody[place]) / along[place]
    return everybody


@pytest.mark.parametrize("number", range(60))
def test_the_others_are_found_as_by_one_update_of_everybody(number: int, seed: int) -> None:
    """The equations as they are, not scaled; many leave the target open, others determine it."""
    rng = np.random.default_rng([seed, number])
    matrix, truth, noise = case(int(rng.integers(2**32)))
    answers = matrix @ truth + noise
    slow = np.linalg.pinv(matrix[:, 1:]) @ (answers - matrix[:, 0] * truth[0])
    np.testing.assert_allclose(by_one_update(matrix, answers, 0, truth[0])[1:], slow, atol=1e-7)


@pytest.mark.parametrize("number", range(30))
def test_the_solver_finds_the_least_squares_of_the_others(number: int, seed: int) -> None:
    rng = np.random.default_rng([seed, number])
    matrix, truth, noise = case(int(rng.integers(2**32)))
    found = release_without(Problem.of(matrix, matrix @ truth + noise), truth, np.array([0]))
    mine = least_squares(found.equations, found.answers, tolerance=1e-12).values
    scaled = matrix[:, 1:] / np.maximum(1e-300, np.linalg.norm(matrix[:, 1:], axis=1))[:, None]
    right = found.answers / found.equations.lengths
    np.testing.assert_allclose(mine[1:], np.linalg.pinv(scaled) @ right, atol=1e-6)
    assert mine[0] == 0
