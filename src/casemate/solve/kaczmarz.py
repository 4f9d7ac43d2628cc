"""Kaczmarz's method: one equation at a time, drawn at random or as they come.

Source     Source document 002, "Handling many queries": the step of stochastic gradient descent
           that makes the drawn equation hold; rows are drawn by their squared lengths.
Method     Each step is a projection on one equation, followed by one into the box, which keeps what
           is known of each value (the document's change of variables by a sigmoid is not needed).
           Averaging the end of each pass would help where equations contradict; here it is the
           caller who stops early.
Cost       A pass costs what reading the equations costs. Loose answers come within a few passes;
           for many digits `least_squares` is faster.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats, Rows, ends


def kaczmarz(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    start: Floats | None = None,
    tolerance: float = 1e-4,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations nearly hold; `most` counts passes.

    >>> from casemate.solve.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> kaczmarz(rows, np.array([5.0, 2.0]), random=draws).values.round(2).tolist()
    [3.0, 2.0]
    """
    from casemate.solve.rows_kernel import sweep

    stream = Stream(equations.width, low=low, high=high, start=start)
    size = float(np.linalg.norm(right / equations.lengths)) or 1.0
    for done in range(most + 1):
        left = right / equations.lengths - equations.times(stream.point)
        residual = float(np.linalg.norm(left)) / size
        if progress is not None:
            progress(done, residual, stream.point)
        if residual <= tolerance or done == most:
            break
        order = drawn_rows(equations, random)
        sweep(equations.stored, right, order, stream.point, stream.box)
    return Solved(stream.point, residual, done, converged=residual <= tolerance)


def drawn_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """As many rows as there are, each drawn by its share of all squared lengths."""
    bands = np.cumsum(equations.lengths**2)
    drawn = random.random(len(bands)) * (bands[-1] if len(bands) else 0.0)
    found: NDArray[np.int64] = np.searchsorted(bands, drawn, side="right").astype(np.int64)
    return np.minimum(found, len(bands) - 1)


class Stream:
    """A point that follows equations as they come, each seen once and then forgotten.

    >>> stream = Stream(2, low=0.0)
    >>> stream.see(np.array([0, 1]), 5.0)
    >>> stream.see(np.array([1]), 2.0)
    >>> stream.point.tolist()
    [2.5, 2.0]
    """

    def __init__(
        self,
        width: int,
        *,
        low: Floats | float = -np.inf,
        high: Floats | float = np.inf,
        start: Floats | None = None,
    ) -> None:
        self.box = ends(low, high, width)
        self.point: Floats = np.clip(np.zeros(width) if start is None else start, *self.box)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        from casemate.solve.rows_kernel import project

        stored = np.zeros(0) if values is None else values.astype(np.float64)
        squared = float(len(columns)) if values is None else float(stored @ stored)
        if squared > 0:
            equation = (columns.astype(np.uint32), stored)
            project(equation, float(answer), 1 / squared, self.point, self.box)
