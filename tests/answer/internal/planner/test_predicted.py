import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from scipy import stats

from casemate.answer.planner.predicted import LAPLACE, NORMAL, ErrorShape, largest

SHAPES = {"normal": (NORMAL, stats.norm), "laplace": (LAPLACE, stats.laplace)}
confidences = st.floats(0.01, 0.999999)


@pytest.mark.parametrize("name", SHAPES)
def test_the_mean_the_tail_and_the_quantile_are_those_of_the_law(name: str) -> None:
    shape, law = SHAPES[name]
    assert shape.mean == pytest.approx(law.expect(abs))
    for x in (0.0, 0.3, 1.0, 4.0):
        assert shape.tail(x) == pytest.approx(2 * law.sf(x))


@pytest.mark.parametrize("name", SHAPES)
@given(confidence=confidences)
def test_the_quantile_leaves_what_the_tail_says(name: str, confidence: float) -> None:
    shape = SHAPES[name][0]
    assert shape.tail(shape.quantile(confidence)) == pytest.approx(1 - confidence, rel=1e-6)


@pytest.mark.parametrize(("name", "draws"), [(n, k) for n in SHAPES for k in (100, 10**4)])
def test_the_largest_of_many_draws_is_about_as_large_as_predicted(
    name: str, draws: int, seed: int
) -> None:
    shape, law = SHAPES[name]
    random = Generator(Philox(seed))
    maxima = [np.abs(law.rvs(size=draws, random_state=random)).max() for _ in range(300)]
    mean = float(np.mean(maxima))  # its own error is below .015 of it
    assert largest(shape, np.ones(1), draws) == pytest.approx(mean, rel=0.1)
    other = NORMAL if shape is LAPLACE else LAPLACE
    assert largest(other, np.ones(1), draws) != pytest.approx(mean, rel=0.1)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20), st.floats(1.0, 1e6))
def test_more_questions_and_larger_noise_never_make_the_largest_error_smaller(
    scales: list[float], times: float
) -> None:
    sizes = np.array(scales)
    found = largest(NORMAL, sizes, times)
    assert found >= 0.5 * NORMAL.mean * sizes.max()
    assert largest(NORMAL, sizes, 2 * times) >= found * (1 - 1e-5)
    assert largest(NORMAL, 3 * sizes, times) == pytest.approx(3 * found, rel=2e-3)


@pytest.mark.parametrize("shape", [NORMAL, LAPLACE])
def test_without_noise_there_is_no_error(shape: ErrorShape) -> None:
    assert largest(shape, np.zeros(3)) == 0.0
    assert math.isfinite(largest(shape, np.array([0.0, 1.0])))
