"""Which tables must look alike, and how far a question moves between two of them.

Guarantee  Add-remove: one person's rows come or go. Replace, or only private values protected: one
           person's rows become others, so a sum moves by the whole range of what a row adds, and
           a table of counts loses rows in one place and gains them in another. Each bound is for
           `rows` rows of one person, wherever they fall.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from casemate.table.schema import Budget, Neighbours, Policy, Protects


@dataclass(frozen=True)
class Relation:
    """The neighbouring relation of a policy.

    >>> Relation().of_sum(-2, 5), Relation(exchanged=True, rows=3).of_sum(-2, 5)
    (5, 21)
    """

    exchanged: bool = False  # rows become others, instead of coming or going
    rows: int = 1  # of one person
    counted: bool = False  # whether everybody knows the number of rows

    @classmethod
    def of(cls, policy: Policy, budget: Budget) -> Self:
        """The relation under which the budget is counted."""
        replaced = budget.neighbours is Neighbours.REPLACE
        values_only = budget.protects is Protects.PRIVATE_COLUMNS
        rows = policy.rows_per_person
        return cls(replaced or values_only, rows, values_only or (replaced and rows == 1))

    def of_sum(self, low: int, high: int) -> int:
        """How far a sum moves to which a row adds a number from low to high, or nothing."""
        low, high = min(low, 0), max(high, 0)
        return self.rows * (high - low if self.exchanged else max(-low, high))

    @property
    def squared_of_table(self) -> Fraction:
        """How far a table of counts moves, in squared Euclidean distance."""
        return Fraction(self.rows**2 * (2 if self.exchanged else 1))

    @property
    def of_table(self) -> Fraction:
        """How far a table of counts moves in all."""
        return Fraction(self.rows * (2 if self.exchanged else 1))
