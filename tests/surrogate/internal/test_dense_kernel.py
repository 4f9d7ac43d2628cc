"""Every compiled pass against the obvious lines of NumPy."""

import numpy as np
import pytest
from numpy.typing import NDArray

from casemate.grid import summed_area as dense_kernel

Floats = NDArray[np.float64]
Question = tuple[Floats, Floats]
SIZES = [(1, 1), (1, 40), (37, 1), (5, 7), (64, 33)]


@pytest.fixture(params=SIZES, ids=str)
def cells(request: pytest.FixtureRequest, seed: int) -> Floats:
    rows, columns = request.param
    return np.random.default_rng(seed).random((rows, columns))


def question(cells: Floats, seed: int, share: float = 0.6) -> Question:
    draw = np.random.default_rng([seed, 1])
    rows, columns = (draw.random(width) for width in cells.shape)
    return np.where(rows < share, 1.0, 0.0), np.where(columns < share, 1.0, 0.0)


def inside(asked: Question) -> NDArray[np.bool_]:
    rows, columns = asked
    return np.outer(rows != 0, columns != 0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
def test_weigh_is_the_sum_over_rows_and_columns(cells: Floats, seed: int, share: float) -> None:
    rows, columns = question(cells, seed, share)
    weighted = (rows * 0.5, columns * -1.5)
    assert dense_kernel.weigh(cells, (rows, columns)) == pytest.approx(rows @ cells @ columns)
    assert dense_kernel.weigh(cells, weighted) == pytest.approx(weighted[0] @ cells @ weighted[1])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
def test_tilt_multiplies_inside_and_nothing_else(cells: Floats, seed: int, share: float) -> None:
    asked, expected = question(cells, seed, share), cells.copy()
    expected[inside(asked)] *= 1.7
    dense_kernel.tilt(cells, asked, 1.7)
    assert np.array_equal(cells, expected)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6, 1.0])
def test_a_fused_pass_is_an_update_and_then_a_question(
    cells: Floats, seed: int, share: float
) -> None:
    first, second = question(cells, seed, share), question(cells, seed + 1)
    apart = cells.copy()
    dense_kernel.tilt(apart, first, 0.3)
    value = dense_kernel.tilt_then_weigh(cells, first, 0.3, second)
    assert np.array_equal(cells, apart)
    assert value == pytest.approx(second[0] @ apart @ second[1])


def test_spread_and_gather_go_by_groups_of_rows(cells: Floats, seed: int) -> None:
    draw = np.random.default_rng([seed, 2])
    groups, following = (draw.integers(0, 4, cells.shape[0]) for _ in range(2))
    factors, sums = draw.random((4, cells.shape[1])), np.zeros((4, cells.shape[1]))
    expected, slow = cells * factors[groups], np.zeros_like(sums)
    np.add.at(slow, following, expected)
    apart, again = cells.copy(), np.zeros_like(sums)
    dense_kernel.spread_then_gather(cells, groups, factors, following, sums)
    dense_kernel.spread(apart, groups, factors)
    dense_kernel.gather(apart, following, again)
    assert np.array_equal(cells, expected) and np.array_equal(apart, expected)
    assert np.array_equal(sums, slow) and np.array_equal(again, slow)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 1), (1, 4, 6), (7, 2, 33)])
def test_sum_out_adds_in_order(shape: tuple[int, int, int], seed: int) -> None:
    source = np.random.default_rng(seed).random(shape)
    target = np.empty((shape[0], shape[2]))
    dense_kernel.sum_out(source, target)
    slow = source[:, 0].copy()
    for k in range(1, shape[1]):
        slow += source[:, k]
    assert np.array_equal(target, slow)
