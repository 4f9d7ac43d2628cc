"""Exact discrete noise: the only module that turns randomness into privacy.

Fair bits become uniform integers and coins of rational or exponential bias, and those become draws
of the discrete Laplace and Gaussian laws.

Source     Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
           arXiv:2004.00010, Algorithm 1 (coins of bias exp(-x)) and Algorithm 2 (discrete
           Laplace); Karney, "Sampling Exactly from the Normal Distribution", arXiv:1303.6257,
           Algorithm D with mean 0 (discrete Gaussian); Lumbroso, "Optimal Discrete Uniform
           Generation from Coin Flips", arXiv:1304.1916 (uniform integers).
Guarantee  The laws are exact, for every positive rational scale: integers only, so attacks on
           floating-point samplers do not apply.
Cost       About 11 + 1.6 log2(t) random bits for a Laplace draw of scale t/s; on average at most 2
           a rational coin, and log2(limit) + 2 a uniform integer. Thousands of draws are
           compiled, unless t or s passes 2^62 (for the Gaussian law, s 2^31): then each takes
           some 100 microseconds. `benchmarks/noise.py` prints the rates.
Entropy    None means the operating system. The bits of an injected source are read in the order
           and at the pace that `tape` describes. How many are read, and so the time taken,
           depends on the noise that was drawn, never on private data.
Departure  Algorithm 2 draws the quotient by a geometric variable of ratio 1/e. We count failed
           attempts at the remainder instead, after making their chance exactly 1/e: fewer bits.
           `test_laplace_has_exactly_its_law` and its Gaussian twin enclose every probability.
           A coin of bias p/(qk) is one of p/q and one of 1/k, so that no product can overflow.
           `test_an_exponential_coin_has_exactly_its_bias` shows the law of the whole.
"""

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.noise.tape import COMPILED_BELOW, Bits, bit, on_tape, run

# Exact coins ------------------------------------------------------------------------------------


def uniform_below(limit: int, size: int, bits: Bits | None = None) -> NDArray[Any]:
    """Draw integers uniformly from 0 to limit - 1 (Python integers when limit passes 2^62)."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    narrow = limit < COMPILED_BELOW
    drawn: NDArray[Any] = run(_uniform_sampler, limit, 1, size, bits=bits, narrow=narrow)[2]
    return drawn.astype(np.int64 if narrow else object)


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


# Noise ------------------------------------------------------------------------------------------


Noise = Callable[[Fraction, int], NDArray[Any]]
"""Draws `size` integers of the given scale. Bind a bit source with `functools.partial`."""

_INT64_BELOW = 2**62
_INT64_SCALE = 2**56  # a draw passes 64 times its scale with probability below exp(-63)


def discrete_laplace(scale: Fraction, size: int, bits: Bits | None = None) -> NDArray[Any]:
    """Draw x with probability proportional to exp(-|x| / scale).

    The array holds 64-bit integers, or Python integers when the scale is 2^56 or more (or, with
    probability below exp(-63) a draw, when a value passes 2^62).

    >>> discrete_laplace(Fraction(7, 2), 5).dtype
    dtype('int64')
    """
    t, s = _parts(scale)
    narrow = max(t, s) < COMPILED_BELOW
    draws = run(_laplace, t, s, size, bits=bits, narrow=narrow)
    negative, quotient, remainder = _widen(draws, t)
    return _apply_signs(negative, (remainder + t * quotient) // s, scale)


def discrete_gaussian(scale: Fraction, size: int, bits: Bits | None = None) -> NDArray[Any]:
    """Draw x with probability proportional to exp(-x^2 / (2 scale^2)).

    The array is of the same kind as that of `discrete_laplace`.
    """
    a, b = _parts(scale)
    narrow = a < COMPILED_BELOW and b < 2**31
    draws = run(_gaussian, a, b, size, bits=bits, narrow=narrow)
    negative, whole, offset = _widen(draws, a)
    return _apply_signs(negative, -(-a * whole // b) + offset, scale)


def silence(scale: Fraction, size: int) -> NDArray[Any]:  # noqa: ARG001 - the type's first argument
    """Draw zeros: a mechanism under silence is a deterministic function, and protects nobody."""
    return np.zeros(size, np.int64)


def draw(noise: Noise, scale: Fraction) -> int:
    """Draw one Python integer."""
    return int(noise(scale, 1)[0])


def _parts(scale: Fraction) -> tuple[int, int]:
    if not isinstance(scale, Rational):
        raise ValueError(f"scale must be a Fraction or an integer, got a {type(scale).__name__}")
    if scale <= 0:
        raise ValueError(f"scale must be positive, got {scale}")
    return int(scale.numerator), int(scale.denominator)


def _widen(draws: NDArray[Any], factor: int) -> NDArray[Any]:
    """Leave 64-bit arithmetic when a product of the second row might overflow it."""
    most = int(draws[1].max(initial=0)) + 2
    return draws if factor * most < _INT64_BELOW else draws.astype(object)


def _apply_signs(negative: NDArray[Any], magnitude: NDArray[Any], scale: Fraction) -> NDArray[Any]:
    values = np.where(negative == 1, -magnitude, magnitude)
    small = scale < _INT64_SCALE and bool((magnitude < _INT64_BELOW).all())
    return values.astype(np.int64 if small else object)


@on_tape
def _laplace(t: int, s: int, tape: Bits) -> tuple[int, int, int]:
    """Draw a sign, quotient and remainder: the magnitude is (remainder + t * quotient) // s.

    An attempt ends with remainder r below t with probability exp(-r/t) (1 - exp(-1/t)). These add
    up to 1 - 1/e, so the number of attempts that fail is geometric of ratio 1/e, whatever r is.
    """
    while True:
        quotient, remainder = 0, below(t, tape)
        while not (exponential_coin(remainder, t, tape) and _slope_coin(t, tape)):
            quotient, remainder = quotient + 1, below(t, tape)
        negative = bit(tape)
        zero = remainder < s and quotient <= (s - 1 - remainder) // t
        if not (negative and zero):  # zero must not be counted once for each sign
            return negative, quotient, remainder


@on_tape
def _slope_coin(t: int, tape: Bits) -> bool:
    """Return True with probability t (1 - exp(-1/t)), which is the sum of (-1/t)^k / (k + 1)!."""
    k = 1
    while coin(1, t, tape) and coin(1, k + 1, tape):
        k += 1
    return k % 2 == 1


@on_tape
def _gaussian(a: int, b: int, tape: Bits) -> tuple[int, int, int]:
    """Draw a sign, k and j: the magnitude is ceil(k a/b) + j, which is k + x scales, 0 <= x < 1."""
    while True:
        k = _half_normal(tape)
        j = below(-(-a // b), tape)
        x = -(k % b) * (a % b) % b + j * b  # over a; b is below 2^31 and k below the bits read
        if x >= a or not _fraction_coin(k, x, a, tape):
            continue
        negative = bit(tape)
        if not (negative and k == 0 and j == 0):
            return negative, k, j


@on_tape
def _half_normal(tape: Bits) -> int:
    """Draw k with probability proportional to exp(-k^2 / 2)."""
    while True:
        k = 0
        while exponential_coin(1, 2, tape):
            k += 1
        trials = k * (k - 1)
        while trials > 0 and exponential_coin(1, 2, tape):
            trials -= 1
        if trials <= 0:
            return k


@on_tape
def _fraction_coin(k: int, x: int, a: int, tape: Bits) -> bool:
    """Return True with probability exp(-y (2k + y) / 2) for y = x/a, in k + 1 equal factors."""
    for _ in range(k + 1):
        n = 1
        while coin(x, a, tape) and _mixed_coin(k, x, a, tape) and coin(1, n, tape):
            n += 1
        if n % 2 == 0:
            return False
    return True


@on_tape
def _mixed_coin(k: int, x: int, a: int, tape: Bits) -> bool:
    """Return True with probability (2k + x/a) / (2k + 2)."""
    choice = below(2 * k + 2, tape)
    return choice < 2 * k or (choice == 2 * k and coin(x, a, tape))
