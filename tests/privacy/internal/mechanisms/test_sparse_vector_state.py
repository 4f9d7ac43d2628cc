"""A restart between any two questions changes nothing, and no repr shows the secret."""

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.errors import PositivesSpent
from casemate.privacy.mechanisms import (
    AboveThreshold,
    Calibration,
    GapSparseVector,
    NumericSparse,
    RunState,
    Side,
)
from casemate.privacy.mechanisms.sparse_vector import SparseVectorState
from casemate.privacy.noise import Noise, discrete_laplace, seeded_bits
from casemate.privacy.noise.noise import silence

ONE = Fraction(1)
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
