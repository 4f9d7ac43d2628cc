import math
import random
from fractions import Fraction

import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.protocols.robust.theorem import RobustConstants, constants
from casemate.track.protocols.robust.tracker import Phases, laplace, whole_noise
from casemate.track.setting import Setting


def tracker(sites: int) -> RobustConstants:
    return constants(Setting(sites, 0.05, 0.01, 10**8))


def silent() -> float:
    """Two equal draws are no noise."""
    return 0.0


@pytest.mark.theorem("001: Algorithm 2")
@pytest.mark.parametrize("sites", [1, 2, 16, 30])
def test_without_noise_a_phase_ends_at_t_bits_and_the_round_after_sqrt_k_phases(sites: int) -> None:
    t = tracker(sites)
    phases, bits = Phases(t, silent), math.ceil(t.threshold)
    for phase in range(math.ceil(math.sqrt(sites))):
        assert phases.room == bits - 1
        assert not phases.over
        phases.take(bits - 1)
        assert phases.total == phase * bits, "the output stands still within a phase"
        phases.take(1)
        assert phases.total == (phase + 1) * bits
    assert phases.over
    phases.take(5)
    assert phases.total == bits * t.phases


@given(st.integers(0, 2**32), st.lists(st.integers(0, 200), max_size=30), st.integers(1, 40))
def test_bits_may_come_one_by_one_or_together(seed: int, amounts: list[int], sites: int) -> None:
    together, apart = (Phases(tracker(sites), random.Random(seed).random) for _ in range(2))
    for amount in amounts:
        together.take(amount)
        for _ in range(amount):
            apart.take(1)
        assert (together.total, together.room, together.over) == (
            apart.total,
            apart.room,
            apart.over,
        )


@given(st.integers(0, 2**32))
def test_the_room_is_what_fits(seed: int) -> None:
    phases = Phases(tracker(16), random.Random(seed).random)
    while not phases.over:
        before, room = phases.total, phases.room
        assert room >= 0
        phases.take(room)
        assert (phases.total, phases.room) == (before, 0)
        phases.take(1)
        assert phases.over or phases.room >= 0


def test_a_threshold_that_is_not_positive_is_drawn_again() -> None:
    t = tracker(16)
    lowest = 1 - 2**-53  # its logarithm is about -37, and its noise below -T
    assert t.threshold < 36 * t.noise_scale
    draws = iter([lowest, 0.0, lowest, 0.0, 0.0, 0.0])
    assert Phases(t, lambda: next(draws)).room == math.ceil(t.threshold) - 1
    assert next(draws, None) is None


# Chance -------------------------------------------------------------------------------------------


def discrete_laplace_cdf(scale: float, x: int) -> float:
    q = math.exp(-1 / scale)
    return q**-x / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)


def test_the_noise_of_the_binary_mechanism_has_its_law(rng: random.Random) -> None:
    samples = whole_noise(rng.random)(Fraction(7, 2), 20_000).tolist()
    assert_follows(samples, lambda x: discrete_laplace_cdf(3.5, x))


def test_another_scale_is_noticed(rng: random.Random) -> None:
    samples = whole_noise(rng.random)(Fraction(7, 2), 20_000).tolist()
    with pytest.raises(AssertionError):
        assert_follows(samples, lambda x: discrete_laplace_cdf(4.2, x))


def laplace_cdf(scale: float, x: float) -> float:
    return math.exp(x / scale) / 2 if x < 0 else 1 - math.exp(-x / scale) / 2


def test_the_noise_of_a_threshold_has_its_law(rng: random.Random) -> None:
    samples = [math.floor(10 * laplace(rng.random)) for _ in range(20_000)]
    assert_follows(samples, lambda x: laplace_cdf(10, x + 1))


def test_a_threshold_of_the_inverse_scale_is_noticed(rng: random.Random) -> None:
    """Appendix D.1 prints Lap(epsilon / 4) once."""
    samples = [math.floor(10 * laplace(rng.random)) for _ in range(20_000)]
    with pytest.raises(AssertionError):
        assert_follows(samples, lambda x: laplace_cdf(0.1, x + 1))
