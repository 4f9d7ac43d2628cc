"""Whether each column of a region with whole numbers has another possible value.

The cheapest second solutions first: exchanges between columns that no equation tells apart, then
whole vertices of linear programs; CP-SAT decides what they leave, where every column is a whole
number between finite ends. Elsewhere the lack of a second solution proves nothing, and a column
that none was found for is undecided.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from casemate.solve.backbone import backbone, decidable
from casemate.solve.exchange import exchanges
from casemate.solve.second import Change, Solution
from casemate.solve.witness import cut, witness

FIRST = 5.0
"""Seconds that linear programs may take before CP-SAT has its turn, where it can decide."""


@dataclass(frozen=True)
class Whole:
    """Columns with one possible value, those not decided, and changes that move all the others."""

    fixed: frozenset[int]
    undecided: frozenset[int]
    changes: tuple[Change, ...]


def decide(
    known: Solution,
    columns: Iterable[int],
    width: Sequence[Fraction],
    seconds: float = float("inf"),
) -> Whole:
    """Settle whether each column can differ from the known solution by at least its width.

    >>> from casemate.solve.box import Box, Region
    >>> from casemate.solve.system import System
    >>> triangle = System.of([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]], [2, 2, 2])
    >>> region = Region.of(triangle, Box.of(4, 0, 1, integer=True))
    >>> known = Solution(region, [Fraction(v) for v in (1, 1, 1, 0)])
    >>> sorted(decide(known, range(4), [Fraction(1)] * 4).fixed)
    [0, 1, 2, 3]
    """
    deadline = time.monotonic() + seconds
    left = set(columns)
    changes = exchanges(known, left, width) if seconds > 0 else []
    for change in changes:
        left -= known.far(change, width)
    able = decidable(known.region.within(cut(known.region.box, known.values, width)))
    first = min(FIRST, seconds) if able else seconds
    vertices = witness(known.region, known.values, left, width, seconds=first)
    changes += [known.change_to(table) for table in vertices.tables]
    return _by_search(known, set(vertices.open), width, deadline, changes)


def _by_search(
    known: Solution,
    left: set[int],
    width: Sequence[Fraction],
    deadline: float,
    changes: list[Change],
) -> Whole:
    """Let CP-SAT decide; in a box that was cut to be finite it can only show columns to be free."""
    region = known.region
    finite = region.within(cut(region.box, known.values, width))
    if not left or not decidable(finite):
        return Whole(frozenset(), frozenset(left), tuple(changes))
    whole = [int(value) for value in known.values]
    least = [max(1, -int(-each // 1)) for each in width]
    found = backbone(finite, whole, left, width=least, seconds=deadline - time.monotonic())
    changes += found.changes
    if decidable(region):
        return Whole(found.fixed, found.undecided, tuple(changes))
    return Whole(frozenset(), found.fixed | found.undecided, tuple(changes))
