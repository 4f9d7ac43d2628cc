"""OnlineBisection: a secret vector from one noisy bit a query, in logarithmic memory.

Source     Source document 000, Algorithms 1 and 2, with the closed form of Lemma 5.1.
Guarantee  Theorem 2.1, corrected: while the queries concentrate near the basis, the average error
           falls like sqrt(log T / T), except with a chance of about d log(T) / T^3;
           `bisection_theory` has both with explicit constants.
Cost       O(dD) time a query for its coordinates. The basis (dD numbers) and 4d numbers beside it,
           with what follows from them: the evidence that each direction needs in its phase.
Departure  Fifteen errata, listed in docs/derivations/online_bisection.md. Those that change what
           happens are fields of `Reading` and `Constants`, and each has a test of the printed text.
           Without a basis the first queries are answered by one half of everything, until
           directions are found.
"""

import numpy as np

from casemate.solve.one_bit.bisection_basis import (
    checked_basis,
    concentrated_basis,
    principal_basis,
)
from casemate.solve.one_bit.bisection_reading import CORRECTED, PRINTED, Constants, Reading
from casemate.solve.one_bit.bisection_search import BisectionSearch
from casemate.solve.one_bit.laws_protocol import Law
from casemate.solve.one_bit.protocol import Floats

PRELIMINARY = 64
"""So many queries for each direction are looked at before a basis is sought."""


SAME = 1e-9
"""Thresholds this near to each other, in widths of the box along a query, are the same."""


class OnlineBisection:
    """Answers queries from the middle of a box, and shrinks the box by what the oracle says.

    >>> learner = OnlineBisection(4, None, basis=np.eye(4)[:2], horizon=1_000)
    >>> q = np.array([1.0, 0.0, 0.0, 0.0])
    >>> learner.answer(q), learner.threshold(q), learner.uses(q)
    (0.0, 0.0, True)
    """

    def __init__(
        self,
        dimension: int,  # D
        law: Law | None,
        *,
        basis: Floats | None = None,  # C
        directions: int | None = None,  # d
        horizon: int | None = None,  # T
        reading: Reading = CORRECTED,
        constants: Constants = PRINTED,
        preliminary: int | None = None,
    ) -> None:
        if basis is None and directions is None:
            raise ValueError("need a basis, or the number of directions to find")
        self.basis = None if basis is None else checked_basis(basis, dimension)
        count = int(directions or 0) if self.basis is None else len(self.basis)
        self.search = BisectionSearch(
            dimension, count, law, horizon=horizon, reading=reading, constants=constants
        )
        self._batch = PRELIMINARY * count if preliminary is None else preliminary
        self._first: list[Floats] = []
        if self._batch < count:
            raise ValueError(f"need at least {count} preliminary queries, got {self._batch}")

    def answer(self, q: Floats) -> float:
        """The value of a query at the middle of the box; one half of everything before."""
        if self.basis is None:
            return float(q.sum()) / 2
        return self.search.answer(self.basis @ q)

    def threshold(self, q: Floats) -> float:
        """Half way between the least and the largest value over the box."""
        if self.basis is None:
            return self.answer(q)
        return self.search.threshold(self.basis @ q)

    def uses(self, q: Floats) -> bool:
        """Whether the oracle's bit about this query would be counted; else it need not be asked."""
        if self.basis is None or self.search.stopped:
            return False
        return self.search.direction(self.basis @ q, float(q @ q)) is not None

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take note of the oracle's answer; one about another threshold is not evidence."""
        if self.basis is None:
            self.search.skip()
            self._look(q)
            return
        x = self.basis @ q
        if abs(threshold - self.search.threshold(x)) <= SAME * self.search.spread(x):
            self.search.learn(x, above, float(q @ q))
        else:
            self.search.skip()

    def _look(self, q: Floats) -> None:
        """Keep the first queries until directions are found in them; else look at the next ones."""
        self._first.append(np.array(q, np.float64))
        if len(self._first) < self._batch:
            return
        search, seen = self.search, np.array(self._first)
        count = len(search.box.low)
        if search.reading.directions_from_clusters:
            angle = search.constants.angle_for(count)
            self.basis = concentrated_basis(seen, count, angle)
        else:
            self.basis = principal_basis(seen, count)
        self._first.clear()
