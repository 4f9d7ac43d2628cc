from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from casemate.attack.one_bit.bisection import SecretBox

numbers = st.floats(-5, 5)
intervals = st.tuples(numbers, st.floats(0.01, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))
cases = st.lists(st.tuples(intervals, numbers), min_size=1, max_size=4)


def box_of(case: list[tuple[tuple[float, float], float]]) -> tuple[SecretBox, np.ndarray]:
    low, high = np.array([ends for ends, _ in case]).T
    return SecretBox(low.copy(), high.copy()), np.array([x for _, x in case])


@pytest.mark.theorem("000: Lemma 5.1")
@given(cases)
def test_the_closed_form_is_the_best_corner(
    case: list[tuple[tuple[float, float], float]],
) -> None:
    box, x = box_of(case)
    values = [
        float(np.array(corner) @ x) for corner in product(*zip(box.low, box.high, strict=True))
    ]
    assert box.most(x) == pytest.approx(max(values), abs=1e-9)
    assert box.least(x) == pytest.approx(min(values), abs=1e-9)
    assert (box.most(x) + box.least(x)) / 2 == pytest.approx(float(box.middle @ x), abs=1e-9)


@pytest.mark.theorem("000: Lemma 5.1")
def test_the_closed_form_is_what_a_linear_programme_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        low, x = rng.normal(size=6), rng.normal(size=6)
        box = SecretBox(low, low + rng.random(6))
        bounds = list(zip(box.low, box.high, strict=True))
        best = np.asarray(linprog(-x, bounds=bounds).x)
        assert box.most(x) == pytest.approx(float(x @ best))


@pytest.mark.theorem("000: Algorithm 2")
@given(cases, st.booleans())
def test_a_shrink_keeps_three_quarters_of_one_side(
    case: list[tuple[tuple[float, float], float]], upper: bool
) -> None:
    box, _ = box_of(case)
    low, high = box.low.copy(), box.high.copy()
    box.shrink(0, upper)
    assert box.sides[0] == pytest.approx(0.75 * (high[0] - low[0]))
    assert (box.high[0] if upper else box.low[0]) == (high[0] if upper else low[0])
    assert np.array_equal(box.low[1:], low[1:]) and np.array_equal(box.high[1:], high[1:])
