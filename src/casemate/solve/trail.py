"""The average of the end of a path, from its moves alone.

A step that moves few of many values is added up at those values: of N points of which the last is
x, the average is x less the sum of all moves, each times the number of points before it, over N.
"""

import numpy as np

from casemate.solve.rows import Floats


class Trail:
    """The average of at least the last half of a path, and at most its last three quarters.

    >>> trail, point = Trail(1), np.zeros(1)
    >>> for value in (8.0, 2.0, 4.0):
    ...     sums, before = trail.next(point)
    ...     sums += before * (value - point)
    ...     point[:] = value
    >>> trail.average(point).round(6).tolist()  # of 8, 2 and 4: the start is forgotten
    [4.666667]
    """

    def __init__(self, width: int) -> None:
        self._sums: Floats = np.zeros(width)
        self._moves, self._until = 0, 1
        self._earlier: Floats = np.zeros(width)
        self._count = 0

    def next(self, point: Floats) -> tuple[Floats, float]:
        """Before each move: the sums to which it is to be added, and how often."""
        if self._moves == self._until:
            self._earlier = self._recent(point)
            self._count, self._moves, self._until = self._moves, 0, 2 * self._until
            self._sums = np.zeros(len(self._sums))
        self._moves += 1
        return self._sums, float(self._moves - 1)

    def average(self, point: Floats) -> Floats:
        """The average of the points, of which this is the last."""
        if self._moves == 0:
            return point.copy()
        share = self._count / (self._count + self._moves)
        return share * self._earlier + (1 - share) * self._recent(point)

    def _recent(self, point: Floats) -> Floats:
        """The average of the points since the last turn, without the one before the first move."""
        return point - self._sums / self._moves
