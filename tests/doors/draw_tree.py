"""Walk the tree of noise draws of anything that takes a noise source, through the real sampler.

For each integer there is a string of bits that leads the shipped sampler to it. Its probability is
enclosed by exact arithmetic, and `privacy/test_noise.py` shows that the sampler has that law. A
program that draws several times is run once for every combination of integers within a window; each
draw is made by the shipped sampler on such a string. What is found for an outcome is a proved lower
bound on its probability, because draws read bits of their own; all that was not walked is the
undecided mass, which any outcome may have besides.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from exact_exponential import laplace_bounds
from numpy.typing import NDArray

from casemate.privacy.noise import Noise, discrete_laplace, seeded_bits

Outcome = TypeVar("Outcome", bound=Hashable)
UNITS = 2**60  # masses are rounded down to so many parts, which keeps them short


class Branch(NamedTuple):
    """An integer, a lower bound on its probability, and bits that lead to it."""

    value: int
    mass: Fraction
    bits: bytes


@cache
def branches(scale: Fraction, reach: int) -> tuple[Branch, ...]:
    """The integers from -reach to reach, and bits found for each by drawing until all have come."""
    paths: dict[int, bytes] = {}
    wanted, bits = set(range(-reach, reach + 1)), seeded_bits(0)
    while not wanted <= paths.keys():
        read = bytearray()

        def recorded(count: int, read: bytearray = read) -> bytes:
            read.extend(bits(count))
            return bytes(read[-count:])

        value = int(discrete_laplace(scale, 1, recorded)[0])
        paths.setdefault(value, bytes(read))
    return tuple(_branch(value, scale, paths[value]) for value in sorted(wanted))


def _branch(value: int, scale: Fraction, bits: bytes) -> Branch:
    low, _ = laplace_bounds(value, scale)
    return Branch(value, Fraction(math.floor(low * UNITS), UNITS), bits)


def walk_draws(
    program: Callable[[Noise], Outcome], reach: int
) -> tuple[dict[Outcome, Fraction], Fraction]:
    """The mass of each outcome, and the mass that is undecided."""
    masses: dict[Outcome, Fraction] = defaultdict(Fraction)
    path: list[int] = []
    while True:
        widths: list[int] = []
        factors: list[Fraction] = []
        outcome = program(_following(path, widths, factors, reach))
        masses[outcome] += _product(factors)
        while path and path[-1] == widths[len(path) - 1] - 1:
            path.pop()
        if not path:
            return dict(masses), 1 - sum(masses.values(), Fraction(0))
        path[-1] += 1


def _following(path: list[int], widths: list[int], factors: list[Fraction], reach: int) -> Noise:
    """Repeat the draws of `path`, and take the first branch of each that is new."""

    def one(scale: Fraction) -> int:
        if len(widths) == len(path):
            path.append(0)
        found = branches(scale, reach)
        branch = found[path[len(widths)]]
        widths.append(len(found))
        factors.append(branch.mass)
        left = bytearray(branch.bits)
        value = int(discrete_laplace(scale, 1, lambda _: bytes([left.pop(0)]))[0])
        assert value == branch.value and not left, "the sampler is a function of its bits"
        return value

    def noise(scale: Fraction, size: int) -> NDArray[Any]:
        return np.array([one(scale) for _ in range(size)])

    return noise


def _product(factors: list[Fraction]) -> Fraction:
    top, bottom = 1, 1
    for factor in factors:
        top, bottom = top * factor.numerator, bottom * factor.denominator
    return Fraction(top, bottom)
