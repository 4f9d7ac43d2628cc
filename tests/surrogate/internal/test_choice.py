"""Which stand-in a universe gets."""

import math

import numpy as np
import pytest

from casemate.grid import Marginal, MeasuredMarginal, Product
from casemate.surrogate import DENSEST, LARGEST_DENSE, stand_in_for
from casemate.surrogate.mixture import MixtureSurrogate
from casemate.surrogate.replay import DenseSurrogate


def test_a_universe_is_dense_up_to_the_documented_number_of_cells() -> None:
    assert DENSEST == LARGEST_DENSE == 200_000_000
    assert isinstance(stand_in_for((4, 5), 10, densest=20), DenseSurrogate)
    assert isinstance(stand_in_for((4, 5), 10, densest=19), MixtureSurrogate)
    assert isinstance(stand_in_for((10,) * 8 + (2, 2), 10), MixtureSurrogate)
    assert isinstance(stand_in_for((100,) * 10, 10), MixtureSurrogate)


@pytest.mark.parametrize("densest", [DENSEST, 1])
def test_either_one_learns_and_answers(densest: int) -> None:
    stand_in = stand_in_for((2, 3), 0, math.inf, densest=densest)
    table = np.array([[100.0, 0.0, 50.0], [0.0, 80.0, 70.0]])
    stand_in.learn([MeasuredMarginal(Marginal((0, 1)), table, 4.0)])
    assert stand_in.shape == (2, 3)
    assert stand_in.total == 300
    assert stand_in.marginals([(0,), (0, 1)])[0,] == pytest.approx([150, 150], abs=10)
    assert stand_in.answer(Product((2, 3), {1: np.array([True, False, False])})) == pytest.approx(
        100, abs=10
    )
