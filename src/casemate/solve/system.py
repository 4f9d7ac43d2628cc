"""Linear equations with integer coefficients, as a sparse value.

An equation is a published number; a column is something secret. Rows of rational coefficients are
multiplied by their common denominator before they get here, so everything below is exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class System:
    """A sparse integer matrix, entry by entry, and optionally what each equation adds up to.

    `row`, `column` and `value` are of one length; no (row, column) occurs twice and no value is 0.
    `value` is int64, or an object array of Python integers where some do not fit. `right` has one
    Fraction per row, or is None when the answers are not known.
    """

    rows: int
    columns: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[Any]
    right: tuple[Fraction, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, equations: Iterable[Sequence[int]], right: Sequence[Fraction | int] | None = None
    ) -> Self:
        """A system from dense rows; for tests and small cases.

        >>> System.of([[1, 1, 0], [0, 2, 3]]).value.tolist()
        [1, 1, 2, 3]
        """
        dense = [list(equation) for equation in equations]
        places = [(i, j) for i, line in enumerate(dense) for j, value in enumerate(line) if value]
        values = [dense[i][j] for i, j in places]
        fits = all(-(2**63) <= value < 2**63 for value in values)
        return cls(
            len(dense),
            len(dense[0]) if dense else 0,
            np.array([i for i, _ in places], np.int64),
            np.array([j for _, j in places], np.int64),
            np.array(values, np.int64 if fits else object),
            None if right is None else tuple(Fraction(each) for each in right),
        )

    def dense(self) -> list[list[int]]:
        """The matrix as lists of Python integers; for tests and small cases."""
        lines = [[0] * self.columns for _ in range(self.rows)]
        for i, j, value in zip(
            self.row.tolist(), self.column.tolist(), self.value.tolist(), strict=True
        ):
            lines[i][j] = int(value)
        return lines
