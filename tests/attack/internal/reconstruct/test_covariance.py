from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from attack.equations import stored, subsets
from chance import assert_rate_at_most
from scipy import stats
from scipy.optimize import linprog

from casemate.attack.reconstruct import confidence as confidence_module
from casemate.attack.reconstruct import covariance as module
from casemate.attack.reconstruct.confidence import feasible_ranges
from casemate.attack.reconstruct.covariance import (
    covariance,
    factorised_covariance,
    sampled_covariance,
)
from casemate.attack.reconstruct.problem import NoiseLaw, Prior, Problem, Standard, weights
from casemate.attack.solvers.convex import RangeConstraints
from casemate.attack.solvers.least_squares import EquationView, least_squares
from casemate.exact import Floats, Passes


def standard(matrix: Floats, random: np.random.Generator) -> Standard:
    return Standard.of(Problem.of(matrix, random.normal(size=len(matrix))))


@pytest.mark.parametrize("shape", [(40, 10), (25, 25), (10, 20), (60, 5)])
def test_computed_variances_shares_and_estimates_are_those_of_the_pseudo_inverse(
    shape: tuple[int, int], seed: int
) -> None:
    random = np.random.default_rng([seed, *shape])
    matrix = random.normal(size=shape) * (random.random(shape) < 0.6)
    equations = standard(matrix, random)
    found, inverse = factorised_covariance(equations, random), np.linalg.pinv(matrix)
    which = found.identified
    assert found.estimate[which] == pytest.approx((inverse @ equations.target)[which])
    assert found.variance[which] == pytest.approx((inverse**2).sum(1)[which])
    fourth = (inverse**4).sum(1) / np.maximum((inverse**2).sum(1), 1e-300) ** 2
    assert found.concentration[which] == pytest.approx(fourth[which])
    assert found.rank == np.linalg.matrix_rank(matrix)
    left = equations.target - matrix @ inverse @ equations.target
    assert found.squares == pytest.approx(left @ left, abs=1e-9)


@pytest.mark.parametrize("case", range(5))
def test_identified_are_the_unknowns_whose_unit_is_a_sum_of_rows(case: int, seed: int) -> None:
    random = np.random.default_rng([seed, case])
    matrix = random.choice([0.0, 0.0, 1.0], (6, 8))
    expected = np.isclose(np.diag(np.linalg.pinv(matrix) @ matrix), 1)
    for method in (factorised_covariance, sampled_covariance):
        found = method(standard(matrix, random), random)
        assert found.identified.tolist() == expected.tolist()


def test_large_systems_without_an_inverse_go_by_eigenvectors(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)
    matrix = subsets(random, 60, 20)
    matrix[:, 5] = matrix[:, 6]
    equations = standard(matrix, random)
    by_singular = factorised_covariance(equations, random)
    monkeypatch.setattr(module, "MOST_SINGULAR", 0)
    by_eigen = factorised_covariance(equations, random)
    assert np.flatnonzero(~by_eigen.identified).tolist() == [5, 6]
    assert by_eigen.variance == pytest.approx(by_singular.variance)
    assert by_eigen.rank == by_singular.rank == 19


def test_small_systems_are_computed_and_large_ones_drawn(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)
    equations = standard(subsets(random, 40, 8), random)
    assert np.isinf(covariance(equations, random).freedom).all()
    monkeypatch.setattr(module, "MOST_EXACT", 7)
    found = covariance(equations, random)
    assert (found.freedom >= module.MOST_DRAWS).all()


@pytest.mark.parametrize("entries", [1.0, 1e12])
def test_an_unknown_that_one_answer_decides_has_an_exact_deviation_even_if_drawn(
    entries: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", entries)
    random = np.random.default_rng(seed)
    matrix = np.vstack([np.diag([1.0, 2.0, 0.0, 0.0, 0.0]), np.ones((6, 5)) - np.eye(6, 5)])
    matrix[2:, :2] = 0
    found = sampled_covariance(standard(matrix, random), random)
    assert found.variance[:2] == pytest.approx([1, 0.25])
    assert found.concentration[:2].tolist() == [1, 1] and np.isinf(found.freedom[:2]).all()
    assert (found.concentration[2:] < 1).all() and np.isfinite(found.freedom[2:]).all()


# True with a stated probability -----------------------------------------------------------------


def off_by_more(claimed: Floats, true: Floats, draws: int) -> int:
    """How many drawn variances are outside what 1e-3 of chi-square's would be (2 % slack)."""
    low, high = stats.chi2(draws).ppf([0.0005, 0.9995]) / draws
    return int(((claimed < 0.98 * low * true) | (claimed > 1.02 * high * true)).sum())


def blocks(count: int, random: np.random.Generator) -> Floats:
    """Independent groups: 12 sums over 4 unknowns each."""
    matrix = np.zeros((12 * count, 4 * count))
    for group in range(count):
        part = np.vstack([np.eye(4), subsets(random, 8, 4)])
        matrix[12 * group : 12 * group + 12, 4 * group : 4 * group + 4] = part
    return matrix


def test_drawn_variances_are_as_accurate_as_stated(seed: int) -> None:
    """One unknown of each group, so that they are independent; signs vary less than a bell."""
    random = np.random.default_rng(seed)
    equations = standard(blocks(150, random), random)
    exact, found = factorised_covariance(equations, random), sampled_covariance(equations, random)
    once = slice(0, None, 4)
    true = exact.variance[once]
    assert_rate_at_most(off_by_more(found.variance[once], true, module.MOST_DRAWS), 150, 1e-3)
    assert found.rank == pytest.approx(exact.rank, rel=0.03)
    wrong = off_by_more(0.49 * found.variance[once], true, module.MOST_DRAWS)
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong, 150, 1e-3)


# The problem in standard form


class Unstored:
    """The same equations, of which only passes are known."""

    def __init__(self, stored: Passes) -> None:
        self.height, self.width, self.lengths = stored.height, stored.width, stored.lengths
        self.times, self.transpose_times = stored.times, stored.transpose_times


def example(random: np.random.Generator) -> tuple[Problem, Floats]:
    """Noises of different deviations, a total, and a value that is known."""
    matrix = random.choice([0.0, 1.0, 1.0, 2.0], (30, 6))
    prior, law = Prior(known={2: 1.5}, total=9.0), NoiseLaw("gaussian", 2.0)
    problem = Problem.of(matrix, random.normal(size=30), prior, law)
    return replace(problem, spread=random.uniform(0.5, 3.0, 30)), matrix


def test_weighted_least_squares_is_that_of_equations_divided_by_their_deviations(
    seed: int,
) -> None:
    problem, matrix = example(np.random.default_rng(seed))
    weighted = EquationView(problem.equations, weights(problem))
    found = least_squares(weighted, problem.answers, tolerance=1e-12).values
    divided = matrix / problem.spread[:, None]
    expected = np.linalg.lstsq(divided, problem.answers / problem.spread)[0]
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("form", [lambda rows: rows, Unstored], ids=["stored", "unstored"])
def test_passes_over_the_standard_equations_are_those_of_their_matrix(
    form: Callable[[Passes], Passes], seed: int
) -> None:
    random = np.random.default_rng(seed)
    problem, matrix = example(random)
    trusted = random.random(30) < 0.8
    standard = Standard.of(replace(problem, equations=form(problem.equations)), trusted)
    dense, point, row = standard.dense(), random.normal(size=5), random.normal(size=31)
    assert dense.shape == (standard.height, standard.width) == (31, 5)
    assert standard.times(point) == pytest.approx(dense @ point)
    assert standard.transpose_times(row) == pytest.approx(dense.T @ row)
    assert (dense[:30][~trusted] == 0).all() and (standard.target[:30][~trusted] == 0).all()
    assert standard.used == trusted.sum() + 1
    divided = np.delete(matrix, 2, axis=1) / problem.spread[:, None]
    assert dense[:30][trusted] == pytest.approx(divided[trusted])


# Ranges that equations leave


def by_programs(problem: Problem, matrix: Floats, slack: Floats) -> tuple[Floats, Floats]:
    """The same by SciPy, from the matrix."""
    above = np.vstack([matrix, -matrix])
    right = np.concatenate([problem.answers + slack, -(problem.answers - slack)])
    box = list(zip(problem.low, problem.high, strict=True))
    ends = []
    for sign in (1, -1):
        found = [linprog(sign * unit, above, right, bounds=box) for unit in np.eye(matrix.shape[1])]
        assert all(each.status in (0, 3) for each in found)  # 3: without an end
        least = [-np.inf if each.status == 3 else float(each.fun or 0.0) for each in found]
        ends.append(sign * np.array(least))
    return ends[0], ends[1]


@pytest.mark.parametrize("case", range(5))
def test_small_systems_get_the_least_and_the_greatest_value_and_large_ones_no_possible_one_less(
    case: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng([seed, case])
    matrix = random.choice([0.0, 1.0, 1.0, -2.0], (4, 6))
    truth, slack = random.uniform(0, 10, 6), random.uniform(0, 1, 4)
    answers = matrix @ truth + slack * random.uniform(-1, 1, 4)
    most = np.where(random.random(6) < 0.4, np.inf, 10.0)
    problem = Problem.of(matrix, answers, Prior(low=0.0, high=most))
    low, high = feasible_ranges(problem, slack, np.arange(6))
    expected = by_programs(problem, matrix, slack)
    assert low == pytest.approx(expected[0], abs=1e-5)
    assert high == pytest.approx(expected[1], abs=1e-5)
    monkeypatch.setattr(confidence_module, "MOST_PROGRAM_WORK", 0)
    wider_low, wider_high = feasible_ranges(problem, slack, np.arange(6))  # by propagation alone
    assert (problem.low <= wider_low).all() and (wider_low <= low + 1e-5).all()
    assert (high - 1e-5 <= wider_high).all() and (wider_high <= problem.high).all()


def test_limits_and_a_total_are_used() -> None:
    limits = RangeConstraints(stored([[1, -1, 0]]), np.array([0.0]), np.array([np.inf]))
    stated = Problem.of([[0, 0, 1]], [2.0], Prior(low=0.0, high=9.0, total=8.0))
    low, high = feasible_ranges(replace(stated, limits=limits), np.zeros(1), np.arange(3))
    assert low == pytest.approx([3, 0, 2], abs=1e-5)
    assert high == pytest.approx([6, 3, 2], abs=1e-5)
