import numpy as np
import pytest
from attack.releases import BIT, independent
from chance import assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.attack.features import Features
from casemate.attack.reconstruct.problem import NoiseLaw, Prior, Problem
from casemate.attack.score.leave_one_out import (
    Predictions,
    Solve,
    leave_one_out,
    release_without,
    solve_squares,
    sums,
)
from casemate.attack.score.predictor import Rule
from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.subjects import Subjects
from casemate.exact import Floats

WHOLE = Rule(np.array([True]), 0.5)


def predicted(
    problem: Problem,
    truth: Floats,
    subjects: Subjects,
    targets: list[int],
    *,
    solve: Solve = solve_squares,
    together: int | None = None,
    rule: Rule = WHOLE,
) -> Predictions:
    random = np.random.default_rng(5)
    places = np.array(targets)
    return leave_one_out(
        problem, truth, subjects, rule, places, random=random, solve=solve, together=together
    )


# Exactly true: the prediction does not depend on the target's own value ---------------------------


def case(seed: int, queries: int) -> tuple[Floats, Floats, Floats, Subjects]:
    """Sums of 24 whole numbers, with whole noise, so that nothing is ever rounded."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((queries, 24)) < 0.4).astype(np.float64)
    truth, noise = rng.integers(0, 4, 24), rng.integers(-1, 2, queries)
    public = {"a": rng.integers(0, 3, 24), "b": rng.normal(size=24)}
    person = np.arange(24) // 2 if seed % 2 else np.arange(24)
    subjects = Subjects.alone(24, Features.from_arrays(public), person)
    return matrix, truth.astype(np.float64), noise.astype(np.float64), subjects


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    queries=st.sampled_from([6, 20, 40]),
    changes=st.lists(st.integers(-50, 50), min_size=24, max_size=24),
    whole=st.booleans(),
)
def test_a_prediction_does_not_depend_on_any_value_of_its_person(
    seed: int, queries: int, changes: list[int], whole: bool
) -> None:
    """The release without the person is the same, whatever the person's own values are."""
    matrix, truth, noise, subjects = case(seed, queries)
    own = subjects.unknowns_of(subjects.people[:1])
    other = truth.copy()
    other[own] += np.array(changes, np.float64)[own]
    rule = Rule(np.array([whole]), 0.5)
    prior = Prior(low=0.0, high=3.0, whole=whole)
    found = [
        predicted(Problem.of(matrix, matrix @ x + noise, prior), x, subjects, [0], rule=rule)
        for x in (truth, other)
    ]
    assert found[0].values.tolist() == found[1].values.tolist()
    assert found[0].ways == found[1].ways


def moved_from_everybody(seed: int) -> float:
    """How far a target's value moves its prediction where each solve starts from everybody."""
    matrix, truth, noise, subjects = case(seed, 6)
    number, found = Rule(np.array([False]), 0.5), []
    for value in (0.0, 3.0):
        x = np.array([value, *truth[1:]])
        problem = Problem.of(matrix, matrix @ x + noise, Prior(low=0.0, high=3.0))
        start = solve_squares(problem)

        def warm(each: Problem, start: Floats = start) -> Floats:
            return least_squares(each.equations, each.answers, start=start).values

        found.append(predicted(problem, x, subjects, [0], solve=warm, rule=number).values)
    return float(np.abs(found[0] - found[1]).max())


def test_the_test_above_would_notice_a_solver_that_starts_from_everybody() -> None:
    """Values within bounds are no combination of the equations, and what is left open stays."""
    assert sum(moved_from_everybody(seed) > 0.01 for seed in range(0, 20, 2)) >= 5


# Exactly true: what is predicted --------------------------------------------------------------


def test_somebody_alone_in_a_cell_is_not_given_away_by_the_release_without() -> None:
    """With her, her cell's total is her value; without her, the cell is empty."""
    town = np.array([0] * 10 + [1] * 10 + [2])
    truth = np.array([0.0] * 20 + [1.0])
    matrix = (np.arange(3)[:, None] == town).astype(np.float64)
    subjects = Subjects.alone(21, Features.from_arrays({"town": town}))
    problem = Problem.of(matrix, matrix @ truth, BIT)
    assert solve_squares(problem)[20] == pytest.approx(1)
    assert predicted(problem, truth, subjects, [20]).values.tolist() == [[0.0]]


def test_nothing_is_learned_from_who_left() -> None:
    """In town 2 one other and three rows of the target have a 1: a row that left would be a 0."""
    town = np.repeat([0, 1, 2], [10, 10, 4])
    person = np.array([*range(21), 21, 21, 21])
    truth = (town > 0).astype(np.float64)
    subjects = Subjects.alone(24, Features.from_arrays({"town": town}), person)
    found = predicted(Problem.of(np.eye(24), truth, BIT), truth, subjects, [21])
    assert found.values.tolist() == [[1.0]]


def test_a_category_is_predicted_as_a_whole() -> None:
    """Three 0/1 unknowns a record, of which at most one is 1; the town tells which."""
    town = np.arange(40) % 4
    rows = np.eye(4)[town][:, :3]  # the fourth value is none of the three
    truth = rows.ravel()
    record, kind = np.repeat(np.arange(40), 3), np.tile(np.arange(3), 40)
    features = Features.from_arrays({"town": town})
    subjects = Subjects(record, kind, np.ones(120, np.bool_), np.arange(40), features)
    problem = Problem.of(np.eye(120), truth, BIT)
    found = predicted(problem, truth, subjects, [0, 1, 2, 3], rule=Rule(np.ones(3, np.bool_), 0.5))
    assert found.values.tolist() == rows[:4].tolist()


def test_targets_that_leave_together_are_predicted_nearly_as_alone(seed: int) -> None:
    """One in 100 leaves at a time: at most 4 of 50 predictions change. By default it is one in
    5,000."""
    release = independent(200, np.random.default_rng(seed))
    town = release.features.columns[0].codes
    noisy = (np.random.default_rng(seed).random(200) < 0.2 + 0.6 * (town > 1)).astype(np.float64)
    problem = release.problem.with_answers(sums(release.problem.equations, noisy))
    subjects = Subjects.alone(200, release.features)
    alone, together = (
        predicted(problem, noisy, subjects, list(range(50)), together=size).values
        for size in (1, 2)
    )
    assert (alone != together).sum() <= 4


# True with a stated probability ---------------------------------------------------------------


def fair_bits(own_rows: bool, rng: np.random.Generator) -> int:
    """How many of 80 fair bits are predicted that are the same in all rows of a person."""
    person = np.arange(240) // 3
    truth = rng.integers(0, 2, 80)[person].astype(np.float64)
    features = Features.from_arrays({"face": person})
    subjects = Subjects.alone(240, features, np.arange(240) if own_rows else person)
    problem = Problem.of(np.eye(240), truth, BIT)
    found = predicted(problem, truth, subjects, list(range(0, 240, 3)))
    return int((found.values[:, 0] == truth[::3]).sum())


def test_all_rows_of_a_person_leave_with_the_person_and_rows_that_stay_would_be_noticed(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    assert_rate_at_most(fair_bits(own_rows=False, rng=rng), 80, 0.5)
    with pytest.raises(AssertionError):
        assert_rate_at_most(fair_bits(own_rows=True, rng=rng), 80, 0.5)


# The release without somebody -----------------------------------------------------------------


def case_of_release_without(seed: int) -> tuple[Floats, Floats, Floats]:
    """Small whole coefficients, values and noise, so that nothing is ever rounded."""
    rng = np.random.default_rng(seed)
    height, width = (int(each) for each in rng.integers(2, 12, 2))
    matrix = rng.choice([0, 1, 1, -2], (height, width)).astype(np.float64)
    truth, noise = (rng.integers(-9, 10, size).astype(np.float64) for size in (width, height))
    return matrix, truth, noise


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_it_is_the_release_of_the_others_with_the_same_noise(seed: int, rounded: bool) -> None:
    """A rounded sum is rounded again, because what was cut off depends on everybody."""
    matrix, truth, noise = case_of_release_without(seed)
    law = NoiseLaw("round", 5.0) if rounded else None

    def published(exact: Floats) -> Floats:
        return exact + noise if law is None else law.laid_over(exact, np.random.default_rng(0))

    prior = Prior(low=-9.0, high=9.0, total=truth.sum())
    problem = Problem.of(matrix, published(matrix @ truth), prior, law)
    found = release_without(problem, truth, np.array([0]))
    assert found.answers.tolist() == published(matrix[:, 1:] @ truth[1:]).tolist()
    assert found.total == truth[1:].sum()
    assert (found.low[0], found.high[0]) == (0, 0)
    point = np.arange(1.0, len(truth) + 1)
    assert sums(found.equations, point).tolist() == (matrix[:, 1:] @ point[1:]).tolist()


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


@pytest.mark.parametrize("number", range(8))
def test_the_others_are_found_as_by_one_update_of_everybody(number: int, seed: int) -> None:
    """The equations as they are, not scaled; many leave the target open, others determine it."""
    rng = np.random.default_rng([seed, number])
    matrix, truth, noise = case_of_release_without(int(rng.integers(2**32)))
    answers = matrix @ truth + noise
    slow = np.linalg.pinv(matrix[:, 1:]) @ (answers - matrix[:, 0] * truth[0])
    np.testing.assert_allclose(by_one_update(matrix, answers, 0, truth[0])[1:], slow, atol=1e-7)
