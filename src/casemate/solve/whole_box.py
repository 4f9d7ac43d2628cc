"""Ranges of whole numbers, and the nearest whole point of one."""

import numpy as np

from casemate.solve.rows import Floats, ends


def whole_ends(low: Floats | float, high: Floats | float, width: int) -> tuple[Floats, Floats]:
    """The least and the greatest whole number of each range; both must exist.

    >>> [end.tolist() for end in whole_ends(0.5, 3.2, 2)]
    [[1.0, 1.0], [3.0, 3.0]]
    """
    below, above = ends(low, high, width)
    if not (np.isfinite(below) & np.isfinite(above)).all():
        raise ValueError("whole unknowns need a finite range each; give both of its ends")
    below, above = np.ceil(below), np.floor(above)
    if (below > above).any():
        raise ValueError("a range without a whole number in it was given for a whole unknown")
    return below, above


def rounded(point: Floats, low: Floats, high: Floats) -> Floats:
    """The whole point nearest to a point, within ranges of whole numbers; halves go up.

    >>> rounded(np.array([0.5, 1.5, -2.0]), np.zeros(3), np.ones(3)).tolist()
    [1.0, 1.0, 0.0]
    """
    return np.clip(np.floor(point + 0.5), low, high)
