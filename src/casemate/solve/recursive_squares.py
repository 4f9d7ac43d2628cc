"""Least squares of equations that come one by one, exact after each of them.

Source     Source document 002, "Handling many queries": each question is seen once and forgotten.
Method     The square-root form: what was seen is kept as a triangle of as many rows as there are
           unknowns, of the same least squares. New rows stand below it until they are as many
           again; then an orthogonal transformation makes a new triangle of both. Coefficients are
           never squared, so that the condition of the equations does not get worse.
Guarantee  The point is the shortest of the best, up to rounding, after every equation.
Cost       Memory 16 n^2 bytes for n unknowns; about 3 n^2 operations an equation, and a singular
           value decomposition when the point is asked for: for up to a few thousand unknowns.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rows import Floats


class RecursiveSquares:
    """The least squares of all equations seen so far, each scaled to length 1.

    >>> seen = RecursiveSquares(3)
    >>> seen.see(np.array([0, 1]), 6.0)
    >>> seen.see(np.array([2]), 4.0, np.array([2.0]))
    >>> seen.point.round(9).tolist()
    [3.0, 3.0, 2.0]
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: Floats = np.zeros((2 * width + 2, width + 1))  # the last column: answers
        self._used = 0
        self._found: Floats | None = np.zeros(width)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        factors = np.ones(len(columns)) if values is None else values.astype(np.float64)
        length = float(np.linalg.norm(factors))
        if length == 0:
            return
        if self._used == len(self._rows):
            self._shrink()
        row = self._rows[self._used]
        row[:] = 0.0
        row[columns] = factors / length
        row[-1] = answer / length
        self._used += 1
        self._found = None

    @property
    def point(self) -> Floats:
        """The shortest of the points at which the equations come closest to holding."""
        if self._found is None:
            seen = self._rows[: self._used]
            self._found = np.linalg.lstsq(seen[:, :-1], seen[:, -1])[0].astype(np.float64)
        return self._found

    def _shrink(self) -> None:
        """As many rows as there are columns, of the same least squares."""
        triangle = np.linalg.qr(self._rows, mode="r")
        self._used = len(triangle)
        self._rows[: self._used] = triangle
