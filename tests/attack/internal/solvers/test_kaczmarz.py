from collections.abc import Callable

import numpy as np
import pytest
from chance import assert_follows

from casemate.attack.solvers.box_squares import box_squares
from casemate.attack.solvers.kaczmarz import EquationStream, drawn_rows, kaczmarz, shuffled_rows
from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])


@pytest.mark.theorem("002: Handling many queries (Kaczmarz)")
def test_it_converges_to_the_solution_of_least_squares(seed: int) -> None:
    found = kaczmarz(HOSPITAL, ANSWERS, random=np.random.default_rng(seed), tolerance=1e-9)
    assert found.converged
    best = least_squares(HOSPITAL, ANSWERS, tolerance=1e-9)
    np.testing.assert_allclose(found.values, best.values, atol=1e-6)


@pytest.mark.theorem("002: Handling many queries (box)")
def test_with_bounds_the_point_keeps_them_and_the_sums(seed: int) -> None:
    high = np.array([5.0, 10, 10, 10, 10, 10])
    found = kaczmarz(
        HOSPITAL, ANSWERS, random=np.random.default_rng(seed), low=3.0, high=high, tolerance=1e-8
    )
    assert found.converged
    assert (found.values >= 3).all()
    assert (found.values <= high).all()
    np.testing.assert_allclose(HOSPITAL.times(found.values) * HOSPITAL.lengths, ANSWERS, atol=1e-5)
    assert found.values[1] == pytest.approx(5.2, abs=1e-5)


@pytest.mark.parametrize("case", range(20))
def test_a_stream_is_the_projections_one_after_the_other(case: int, seed: int) -> None:
    """Against the step of the document, written out, with weights and an empty question."""
    rng = np.random.default_rng([seed, case])
    dense = rng.choice([0, 0, 1, -2, 3], (15, 8)).astype(np.float64)
    stream, point = EquationStream(8, low=-4.0, high=4.0), np.zeros(8)
    for line, answer in zip(dense, rng.normal(size=15), strict=True):
        columns = np.flatnonzero(line)
        stream.see(columns, answer, line[columns])
        if len(columns):
            point = np.clip(point + (answer - line @ point) * line / (line @ line), -4, 4)
    np.testing.assert_allclose(stream.point, point, atol=1e-12)


def drawn(seed: int) -> list[int]:
    """Draws of two rows of lengths 3 and 1, ten thousand of each."""
    rows = Rows.of(System.of([[3, 0], [0, 1]] * 10_000))
    return [int(row) % 2 for row in drawn_rows(rows, np.random.default_rng(seed))]


def cumulative(first: float) -> Callable[[int], float]:
    return lambda row: 0.0 if row < 0 else first if row == 0 else 1.0


def test_rows_are_drawn_by_their_squared_lengths(seed: int) -> None:
    assert_follows(drawn(seed), cumulative(0.9))


def test_draws_by_length_would_be_noticed(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_follows(drawn(seed), cumulative(0.75))


def test_a_range_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="lower end"):
        EquationStream(2, low=1.0, high=0.0)


def test_equations_that_contradict_are_not_called_converged(seed: int) -> None:
    rows = Rows.of(System.of([[1], [1]]))
    answers = np.array([1.0, 2.0])
    found = kaczmarz(rows, answers, random=np.random.default_rng(seed), most=20)
    assert (found.iterations, found.converged) == (20, False)


# Averages -------------------------------------------------------------------------------------


def noisy(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
    dense = rng.integers(0, 2, (240, 60))
    right = dense @ rng.normal(size=60) + rng.normal(size=240)
    return Rows.of(System.of(dense.tolist())), right


def test_noisy_equations_come_to_rest_at_least_squares_when_averaged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, right = noisy(rng)
    best = least_squares(rows, right, tolerance=1e-9)
    found = kaczmarz(rows, right, random=rng, averaged=True, tolerance=1e-3)
    assert found.converged
    assert found.residual <= 1.005 * best.residual
    distance = np.linalg.norm(found.values - best.values)
    last = kaczmarz(rows, right, random=rng, most=found.iterations)
    assert distance < 0.3 * np.linalg.norm(last.values - best.values)


def test_the_averaged_form_within_a_box_is_near_the_best_point_of_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, right = noisy(rng)
    best = box_squares(rows, right, low=-0.5, high=0.5, tolerance=1e-8)
    found = kaczmarz(rows, right, random=rng, low=-0.5, high=0.5, averaged=True)
    assert (np.abs(found.values) <= 0.5).all()
    assert found.residual <= 1.01 * best.residual


def test_the_averaged_form_converges_where_the_equations_can_hold(seed: int) -> None:
    found = kaczmarz(
        HOSPITAL, ANSWERS, random=np.random.default_rng(seed), averaged=True, tolerance=1e-8
    )
    assert found.converged
    np.testing.assert_allclose(HOSPITAL.times(found.values) * HOSPITAL.lengths, ANSWERS, atol=1e-5)


def test_progress_sees_every_pass_of_both_forms(seed: int) -> None:
    rows, right = noisy(np.random.default_rng(seed))
    for averaged, expected in ((False, [0, 1, 2, 3]), (True, [1, 2, 3])):
        seen: list[int] = []
        kaczmarz(
            rows,
            right,
            random=np.random.default_rng(seed),
            averaged=averaged,
            most=3,
            progress=lambda done, *_, seen=seen: seen.append(done),
        )
        assert seen == expected


def test_every_row_is_shuffled_in_once() -> None:
    rows = Rows.of(System.of([[1, 0], [0, 1], [5, 5]]))
    assert sorted(shuffled_rows(rows, np.random.default_rng(0))) == [0, 1, 2]


def test_a_stream_that_averages_is_nearer_to_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=20)
    last, average = EquationStream(20), EquationStream(20, averaged=True)
    for _ in range(4_000):
        columns = np.flatnonzero(rng.random(20) < 0.5)
        answer = float(truth[columns].sum() + rng.normal())
        last.see(columns, answer)
        average.see(columns, answer)
    far, near = (float(np.linalg.norm(each.point - truth)) for each in (last, average))
    assert near < 0.3 * far
