from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.solve.modular import Inverse, SmallInverse
from casemate.solve.modular_kernel import CompiledInverse
from casemate.solve.primes import random_prime

seeds = st.integers(0, 2**32).map(Random)  # Hypothesis's own may be degenerate
MERSENNE = 2**61 - 1


@given(seeds, st.integers(1, 12))
def test_both_inverses_grow_into_the_inverse(rng: Random, size: int) -> None:
    prime = random_prime(61, rng.randbytes)
    limit = rng.choice([2, prime])
    matrix = [[rng.randrange(limit) for _ in range(size)] for _ in range(size)]
    small: SmallInverse = SmallInverse(prime)
    compiled: CompiledInverse | None = None
    for k in range(size):
        both: list[Inverse] = [small, compiled] if compiled else [small]
        for inverse in both:
            row = inverse.left(inverse.vector(matrix[k][:k]))
            column = inverse.right(inverse.vector([matrix[i][k] for i in range(k)]))
            corner = matrix[k][k] - inverse.dot(inverse.vector(matrix[k][:k]), column)
            if corner % prime == 0:
                return  # a singular leading minor: nothing to compare
            inverse.border(row, column, corner % prime)
        compiled = compiled or CompiledInverse(prime, small.entries())
        assert compiled.entries().tolist() == small.entries().tolist()
        product = np.array(small.entries().tolist(), object) @ np.array(
            [line[: k + 1] for line in matrix[: k + 1]], object
        )
        assert (product % prime == np.eye(k + 1, dtype=int)).all()


@given(st.integers(2**60 + 1, MERSENNE), seeds)
def test_compiled_vectors_agree_with_python(modulus: int, rng: Random) -> None:
    """Barrett's and Shoup's tricks need a modulus of 61 bits, not a prime."""
    size = 9
    entries = [[rng.randrange(modulus) for _ in range(size)] for _ in range(size)]
    inverse = CompiledInverse(modulus, np.array(entries, np.uint64))
    limit = rng.choice([2, 2**20, modulus])
    numbers = [rng.choice([-1, 1]) * rng.randrange(limit) for _ in range(size)]
    vector = inverse.vector(numbers)
    assert vector.tolist() == [number % modulus for number in numbers]
    columns = list(zip(*entries, strict=True))
    assert inverse.left(vector).tolist() == [dot(numbers, column) % modulus for column in columns]
    assert inverse.right(vector).tolist() == [dot(numbers, row) % modulus for row in entries]
    other, factor = inverse.vector(entries[0]), rng.randrange(modulus)
    assert inverse.dot(vector, other) == dot(numbers, entries[0]) % modulus
    assert inverse.minus(vector, other, factor).tolist() == [
        (a - factor * b) % modulus for a, b in zip(numbers, entries[0], strict=True)
    ]


def dot(one: list[int], other: list[int] | tuple[int, ...]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_compiled_arithmetic_refuses_other_sizes_of_primes() -> None:
    with pytest.raises(ValueError, match="61 bits"):
        CompiledInverse(101, np.zeros((1, 1), np.uint64))
