"""Leverage: how much the equations together say about a column, between 0 and 1.

The leverage of a column is the squared length of its unit vector's projection onto the row space:
1 when the equations determine it. It is a graded score in floating point and never a verdict.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.system import System

BATCH = 2048
DEPENDENT = 1e-10


def leverages(system: System, size: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """The leverage of every column, each standing for `size` columns that are the same.

    >>> from casemate.solve.system import System
    >>> leverages(System.of([[1, 0, 0], [0, 1, 1]])).round(6).tolist()
    [1.0, 0.5, 0.5]
    """
    weight = np.ones(system.columns) if size is None else np.sqrt(size)
    gram = np.zeros((system.rows, system.rows))
    blocks = range(0, system.columns, BATCH)
    for start in blocks:
        block = _dense(system, start, weight)
        gram += block @ block.T
    inverse = np.linalg.pinv(gram, rcond=DEPENDENT, hermitian=True)
    found = np.zeros(system.columns)
    for start in blocks:
        block = _dense(system, start, np.ones(system.columns))
        found[start : start + BATCH] = np.einsum("ij,ij->j", block, inverse @ block)
    return np.clip(found, 0.0, 1.0)


def _dense(system: System, start: int, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some columns as a dense matrix."""
    end = min(start + BATCH, system.columns)
    inside = (system.column >= start) & (system.column < end)
    column = system.column[inside]
    dense = np.zeros((system.rows, end - start))
    dense[system.row[inside], column - start] = (
        system.value[inside].astype(np.float64) * weight[column]
    )
    return dense
