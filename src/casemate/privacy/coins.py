"""Exact coins: fair bits in, uniform integers and coins of rational or exponential bias out.

Source     Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
           arXiv:2004.00010, Algorithm 1 (coins of bias exp(-x)); Lumbroso, "Optimal Discrete
           Uniform Generation from Coin Flips", arXiv:1304.1916 (uniform integers).
Guarantee  Each law is exact: integers only, so attacks on floating-point samplers do not apply.
Cost       On average at most 2 bits a rational coin, and log2(limit) + 2 a uniform integer.
Departure  A coin of bias p/(qk) is one of p/q and one of 1/k, so that no product can overflow.
           `test_an_exponential_coin_has_exactly_its_bias` shows the law of the whole.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.tape import COMPILED_BELOW, Bits, bit, on_tape, run


def uniform_below(limit: int, size: int, bits: Bits | None = None) -> NDArray[Any]:
    """Draw integers uniformly from 0 to limit - 1 (Python integers when limit passes 2^62)."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    narrow = limit < COMPILED_BELOW
    drawn: NDArray[Any] = run(_uniform_sampler, limit, 1, size, bits=bits, narrow=narrow)[2]
    return drawn.astype(np.int64 if narrow else object)


def bernoulli_exp(exponent: Fraction, size: int, bits: Bits | None = None) -> NDArray[np.bool_]:
    """Draw True with probability exp(-exponent)."""
    if exponent < 0:
        raise ValueError(f"exponent must not be negative, got {exponent}")
    p, q = exponent.numerator, exponent.denominator
    narrow = max(p, q) < COMPILED_BELOW
    drawn: NDArray[Any] = run(_exponential_sampler, p, q, size, bits=bits, narrow=narrow)[2]
    return drawn.astype(np.bool_)


@on_tape
def below(limit: int, tape: Bits) -> int:
    """Draw an integer uniformly from 0 to limit - 1."""
    span, value = 1, 0  # value is uniform below span
    while True:
        while span < limit:
            span, value = 2 * span, 2 * value + bit(tape)
        if value < limit:
            return value
        span, value = span - limit, value - limit


@on_tape
def coin(p: int, q: int, tape: Bits) -> bool:
    """Return True with probability p/q, for 0 <= p <= q: compare bits with the digits of p/q."""
    if p == q:
        return True
    while p > 0:
        p = 2 * p
        digit = p >= q
        if digit:
            p -= q
        if bit(tape) != digit:
            return digit
    return False


@on_tape
def exponential_coin(p: int, q: int, tape: Bits) -> bool:
    """Return True with probability exp(-p/q), for 0 <= p <= q."""
    k = 1
    while coin(p, q, tape) and coin(1, k, tape):
        k += 1
    return k % 2 == 1


@on_tape
def _uniform_sampler(limit: int, _: int, tape: Bits) -> tuple[int, int, int]:
    return 0, 0, below(limit, tape)


@on_tape
def _exponential_sampler(p: int, q: int, tape: Bits) -> tuple[int, int, int]:
    while p > q:
        if not exponential_coin(1, 1, tape):
            return 0, 0, 0
        p -= q
    return 0, 0, int(exponential_coin(p, q, tape))
