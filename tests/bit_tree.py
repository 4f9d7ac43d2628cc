"""Walk the tree of random bits of anything that reads a bit source one bit at a time.

The walk is exhaustive to a depth, so what it returns are proved bounds on the probabilities of the
code that ran, not estimates: an outcome has at least the mass found for it, and at most that plus
the mass that was still undecided.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import TypeVar

from casemate.privacy.noise import Bits

Outcome = TypeVar("Outcome", bound=Hashable)
_BYTES = (b"\x00", b"\x01")


class _Undecided(Exception):
    """The program wants more bits than the walk is deep."""


def walk(
    program: Callable[[Bits], Outcome], depth: int
) -> tuple[dict[Outcome, Fraction], Fraction]:
    """Return the mass of each outcome, and the mass that is undecided after `depth` bits."""
    masses: dict[Outcome, int] = defaultdict(int)  # in units of 2^-depth
    undecided = 0
    path: list[int] = []
    while True:
        try:
            outcome = program(_follow(path, depth))
        except _Undecided:
            undecided += 1
        else:
            masses[outcome] += 2 ** (depth - len(path))
        while path and path[-1] == 1:
            path.pop()
        if not path:
            unit = Fraction(1, 2**depth)
            return {outcome: mass * unit for outcome, mass in masses.items()}, undecided * unit
        path[-1] = 1  # the branch to the right of the one just walked


def _follow(path: list[int], depth: int) -> Bits:
    """Repeat the bits of `path`, and write zeros at its end for as long as more are read."""
    position = 0

    def bits(count: int) -> bytes:
        nonlocal position
        assert count == 1, "a walk needs a program that reads bit by bit"
        if position == depth:
            raise _Undecided
        if position == len(path):
            path.append(0)
        position += 1
        return _BYTES[path[position - 1]]

    return bits
