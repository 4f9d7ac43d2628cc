"""The rules that statistical offices apply to one published sum at a time.

Source     Hundepool and others, "Statistical Disclosure Control", Wiley 2012: the p % rule and the
           (n, k) dominance rule.
Guarantee  Exact arithmetic on the table's own values. A cell that passes both may still give
           somebody away together with others: that is what the rest of the audit is about.
Limit      Sums and averages of a private number, where nobody counts with less than nothing; other
           cells have no contributions to compare and are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.result import SensitiveCell
from casemate.errors import Misconfigured
from casemate.published import true_values
from casemate.query.language import Scalar

P_PERCENT, DOMINANCE = "p-percent", "dominance"
Key = tuple[tuple[str, Scalar], ...] | None
INT64_SAFE_TOTAL = 2**62
"""Totals below this are exact in 64 bits."""


@dataclass(frozen=True)
class Dominance:
    """A cell is sensitive when its `largest` contributions are more than a `share` of it."""

    largest: int = 2
    share: Fraction = Fraction(9, 10)


def read_dominance(text: str) -> Dominance:
    """N,K% as people write it.

    >>> read_dominance("3,80%")
    Dominance(largest=3, share=Fraction(4, 5))
    """
    largest, _, share = text.partition(",")
    try:
        number = Fraction(share.strip().removesuffix("%"))
        found = Dominance(int(largest), number / 100 if share.strip().endswith("%") else number)
    except (ValueError, ZeroDivisionError):
        found = Dominance(0)
    if found.largest < 1 or not 0 <= found.share <= 1:
        raise Misconfigured(f"--dominance {text} is not N,K%; write for example --dominance 2,90%")
    return found


def sensitive_cells(
    case: Case, protect: Fraction, dominance: Dominance
) -> tuple[tuple[SensitiveCell, ...], int]:
    """The cells that a rule calls sensitive, each once; how many cells no rule can judge."""
    cells = _Contributions.of(case)
    found: dict[tuple[int, str, Key], dict[str, None]] = {}
    for place, rules in cells.broken_rules(protect, dominance):
        shown, column = case.equations.places[cells.rows[place]], cells.columns[place]
        found.setdefault((shown.query, column, shown.key), {}).update(dict.fromkeys(rules))
    listed = tuple(SensitiveCell(*cell, tuple(rules)) for cell, rules in found.items())
    return listed, cells.negative


@dataclass(frozen=True, eq=False)
class _Contributions:
    """What each person adds to each cell, as whole numbers, cell by cell."""

    rows: list[int]  # the equation of each cell
    columns: list[str]  # the private column it is about
    starts: NDArray[np.int64]
    amounts: NDArray[Any]
    negative: int  # cells to which somebody adds less than nothing

    @classmethod
    def of(cls, case: Case) -> "_Contributions":
        """The sums and averages of one private number to which nobody adds less than nothing."""
        row, amount = _amounts(case)
        kind = _kinds(case)
        below = np.unique(row[np.asarray(amount < 0, np.bool_) & (kind[row] >= 0)])
        kind[below] = -1
        kept = kind[row] >= 0
        rows, starts = np.unique(row[kept], return_index=True)
        columns = [case.equations.unknowns[which].column for which in kind[rows].tolist()]
        return cls(rows.tolist(), columns, starts, amount[kept], len(below))

    def broken_rules(
        self, protect: Fraction, dominance: Dominance
    ) -> Iterator[tuple[int, list[str]]]:
        """The cells that break a rule, and which."""
        if not self.rows:
            return
        totals = np.add.reduceat(self.amounts, self.starts).tolist()
        largest = self._largest(max(2, dominance.largest))
        for place, total in enumerate(totals):
            top = [int(line[place]) for line in largest]
            rules = []
            if total - top[0] - top[1] < protect * top[0]:
                rules.append(P_PERCENT)
            if sum(top[: dominance.largest]) > dominance.share * total:
                rules.append(DOMINANCE)
            if rules:
                yield place, rules

    def _largest(self, count: int) -> list[NDArray[Any]]:
        """The largest contribution to each cell, the second largest, and so on; 0 where none is."""
        remaining, found = self.amounts.copy(), []
        lengths = np.diff([*self.starts, len(remaining)])
        cell = np.repeat(np.arange(len(lengths)), lengths)
        for _ in range(count):
            peak = np.maximum.reduceat(remaining, self.starts)
            found.append(peak)
            at = np.flatnonzero(remaining == peak[cell])
            remaining[at[np.unique(cell[at], return_index=True)[1]]] = 0
        return found


def _kinds(case: Case) -> NDArray[np.int64]:
    """The one private number that an equation adds up, or -1 where it does anything else."""
    equations, system = case.equations, case.equations.system
    number = np.array([each.category is None for each in equations.unknowns], np.bool_)
    kind = equations.unknown[system.column]
    found, least = np.full(system.rows, -1), np.full(system.rows, len(number))
    np.maximum.at(found, system.row, kind)
    np.minimum.at(least, system.row, kind)
    found[found != least] = -1
    found[system.row[~number[kind] | np.asarray(system.value < 0, np.bool_)]] = -1
    found[[row for row, end in enumerate(equations.high) if end is None]] = -1
    return found


def _amounts(case: Case) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Coefficient times value for every person in every equation, over one denominator."""
    equations, system = case.equations, case.equations.system
    values = _whole_values(case)
    reach = max(map(abs, values.tolist()), default=0)
    weight = max((abs(int(each)) for each in np.unique(system.value)), default=0)
    fits = max(1, reach) * weight * max(1, system.columns) < INT64_SAFE_TOTAL
    kind = np.int64 if fits else object
    amount = system.value.astype(kind) * values.astype(kind)[system.column]
    owner = equations.people.first[equations.record[system.column]]
    order = np.lexsort((owner, system.row))
    row, owner, amount = system.row[order], owner[order], amount[order]
    if not len(row):
        return row, amount
    new = np.ones(len(row), np.bool_)
    new[1:] = (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])
    starts = np.flatnonzero(new)
    return row[starts], np.add.reduceat(amount, starts)


def _whole_values(case: Case) -> NDArray[Any]:
    """The table's own numbers over one denominator; 0 for everything that is no number."""
    columns = [c for c in range(case.equations.system.columns) if case.is_number(c)]
    true = true_values(case.equations, columns, case.source)
    common = lcm(1, *(value.denominator for value in true.values()))
    values = np.zeros(case.equations.system.columns, object)
    for column, value in true.items():
        values[column] = int(value * common)
    return values
