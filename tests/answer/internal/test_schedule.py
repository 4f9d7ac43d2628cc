"""The gate's thresholds, and what an easy answer proves, from the law of its noise."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.calibration import threshold_schedule

from casemate.answer.schedule import (
    PRACTICAL_THRESHOLD_MULTIPLE,
    GateSchedule,
    Holds,
    easy_interval,
    excess_chance,
)
from casemate.privacy import rho_of
from casemate.privacy.mechanisms import AboveThreshold, Calibration, GapSparseVector, Side
from casemate.privacy.noise import Noise, discrete_laplace, noise_bound, seeded_bits

PROOF = Fraction(2)
"""A threshold at which every update is one of alpha or more."""

RHO = rho_of(Fraction(1), Fraction(1, 10**6))
ADULT = 48_842
scales = st.fractions(Fraction(1, 10), 30, max_denominator=20)
sides = st.sampled_from([Side.MAGNITUDE, Side.EITHER])
gates = st.builds(
    GateSchedule,
    st.builds(Calibration, scales, scales),
    runs=st.integers(1, 40),
    beta=st.floats(1e-6, 0.4),
    multiple=st.sampled_from([PRACTICAL_THRESHOLD_MULTIPLE, PROOF]),
    side=sides,
    questions=st.none() | st.integers(100, 10**6),
)


# The public schedule ------------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 10**5), 1), st.integers(1, 200), sides)
def test_a_gate_never_costs_more_than_asked_nor_much_less(
    rho: Fraction, runs: int, side: Side
) -> None:
    gate = GateSchedule.within(rho, runs, side=side)
    assert rho * (1 - Fraction(1, 10**5)) <= gate.concentrated_cost.rho <= rho


@given(st.integers(1, 100), st.integers(1, 10**6), st.floats(1e-6, 0.2), sides)
def test_a_run_is_split_where_the_error_is_least(
    runs: int, questions: int, beta: float, side: Side
) -> None:
    gate = GateSchedule.within(Fraction(1, 50), runs, beta, side=side, questions=questions)
    comparisons = questions * (2 if side is Side.EITHER else 1)
    a, b = math.log(2 * runs / beta), 2 * math.log(2 * comparisons / beta)
    alpha = (math.sqrt(a) + math.sqrt(b)) ** 2 / math.sqrt(2 / 50 / runs)
    assert alpha * 0.98 - 4 <= gate.error_bound(1) <= alpha * 1.001 + 1


@given(gates.filter(lambda gate: gate.questions is None), st.integers(1, 10**9))
def test_without_a_number_of_questions_the_threshold_is_the_growing_one(
    gate: GateSchedule, question: int
) -> None:
    comparisons = 2 if gate.side is Side.EITHER else 1
    growing = threshold_schedule(gate.calibration, gate.beta, gate.runs, comparisons, gate.multiple)
    assert gate.threshold(question) == growing(question)
    slope = 2 * float(gate.multiple * gate.calibration.query) * math.log(10)
    grown = gate.threshold(10 * question) - gate.threshold(question)
    assert abs(grown - slope) <= float(gate.multiple) + 2


def easy_error(gate: GateSchedule, question: int) -> int:
    """What the deviation of an easy answer stays below; all at once but for beta."""
    return gate.threshold(question) + gate.error_bound(question)


def chance_of_easy(gate: GateSchedule, question: int, deviation: int) -> float:
    """P(easy) for a deviation, by its one comparison that can fire, in a run just opened.

    With `Side.EITHER` there is a second comparison, which can only make an easy answer rarer.
    """
    return excess_chance(gate.calibration, abs(deviation) - gate.threshold(question) + 1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda one: GateSchedule(one, 0),
        lambda one: GateSchedule(one, 1, beta=0),
        lambda one: GateSchedule(one, 1, multiple=Fraction(0)),
        lambda one: GateSchedule(one, 1, side=Side.ABOVE),
        lambda one: GateSchedule(one, 1, questions=0),
        lambda one: GateSchedule(replace(one, positives=2), 1),
        lambda one: GateSchedule(one, 1).threshold(0),
        lambda one: easy_interval(GateSchedule(one, 1), 1, confidence=1),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Callable[[Calibration], Any]) -> None:
    with pytest.raises(ValueError, match=r"need|numbered|looks"):
        wrong(Calibration.of(Fraction(1)))


@given(gates, st.integers(1, 100))
def test_only_the_threshold_of_the_proof_promises_that_an_update_was_needed(
    gate: GateSchedule, question: int
) -> None:
    alpha = gate.error_bound(question)
    if gate.multiple == PROOF:
        assert max(0, gate.threshold(question) - gate.error_bound(question)) == alpha
        assert easy_error(gate, question) == 3 * alpha
    else:
        assert max(0, gate.threshold(question) - gate.error_bound(question)) == 0
        assert easy_error(gate, question) <= 1.5 * alpha + 1


# The law of an easy answer ------------------------------------------------------------------------


def laplace(scale: Fraction, value: int) -> Decimal:
    ratio = (-Decimal(scale.denominator) / scale.numerator).exp()
    return (1 - ratio) / (1 + ratio) * ratio ** abs(value)


def below(scale: Fraction, limit: int) -> Decimal:
    """P(n < limit), by its closed form in decimals."""
    ratio = (-Decimal(scale.denominator) / scale.numerator).exp()
    if limit <= 0:
        return ratio ** (1 - limit) / (1 + ratio)
    return 1 - ratio**limit / (1 + ratio)


def slow_chance_of_easy(gate: GateSchedule, question: int, deviation: int) -> float:
    """The sum over the noise on the threshold, in forty digits, with every comparison."""
    noise, threshold = gate.calibration, gate.threshold(question)
    reach = math.ceil(60 * noise.threshold) + 1
    with localcontext() as context:
        context.prec = 40
        total = Decimal(0)
        for r in range(-reach, reach + 1):
            easy = laplace(noise.threshold, r)
            for _, number in gate.side.comparisons(deviation):
                easy *= below(noise.query, threshold + r - number)
            total += easy
        return float(total)


SMALL = [
    GateSchedule(Calibration(Fraction(t), Fraction(q)), runs=3, side=side, multiple=multiple)
    for t, q in ((2, 4), (3, 3), (7, 1), ("1/3", "9/4"), (3, "3000001/1000000"))
    for side, multiple in ((Side.MAGNITUDE, PRACTICAL_THRESHOLD_MULTIPLE), (Side.EITHER, PROOF))
]


@pytest.mark.parametrize("gate", SMALL)
def test_the_chance_of_an_easy_answer_is_the_sum_over_both_noises(gate: GateSchedule) -> None:
    """Exactly for one comparison; the second of two only lowers it, and hardly."""
    for question in (1, 5):
        top = gate.threshold(question)
        for deviation in (0, 1, top - 1, top, -top, top + 3, top + 20):
            slow = slow_chance_of_easy(gate, question, deviation)
            fast = chance_of_easy(gate, question, deviation)
            if gate.side is Side.MAGNITUDE:
                assert fast == pytest.approx(slow, rel=1e-11)
            else:
                assert slow <= fast * (1 + 1e-11) and fast <= slow + 0.05


@given(st.builds(Calibration, scales, scales), st.integers(-200, 200))
def test_the_excess_has_a_law(calibration: Calibration, excess: int) -> None:
    here, next_one = excess_chance(calibration, excess), excess_chance(calibration, excess + 1)
    assert 0 <= next_one <= here <= 1
    assert here + excess_chance(calibration, 1 - excess) == pytest.approx(1)


@given(gates, st.integers(1, 100), st.floats(0.5, 0.999))
def test_the_interval_of_a_run_holds_what_is_not_too_unlikely_and_nothing_else(
    gate: GateSchedule, question: int, confidence: float
) -> None:
    width = easy_interval(gate, question, confidence)
    assert chance_of_easy(gate, question, width + 1) < 1 - confidence
    if width > 0:
        assert chance_of_easy(gate, question, width) * (1 + 2e-9) >= 1 - confidence


@given(gates, st.integers(1, 100), st.floats(0.6, 0.999))
def test_what_holds_for_more_answers_is_wider(
    gate: GateSchedule, question: int, confidence: float
) -> None:
    run, alone, together = (
        easy_interval(gate, question, confidence, holds)
        for holds in (Holds.IN_A_RUN, Holds.ALONE, Holds.TOGETHER)
    )
    assert run <= alone
    if question > 1:
        assert run <= together
    session = easy_interval(gate, question, 1 - gate.beta, Holds.TOGETHER)
    assert session <= max(0, easy_error(gate, question) - 1)


def test_the_default_gate_on_adult_proves_these_widths() -> None:
    """A quarter of the budget is for two-way tables, half of the rest for this; 1e5 questions."""
    gate = GateSchedule.within(RHO * 3 / 8, 25, side=Side.EITHER, questions=10**5)
    widths = [easy_interval(gate, 1, holds=holds) for holds in Holds]
    assert [round(100 * width / ADULT, 1) for width in widths] == [3.3, 4.7, 7.3]
    assert easy_error(gate, 1) / ADULT == pytest.approx(0.078, abs=5e-4)


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


GATE = partial(GateSchedule.within, Fraction(1, 20), 10)
TRIALS = 1500


def easy_outside(gate: GateSchedule, noise: Noise, number: int) -> int:
    """How often the n-th question of a run, just outside its interval, is answered as easy.

    Those before it are harmless: their deviation is 0.
    """
    outside, hits = easy_interval(gate, number) + 1, 0
    for _ in range(TRIALS):
        run = AboveThreshold(gate.calibration, noise)
        values = [0] * (number - 1) + [outside]
        asked = (run.ask(v, gate.threshold(i), gate.side) for i, v in enumerate(values, 1))
        hits += all(answer is None for answer in asked)
    return hits


@pytest.mark.parametrize("side", [Side.MAGNITUDE, Side.EITHER])
@pytest.mark.parametrize("number", [1, 6])
def test_an_easy_answer_is_within_the_interval_of_its_run(
    side: Side, number: int, seed: int
) -> None:
    gate = GATE(side=side)
    hits = easy_outside(gate, in_blocks(seed), number)
    assert_rate_at_most(hits, TRIALS, 0.05)
    if number == 1:  # and it is no wider than it has to be
        assert_rate_at_most(TRIALS - hits, TRIALS, 0.97)


@pytest.mark.parametrize("side", [Side.MAGNITUDE, Side.EITHER])
def test_the_test_above_would_notice_noise_that_is_too_large(side: Side, seed: int) -> None:
    hits = easy_outside(GATE(side=side), in_blocks(seed, Fraction(3, 2)), 1)
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, TRIALS, 0.05)


def some_easy_outside(gate: GateSchedule, noise: Noise) -> bool:
    """A session of questions just outside what holds together: whether one passes as easy."""
    session, number = GapSparseVector(gate.calibration, gate.runs, noise), 0
    while not session.closed:
        number += 1
        outside = easy_interval(gate, number, holds=Holds.TOGETHER) + 1
        if session.ask(outside, gate.threshold(number), gate.side) is None:
            return True
    return False


@pytest.mark.parametrize("questions", [None, 10])
def test_all_easy_answers_are_within_the_interval_of_the_session(
    questions: int | None, seed: int
) -> None:
    gate, noise = GATE(questions=questions), in_blocks(seed)
    hits = sum(some_easy_outside(gate, noise) for _ in range(600))
    assert_rate_at_most(hits, 600, 0.05)


def test_the_test_above_would_notice_noise_that_is_three_times_too_large(seed: int) -> None:
    gate, noise = GATE(), in_blocks(seed, Fraction(3))
    hits = sum(some_easy_outside(gate, noise) for _ in range(600))
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, 600, 0.05)


def sieved(gate: GateSchedule, noise: Noise, values: list[int]) -> bool:
    """Whether the last of these deviations passes as easy, whatever came before it."""
    session = GapSparseVector(gate.calibration, gate.runs, noise)
    answers = [session.ask(v, gate.threshold(i), gate.side) for i, v in enumerate(values, 1)]
    return answers[-1] is None


@pytest.mark.parametrize("holds", [Holds.IN_A_RUN, Holds.ALONE])
def test_against_an_analyst_who_sieves_runs_only_the_interval_that_says_so_holds(
    holds: Holds, seed: int
) -> None:
    """Nine questions fire unless the threshold's noise is high, so a run that is left has a high
    one; then comes one just outside. The interval of a run is not about the run that survived."""
    gate, noise = GATE(questions=100), in_blocks(seed)
    values = [easy_interval(gate, 1, 0.8)] * 9 + [easy_interval(gate, 10, holds=holds) + 1]
    hits = sum(sieved(gate, noise, values) for _ in range(TRIALS))
    if holds is Holds.ALONE:
        assert_rate_at_most(hits, TRIALS, 0.05)
    else:
        with pytest.raises(AssertionError):
            assert_rate_at_most(hits, TRIALS, 0.05)


def test_one_sided_bounds_are_half_of_two_sided_ones() -> None:
    """P(X > m) is half of P(|X| > m), so the interval of the session uses bounds at 2 beta."""
    scale = Fraction(7)
    bound = noise_bound(scale, 1, 0.1)
    ratio = math.exp(-1 / scale)
    assert ratio ** (bound + 1) / (1 + ratio) <= 0.05 < ratio**bound / (1 + ratio)
