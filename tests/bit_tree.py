"""Walk the tree of random choices of a program, and that of anything that reads bits one by one.

The walk is exhaustive to a depth, so what it returns are proved bounds on the probabilities of the
code that ran, not estimates: an outcome has at least the mass found for it, and at most that plus
the mass that was still undecided.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from casemate.privacy.noise import Bits

Outcome = TypeVar("Outcome", bound=Hashable)
Choose = Callable[[Sequence[Any]], int]
"""The place of the branch to take, given the weights of all branches."""
UNDECIDED = object()
_BYTES, _EVEN = (b"\x00", b"\x01"), (1, 1)


class Undecided(Exception):
    """The program wants to choose deeper than the walk goes."""


def walk_paths(program: Callable[[Choose], Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Every outcome, or UNDECIDED, and the weights of the branches that led there."""
    path: list[int] = []
    while True:
        widths: list[int] = []
        weights: list[Any] = []

        def choose(branches: Sequence[Any], widths: Any = widths, weights: Any = weights) -> int:
            """Repeat the choices of the path, and take the first branch of each that is new."""
            if len(widths) == len(path):
                path.append(0)
            place = path[len(widths)]
            widths.append(len(branches))
            weights.append(branches[place])
            return place

        try:
            outcome = program(choose)
        except Undecided:
            outcome = UNDECIDED
        yield outcome, weights
        while path and path[-1] == widths[len(path) - 1] - 1:
            path.pop()
        if not path:
            return
        path[-1] += 1  # the branch to the right of the one just walked


def walk(
    program: Callable[[Bits], Outcome], depth: int
) -> tuple[dict[Outcome, Fraction], Fraction]:
    """Return the mass of each outcome, and the mass that is undecided after `depth` bits."""
    units: dict[Any, int] = defaultdict(int)  # of 2^-depth
    for outcome, bits in walk_paths(lambda choose: program(_bit_by_bit(choose, depth))):
        units[outcome] += 2 ** (depth - len(bits))
    undecided = units.pop(UNDECIDED, 0)
    masses = {outcome: Fraction(mass, 2**depth) for outcome, mass in units.items()}
    return masses, Fraction(undecided, 2**depth)


def _bit_by_bit(choose: Choose, depth: int) -> Bits:
    left = depth

    def bits(count: int) -> bytes:
        nonlocal left
        assert count == 1, "a walk needs a program that reads bit by bit"
        if left == 0:
            raise Undecided
        left -= 1
        return _BYTES[choose(_EVEN)]

    return bits
