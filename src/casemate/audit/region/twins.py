"""Columns that no equation tells apart, taken together as one.

Columns with the same coefficient in every equation and the same bounds enter the equations only
through their total. The total lies between the sums of the bounds, and what is known of the total
says in closed form what is known of each. Columns with one possible value move to the right side.

Leverage: how much the equations together say about a column, between 0 and 1.

The leverage of a column is the squared length of its unit vector's projection onto the row space:
1 when the equations determine it. It is a graded score in floating point and never a verdict.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound, Box, Region, System


@dataclass(frozen=True, eq=False)
class TwinRegion:
    """A region with one column per group of twins; `group` is -1 for a column with one value."""

    region: Region
    box: Box  # of the columns
    group: NDArray[np.int64]
    size: NDArray[np.int64]
    first: NDArray[np.int64]  # a column of each group

    def member(self, group: int, low: Bound, high: Bound) -> tuple[Bound, Bound]:
        """The range of each twin when their total lies between `low` and `high`."""
        column, others = int(self.first[group]), int(self.size[group]) - 1
        own = self.box
        least, most = own.low[column], own.high[column]
        floor = _less(low, most, others)
        ceiling = _less(high, least, others)
        if own.integer[column]:
            floor = None if floor is None else Fraction(math.ceil(floor))
            ceiling = None if ceiling is None else Fraction(math.floor(ceiling))
        return tighter(floor, least, max), tighter(ceiling, most, min)


def collapse(region: Region) -> TwinRegion:
    """Group the columns with equal coefficients and bounds, and drop those with one value."""
    system, box = region.system, region.box
    free = [low is None or low != high for low, high in zip(box.low, box.high, strict=True)]
    keys = signatures(system)
    groups: dict[Any, int] = {}
    group = np.full(system.columns, -1, np.int64)
    for column in np.flatnonzero(free).tolist():
        key = keys[column], box.low[column], box.high[column], box.integer[column]
        group[column] = groups.setdefault(key, len(groups))
    kept = np.flatnonzero(group >= 0)
    size = np.bincount(group[kept], minlength=len(groups)).astype(np.int64)
    first = np.zeros(len(groups), np.int64)
    first[group[kept][::-1]] = kept[::-1]
    return TwinRegion(_totals(region, group, size, first), box, group, size, first)


def _totals(
    region: Region, group: NDArray[np.int64], size: NDArray[np.int64], first: NDArray[np.int64]
) -> Region:
    """The same equations in terms of the groups' totals."""
    system, box = region.system, region.box
    representative = np.zeros(system.columns, np.bool_)
    representative[first] = True
    keep = representative[system.column]
    entries = system.row[keep], group[system.column[keep]], system.value[keep]
    collapsed = System(system.rows, len(size), *entries)
    shift = _fixed_part(region, group)
    places = list(zip(first.tolist(), size.tolist(), strict=True))
    return Region(
        collapsed,
        Box(
            tuple(_times(box.low[column], count) for column, count in places),
            tuple(_times(box.high[column], count) for column, count in places),
            tuple(box.integer[column] for column, _ in places),
        ),
        tuple(None if v is None else v - s for v, s in zip(region.low, shift, strict=True)),
        tuple(None if v is None else v - s for v, s in zip(region.high, shift, strict=True)),
    )


def _fixed_part(region: Region, group: NDArray[np.int64]) -> list[Fraction]:
    """What the columns with one value add to each equation."""
    system, values = region.system, region.box.low
    shift = [Fraction(0)] * system.rows
    where = np.flatnonzero(group[system.column] < 0)
    for row, column, a in zip(
        system.row[where].tolist(),
        system.column[where].tolist(),
        system.value[where].tolist(),
        strict=True,
    ):
        value = values[column]
        if value:
            shift[row] += a * value
    return shift


def signatures(system: System) -> list[Any]:
    """A key per column: its coefficients, equation by equation."""
    order = np.lexsort((system.row, system.column))
    row, value = system.row[order], system.value[order]
    ends = np.searchsorted(system.column[order], np.arange(system.columns + 1)).tolist()
    spans = pairwise(ends)
    if value.dtype == np.int64:
        return [(row[a:b].tobytes(), value[a:b].tobytes()) for a, b in spans]
    return [(row[a:b].tobytes(), tuple(value[a:b].tolist())) for a, b in spans]


def _times(bound: Bound, count: int) -> Bound:
    return bound if bound is None or count == 1 else bound * count


def _less(total: Bound, other: Bound, others: int) -> Bound:
    """A bound on one twin: the total less as much as the others can take."""
    if total is None or (others and other is None):
        return None
    return total if not others or other is None else total - others * other


def tighter(implied: Bound, own: Bound, choose: Any) -> Bound:
    """The tighter of two bounds, either of which may be absent."""
    if implied is None or own is None:
        return own if implied is None else implied
    chosen: Fraction = choose(implied, own)
    return chosen


# Leverage ---------------------------------------------------------------------------------------


BATCH = 2048
DEPENDENT = 1e-10


def leverages(system: System, size: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """The leverage of every column, each standing for `size` columns that are the same.

    >>> from casemate.exact.system import System
    >>> leverages(System.of([[1, 0, 0], [0, 1, 1]])).round(6).tolist()
    [1.0, 0.5, 0.5]
    """
    weight = np.ones(system.columns) if size is None else np.sqrt(size)
    gram = np.zeros((system.rows, system.rows))
    blocks = range(0, system.columns, BATCH)
    for start in blocks:
        block = _dense(system, start, weight)
        gram += block @ block.T
    inverse = np.linalg.pinv(gram, rcond=DEPENDENT, hermitian=True)
    found = np.zeros(system.columns)
    for start in blocks:
        block = _dense(system, start, np.ones(system.columns))
        found[start : start + BATCH] = np.einsum("ij,ij->j", block, inverse @ block)
    return np.clip(found, 0.0, 1.0)


def _dense(system: System, start: int, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some columns as a dense matrix."""
    end = min(start + BATCH, system.columns)
    inside = (system.column >= start) & (system.column < end)
    column = system.column[inside]
    dense = np.zeros((system.rows, end - start))
    dense[system.row[inside], column - start] = (
        system.value[inside].astype(np.float64) * weight[column]
    )
    return dense
