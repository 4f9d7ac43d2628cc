"""Random secret primes: what makes arithmetic modulo a prime safe to decide exposure with.

Guarantee  Equations written without knowing the prime rarely have minors that it divides: one of
           `size` bits is divisible by at most size / (bits - 1) primes of that many bits.
Exact      Miller-Rabin with the first twelve primes as bases decides every number below 3.1e23
           (Sorenson and Webster, "Strong Pseudoprimes to Twelve Prime Bases", arXiv:1509.00864).
"""

import math
import os
from collections.abc import Callable

RandomBytes = Callable[[int], bytes]
"""Gives that many random bytes; `os.urandom` wherever None is passed instead."""

WIDE = 50
"""Bits of a prime whose residues, a few of them added up, are exact in double precision."""

NARROW = 23
"""Bits of a prime whose products, 96 of them added up, are exact in double precision."""

_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_MOST_BITS = 64


def random_below(limit: int, random: RandomBytes | None = None) -> int:
    """Draw an integer uniformly from 0 to limit - 1."""
    draw = random or os.urandom
    bits = (limit - 1).bit_length()
    size, spare = -(-bits // 8), -bits % 8
    while True:
        value = int.from_bytes(draw(size)) >> spare
        if value < limit:
            return value


def random_prime(bits: int, random: RandomBytes | None = None) -> int:
    """Draw a prime uniformly from those that have exactly this many bits.

    >>> random_prime(2) in {2, 3}
    True
    """
    if not 2 <= bits <= _MOST_BITS:
        raise ValueError(f"a prime has 2 to {_MOST_BITS} bits here, got {bits}")
    low = 1 << (bits - 1)
    while True:
        candidate = low + random_below(low, random)
        if is_prime(candidate):
            return candidate


def random_primes(count: int, bits: int, random: RandomBytes | None = None) -> tuple[int, ...]:
    """Draw different primes of this many bits."""
    found: dict[int, None] = {}
    while len(found) < count:
        found[random_prime(bits, random)] = None
    return tuple(found)


def is_prime(number: int) -> bool:
    """Whether a number below 2^64 is prime."""
    if number >> _MOST_BITS:
        raise ValueError(f"primality is decided below 2^{_MOST_BITS} only")
    if number < 2 or number in _BASES:
        return number in _BASES
    if math.gcd(number, math.prod(_BASES)) > 1:
        return False
    return not any(_is_witness(base, number) for base in _BASES)


def _is_witness(base: int, number: int) -> bool:
    """Whether `base` proves that an odd number is composite."""
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    power = pow(base, (number - 1) >> twos, number)
    if power in (1, number - 1):
        return False
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return False
    return True
