"""The solver is chosen by what is known of the unknowns and by what least squares leaves."""

import numpy as np
import pytest

from casemate.attack.reconstruct import reconstruct
from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.exact import Floats

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


def test_junk_is_outvoted_where_the_stated_noise_cannot_be_all(draws: np.random.Generator) -> None:
    rows, truth = halves(64, 256, draws), draws.integers(0, 2, 64)
    answers = rows @ truth + draws.normal(0, 0.1, 256)
    answers[:20] += 40
    found = reconstruct(rows, answers, BITS, noise=NoiseLaw("gaussian", 0.1), random=draws)
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
