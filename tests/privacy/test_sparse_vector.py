"""The sparse vector as a function of its noise, and over a restart between any two questions."""

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noises import Scripted
from numpy.typing import NDArray

from casemate.errors import PositivesSpent
from casemate.privacy import Concentrated, Pure
from casemate.privacy.mechanisms import (
    AboveThreshold,
    Calibration,
    GapSparseVector,
    NumericSparse,
    Positive,
    RunState,
    Side,
)
from casemate.privacy.mechanisms.sparse_vector import SparseVectorState
from casemate.privacy.noise import Noise, discrete_laplace, seeded_bits
from casemate.privacy.noise.noise import silence

ONE = Fraction(1)
integers = st.integers(-(10**30), 10**30)
questions = st.lists(st.tuples(integers, integers), max_size=20)
nearby = st.integers(-20, 20)
sides = st.sampled_from(Side)


# Exactly true, without noise --------------------------------------------------------------------


@given(questions, sides, st.integers(1, 4))
def test_threshold_plus_gap_is_the_value_when_noise_is_silent(
    asked: list[tuple[int, int]], side: Side, runs: int
) -> None:
    gate, fired = GapSparseVector(Calibration.of(ONE), runs, silence), 0
    for value, threshold in asked:
        if gate.closed:
            break
        answer = gate.ask(value, threshold, side)
        looked_at = value if side is Side.ABOVE else abs(value)
        if answer is None:
            assert looked_at < threshold
        else:
            fired += 1
            read = threshold + answer.gap
            assert read == (abs(value) if answer.sign == 0 else answer.sign * value)
    assert gate.closed == (fired == runs)


@given(questions, st.integers(1, 4))
def test_numeric_sparse_answers_the_value_when_noise_is_silent(
    asked: list[tuple[int, int]], positives: int
) -> None:
    sparse = NumericSparse(positives, ONE, silence)
    for value, threshold in asked:
        if sparse.closed:
            break
        assert sparse.ask(value, threshold) == (value if value >= threshold else None)


def test_the_second_side_is_compared_only_if_the_first_did_not_fire() -> None:
    noise = Scripted(0, 0)
    run = AboveThreshold(Calibration.of(ONE, positives=9), noise)
    assert run.ask(5, 3, Side.EITHER) == Positive(1, 2)
    assert len(noise.scales) == 2  # one for the threshold
    assert run.ask(-5, 3, Side.EITHER) == Positive(-1, 2)
    assert len(noise.scales) == 4


def test_the_noise_of_a_magnitude_is_outside_the_absolute_value() -> None:
    run = AboveThreshold(Calibration.of(ONE), Scripted(0, -4))
    assert run.ask(-3, 0, Side.MAGNITUDE) is None, "|-3| - 4 < 0, though |-3 - 4| > 0"


# Exactly true, with any noise --------------------------------------------------------------------


@given(questions | st.lists(st.tuples(nearby, nearby)), st.lists(nearby), nearby)
def test_a_run_compares_noisy_values_with_one_noisy_threshold(
    asked: list[tuple[int, int]], noises: list[int], first: int
) -> None:
    run = AboveThreshold(Calibration.of(ONE), Scripted(first, *noises))
    for (value, threshold), noise in zip(asked, chain(noises, repeat(0)), strict=False):
        answer = run.ask(value, threshold)
        gap = value + noise - (threshold + first)
        assert answer == (Positive(1, gap) if gap >= 0 else None)
        assert run.halted == (gap >= 0)
        if run.halted:
            break


def test_each_run_draws_a_fresh_threshold_and_each_comparison_a_fresh_noise() -> None:
    noise = Scripted()
    calibration = Calibration.of(ONE, Fraction(1, 3), sensitivity=2)
    gate = GapSparseVector(calibration, 2, noise)
    for value in (-1, 1, -1, -1, 1):
        gate.ask(value, threshold=0)
    t, q = calibration.threshold, calibration.query
    assert noise.scales == [t, q, q, t, q, q, q]


def test_without_resampling_one_threshold_serves_all_positives() -> None:
    noise = Scripted(7)
    calibration = Calibration.of(ONE, positives=3)
    run = AboveThreshold(calibration, noise)
    assert [run.ask(value, 0) for value in (9, 3, 8, 7)] == [
        Positive(1, 2),
        None,
        Positive(1, 1),
        Positive(1, 0),
    ]
    assert noise.scales == [calibration.threshold] + [calibration.query] * 4
    assert run.halted


def test_numeric_sparse_draws_at_the_scales_of_the_source() -> None:
    noise, c, epsilon = Scripted(), 3, Fraction(1, 2)
    sparse = NumericSparse(c, epsilon, noise)
    sparse.ask(-1, 0), sparse.ask(1, 0)
    assert noise.scales == [
        9 * c / (4 * epsilon),  # 2c / (8/9 epsilon)
        9 * c / (2 * epsilon),  # twice that
        9 * c / (2 * epsilon),
        9 * c / epsilon,  # 2c / (2/9 epsilon)
    ]


def test_a_run_is_opened_by_its_first_question() -> None:
    gate = GapSparseVector(Calibration.of(ONE), 2, silence)
    assert gate.opened == 0
    gate.ask(5, 0)
    assert gate.opened == 1, "the first run has halted, and nobody has asked since"
    gate.ask(-5, 0)
    assert gate.opened == 2, "paid for, though it did not fire"


@pytest.mark.parametrize(
    ("mechanism", "given_out"),
    [
        (AboveThreshold(Calibration.of(ONE), silence), 1),
        (AboveThreshold(Calibration.of(ONE, positives=3), silence), 3),
        (GapSparseVector(Calibration.of(ONE), 2, silence), 2),
        (GapSparseVector(Calibration.of(ONE, positives=2), 2, silence), 4),
        (NumericSparse(2, ONE, silence), 2),
    ],
)
def test_nothing_answers_after_its_last_positive(
    mechanism: AboveThreshold | GapSparseVector | NumericSparse, given_out: int
) -> None:
    for _ in range(given_out):
        mechanism.ask(1, 0)
    with pytest.raises(PositivesSpent, match=f"calibrated for {given_out} positive answers"):
        mechanism.ask(-1, 0)


def test_costs_are_those_of_the_scales_in_use() -> None:
    calibration = Calibration(Fraction(4), Fraction(8))
    assert AboveThreshold(calibration, silence).cost == Pure(Fraction(1, 2))
    gate = GapSparseVector(calibration, 6, silence)
    assert (gate.cost, gate.concentrated_cost) == (Pure(Fraction(3)), Concentrated(Fraction(3, 4)))


@given(st.integers(1, 200), st.floats(1e-3, 10).map(Fraction), st.integers(1, 50))
def test_numeric_sparse_never_costs_more_than_its_epsilon(
    positives: int, epsilon: Fraction, sensitivity: int
) -> None:
    cost = NumericSparse(positives, epsilon, silence, sensitivity).cost
    assert epsilon * (1 - Fraction(1, 2**20)) <= cost.epsilon <= epsilon


@pytest.mark.parametrize("side", [Side.EITHER, Side.MAGNITUDE])
def test_monotone_calibrations_refuse_two_sided_questions_before_anything_is_opened(
    side: Side,
) -> None:
    gate = GapSparseVector(Calibration.of(ONE, monotone=True), 1, silence)
    with pytest.raises(ValueError, match="only one-sided questions"):
        gate.ask(1, 0, side)
    assert gate.opened == 0


# Over a restart --------------------------------------------------------------------------------


Mechanism = AboveThreshold | GapSparseVector | NumericSparse


def constant(number: int) -> Noise:
    def noise(scale: Fraction, size: int) -> NDArray[Any]:
        return np.full(size, number)

    return noise


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(state))
    return loaded


def restarted(mechanism: Mechanism, noise: Noise) -> Mechanism:
    """Write the state, forget the mechanism, and read it back."""
    written = through_json(mechanism.state().as_secret())
    if isinstance(mechanism, AboveThreshold):
        return AboveThreshold.restore(RunState.from_secret(written), noise)
    state = SparseVectorState.from_secret(written)
    if isinstance(mechanism, NumericSparse):
        return NumericSparse.restore(state, mechanism.epsilon, noise)
    return GapSparseVector.restore(state, noise)


MAKERS: list[Callable[[Noise], Mechanism]] = [
    partial(AboveThreshold, Calibration.of(ONE, positives=3)),
    partial(GapSparseVector, Calibration.of(Fraction(1, 3)), 3),
    partial(GapSparseVector, Calibration.of(Fraction(math.pi), positives=2), 2),
    lambda noise: NumericSparse(3, ONE, noise, sensitivity=2),
]


@pytest.mark.parametrize("make", MAKERS)
@given(
    values=st.lists(st.integers(-20, 20), max_size=30),
    side=st.sampled_from(Side),
    seed=st.integers(0, 2**32),
)
def test_a_restart_between_every_two_questions_changes_no_answer(
    make: Callable[[Noise], Mechanism],
    values: list[int],
    side: Side,
    seed: int,
) -> None:
    def answers(restarting: bool) -> Iterator[object]:
        noise = partial(discrete_laplace, bits=seeded_bits(seed))
        mechanism = make(noise)
        for value in values:
            try:
                yield mechanism.ask(value, 5, side)
            except PositivesSpent:
                yield "spent"
            if restarting:
                mechanism = restarted(mechanism, noise)

    assert list(answers(restarting=True)) == list(answers(restarting=False))


def test_no_repr_shows_the_noise_on_the_threshold() -> None:
    secret = 987_654_321
    run = AboveThreshold(Calibration.of(ONE), constant(secret))
    gate = GapSparseVector(Calibration.of(ONE), 2, constant(secret))
    gate.ask(0, 0)
    for thing in (run, run.state(), gate, gate.state(), gate.state().run):
        assert str(secret) not in f"{thing!r} {thing}"
    assert run.state().as_secret()["noise"] == secret


def test_a_halted_run_has_forgotten_its_noise() -> None:
    run = AboveThreshold(Calibration.of(ONE), constant(7))
    run.ask(9, 0)
    assert run.state().noise is None


def test_numeric_sparse_is_not_restored_at_another_epsilon() -> None:
    state = NumericSparse(2, ONE, silence).state()
    with pytest.raises(ValueError, match="not made with an epsilon of 2"):
        NumericSparse.restore(state, Fraction(2), silence)
