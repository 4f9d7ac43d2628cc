"""Equations by unknown: for each unknown the equations it is in, for work that changes one value.

Cost       One pass over the entries to build, 4 bytes for each (12 where coefficients are not 1).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rows import Floats, Rows


@dataclass(frozen=True, eq=False)
class Columns:
    """The same equations as `Rows`: the equations of each unknown from `starts[j]` on.

    >>> from casemate.solve.system import System
    >>> columns = Columns.of(Rows.of(System.of([[1, 0, 1], [0, 1, 1]])))
    >>> columns.starts.tolist(), columns.rows.tolist()
    ([0, 1, 2, 4], [0, 1, 0, 1])
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    values: Floats | None  # None: all of them are 1
    height: int

    @classmethod
    def of(cls, equations: Rows) -> "Columns":
        """The entries of stored equations, turned."""
        from casemate.solve.columns_kernel import turn

        counts = np.bincount(equations.columns, minlength=equations.width)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.empty(len(equations.columns), np.uint32)
        given = np.zeros(0) if equations.values is None else equations.values
        values = np.empty(len(given))
        turn(equations.starts, equations.columns, given, starts[:-1].copy(), (rows, values))
        return cls(starts, rows, None if equations.values is None else values, equations.height)

    @cached_property
    def stored(self) -> Any:
        """Starts, rows and coefficients, for compiled loops."""
        return self.starts, self.rows, np.zeros(0) if self.values is None else self.values


def plain_sums(equations: Rows, point: Floats) -> Floats:
    """What each equation comes to at a point, in the unit of its answer: exact in whole numbers."""
    from casemate.solve.rows_kernel import times

    found = np.empty(equations.height)
    starts, columns, values, _ = equations.stored
    times(starts, columns, values, point, found)
    return found
