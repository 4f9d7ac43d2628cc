import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.solvers.kaczmarz import PathAverage

steps = st.lists(st.floats(-100, 100), min_size=1, max_size=200)


def window(count: int) -> int:
    """How many of the last points are averaged: those since the last turn, and the turn before."""
    length, before = 1, 0
    while count > length:
        count, before, length = count - length, length, 2 * length
    return before + count


@given(steps)
def test_it_is_the_average_of_the_points_of_the_last_windows(moves: list[float]) -> None:
    trail, point = PathAverage(2), np.zeros(2)
    points = []
    for place, move in enumerate(moves):
        sums, before = trail.next(point)
        sums[place % 2] += before * move
        point[place % 2] += move
        points.append(point.copy())
        expected = np.mean(points[-window(len(points)) :], axis=0)
        np.testing.assert_allclose(trail.average(point), expected, atol=1e-9)


def test_the_windows_are_at_least_half_and_at_most_three_quarters_of_a_long_path() -> None:
    shares = [window(count) / count for count in range(64, 5_000)]
    assert min(shares) >= 0.5 and max(shares) <= 0.76


def test_without_a_move_it_is_the_start() -> None:
    assert PathAverage(1).average(np.array([7.0])).tolist() == [7.0]
