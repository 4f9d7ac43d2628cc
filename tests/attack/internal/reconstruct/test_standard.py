import numpy as np
import pytest

from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.attack.reconstruct.problem import Prior, Problem, Standard, weights
from casemate.attack.solvers.least_squares import Weighted, least_squares
from casemate.exact import Floats


class Unstored:
    """The same equations, of which only passes are known."""

    def __init__(self, problem: Problem) -> None:
        stored = problem.equations
        self.height, self.width, self.lengths = stored.height, stored.width, stored.lengths
        self.times, self.transposed = stored.times, stored.transposed


def example(random: np.random.Generator, **known: object) -> tuple[Problem, Floats]:
    matrix = random.choice([0.0, 1.0, 1.0, 2.0], (30, 6))
    prior = Prior(known={2: 1.5}, total=9.0)
    law = NoiseLaw("gaussian", 2.0)
    problem = Problem.of(matrix, random.normal(size=30), prior, law)
    spread = random.uniform(0.5, 3.0, 30)
    return Problem(
        problem.equations,
        problem.answers,
        problem.low,
        problem.high,
        problem.whole,
        law,
        spread,
        total=9.0,
    ), matrix


def test_weighted_least_squares_is_that_of_equations_divided_by_their_deviations(
    seed: int,
) -> None:
    problem, matrix = example(np.random.default_rng(seed))
    weighted = Weighted(problem.equations, weights(problem))
    found = least_squares(weighted, problem.answers, tolerance=1e-12).values
    divided = matrix / problem.spread[:, None]
    expected = np.linalg.lstsq(divided, problem.answers / problem.spread)[0]
    assert found == pytest.approx(expected, abs=1e-8)


def test_equations_alike_in_length_and_noise_all_weigh_1() -> None:
    matrix = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert weights(Problem.of(matrix, [1, 2, 3])).tolist() == [1, 1, 1]
    assert len(weights(Problem.of(np.zeros((0, 3)), []))) == 0


def test_an_answer_without_noise_outweighs_all_others() -> None:
    problem = Problem.of([[1], [1], [1]], [5, 7, 6])
    exact = Problem(
        problem.equations,
        problem.answers,
        problem.low,
        problem.high,
        problem.whole,
        spread=np.array([1.0, 0.0, 1.0]),
    )
    found = least_squares(Weighted(exact.equations, weights(exact)), exact.answers, tolerance=1e-12)
    assert found.values == pytest.approx([7], abs=1e-4)


def test_passes_over_the_standard_equations_are_those_of_their_matrix(seed: int) -> None:
    random = np.random.default_rng(seed)
    problem, matrix = example(random)
    trusted = random.random(30) < 0.8
    standard = Standard.of(problem, trusted)
    dense, point, row = standard.dense(), random.normal(size=5), random.normal(size=31)
    assert dense.shape == (standard.height, standard.width) == (31, 5)
    assert standard.times(point) == pytest.approx(dense @ point)
    assert standard.transposed(row) == pytest.approx(dense.T @ row)
    assert (dense[:30][~trusted] == 0).all() and (standard.target[:30][~trusted] == 0).all()
    assert standard.used == trusted.sum() + 1
    free = [0, 1, 3, 4, 5]
    divided = matrix[:, free] / problem.spread[:, None]
    assert dense[:30][trusted] == pytest.approx(divided[trusted])


def test_equations_that_are_not_stored_have_the_same_matrix(seed: int) -> None:
    problem, _ = example(np.random.default_rng(seed))
    unstored = Problem(
        Unstored(problem),
        problem.answers,
        problem.low,
        problem.high,
        problem.whole,
        problem.noise,
        problem.spread,
        total=problem.total,
    )
    assert Standard.of(unstored).dense() == pytest.approx(Standard.of(problem).dense())


def test_what_known_values_add_to_an_answer_is_taken_off() -> None:
    problem = Problem.of([[1, 1], [0, 2]], [5.0, 4.0], Prior(known={1: 2.0}, total=5.0))
    standard = Standard.of(problem)
    assert standard.free.tolist() == [0]
    assert standard.target[:2].tolist() == [3, 0]
    assert standard.target[2] == pytest.approx(standard.total * 3)
