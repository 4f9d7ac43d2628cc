"""Kaczmarz's method with blocks: towards some equations at once, as far as they agree to.

Source     Source document 002, "Handling many queries", and the variants it points to. The step is
           the extrapolated average of I. Necoara, "Faster randomized block Kaczmarz algorithms",
           SIAM Journal on Matrix Analysis and Applications 40 (2019).
Method     The projections on all equations of a block are added up, and the point goes along that
           sum as far as brings it nearest to every point that keeps the block, then into the box.
           No factor of a block is computed: solving each block by least squares needed as many
           passes on range predicates and on random subsets, and a factor for each.
Cost       Three reads of the equations a pass, against two of `kaczmarz`, for about the progress of
           projections one by one; what it brings is that noise averages out within a block.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats, Rows, ends
from casemate.solve.sweeping import Order, drawn_rows, settle, settle_averaged, shuffled_rows

SIZE = 32
"""Equations a block."""


def kaczmarz_blocks(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    size: int = SIZE,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    start: Floats | None = None,
    order: Order | None = None,
    averaged: bool = False,
    tolerance: float = 1e-4,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations nearly hold; `most` counts passes.

    `order` is `drawn_rows`, or `shuffled_rows` for the averaged form, unless it is given.

    >>> from casemate.solve.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> kaczmarz_blocks(rows, np.array([5.0, 2.0]), random=draws).values.round(2).tolist()
    [3.0, 2.0]
    """
    if size < 1:
        raise ValueError(f"a block has at least one equation, not {size}")
    work = _Blocks(equations, right, size, ends(low, high, equations.width), start)
    go, usual = (settle_averaged, shuffled_rows) if averaged else (settle, drawn_rows)
    return go(
        work,
        equations,
        right,
        random=random,
        order=order or usual,
        tolerance=tolerance,
        most=most,
        progress=progress,
    )


class _Blocks:
    """Steps towards one block of equations after another."""

    def __init__(
        self,
        equations: Rows,
        right: Floats,
        size: int,
        box: tuple[Floats, Floats],
        start: Floats | None,
    ) -> None:
        self._equations, self._right = equations, right.astype(np.float64)
        self._size, self._box = size, box
        self._direction: Floats = np.zeros(equations.width)
        self.point: Floats = np.clip(self._direction if start is None else start, *box)

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of the way to each block."""
        from casemate.solve.kaczmarz_kernel import sweep_blocks

        turns, path = (order, self._size, relaxed), (self.point, sums, self._direction)
        sweep_blocks(self._equations.compiled, self._right, turns, path, self._box)
        return -(-len(order) // self._size)

    def jump(self, point: Floats) -> None:
        """Go on from another point."""
        self.point = point
