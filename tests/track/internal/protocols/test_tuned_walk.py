import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.track.protocols.tuned.design import best_budget, design, share
from casemate.track.protocols.tuned.walk import Lengths, crossing

LAWS = [Lengths(1, 0.5), Lengths(2, 0.9), Lengths(7, 0.6), Lengths(100, 0.65), Lengths(30, 0.99)]


def exact_law(threshold: int, ratio: Fraction, longest: int) -> dict[int, Fraction]:
    """The law by its definition; lengths above `longest` are left out, not lumped."""
    total = sum((ratio ** (threshold - c) for c in range(1, threshold)), Fraction(0))
    total += 1 / (1 - ratio)
    return {c: ratio ** abs(c - threshold) / total for c in range(1, longest + 1)}


@pytest.mark.parametrize("law", LAWS)
def test_probabilities_and_the_mean_are_those_of_the_definition(law: Lengths) -> None:
    exact = exact_law(law.threshold, Fraction(law.ratio), law.threshold + 40)
    for length, probability in exact.items():
        assert law.probability(length) == pytest.approx(float(probability), rel=1e-9)
    lengths = range(1, law.threshold + 6000)
    assert sum(map(law.probability, lengths)) == pytest.approx(1, abs=1e-9)
    mean = sum(c * law.probability(c) for c in lengths)
    assert law.mean == pytest.approx(mean, rel=1e-9)


@given(st.integers(1, 12), st.fractions("1/20", "19/20", max_denominator=20))
def test_neighbouring_lengths_and_tails_are_within_the_ratio(
    threshold: int, ratio: Fraction
) -> None:
    law = exact_law(threshold, ratio, 40)
    tail = Fraction(1)
    for length in range(1, 40):
        assert ratio <= law[length + 1] / law[length] <= 1 / ratio
        assert ratio <= (tail - law[length]) / tail <= 1
        tail -= law[length]


def test_with_a_threshold_not_drawn_again_the_first_length_breaks_the_ratio() -> None:
    ratio, threshold = Fraction(9, 10), 3
    weights = {c: ratio ** abs(c - threshold) for c in range(-200, 200)}
    first = sum(weight for c, weight in weights.items() if c <= 1)
    assert first / weights[2] > 5 / ratio


@pytest.mark.parametrize("law", LAWS)
def test_drawn_lengths_follow_the_law(law: Lengths, seed: int) -> None:
    uniforms = np.random.default_rng(seed).random(40_000).tolist()
    sums = np.cumsum([law.probability(c) for c in range(law.threshold + 4000)])
    assert_follows([law.drawn(u) for u in uniforms], lambda c: float(sums[c]))
    wrong = Lengths(law.threshold, law.ratio * 0.9)
    with pytest.raises(AssertionError):
        assert_follows([wrong.drawn(u) for u in uniforms], lambda c: float(sums[c]), alarm=1e-6)


def test_without_noise_every_phase_is_as_long_as_the_threshold() -> None:
    assert {Lengths(9, 0.0).drawn(u) for u in (0.0, 0.5, 0.999)} == {9}
    assert Lengths(9, 0.0).mean == 9


def slow_crossing(law: Lengths, phases: int, room: float, slope: float) -> float:
    """The same probability by a dictionary of all sums that are still inside."""
    one = exact_law(law.threshold, Fraction(law.ratio), 120)
    inside, mean = {0: Fraction(1)}, law.mean
    for j in range(phases):
        allowed = room + slope * j
        after: dict[int, Fraction] = defaultdict(Fraction)
        for total, probability in inside.items():
            for length, p in one.items():
                if total + length <= (j + 1) * mean + allowed:
                    after[total + length] += probability * p
        low = (j + 1) * mean - allowed - slope if j + 1 < phases else -math.inf
        inside = {total: p for total, p in after.items() if total >= low}
    return 1 - float(sum(inside.values()))


@given(
    st.integers(1, 9),
    st.sampled_from([0.125, 0.5, 0.75]),
    st.integers(1, 4),
    st.floats(0, 8),
    st.floats(0, 1),
)
def test_the_probability_of_straying_is_that_of_going_through_all_sums(
    threshold: int, ratio: float, phases: int, room: float, slope: float
) -> None:
    law = Lengths(threshold, ratio)
    slow = slow_crossing(law, phases, room, slope)
    assert crossing(law, phases, room, slope) == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("phases", [1, 2, 5])
@pytest.mark.parametrize("room", [25.0, 60.0, 100.0])
def test_a_very_small_probability_of_straying_is_as_exact(phases: int, room: float) -> None:
    law = Lengths(6, 0.5)
    exact = exact_straying(law, phases, room)
    assert crossing(law, phases, room, 0.0) == pytest.approx(exact, rel=1e-6, abs=1e-16)
    assert crossing(law, phases, room, 0.0) >= exact


def exact_straying(law: Lengths, phases: int, room: float) -> float:
    """In fractions: a length so long that it strays by itself is left out of the sums that stay."""
    one = exact_law(law.threshold, Fraction(law.ratio), 200)
    inside, strayed, mean = {0: Fraction(1)}, Fraction(0), law.mean
    for j in range(1, phases + 1):
        before, after = sum(inside.values(), Fraction(0)), defaultdict[int, Fraction](Fraction)
        for total, probability in inside.items():
            for length, p in one.items():
                if total + length <= j * mean + room:
                    after[total + length] += probability * p
        low = j * mean - room if j < phases else -math.inf
        inside = {total: p for total, p in after.items() if total >= low}
        strayed += before - sum(inside.values(), Fraction(0))
    return float(strayed)


def strayed(law: Lengths, allowed: NDArray[Any], runs: int, seed: int) -> int:
    """How many of so many walks stray further than is allowed."""
    phases = len(allowed)
    lengths = np.vectorize(law.drawn)(np.random.default_rng(seed).random((runs, phases)))
    walk = np.cumsum(lengths, axis=1) - law.mean * np.arange(1, phases + 1)
    above = (walk > allowed).any(axis=1)
    below = (walk[:, :-1] < -allowed[1:]).any(axis=1)
    return int((above | below).sum())


def test_walks_of_a_real_design_stray_as_often_as_calculated(seed: int) -> None:
    plan = design(1024, 0.01, 0.02, best_budget(1024, 0.01, share(0.01, 0)))
    room, slope = plan.room / 2, plan.slope / 2
    chance = crossing(plan.lengths, plan.phases, room, slope)
    assert 0.02 < chance < 0.5
    hits = strayed(plan.lengths, room + slope * np.arange(plan.phases), 4000, seed)
    assert_rate_at_most(hits, 4000, chance)
    assert_rate_at_most(4000 - hits, 4000, 1 - chance)
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, 4000, chance / 2)
