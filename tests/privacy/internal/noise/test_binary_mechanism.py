from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most, epsilon_at_least
from hypothesis import given
from hypothesis import strategies as st
from noises import in_stock
from numpy.typing import NDArray

from casemate.errors import HorizonReached
from casemate.privacy.mechanisms import BinaryMechanism
from casemate.privacy.noise import Noise, seeded_bits
from casemate.privacy.noise.noise import silence

streams = st.lists(st.integers(-(10**20), 10**20), min_size=1, max_size=200)


def run(
    stream: list[int],
    epsilon: Fraction = Fraction(1),
    noise: Noise = silence,
    sensitivity: int = 1,
) -> list[int]:
    mechanism = BinaryMechanism(len(stream), epsilon, noise, sensitivity)
    return [mechanism.add(item) for item in stream]


def partial_sums(answers: list[int]) -> list[int]:
    """Recover what was noised at each step t: the difference of answers t and t - lowbit(t)."""
    return [answer - ([0, *answers][t - (t & -t)]) for t, answer in enumerate(answers, start=1)]


# Exactly true, for every stream -------------------------------------------------------------------


@given(streams)
def test_without_noise_it_is_the_running_total(stream: list[int]) -> None:
    assert run(stream) == list(accumulate(stream))


@given(streams, st.data())
def test_an_item_enters_at_most_levels_partial_sums(stream: list[int], data: st.DataObject) -> None:
    """The sensitivity behind Theorem 2: this is what epsilon is divided by."""
    where = data.draw(st.integers(0, len(stream) - 1))
    neighbour = [item + (i == where) for i, item in enumerate(stream)]
    pairs = zip(partial_sums(run(stream)), partial_sums(run(neighbour)), strict=True)
    changes = [b - a for a, b in pairs if a != b]
    assert set(changes) == {1}
    assert len(changes) <= len(stream).bit_length()


@given(streams, st.integers(1, 10**6))
def test_each_answer_draws_fresh_noise_of_the_stated_scale(
    stream: list[int], sensitivity: int
) -> None:
    drawn: list[tuple[Fraction, int]] = []

    def listener(scale: Fraction, size: int) -> NDArray[Any]:
        drawn.append((scale, size))
        return np.array([len(drawn)])

    answers = run(stream, Fraction(1, 2), listener, sensitivity)
    assert drawn == [(Fraction(2 * sensitivity * len(stream).bit_length()), 1)] * len(stream)
    noise = [a - b for a, b in zip(partial_sums(answers), partial_sums(run(stream)), strict=True)]
    assert noise == list(range(1, len(stream) + 1)), "each partial sum keeps its own draw"


def worst_loss(horizon: int, split: Fraction) -> Fraction:
    """The exact privacy loss at epsilon = 1 when it is split over `split` partial sums.

    An output fixes every noisy partial sum, so its loss is the sum over them of (|z'| - |z|) / b,
    where b = split; a sum that an item changes by 1 adds at most, and for some z exactly, 1 / b.
    """
    worst = 0
    for where in range(horizon):
        stream = [int(i == where) for i in range(horizon)]
        worst = max(worst, sum(abs(change) for change in partial_sums(run(stream))))
    return worst / split


@pytest.mark.theorem("001: Theorem 2 (privacy)")
@pytest.mark.parametrize("horizon", [*range(1, 10), 15, 16, 31, 33, 64, 100, 127, 128])
def test_the_privacy_loss_is_exactly_epsilon(horizon: int) -> None:
    scale = BinaryMechanism(horizon, Fraction(1), silence).scale
    assert worst_loss(horizon, scale) == 1


@pytest.mark.parametrize("power", range(1, 8))
def test_the_papers_constant_loses_more_than_epsilon(power: int) -> None:
    """For L = 2^power the source splits epsilon over log L = power sums."""
    assert worst_loss(2**power, Fraction(power)) == 1 + Fraction(1, power)


def test_refuses_to_outlive_its_horizon() -> None:
    mechanism = BinaryMechanism(2, Fraction(1), silence)
    mechanism.add(1), mechanism.add(1)
    with pytest.raises(HorizonReached, match="calibrated for 2 items"):
        mechanism.add(1)


def test_takes_integers_of_any_kind_and_a_mistake_leaves_no_trace() -> None:
    mechanism = BinaryMechanism(4, Fraction(1), silence)
    big: Any = np.int64(2**62)  # numpy's integers have __index__
    assert [mechanism.add(big) for _ in range(3)] == [2**62, 2**63, 3 * 2**62]
    with pytest.raises(TypeError):
        mechanism.add(0.5)  # type: ignore[arg-type]  # the mistake under test
    assert mechanism.add(0) == 3 * 2**62


# True with a stated probability -------------------------------------------------------------------


@pytest.mark.theorem("001: Theorem 2 (accuracy)")
@pytest.mark.parametrize("horizon", [63])
def test_every_answer_is_within_the_bound(horizon: int, seed: int) -> None:
    stream, noise = [1] * horizon, in_stock(seeded_bits(seed))
    bound = BinaryMechanism(horizon, Fraction(1), noise).error_bound(beta=0.05)
    worst = [
        max(abs(a - t) for t, a in enumerate(run(stream, noise=noise), start=1)) for _ in range(500)
    ]
    assert_rate_at_most(sum(w > bound for w in worst), len(worst), rate=0.05)
    assert bound < 3 * sorted(worst)[len(worst) // 2], "the bound is true but says nothing"


def test_the_test_above_would_notice_noise_of_twice_the_scale(seed: int) -> None:
    noise = in_stock(seeded_bits(seed))
    bound = BinaryMechanism(64, Fraction(1), noise).error_bound(beta=0.05)
    loud = [run([0] * 64, Fraction(1, 2), noise) for _ in range(500)]
    misses = sum(max(map(abs, answers)) > bound for answers in loud)
    with pytest.raises(AssertionError):
        assert_rate_at_most(misses, len(loud), rate=0.05)


def leakage(split: int, noise: Noise, sensitivity: int = 1, trials: int = 10_000) -> float:
    """Epsilon shown by the worst event for L = 2 when epsilon = 1 is split `split` ways."""

    def hits(first: int) -> int:
        epsilon = Fraction(2, split)  # the mechanism itself splits it two ways
        answers = (run([first, 0], epsilon, noise, sensitivity) for _ in range(trials))
        return sum(min(pair) >= sensitivity for pair in answers)

    return epsilon_at_least(hits(sensitivity), hits(0), trials)


@pytest.mark.theorem("001: Theorem 2 (privacy)")
@pytest.mark.parametrize("sensitivity", [7])
def test_is_private(sensitivity: int, seed: int) -> None:
    assert 0.5 < leakage(2, in_stock(seeded_bits(seed)), sensitivity) <= 1


def test_the_papers_constant_is_not_private(seed: int) -> None:
    assert leakage(1, in_stock(seeded_bits(seed))) > 1
