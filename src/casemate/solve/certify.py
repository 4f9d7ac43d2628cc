"""From what the simplex method says to what is proved: bounds and contradictions.

A vertex suggests multipliers. Rounded to simple fractions they usually prove its value outright;
where they do not, the basis is solved in exact rationals.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.solve.dual_bound import bound_below
from casemate.solve.linear_program import LinearProgram, Status, Vertex
from casemate.solve.rational_solution import simple
from casemate.solve.scaled import Scaled

CLOSE = 1e-6
"""A proved bound this close to the vertex's value, in the program's doubles, is good enough."""

SIMPLE = 1000
"""The largest denominator of a simple fraction."""


def proved_minimum(vertex: Vertex, objective: dict[int, int], exact: bool) -> Fraction | None:
    """A proved lower bound close to the vertex's value, in scaled units, or None.

    With `exact` the basis is solved in rationals even if simple fractions come close.
    """
    scaled = vertex.scaled
    if not exact:
        quick = bound_below(scaled, simple(vertex.multipliers, SIMPLE), objective)
        if quick is not None and _is_close(vertex, quick):
            return quick
    multipliers = vertex.exact_multipliers(objective)
    found = None if multipliers is None else bound_below(scaled, multipliers, objective)
    if found is not None and _is_close(vertex, found):
        return found
    rough = bound_below(scaled, [Fraction(each) for each in vertex.multipliers], objective)
    return rough if rough is not None and _is_close(vertex, rough) else None


def _is_close(vertex: Vertex, bound: Fraction) -> bool:
    gap = vertex.value - float(bound * vertex.scaled.shrink)
    return gap <= CLOSE * max(1.0, abs(vertex.value))


def contradiction(scaled: Scaled, deadline: float = float("inf")) -> tuple[int, ...] | None:
    """Equations that cannot hold together within the bounds, or None if that is not proved.

    The least total by which the equations must be missed has multipliers; if those prove 0 > 0
    for the region itself, the equations they combine contradict each other.
    """
    elastic = _elastic(scaled)
    objective = dict.fromkeys(range(scaled.columns, elastic.columns), 1)
    costs = np.zeros(elastic.columns)
    costs[scaled.columns :] = 1
    status, vertex = LinearProgram(elastic).minimise(costs, deadline)
    if status is not Status.OPTIMAL:
        return None
    for multipliers in (simple(vertex.multipliers, SIMPLE), vertex.exact_multipliers(objective)):
        if multipliers is not None and _proves_contradiction(scaled, multipliers):
            used = set(scaled.row.tolist())
            return tuple(row for row, weight in enumerate(multipliers) if weight and row in used)
    return None


def _proves_contradiction(scaled: Scaled, multipliers: Sequence[Fraction]) -> bool:
    bound = bound_below(scaled, multipliers, {})
    return bound is not None and bound > 0


def _elastic(scaled: Scaled) -> Scaled:
    """The region with a column for every amount by which an equation is missed, either way."""
    rows = np.repeat(np.arange(scaled.rows), 2)
    count = 2 * scaled.rows
    return replace(
        scaled,
        low=scaled.low + (0,) * count,
        high=scaled.high + (None,) * count,
        row=np.concatenate([scaled.row, rows]),
        column=np.concatenate([scaled.column, scaled.columns + np.arange(count)]),
        value=np.concatenate([scaled.value, np.tile([1, -1], scaled.rows).astype(np.int64)]),
    )
