"""Rounded sums of whole numbers: whole themselves, so often exact.

The average of four ages to one decimal gives their sum away: only one whole number rounds to it.
A row of whole numbers with whole coefficients is a multiple of what divides all its coefficients,
and its ends move inwards to such multiples.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.published.equations import Equations, with_sides
from casemate.solve.box import Bound


def with_whole_rows(case: Case) -> Case:
    """The case with rounded rows of whole numbers as narrow as that makes them."""
    equations, rounded = case.equations, _rounded(case.equations)
    if not rounded:
        return case
    low, high, ends = list(equations.low), list(equations.high), list(equations.open_ends)
    divisors = _divisors(case)
    for row in rounded:
        step = divisors.get(row)
        inside = None if step is None else _inside(low[row], high[row], ends[row], step)
        if inside is not None:
            low[row], high[row], ends[row] = *inside, (False, False)
    return replace(
        case,
        equations=with_sides(equations, tuple(low), tuple(high), tuple(ends)),
        rounded=frozenset(rounded),
    )


def impossible(case: Case) -> list[int]:
    """Rows of whole numbers between whose ends no number is possible."""
    equations = case.equations
    return [
        row
        for row, step in _divisors(case).items()
        if _inside(equations.low[row], equations.high[row], equations.open_ends[row], step) is None
    ]


def _rounded(equations: Equations) -> list[int]:
    ends = zip(equations.low, equations.high, strict=True)
    return [row for row, (low, high) in enumerate(ends) if low != high]


def _divisors(case: Case) -> dict[int, int]:
    """What divides every value of a row, for each row of whole numbers."""
    system = case.equations.system
    if not system.columns:
        return {}
    order = np.argsort(system.row, kind="stable")
    rows, starts = np.unique(system.row[order], return_index=True)
    whole = np.array(case.box.integer, np.bool_)[system.column[order]]
    inside = np.logical_and.reduceat(whole, starts) if len(rows) else whole
    sizes = np.abs(system.value[order])  # of one coefficient gcd would keep the sign
    common = np.gcd.reduceat(sizes, starts) if len(rows) else sizes
    return dict(zip(rows[inside].tolist(), common[inside].tolist(), strict=True))


def _inside(
    low: Fraction, high: Bound, open_ends: tuple[bool, bool], step: int
) -> tuple[Fraction, Bound] | None:
    """The least and the greatest multiple within; None if there is none."""
    least = math.ceil(low / step)
    least += open_ends[0] and least * step == low
    if high is None:
        return Fraction(least * step), None
    most = math.floor(high / step)
    most -= open_ends[1] and most * step == high
    return None if least > most else (Fraction(least * step), Fraction(most * step))
