"""Every answer is within the stated error, with the stated probability."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from noises import in_stock
from oracles.calibration import threshold_schedule, variance_share

from casemate.privacy.mechanisms import (
    AboveThreshold,
    Calibration,
    GapSparseVector,
    NumericSparse,
    Positive,
    accuracy_share,
)
from casemate.privacy.noise import Noise, seeded_bits
from casemate.privacy.noise.noise import silence

ONE = Fraction(1)
Mechanism = AboveThreshold | GapSparseVector | NumericSparse
BETA, COMPARISONS, TRIALS = 0.1, 100, 150


def breaks(mechanism: Mechanism, alpha: int, positives: int) -> bool:
    """Whether any of the answers to the hardest values contradicts an error bound of `alpha`."""
    for position in range(1, COMPARISONS + 1):
        large = position % (COMPARISONS // positives) == 0  # the last one ends the last run
        value = 50 + alpha if large else 50 - alpha - 1
        answer = mechanism.ask(value, threshold=50)
        if (answer is not None) != large:
            return True
        reading = 50 + answer.gap if isinstance(answer, Positive) else answer
        if reading is not None and abs(reading - value) > alpha:
            return True
    return False


def failures(form: str, noise: Noise, stretch: Fraction = ONE) -> int:
    make, bound, positives = FORMS[form]
    alpha = math.floor(bound * stretch)
    return sum(breaks(make(noise), alpha, positives) for _ in range(TRIALS))


SHARE = accuracy_share(COMPARISONS, BETA, runs=5)
FIXED = Calibration.of(ONE, variance_share(positives=5), positives=5)
GAP = GapSparseVector(Calibration.of(Fraction(1, 5), SHARE), 5, silence)
NUMERIC = NumericSparse(5, ONE, silence)
FORMS: dict[str, tuple[Callable[[Noise], Mechanism], int, int]] = {
    "one run": (
        partial(AboveThreshold, Calibration.of(ONE)),
        Calibration.of(ONE).error_bound(COMPARISONS, BETA),
        1,
    ),
    "no resampling": (partial(AboveThreshold, FIXED), FIXED.error_bound(COMPARISONS, BETA), 5),
    "gaps": (
        partial(GapSparseVector, GAP.calibration, GAP.runs),
        GAP.error_bound(COMPARISONS, BETA),
        5,
    ),
    "numbers": (partial(NumericSparse, 5, ONE), NUMERIC.error_bound(COMPARISONS, BETA), 5),
}


@pytest.mark.theorem("003: AboveThreshold (accuracy)")
@pytest.mark.parametrize("form", FORMS)
def test_every_answer_is_within_the_error_bound(form: str, seed: int) -> None:
    noise = in_stock(seeded_bits(seed))
    assert_rate_at_most(failures(form, noise), TRIALS, BETA)
    assert failures(form, noise, stretch=Fraction(1, 3)) > 2 * BETA * TRIALS, "it says nothing"


@pytest.mark.parametrize("form", FORMS)
def test_the_test_above_would_notice_noise_that_is_too_large(form: str, seed: int) -> None:
    noise = in_stock(seeded_bits(seed), factor=Fraction(3))
    with pytest.raises(AssertionError):
        assert_rate_at_most(failures(form, noise), TRIALS, BETA)


@pytest.mark.theorem("003: NumericSparse (accuracy)")
@given(st.integers(1, 300), st.integers(2, 10**6), st.floats(1e-9, 0.5), st.floats(0.01, 2))
def test_the_derived_bound_is_below_the_one_of_theorem_3_28(
    positives: int, comparisons: int, beta: float, epsilon: float
) -> None:
    """Together with the test of chance above, which shows the derived bound."""
    theirs = 9 * positives * (math.log(comparisons) + math.log(4 * positives / beta)) / epsilon
    ours = NumericSparse(positives, Fraction(epsilon), silence).error_bound(comparisons, beta)
    assert ours <= theirs


@pytest.mark.parametrize("factor", [1, 3])
def test_growing_thresholds_hold_for_a_number_of_questions_nobody_knew(
    factor: int, seed: int
) -> None:
    calibration, noise = Calibration.of(ONE), in_stock(seeded_bits(seed), Fraction(factor))
    at = threshold_schedule(calibration, BETA, sides=1)
    margins = [calibration.error_bound_at(i, BETA, sides=1) for i in range(1, 301)]
    hardest = [(at(i) - margin - 1, at(i)) for i, margin in enumerate(margins, start=1)]

    def false_alarm() -> bool:
        run = AboveThreshold(calibration, noise)
        return any(run.ask(value, threshold) is not None for value, threshold in hardest)

    alarms = sum(false_alarm() for _ in range(200))
    if factor == 1:
        assert_rate_at_most(alarms, 200, BETA)
    else:
        with pytest.raises(AssertionError):
            assert_rate_at_most(alarms, 200, BETA)
