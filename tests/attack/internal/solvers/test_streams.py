"""Equations one at a time or in blocks: the steps written out, orders, averages, the sigmoid."""

from collections.abc import Callable

import numpy as np
import pytest
from attack.equations import ANSWERS, HIGH, HOSPITAL, stored, subsets
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.solvers.kaczmarz import drawn_rows, kaczmarz_blocks
from casemate.attack.solvers.sgd import EquationStream, PathAverage, sgd
from casemate.exact import Floats

# Steps written out


@pytest.mark.parametrize("case", range(6))
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


def slowly(scaled: Floats, target: Floats, size: int, order: np.ndarray) -> Floats:
    """The step of a block, written out: the sum of the projections, as far as is nearest."""
    point: Floats = np.zeros(scaled.shape[1])
    for first in range(0, len(order), size):
        block = order[first : first + size]
        left = target[block] - scaled[block] @ point
        direction = scaled[block].T @ left
        length = float(direction @ direction)
        step = float(left @ left) / length if length > 0 else 0.0
        point = np.clip(point + step * direction, -2, 2)
    return point


@pytest.mark.parametrize("case", range(6))
def test_a_pass_is_one_step_for_each_block(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    dense = rng.choice([0, 0, 1, -2, 3] if case % 2 else [0, 1], (25, 8))
    right, size, order = rng.normal(size=25), int(rng.integers(1, 12)), rng.permutation(25)
    rows = stored(dense)
    found = kaczmarz_blocks(
        rows, right, random=rng, size=size, low=-2.0, high=2.0, order=lambda *_: order, most=1
    )
    expected = slowly(dense / rows.lengths[:, None], right / rows.lengths, size, order)
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


@pytest.mark.parametrize("case", range(2))
def test_a_step_is_the_gradient_behind_the_sigmoid_written_out(case: int, seed: int) -> None:
    """Against automatic differentiation by central differences, of the document's loss."""
    rng = np.random.default_rng([seed, case])
    low, high = -2 - rng.random(5), 2 + rng.random(5)
    row = rng.choice([0.0, 1.0, -2.0], 5)
    row[0] = 1.0
    columns, answer = np.flatnonzero(row), float(rng.normal())
    z = rng.normal(size=5)

    def values(behind: Floats) -> Floats:
        inside: Floats = low + (high - low) / (1 + np.exp(-behind))
        return inside

    def loss(behind: Floats) -> float:
        return float((answer - row @ values(behind)) ** 2)

    slope = np.array([(loss(z + d) - loss(z - d)) / 2e-6 for d in np.eye(5) * 1e-6])
    stream = EquationStream(5, low=low, high=high, start=values(z), sigmoid=True, rate=0.01)
    stream.see(columns, answer, row[columns])
    np.testing.assert_allclose(stream.point, values(z - 0.01 * slope), atol=1e-7)


@pytest.mark.theorem("002: Handling many queries (stochastic gradient, step 0.01)")
def test_a_thousand_steps_of_the_document_lead_to_its_printed_point(seed: int) -> None:
    """Rows drawn evenly, with repetition; 1,000 steps of 0.01 are what it prints the end of."""
    found = sgd(
        HOSPITAL,
        ANSWERS,
        random=np.random.default_rng(seed),
        low=3.0,
        high=HIGH,
        rate=0.01,
        order=lambda _, random: random.integers(0, 3, 1_000),
        most=1,
    )
    printed = [4.0698786, 5.2092214, 5.165333, 5.165333, 7.3272643, 5.165333]
    np.testing.assert_allclose(found.values, printed, atol=0.02)


def test_the_documents_constant_step_is_too_long_for_long_rows(seed: int) -> None:
    """With 200 values in a sum the step of 0.01 leaps from end to end; the usual one arrives."""
    rng = np.random.default_rng(seed)
    dense = subsets(rng, 800, 400)
    given = stored(dense), dense @ rng.uniform(3, 10, 400)
    theirs, ours = (
        sgd(*given, random=rng, rate=rate, low=3.0, high=10.0, most=60) for rate in (0.01, None)
    )
    assert ours.residual < 0.01 < theirs.residual


# Orders


def cumulative(first: float) -> Callable[[int], float]:
    return lambda row: 0.0 if row < 0 else first if row == 0 else 1.0


def test_rows_are_drawn_by_their_squared_lengths_and_draws_by_length_would_be_noticed(
    seed: int,
) -> None:
    """Two rows of lengths 3 and 1, ten thousand of each."""
    rows = stored([[3, 0], [0, 1]] * 10_000)
    drawn = [int(row) % 2 for row in drawn_rows(rows, np.random.default_rng(seed))]
    assert_follows(drawn, cumulative(0.9))
    with pytest.raises(AssertionError):
        assert_follows(drawn, cumulative(0.75))


# Averages


@pytest.mark.parametrize("sigmoid", [False, True])
def test_a_stream_that_averages_is_nearer_to_the_truth(sigmoid: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.uniform(2, 8, 20)
    last, average = (
        EquationStream(20, low=0.0, high=10.0, sigmoid=sigmoid, averaged=each)
        for each in (False, True)
    )
    for _ in range(2_000):
        columns = np.flatnonzero(rng.random(20) < 0.5)
        answer = float(truth[columns].sum() + rng.normal())
        last.see(columns, answer)
        average.see(columns, answer)
    far, near = (float(np.linalg.norm(each.point - truth)) for each in (last, average))
    assert near < 0.5 * far


def window(count: int) -> int:
    """How many of the last points are averaged: those since the last turn, and the turn before."""
    length, before = 1, 0
    while count > length:
        count, before, length = count - length, length, 2 * length
    return before + count


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=200))
def test_it_is_the_average_of_the_points_of_the_last_windows(moves: list[float]) -> None:
    trail, point = PathAverage(2), np.zeros(2)
    points = [point.copy()]
    assert trail.average(point).tolist() == [0.0, 0.0]
    for place, move in enumerate(moves):
        sums, before = trail.next(point)
        sums[place % 2] += before * move
        point[place % 2] += move
        points.append(point.copy())
        expected = np.mean(points[-window(len(points) - 1) :], axis=0)
        np.testing.assert_allclose(trail.average(point), expected, atol=1e-9)


# What is refused


def test_a_block_of_nothing_and_a_rate_of_nothing_are_refused(seed: int) -> None:
    draws = np.random.default_rng(seed)
    with pytest.raises(ValueError, match="at least one equation, not 0"):
        kaczmarz_blocks(HOSPITAL, ANSWERS, random=draws, size=0)
    with pytest.raises(ValueError, match="above 0, not -1"):
        sgd(HOSPITAL, ANSWERS, random=draws, rate=-1)
