import math

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from casemate.track.site import binomial, log_chance


@given(st.integers(1, 3000), st.floats(1e-6, 1 - 1e-6), st.data())
def test_the_chance_is_that_of_the_binomial_law(
    items: int, probability: float, data: st.DataObject
) -> None:
    drawn = data.draw(st.integers(0, items))
    exact = math.log(math.comb(items, drawn))
    exact += drawn * math.log(probability) + (items - drawn) * math.log1p(-probability)
    assert log_chance(items, probability, drawn) == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_neighbours_of_very_many_items_have_the_right_odds() -> None:
    items, probability = 10**12, 0.003
    for drawn in (3 * 10**9 - 200_000, 3 * 10**9, 3 * 10**9 + 54_321):
        odds = (items - drawn) / (drawn + 1) * (probability / (1 - probability))
        gained = log_chance(items, probability, drawn + 1) - log_chance(items, probability, drawn)
        assert gained == pytest.approx(math.log(odds), abs=1e-9)


@pytest.mark.parametrize(
    ("items", "probability"),
    [(1, 0.5), (7, 0.02), (40, 0.9), (5000, 0.3), (10**6, 1e-6), (10**12, 0.25), (10**9, 1 - 1e-9)],
)
def test_numbers_drawn_follow_the_binomial_law(items: int, probability: float, seed: int) -> None:
    uniform = np.random.default_rng(seed).random
    found = [binomial(items, probability, uniform) for _ in range(4_000)]
    assert_follows(found, stats.binom(items, probability).cdf)
    wrong = [each + 1 for each in found] if items < 100 else [each // 2 for each in found]
    with pytest.raises(AssertionError):
        assert_follows(wrong, stats.binom(items, probability).cdf, alarm=1e-6)
