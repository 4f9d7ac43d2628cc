import numpy as np
import pytest
from chance import assert_rate_at_most
from scipy import stats

from casemate.attack.reconstruct import covariance as module
from casemate.attack.reconstruct.covariance import computed, covariance, drawn
from casemate.attack.reconstruct.problem import Prior, Problem, Standard
from casemate.exact import Floats


def subsets(random: np.random.Generator, height: int, width: int) -> Floats:
    return (random.random((height, width)) < 0.5).astype(np.float64)


def standard(matrix: Floats, random: np.random.Generator) -> Standard:
    return Standard.of(Problem.of(matrix, random.normal(size=len(matrix))))


@pytest.mark.parametrize("shape", [(40, 10), (25, 25), (10, 20), (60, 5)])
def test_computed_variances_shares_and_estimates_are_those_of_the_pseudo_inverse(
    shape: tuple[int, int], seed: int
) -> None:
    random = np.random.default_rng([seed, *shape])
    matrix = random.normal(size=shape) * (random.random(shape) < 0.6)
    equations = standard(matrix, random)
    found, inverse = computed(equations, random), np.linalg.pinv(matrix)
    which = found.identified
    assert found.estimate[which] == pytest.approx((inverse @ equations.target)[which])
    assert found.variance[which] == pytest.approx((inverse**2).sum(1)[which])
    fourth = (inverse**4).sum(1) / np.maximum((inverse**2).sum(1), 1e-300) ** 2
    assert found.concentration[which] == pytest.approx(fourth[which])
    assert found.rank == np.linalg.matrix_rank(matrix)
    left = equations.target - matrix @ inverse @ equations.target
    assert found.squares == pytest.approx(left @ left, abs=1e-9)


@pytest.mark.parametrize("method", [computed, drawn])
@pytest.mark.parametrize("case", range(8))
def test_identified_are_the_unknowns_whose_unit_is_a_sum_of_rows(
    method: object, case: int, seed: int
) -> None:
    random = np.random.default_rng([seed, case])
    matrix = random.choice([0.0, 0.0, 1.0], (6, 8))
    projector = np.linalg.pinv(matrix) @ matrix
    expected = np.isclose(np.diag(projector), 1)
    found = computed if method is computed else drawn
    assert found(standard(matrix, random), random).identified.tolist() == expected.tolist()


def test_large_systems_without_an_inverse_go_by_eigenvectors(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)
    matrix = subsets(random, 60, 20)
    matrix[:, 5] = matrix[:, 6]
    equations = standard(matrix, random)
    by_singular = computed(equations, random)
    monkeypatch.setattr(module, "MOST_SINGULAR", 0)
    by_eigen = computed(equations, random)
    assert np.flatnonzero(~by_eigen.identified).tolist() == [5, 6]
    assert by_eigen.variance == pytest.approx(by_singular.variance)
    assert by_eigen.rank == by_singular.rank == 19


def test_shares_are_drawn_where_computing_them_costs_too_much(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)
    equations = standard(np.vstack([np.eye(3), np.zeros((4, 3))]), random)
    monkeypatch.setattr(module, "MOST_SHARES", 0)
    assert computed(equations, random).concentration == pytest.approx(np.ones(3), abs=0.01)


def test_small_systems_are_computed_and_large_ones_drawn(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = np.random.default_rng(seed)
    equations = standard(subsets(random, 40, 8), random)
    assert np.isinf(covariance(equations, random).freedom).all()
    monkeypatch.setattr(module, "MOST_EXACT", 7)
    told: list[tuple[int, int]] = []
    found = covariance(equations, random, lambda done, of: told.append((done, of)))
    assert (found.freedom >= module.DRAWS).all()
    assert told == [(done, module.DRAWS) for done in range(module.DRAWS)]


def test_fewer_draws_are_made_of_larger_systems(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = np.random.default_rng(seed)
    equations = standard(subsets(random, 40, 8), random)
    monkeypatch.setattr(module, "MOST_ENTRIES", 1.0)
    found = drawn(equations, random)
    assert found.freedom.tolist() == [module.LEAST_DRAWS] * 8


@pytest.mark.parametrize("entries", [1.0, 1e12])
def test_an_unknown_that_one_answer_decides_has_an_exact_deviation_even_if_drawn(
    entries: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", entries)
    random = np.random.default_rng(seed)
    matrix = np.vstack([np.diag([1.0, 2.0, 0.0, 0.0, 0.0]), np.ones((6, 5)) - np.eye(6, 5)])
    matrix[2:, :2] = 0
    found = drawn(standard(matrix, random), random)
    assert found.variance[:2] == pytest.approx([1, 0.25])
    assert found.concentration[:2].tolist() == [1, 1] and np.isinf(found.freedom[:2]).all()
    assert (found.concentration[2:] < 1).all() and np.isfinite(found.freedom[2:]).all()


def test_draws_repeat_with_the_seed() -> None:
    equations = standard(subsets(np.random.default_rng(1), 40, 8), np.random.default_rng(2))
    first, second = (drawn(equations, np.random.default_rng(3)).variance for _ in range(2))
    assert first.tolist() == second.tolist()


def test_no_equations_and_no_unknowns_are_no_trouble() -> None:
    random = np.random.default_rng(0)
    nothing = computed(Standard.of(Problem.of(np.zeros((0, 3)), [])), random)
    assert not nothing.identified.any() and nothing.rank == 0
    known = Problem.of(np.eye(2), [1, 2], Prior(known={0: 1.0, 1: 2.0}))
    assert len(computed(Standard.of(known), random).estimate) == 0


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
    exact, found = computed(equations, random), drawn(equations, random)
    once = slice(0, None, 4)
    true = exact.variance[once]
    assert_rate_at_most(off_by_more(found.variance[once], true, module.DRAWS), 150, 1e-3)
    assert found.rank == pytest.approx(exact.rank, rel=0.03)
    wrong = off_by_more(0.49 * found.variance[once], true, module.DRAWS)
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong, 150, 1e-3)
