"""Whom somebody could swap values with: the rows that treat two people differently.

If no published row does, and their values differ, either may have the other's value: nobody is
exposed, by sums, extremes, medians or gaps. So the rows that tell somebody from the nearest other
person are a repair for both, whatever was found about them, or could not be decided.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.repair.statements import RowEvidence
from casemate.audit.result import Withheld
from casemate.published import column_values
from casemate.query.language import Scalar

MAX_MEMBERSHIPS = 50_000_000
"""Rows times people up to which it is written down who is in which row."""


class Twins:
    """Who is in which row, and which other people are told apart by the fewest of them."""

    def __init__(self, case: Case, rows: Mapping[Withheld, RowEvidence]) -> None:
        self._case, self._rows = case, list(rows)
        people = len(case.equations.records)
        self._values: dict[str, list[Scalar]] = {}
        self._inside: NDArray[np.bool_] | None = None
        if len(rows) * people <= MAX_MEMBERSHIPS:
            self._inside = np.zeros((len(rows), people), np.bool_)
            for number, shown in enumerate(rows.values()):
                self._inside[number, shown.records] = True

    def rows_between(
        self, place: int, names: Collection[str], kept: Collection[Withheld]
    ) -> list[Withheld]:
        """The fewest of these rows without which somebody is like another with other values.

        None are returned where there is nobody to be like.
        """
        if self._inside is None:
            return []
        published = set(kept)
        numbers = [i for i, row in enumerate(self._rows) if row in published]
        differ = self._inside[numbers] != self._inside[numbers, place][:, None]
        others = np.flatnonzero(self._may_swap(place, names))
        if not len(others):
            return []
        nearest = others[np.argmin(differ[:, others].sum(axis=0))]
        return [self._rows[numbers[i]] for i in np.flatnonzero(differ[:, nearest])]

    def _may_swap(self, place: int, names: Collection[str]) -> NDArray[np.bool_]:
        """Who has another value in each of some columns, and one where missing is public."""
        found = np.ones(len(self._case.equations.records), np.bool_)
        for name in names:
            column = self._case.policy.column(name)
            is_secret = column is not None and column.nullable
            values = self._values_of(name)
            own = values[place]
            found &= [
                value != own and (is_secret or (value is None) == (own is None)) for value in values
            ]
        return found

    def _values_of(self, name: str) -> list[Scalar]:
        """The values of a column, by the positions of the records."""
        if name not in self._values:
            people, values = self._case.equations.people, column_values(name, self._case.source)
            everybody = range(len(people.records))
            self._values[name] = [values[people.record(place)] for place in everybody]
        return self._values[name]
