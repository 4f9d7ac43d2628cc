"""Second solutions by exchange: columns that no equation tells apart give and take.

Two columns with the same coefficients everywhere may move by the same amount in opposite ways, as
far as their bounds allow. That costs one sort, and shows most columns of a large table to be free.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from casemate.solve.box import Bound
from casemate.solve.second import Change, Solution
from casemate.solve.twins import signatures

TURNS = 4  # how many ways of pairing up are tried


def exchanges(known: Solution, columns: Iterable[int], width: Sequence[Fraction]) -> list[Change]:
    """Changes that move many of the columns by their width, each a second solution.

    >>> from casemate.solve.box import Box, Region
    >>> from casemate.solve.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [1, 1, 1]], [5, 6]), Box.of(3, 0, 9))
    >>> known = Solution(region, [Fraction(2), Fraction(3), Fraction(1)])
    >>> exchanges(known, range(3), [Fraction(1)] * 3)
    [{0: Fraction(5, 1), 1: Fraction(0, 1)}]
    """
    groups = [group for group in _alike(known) if len(group) > 1]
    left = set(columns)
    found: list[Change] = []
    for turn in range(TURNS):
        change: Change = {}
        for group in groups:
            change |= _paired(known, group, left, width, turn)
        shown = known.far(change, width) & left
        if shown and known.allows(change):
            found.append(change)
            left -= shown
    return found


def _alike(known: Solution) -> list[list[int]]:
    """Columns with room to move, by their coefficients, each group in the order of its values."""
    box, groups = known.region.box, defaultdict[Any, list[int]](list)
    for column, key in enumerate(signatures(known.region.system)):
        if box.low[column] is None or box.low[column] != box.high[column]:
            groups[key].append(column)
    return [sorted(group, key=known.values.__getitem__) for group in groups.values()]


def _paired(
    known: Solution, group: list[int], left: set[int], width: Sequence[Fraction], turn: int
) -> Change:
    """Columns still to be moved, each with a partner of its group that some turn decides."""
    change: Change = {}
    step = max(1, len(group) // 2 - turn)
    for place, column in enumerate(group):
        partner = group[(place + step) % len(group)]
        if column in left and column != partner and column not in change and partner not in change:
            change |= _traded(known, column, partner, max(width[column], width[partner]))
    return change


def _traded(known: Solution, one: int, other: int, width: Fraction) -> Change:
    """As much as two columns can trade, one way or the other."""
    box, values = known.region.box, known.values
    up = _least(_room(values[one], box.high[one]), _room(values[other], box.low[other]), width)
    down = _least(_room(values[one], box.low[one]), _room(values[other], box.high[other]), width)
    amount = max(up, down)
    if box.integer[one] or box.integer[other]:
        amount = Fraction(math.floor(amount))
    if amount <= 0:
        return {}
    signed = amount if up >= down else -amount
    return {one: values[one] + signed, other: values[other] - signed}


def _room(value: Fraction, end: Bound) -> Bound:
    return None if end is None else abs(end - value)


def _least(one: Bound, other: Bound, width: Fraction) -> Fraction:
    """How far both can go; where neither has an end, twice the width, as a whole number."""
    if one is None or other is None:
        only = other if one is None else one
        return Fraction(math.ceil(2 * width)) if only is None else only
    return min(one, other)
