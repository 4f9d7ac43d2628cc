from collections import Counter
from random import Random

import numpy as np
import pytest
from exact_rank import seeds
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import WIDE_PRIME_BITS, random_below, random_prime, random_primes
from casemate.exact.modular import (
    PENDING_TERMS,
    CompiledInverse,
    Inverse,
    SmallInverse,
    is_prime,
)

STRONG_PSEUDOPRIMES = [2047, 1373653, 25326001, 3215031751, 3474749660383, 341550071728321]
CARMICHAEL = [561, 1105, 1729, 2465, 2821, 6601, 8911]
COMPOSITE = STRONG_PSEUDOPRIMES + CARMICHAEL + [(2**31 - 1) * (2**31 - 19)]
LARGE_PRIMES = [2**61 - 1, 2**64 - 59, 2**31 - 1, 2**23 - 15]


@given(seeds, st.integers(1, 12))
def test_both_inverses_grow_into_the_inverse(rng: Random, size: int) -> None:
    prime = random_prime(WIDE_PRIME_BITS, rng.randbytes)
    limit = rng.choice([2, prime])
    matrix = [[rng.randrange(limit) for _ in range(size)] for _ in range(size)]
    small: SmallInverse = SmallInverse(prime)
    compiled: CompiledInverse | None = None
    for k in range(size):
        both: list[Inverse] = [small, compiled] if compiled else [small]
        for inverse in both:
            row = inverse.times_inverse(inverse.vector(matrix[k][:k]))
            column = inverse.inverse_times(inverse.vector([matrix[i][k] for i in range(k)]))
            corner = matrix[k][k] - inverse.dot(inverse.vector(matrix[k][:k]), column)
            if corner % prime == 0:
                return  # a singular leading minor: nothing to compare
            inverse.border(row, column, pow(corner, -1, prime))
        compiled = compiled or CompiledInverse(prime, small.entries())
        assert compiled.entries().tolist() == small.entries().tolist()
        product = np.array(small.entries().tolist(), object) @ np.array(
            [line[: k + 1] for line in matrix[: k + 1]], object
        )
        assert (product % prime == np.eye(k + 1, dtype=int)).all()


@given(st.integers(2 ** (WIDE_PRIME_BITS - 1) + 1, 2**WIDE_PRIME_BITS - 1), seeds)
def test_compiled_vectors_agree_with_python(modulus: int, rng: Random) -> None:
    """The arithmetic needs a modulus of so many bits, not a prime."""
    size = 9
    entries = [[rng.randrange(modulus) for _ in range(size)] for _ in range(size)]
    inverse = CompiledInverse(modulus, np.array(entries, np.uint64))
    limit = rng.choice([2, 2**20, modulus])
    numbers = [rng.choice([-1, 1]) * rng.randrange(limit) for _ in range(size)]
    vector = inverse.vector(numbers)
    assert vector.tolist() == [number % modulus for number in numbers]
    columns = list(zip(*entries, strict=True))
    assert inverse.times_inverse(vector).tolist() == [
        dot(numbers, column) % modulus for column in columns
    ]
    assert inverse.inverse_times(vector).tolist() == [
        dot(numbers, row) % modulus for row in entries
    ]
    other, factor = inverse.vector(entries[0]), rng.randrange(modulus)
    assert inverse.dot(vector, other) == dot(numbers, entries[0]) % modulus
    assert inverse.minus(vector, other, factor).tolist() == [
        (a - factor * b) % modulus for a, b in zip(numbers, entries[0], strict=True)
    ]


@pytest.mark.parametrize("limit", [2, 2**WIDE_PRIME_BITS])
def test_many_borders_later_it_is_still_the_inverse(limit: int) -> None:
    """Enough of them for what is kept beside the matrix to be worked in, and for more room."""
    rng, size = Random(limit), 3 * PENDING_TERMS + 7
    prime = random_prime(WIDE_PRIME_BITS, rng.randbytes)
    matrix = [[rng.randrange(limit) % prime for _ in range(size)] for _ in range(size)]
    for k in range(size):
        matrix[k][k] = 1000 + k  # so that no leading minor of zeros and ones is 0
    small: SmallInverse = SmallInverse(prime)
    grow(small, [line[:4] for line in matrix[:4]])
    compiled = CompiledInverse(prime, small.entries())
    for inverse in (small, compiled):
        grow(inverse, matrix)
    probe = [rng.randrange(prime) for _ in range(size)]
    for one, other in (
        (small.times_inverse, compiled.times_inverse),
        (small.inverse_times, compiled.inverse_times),
    ):
        assert one(small.vector(probe)).tolist() == other(compiled.vector(probe)).tolist()
    assert compiled.entries().tolist() == small.entries().tolist()


def grow(inverse: Inverse, matrix: list[list[int]]) -> None:
    """Border with the further rows and columns of a matrix."""
    for k in range(inverse.size, len(matrix)):
        new_row = inverse.vector(matrix[k][:k])
        row = inverse.times_inverse(new_row)
        column = inverse.inverse_times(inverse.vector([line[k] for line in matrix[:k]]))
        corner = matrix[k][k] - inverse.dot(new_row, column)
        inverse.border(row, column, pow(corner, -1, inverse.prime))


@pytest.mark.parametrize("modulus", [2**WIDE_PRIME_BITS - 1, 2 ** (WIDE_PRIME_BITS - 1) + 1])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_the_largest_residues_are_multiplied_exactly(modulus: int, place: int) -> None:
    """Nothing is lost to rounding where all factors are at one end, or in the middle."""
    size, number = 40, modulus - 1 if place == 1 else modulus // place
    inverse = CompiledInverse(modulus, np.full((size, size), number, np.uint64))
    vector = inverse.vector([number] * size)
    assert inverse.times_inverse(vector).tolist() == [size * number**2 % modulus] * size
    assert inverse.dot(vector, vector) == size * number**2 % modulus
    assert inverse.minus(vector, vector, number).tolist() == [(number - number**2) % modulus] * size


def dot(one: list[int], other: list[int] | tuple[int, ...]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_other_sizes_of_primes_are_refused() -> None:
    for bits in (1, 65):
        with pytest.raises(ValueError, match="2 to 64 bits"):
            random_prime(bits)
    with pytest.raises(ValueError, match=f"{WIDE_PRIME_BITS} bits"):
        CompiledInverse(101, np.zeros((1, 1), np.uint64))
    with pytest.raises(ValueError, match="below 2"):
        is_prime(2**64)


# Primes ---------------------------------------------------------------------------------------


def test_primality_equals_the_sieve_and_is_not_deceived_by_pseudoprimes() -> None:
    limit = 10_000
    sieve = [False, False] + [True] * (limit - 2)
    for i in range(2, limit):
        if sieve[i]:
            sieve[i * i :: i] = [False] * len(sieve[i * i :: i])
    assert [is_prime(i) for i in range(limit)] == sieve
    assert not any(map(is_prime, COMPOSITE)) and all(map(is_prime, LARGE_PRIMES))


@pytest.mark.parametrize("bits", [2, 3, 23, 61, 64])
def test_a_random_prime_has_the_stated_bits(bits: int, rng: Random) -> None:
    for _ in range(20):
        prime = random_prime(bits, rng.randbytes)
        assert prime.bit_length() == bits and is_prime(prime)


def test_every_prime_of_five_bits_comes_up_and_several_are_different(rng: Random) -> None:
    drawn = Counter(random_prime(5, rng.randbytes) for _ in range(300))
    assert set(drawn) == {17, 19, 23, 29, 31} == set(random_primes(5, 5, rng.randbytes))
    assert random_prime(61) != random_prime(61), "without a source the operating system is one"


@given(st.integers(1, 2**70), st.randoms(use_true_random=False))
def test_a_random_integer_is_below_its_limit(limit: int, rng: Random) -> None:
    assert 0 <= random_below(limit, rng.randbytes) < limit
