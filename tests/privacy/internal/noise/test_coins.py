from fractions import Fraction

import numpy as np
import pytest
from bit_tree import walk
from exact_exponential import exp_bounds
from hypothesis import given
from hypothesis import strategies as st

from casemate.privacy.noise import seeded_bits
from casemate.privacy.noise.noise import (
    below,
    coin,
    exponential_coin,
    uniform_below,
)
from casemate.privacy.noise.tape import COMPILED_FROM_DRAWS, Bits

unit_fractions = st.fractions(0, 1, max_denominator=10**6)


# Exactly true -------------------------------------------------------------------------------------


@given(unit_fractions)
def test_a_coin_has_exactly_its_bias(bias: Fraction) -> None:
    """Only one path of each length is undecided: the digits of the bias themselves."""
    masses, undecided = walk(lambda bits: coin(bias.numerator, bias.denominator, bits), 40)
    assert undecided <= Fraction(1, 2**40)
    assert masses.get(True, 0) <= bias <= masses.get(True, 0) + undecided


@given(st.integers(1, 300))
def test_a_uniform_integer_has_exactly_its_law(limit: int) -> None:
    masses, undecided = walk(lambda bits: below(limit, bits), 12)
    assert set(masses) == set(range(limit))
    assert len(set(masses.values())) == 1, "all are equally likely at every depth"
    assert sum(masses.values()) + undecided == 1


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 7), Fraction(2, 3), Fraction(1)])
def test_an_exponential_coin_has_exactly_its_bias(exponent: Fraction) -> None:
    p, q = exponent.numerator, exponent.denominator
    masses, undecided = walk(lambda bits: exponential_coin(p, q, bits), 24)
    low, high = exp_bounds(-exponent)
    assert undecided < Fraction(1, 1000)
    assert masses[True] <= high and low <= masses[True] + undecided


def test_the_test_above_would_notice_a_coin_without_its_factorials() -> None:
    def careless(bits: Bits) -> bool:
        k = 1
        while coin(2, 3, bits):
            k += 1
        return k % 2 == 1

    masses, _ = walk(careless, 12)
    assert masses[True] > exp_bounds(Fraction(-2, 3))[1]


@pytest.mark.parametrize("limit", [2**62 - 1, 2**62, 2**62 + 1, 2**100 + 7])
@pytest.mark.parametrize("size", [5, COMPILED_FROM_DRAWS])
def test_uniform_integers_of_any_width_are_below_their_limit(limit: int, size: int) -> None:
    drawn = uniform_below(limit, size, seeded_bits(3))
    assert drawn.dtype == (np.int64 if limit < 2**62 else object)
    assert all(0 <= value < limit for value in drawn.tolist())
    assert max(drawn.tolist()) > limit // 4
