"""A box that holds the secret, and the linear programme over it in closed form.

Source     Source document 000, Algorithm 2 (ShrinkHyperCube) and Lemma 5.1.
Guarantee  `most` and `least` are exact; a shrink leaves three quarters of a side.
Cost       O(d) time and 4d numbers: two ends and two counts for each direction.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.one_bit.bisection_theory import SHRINK
from casemate.solve.one_bit.protocol import Floats

Counts = NDArray[np.int64]


class Box:
    """An interval for each coordinate of the secret, and what was observed about each.

    >>> box = Box.around(directions=2, reach=4.0)
    >>> box.most(np.array([1.0, -0.5])), box.least(np.array([1.0, -0.5]))
    (6.0, -6.0)
    >>> box.shrink(0, upper=True)
    >>> box.low.tolist(), box.high.tolist()
    ([-2.0, -4.0], [4.0, 4.0])
    """

    def __init__(self, low: Floats, high: Floats) -> None:
        self.low, self.high = low, high
        self.above: Counts = np.zeros(len(low), np.int64)  # N+
        self.seen: Counts = np.zeros(len(low), np.int64)  # N+ + N-

    @classmethod
    def around(cls, directions: int, reach: float) -> "Box":
        """The cube of all points none of whose coordinates is further from 0 than this."""
        return cls(np.full(directions, -reach), np.full(directions, reach))

    @property
    def sides(self) -> Floats:
        """The length of each interval."""
        return self.high - self.low

    @property
    def middle(self) -> Floats:
        """The point with which queries are answered."""
        return (self.low + self.high) / 2

    def most(self, x: Floats) -> float:
        """The largest value of x . y over the box (Lemma 5.1)."""
        return float(np.where(x >= 0, self.high, self.low) @ x)

    def least(self, x: Floats) -> float:
        """The least value of x . y over the box."""
        return -self.most(-x)

    def holds(self, point: Floats) -> bool:
        """Whether a point is in the box."""
        return bool(np.all((self.low <= point) & (point <= self.high)))

    def observe(self, direction: int, above: bool) -> None:
        """Count one bit about a direction."""
        self.above[direction] += above
        self.seen[direction] += 1

    def forget(self, direction: int) -> None:
        """Start counting again."""
        self.above[direction] = self.seen[direction] = 0

    def shrink(self, direction: int, upper: bool) -> None:
        """Keep the upper, or else the lower, three quarters of an interval (Algorithm 2)."""
        low, high = float(self.low[direction]), float(self.high[direction])
        kept = SHRINK * (high - low)
        if upper:
            self.low[direction] = high - kept
        else:
            self.high[direction] = low + kept
