"""Inner products of the columns of weighted equations: how alike any two unknowns are.

Cost       The sum of squared row lengths, or one dense matrix product in batches where rows are
           long; 4 bytes for each pair of unknowns.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rows import Floats, Rows

BATCH = 2**24
"""Entries of a dense batch of equations."""

DENSE_ADVANTAGE = 30.0
"""A dense product does this many multiplications in the time of one sparse one."""


def inner_products(equations: Rows, weights: Floats) -> NDArray[np.float32]:
    """The sum over equations of weight * coefficient * coefficient, for all pairs of unknowns.

    >>> from casemate.solve.system import System
    >>> inner_products(Rows.of(System.of([[1, 1], [0, 2]])), np.array([1.0, 3.0])).tolist()
    [[1.0, 1.0], [1.0, 13.0]]
    """
    counts = np.diff(equations.starts).astype(np.float64)
    dense = equations.height * float(equations.width) ** 2 / DENSE_ADVANTAGE
    if float(counts @ counts) > dense:
        return _by_batches(equations, np.sqrt(weights))
    from casemate.solve.inner_products_kernel import add_products

    found = np.zeros((equations.width, equations.width), np.float32)
    starts, columns, values, _ = equations.stored
    add_products(starts, columns, values, weights, found)
    return found


def _by_batches(equations: Rows, roots: Floats) -> NDArray[np.float32]:
    found = np.zeros((equations.width, equations.width), np.float32)
    size = max(1, BATCH // max(1, equations.width))
    for first in range(0, equations.height, size):
        last = min(first + size, equations.height)
        batch = _dense(equations, first, last) * roots[first:last, None].astype(np.float32)
        found += batch.T @ batch
    return found


def _dense(equations: Rows, first: int, last: int) -> NDArray[np.float32]:
    """Some equations as a dense matrix."""
    entries = slice(equations.starts[first], equations.starts[last])
    row = np.repeat(np.arange(last - first), np.diff(equations.starts[first : last + 1]))
    dense = np.zeros((last - first, equations.width), np.float32)
    values = equations.values
    dense[row, equations.columns[entries]] = 1 if values is None else values[entries]
    return dense
