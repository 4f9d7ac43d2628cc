from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import random_below, random_prime, random_primes
from casemate.exact.modular import is_prime

STRONG_PSEUDOPRIMES = [2047, 1373653, 25326001, 3215031751, 3474749660383, 341550071728321]
CARMICHAEL = [561, 1105, 1729, 2465, 2821, 6601, 8911]


def test_primality_equals_the_sieve_up_to_ten_thousand() -> None:
    limit = 10_000
    sieve = [False, False] + [True] * (limit - 2)
    for i in range(2, limit):
        if sieve[i]:
            sieve[i * i :: i] = [False] * len(sieve[i * i :: i])
    assert [is_prime(i) for i in range(limit)] == sieve


@pytest.mark.parametrize("number", STRONG_PSEUDOPRIMES + CARMICHAEL + [(2**31 - 1) * (2**31 - 19)])
def test_numbers_that_deceive_weaker_tests_are_composite(number: int) -> None:
    assert not is_prime(number)


@pytest.mark.parametrize("number", [2**61 - 1, 2**64 - 59, 2**31 - 1, 2**23 - 15])
def test_known_large_primes_are_prime(number: int) -> None:
    assert is_prime(number)


@pytest.mark.parametrize("bits", [2, 3, 23, 61, 64])
def test_a_random_prime_has_the_stated_bits(bits: int, rng: Random) -> None:
    for _ in range(20):
        prime = random_prime(bits, rng.randbytes)
        assert prime.bit_length() == bits and is_prime(prime)


def test_every_prime_of_five_bits_comes_up(rng: Random) -> None:
    drawn = Counter(random_prime(5, rng.randbytes) for _ in range(300))
    assert set(drawn) == {17, 19, 23, 29, 31}


def test_several_primes_are_different(rng: Random) -> None:
    assert len(set(random_primes(5, 5, rng.randbytes))) == 5


def test_without_a_source_of_randomness_two_primes_differ() -> None:
    assert random_prime(61) != random_prime(61)


@given(st.integers(1, 2**70), st.randoms(use_true_random=False))
def test_a_random_integer_is_below_its_limit(limit: int, rng: Random) -> None:
    assert 0 <= random_below(limit, rng.randbytes) < limit


@pytest.mark.parametrize("bits", [1, 65])
def test_other_sizes_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="2 to 64 bits"):
        random_prime(bits)
    with pytest.raises(ValueError, match="below 2"):
        is_prime(2**64)
