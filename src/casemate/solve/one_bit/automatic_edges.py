"""A filter for noise that ends suddenly on both sides, where is not known: it learns that too.

Method     The belief is about w and about both ends: how far each lies beyond an assumed bound. A
           bit near the upper end tells of w . q plus the one, near the lower end of w . q minus
           the other. Some thresholds stand at the median, which nothing but w . q decides: noise
           need not be symmetric, and queries may not tell a constant from the ends.
Guarantee  Hits are watched by the guard of `edge_guard`: an alarm while all is right has at most
           the stated probability, up to the normal belief.
Cost       O(d²) a query, O(d² log T) memory for the beliefs to go back to.
"""

import math

import numpy as np

from casemate.solve.one_bit.automatic_columns import ENDS, ENDS_RHO, columns_of, is_median
from casemate.solve.one_bit.edge import correct
from casemate.solve.one_bit.edge_guard import MOST_BETS, Guard
from casemate.solve.one_bit.edge_reading import reading_of, uniform_moments
from casemate.solve.one_bit.edge_rule import UniformRule
from casemate.solve.one_bit.protocol import Floats, Trail

UNSURE = 0.3
"""The deviation of each end from the assumed bound, as a part of it."""

WIDENED = 1.3
"""By how much the deviations of the belief are stretched when the ends come in."""


class TwoEdges:
    """A belief about w and both ends of the noise."""

    def __init__(self, mean: Floats, root: Floats, bound: float, alarm: float) -> None:
        size = len(mean) + ENDS
        self.rule, self.guard = UniformRule(bound), Guard(alarm)
        self.mean, self.root = np.zeros(size), np.zeros((size, size))
        self.mean[ENDS:], self.root[ENDS:, ENDS:] = mean, WIDENED * root
        self.root[0, 0] = self.root[1, 1] = UNSURE * bound
        self.marks = np.empty((MOST_BETS + 1, size)), np.empty((MOST_BETS + 1, size, size))
        self.marks[0][0], self.marks[1][0] = self.mean, self.root
        self.alarmed = False

    @property
    def ends(self) -> tuple[float, float]:
        """Where the noise is thought to end, below and above."""
        return -self.rule.bound - float(self.mean[1]), self.rule.bound + float(self.mean[0])

    def answer(self, x: Floats) -> float:
        """The mean of the belief about w . q."""
        return float(self.mean[ENDS:] @ x)

    def threshold(self, x: Floats, draw: float) -> float:
        """Near an end that the draw chooses, or at the median."""
        columns = columns_of(x, draw)
        centre = float(self.mean @ columns)
        return centre + self._offset(columns, draw)

    def _offset(self, columns: Floats, draw: float) -> float:
        if is_median(draw):
            return 0.0
        deviation = float(np.linalg.norm(self.root.T @ columns))
        return self.rule.offset(deviation, draw < 0.5)

    def learn(self, x: Floats, draw: float, threshold: float, above: bool) -> None:
        """Read a bit at a threshold for which this draw was used."""
        columns = columns_of(x, draw)
        pulled = self.root.T @ columns
        deviation = float(np.linalg.norm(pulled))
        if not deviation > 0:
            return
        offset = threshold - float(self.mean @ columns)
        reading = reading_of(uniform_moments(self.rule.bound, offset, deviation))
        counted = not is_median(draw)
        if counted and self._count(reading.chance, above):
            self.alarmed = True
            return
        step, shrink = reading.after(above)
        correct((self.mean, self.root), pulled, step, (ENDS_RHO if counted else 1.0) * shrink)

    def _count(self, chance: float, above: bool) -> bool:
        guard, (means, roots) = self.guard, self.marks
        if guard.opens():
            means[guard.bets + 1], roots[guard.bets + 1] = self.mean, self.root
        rare_above = chance < 0.5
        return guard.count(chance if rare_above else 1 - chance, above == rare_above)

    def before(self) -> tuple[Floats, Floats]:
        """The belief about w alone, from before the ends began to fail: mean and root."""
        place = self.guard.begun()
        means, roots = self.marks
        triangle = np.linalg.qr(roots[place][ENDS:].T).R
        return means[place][ENDS:].copy(), np.ascontiguousarray(triangle.T, np.float64)

    def follow(self, coordinates: Floats, noisy: Floats, draws: Floats, trail: Trail) -> int:
        """A whole stream, compiled; how many queries were answered before the alarm."""
        from casemate.solve.one_bit.automatic_kernel import run_edges
        from casemate.solve.one_bit.edge_kernel import NO_ALARM

        guard = self.guard
        counts = np.array([guard.bets, guard.counted])
        state = (self.mean, self.root), (np.empty_like(self.mean), np.empty_like(self.mean))
        watch = (guard.money, counts, guard.alarm), self.marks
        said = trail.answers, trail.thresholds, trail.above
        stream = coordinates, noisy, draws
        reached = run_edges(state, self.rule.bound, watch, stream, said)
        guard.bets, guard.counted = counts.tolist()
        self.alarmed = reached != NO_ALARM
        return int(reached) if self.alarmed else len(coordinates)


def bound_of(scale: float) -> float:
    """The half width of uniform noise that has this effective scale."""
    return scale * math.sqrt(math.pi / 2)
