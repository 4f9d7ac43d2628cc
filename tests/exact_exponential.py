"""Rational bounds on exponentials and on the laws made of them: the truth that samplers meet."""

from fractions import Fraction
from math import ceil, factorial, floor

Bounds = tuple[Fraction, Fraction]
UNIT = 2**256  # bounds are rounded outwards to whole parts of it, which keeps them short


def exp_bounds(x: Fraction, terms: int = 60) -> Bounds:
    """Enclose exp(x), for |x| at most 20, by Taylor's series with a geometric tail."""
    size = abs(x)
    low = sum((size**k / factorial(k) for k in range(terms)), Fraction(0))
    high = low + size**terms / factorial(terms) / (1 - size / (terms + 1))
    if x < 0:
        low, high = 1 / high, 1 / low
    return Fraction(floor(low * UNIT), UNIT), Fraction(ceil(high * UNIT), UNIT)


def laplace_bounds(x: int, scale: Fraction) -> Bounds:
    """Enclose the probability of x under the discrete Laplace law."""
    low, high = exp_bounds(-1 / scale)
    return (
        (1 - high) / (1 + high) * low ** abs(x),
        (1 - low) / (1 + low) * high ** abs(x),
    )


def geometric_bounds(x: int, scale: Fraction) -> Bounds:
    """Enclose the probability of x under the one-sided law: (1 - p) p^x where x is not negative."""
    if x < 0:
        return Fraction(0), Fraction(0)
    low, high = exp_bounds(-1 / scale)
    return (1 - high) * low**x, (1 - low) * high**x


def gaussian_bounds(x: int, scale: Fraction, reach: int = 8) -> Bounds:
    """Enclose the probability of x under the discrete Gaussian law, whose weight beyond `reach`
    is below a geometric series.
    """
    weights = [exp_bounds(-(Fraction(k) ** 2) / (2 * scale**2)) for k in range(reach + 1)]
    ratio = weights[reach][1] / weights[reach - 1][0]
    tail = 2 * weights[reach][1] * ratio / (1 - ratio)
    total_low = weights[0][0] + 2 * sum(low for low, _ in weights[1:])
    total_high = weights[0][1] + 2 * sum(high for _, high in weights[1:]) + tail
    low, high = weights[abs(x)]
    return low / total_high, high / total_low
