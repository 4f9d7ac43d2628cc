"""The public numbers of the literal construction, and when a theorem is about them."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.papers.accuracy import (
    PromiseTerms,
    UpdateBound,
    accuracy,
    theorem_5_13,
    theorem_5_14,
    theorem_5_15,
)
from casemate.papers.online import MAX_ROUNDING_PEOPLE, DatabaseUpdate, OnlineSetting, with_numbers
from casemate.privacy.mechanisms import NumericSparse
from casemate.privacy.noise.noise import silence

UPDATES = [
    DatabaseUpdate.by_weights(4, 4),
    DatabaseUpdate.by_perceptron(4, 4),
    DatabaseUpdate.by_median(3, questions=50),
]
SURVEY = DatabaseUpdate.by_weights(1000, 1000)
terms = st.builds(
    PromiseTerms,
    st.integers(1, 10**6),
    epsilon=st.floats(0.01, 1),
    delta=st.just(0.0) | st.floats(1e-12, 1e-3),
    beta=st.floats(1e-12, 0.2),
)


def test_each_update_algorithm_has_the_documents_t() -> None:
    weights, perceptron, median = (update.bound(0.1) for update in UPDATES)
    assert weights == pytest.approx(4 * math.log(16) / 0.01)
    assert perceptron == pytest.approx(16 / 0.01)
    rows = 231  # more than ln(2 * 50) / (2 * 0.01)
    assert median == pytest.approx(math.log2(math.comb(rows + 2, 2)))


@given(st.sampled_from(UPDATES), terms, st.integers(10**7, 10**12))
def test_the_theorem_holds_from_the_least_alpha_on(
    update: DatabaseUpdate, asked: PromiseTerms, people: int
) -> None:
    """A T that comes in steps, as the median's does, may leave room at the least: not below it."""
    setting = OnlineSetting.least(update, asked, people)
    assert setting.promised
    assert not OnlineSetting(update, asked, people, setting.alpha * 0.999).promised
    assert setting.updates <= max(1, update.bound(setting.alpha))
    assert 2 * setting.unit - 1 < setting.threshold <= 2 * setting.unit


@pytest.mark.theorem("003: Theorem 5.13 (noise of OnlineIC)")
def test_the_noise_is_that_of_numeric_sparse_for_t_updates() -> None:
    setting = OnlineSetting.least(UPDATES[0], PromiseTerms(100), 10**7)
    theirs = NumericSparse(setting.updates, Fraction(1), silence)
    assert setting.noise == theorem_5_13(setting.updates, Fraction(1), Fraction(0))
    assert setting.noise.pure_cost.epsilon <= 1
    assert setting.error_bound == pytest.approx(theirs.error_bound(200, 0.05), rel=1e-5)


@given(st.integers(1, 10**4), terms)
def test_what_is_rounded_fits_into_what_the_theorems_leave(
    positives: int, asked: PromiseTerms
) -> None:
    """However few the people: the bound of the noise in use, and three people, are within it."""
    update = DatabaseUpdate("any", (2,), lambda _: positives, UPDATES[0].start)
    need = with_numbers if asked.delta else theorem_5_14
    unit = need(asked, update.bound, 0.5)
    setting = OnlineSetting(update, asked, math.ceil(2 * unit), 0.5)
    assert setting.error_bound + MAX_ROUNDING_PEOPLE <= setting.unit
    assert setting.promised


def test_theorem_5_15_does_not_keep_the_numbers_of_its_own_noise_within_alpha() -> None:
    """Its proof has every number within alpha but for beta; at its own figures it is three betas.

    The scale is (sqrt(512) + 1) sqrt(8 c ln(2/delta)) / epsilon, and the constant of the bound is
    sqrt(512) + 1 without the sqrt(8). Split 8 : 1, as without delta, sqrt(512) + sqrt(8) would do.
    """
    asked = PromiseTerms(10_000, delta=1e-6)
    promise = accuracy(theorem_5_15, asked, SURVEY.bound, 48_842)
    count = math.floor(promise.updates)
    scale = theorem_5_13(count, Fraction(1), Fraction(1, 10**6)).answer
    missed = math.exp(-promise.alpha * 48_842 / float(scale))  # of one number, by a Laplace tail
    assert 1 - (1 - missed) ** count > 3 * asked.beta
    mended = accuracy(with_numbers, asked, SURVEY.bound, 48_842)
    assert promise.error == pytest.approx(1.555, abs=1e-3)
    assert mended.error == pytest.approx(1.811, abs=1e-3)
    assert math.sqrt(512) / math.sqrt(8) == pytest.approx(8)

    def evenly(asked: PromiseTerms, updates: UpdateBound, alpha: float) -> float:
        constants = (math.sqrt(512) + math.sqrt(8)) / (math.sqrt(512) + 1)
        return constants * theorem_5_15(asked, updates, alpha)

    assert accuracy(evenly, asked, SURVEY.bound, 48_842).error == pytest.approx(1.611, abs=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: OnlineSetting(SURVEY, PromiseTerms(10), 10**6, 0.0),
        lambda: OnlineSetting(SURVEY, PromiseTerms(10), 10**6, 1.5),
        lambda: OnlineSetting(SURVEY, PromiseTerms(10), 0, 0.5),
        lambda: OnlineSetting.least(SURVEY, PromiseTerms(10), 10),
        lambda: OnlineSetting(SURVEY, PromiseTerms(10, epsilon=2.0, delta=1e-6), 10**6, 0.5),
    ],
)
def test_what_no_theorem_is_about_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"need people|epsilon <= 1"):
        wrong()
