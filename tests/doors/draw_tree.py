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
from bit_tree import Choose, walk_paths
from exact_exponential import laplace_bounds

from casemate.privacy.noise import Noise, discrete_laplace, seeded_bits

Outcome = TypeVar("Outcome", bound=Hashable)
Walked = tuple[dict[Any, Fraction], Fraction]  # the mass of each outcome, and the undecided mass
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
    for outcome, factors in walk_paths(lambda choose: program(_draw_along(choose, reach))):
        masses[outcome] += _product(factors)
    return dict(masses), 1 - sum(masses.values(), Fraction(0))


def _draw_along(choose: Choose, reach: int) -> Noise:
    """Draw by the shipped sampler on the bits of the branch that is chosen."""

    def one(scale: Fraction) -> int:
        found = branches(scale, reach)
        branch = found[choose([each.mass for each in found])]
        left = bytearray(branch.bits)
        value = int(discrete_laplace(scale, 1, lambda _: bytes([left.pop(0)]))[0])
        assert value == branch.value and not left, "the sampler is a function of its bits"
        return value

    return lambda scale, size: np.array([one(scale) for _ in range(size)])


def _product(factors: list[Fraction]) -> Fraction:
    top, bottom = 1, 1
    for factor in factors:
        top, bottom = top * factor.numerator, bottom * factor.denominator
    return Fraction(top, bottom)


# Two-sided bounds on the privacy loss of two programs -------------------------------------------


def at_least(one: Walked, other: Walked) -> float:
    """Epsilon is at least this: the best event of outcomes, ordered by their ratio."""
    (masses, _), (others, undecided) = one, other
    order = sorted(masses, key=lambda o: others.get(o, Fraction(0)) / masses[o])
    best, here, there = -math.inf, Fraction(0), undecided
    for outcome in order:
        here, there = here + masses[outcome], there + others.get(outcome, Fraction(0))
        best = max(best, math.log(here / there) if there else math.inf)
    return best


def excess(one: Walked, other: Walked, epsilon: float | Fraction) -> float:
    """At most this delta is left at `epsilon`: what outcomes exceed, and all that is undecided."""
    (masses, undecided), (others, _) = one, other
    factor = Fraction(math.exp(epsilon))
    over = (max(Fraction(0), m - factor * others.get(o, Fraction(0))) for o, m in masses.items())
    return float(sum(over, undecided))
