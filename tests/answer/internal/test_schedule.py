"""The gate's thresholds, and what an easy answer proves, from the law of its noise."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.answer.schedule import SPLIT_QUESTION, GateSchedule, easy_interval
from casemate.privacy import rho_of
from casemate.privacy.mechanisms import Calibration, GapSparseVector, Side
from casemate.privacy.noise import Noise, discrete_laplace, geometric_bound, seeded_bits

RHO = rho_of(Fraction(1), Fraction(1, 10**6))
scales = st.fractions(Fraction(1, 10), 30, max_denominator=20)
calibrations = st.builds(Calibration, scales, scales, one_sided=st.just(True))
gates = st.builds(
    GateSchedule, calibrations, runs=st.integers(1, 40), false_alarm=st.floats(1e-6, 0.4)
)


# The public schedule ------------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 10**5), 1), st.integers(1, 200))
def test_a_gate_never_costs_more_than_asked_nor_much_less(rho: Fraction, runs: int) -> None:
    gate = GateSchedule.within(rho, runs)
    assert rho * (1 - Fraction(1, 10**5)) <= gate.concentrated_cost.rho <= rho


@given(st.integers(1, 100), st.fractions(Fraction(1, 10**4), Fraction(1, 10)))
def test_a_run_is_split_where_the_interval_is_least(runs: int, epsilon: Fraction) -> None:
    def width(share: Fraction) -> int:
        noise = Calibration.of(epsilon, share, one_sided=True)
        return easy_interval(GateSchedule(noise, runs), SPLIT_QUESTION)

    least = min(width(Fraction(place, 100)) for place in range(5, 96))
    assert easy_interval(GateSchedule.of(epsilon, runs), SPLIT_QUESTION) <= 1.01 * least + 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda one: GateSchedule(one, 0),
        lambda one: GateSchedule(one, 1, false_alarm=0),
        lambda one: GateSchedule(replace(one, positives=2), 1),
        lambda one: GateSchedule(replace(one, one_sided=False), 1),
        lambda one: GateSchedule(one, 1).threshold(0),
        lambda one: easy_interval(GateSchedule(one, 1), 1, confidence=1),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Callable[[Calibration], Any]) -> None:
    with pytest.raises(ValueError, match=r"need|numbered|one-sided"):
        wrong(Calibration.of(Fraction(1), one_sided=True))


# The law of an easy answer ------------------------------------------------------------------------


def slow_chance_of_easy(gate: GateSchedule, threshold: int, deviation: int) -> float:
    """The sum over the noise on the threshold of P(deviation + m < threshold + r), in digits."""
    noise = gate.calibration
    with localcontext() as context:
        context.prec = 40
        p, q = (
            (-Decimal(scale.denominator) / scale.numerator).exp()
            for scale in (noise.threshold, noise.query)
        )
        total = Decimal(0)
        for r in range(math.ceil(60 * noise.threshold) + 1):
            room = threshold + r - deviation  # m has to be below it
            total += (1 - p) * p**r * (1 - q**room if room > 0 else 0)
        return float(total)


@given(gates, st.sampled_from([1, 2, 17, 10**4]))
def test_a_question_that_is_answered_rightly_fires_no_more_often_than_stated(
    gate: GateSchedule, question: int
) -> None:
    """And the threshold is the least that keeps to it."""
    threshold, stated = gate.threshold(question), gate.false_alarm / question
    assert 1 - slow_chance_of_easy(gate, threshold, 0) <= stated * (1 + 1e-9)
    if threshold:
        assert 1 - slow_chance_of_easy(gate, threshold - 1, 0) > stated * (1 - 1e-9)


@given(gates, st.integers(1, 100), st.floats(0.5, 0.999))
def test_what_is_outside_of_an_interval_is_hidden_by_no_threshold_but_for_its_chance(
    gate: GateSchedule, question: int, confidence: float
) -> None:
    width = easy_interval(gate, question, confidence)
    easy = slow_chance_of_easy(gate, gate.threshold(question), width + 1)
    assert gate.runs * easy <= (1 - confidence) * (1 + 1e-9)


@given(scales, st.integers(1, 100), st.floats(1e-6, 0.5))
def test_a_geometric_bound_is_the_least_that_the_tail_allows(
    scale: Fraction, draws: int, beta: float
) -> None:
    bound, ratio = geometric_bound(scale, draws, beta), math.exp(-1 / scale)
    assert draws * ratio ** (bound + 1) <= beta * (1 + 1e-9)
    if bound:
        assert draws * ratio**bound > beta * (1 - 1e-9)


def test_a_gate_proves_these_widths_at_epsilon_one() -> None:
    """A quarter of the budget for 8 runs; noise of both signs proved 1,074 and 1,582 there."""
    gate = GateSchedule.within(RHO / 4, 8)
    assert [easy_interval(gate, question) for question in (1, 1_000)] == [739, 1279]


# True with a stated probability -------------------------------------------------------------------


def in_blocks(seed: int, factor: Fraction = Fraction(1)) -> Noise:
    """Real noise, drawn many at a time; a factor other than 1 is the mistake to notice."""
    bits, stores = seeded_bits(seed), dict[Fraction, list[int]]()

    def noise(scale: Fraction, size: int) -> NDArray[Any]:
        store = stores.setdefault(scale, [])
        if len(store) < size:
            store.extend(discrete_laplace(scale * factor, 4096 + size, bits).tolist())
        return np.array([store.pop() for _ in range(size)])

    return noise


GATE = GateSchedule.within(Fraction(1, 20), 10)
TRIALS = 1500
SIEVED = 40
"""Questions by which an analyst does away with runs whose thresholds are low."""


def some_easy_outside(proven: GateSchedule, noise: Noise) -> bool:
    """Whether an analyst who does away with low thresholds gets one easy answer too many.

    Deviations of nearly what is proven fire unless the threshold's noise is high, so a run that is
    left has a high one; each is followed by one just outside.
    """
    session = GapSparseVector(GATE.calibration, GATE.runs, noise)
    for number in range(1, SIEVED + 1):
        beyond = 1 if number % 2 == 0 else -int(GATE.calibration.threshold)
        deviation = easy_interval(proven, number) + beyond
        answer = session.ask(deviation, GATE.threshold(number), Side.MAGNITUDE)
        if beyond > 0 and answer is None:
            return True
        if session.closed:
            break
    return False


def test_all_easy_answers_are_within_the_interval_at_once(seed: int) -> None:
    noise = in_blocks(seed)
    assert_rate_at_most(sum(some_easy_outside(GATE, noise) for _ in range(TRIALS)), TRIALS, 0.05)


@pytest.mark.parametrize(
    ("proven", "factor"), [(GATE, Fraction(3, 2)), (replace(GATE, runs=1), Fraction(1))]
)
def test_the_test_above_would_notice_larger_noise_and_an_interval_for_one_run_alone(
    proven: GateSchedule, factor: Fraction, seed: int
) -> None:
    noise = in_blocks(seed, factor)
    hits = sum(some_easy_outside(proven, noise) for _ in range(TRIALS))
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, TRIALS, 0.05)
