"""The filter for symmetric noise whose median may be a poor place to ask: two humps, or an edge.

Method     First `kalman_bank` finds the scale. Then some thresholds go to the rungs of a ladder, on
           either side by a coin: how often noise lies outside each rung gives its density between
           them, and so what a bit there tells, f^2 / (F (1 - F)). When a rung is sure to tell much
           more than the median, thresholds go there. Errors of the measured chances are opposite on
           the two sides and cancel, which is what symmetry is needed for.
Guarantee  None that is proved, and none at all for noise that is not symmetric.
Cost       As the bank; then O(n^2) a query.
"""

import numpy as np

from casemate.solve.one_bit.kalman_bank import ScaleBank
from casemate.solve.one_bit.kalman_scale import empty_trail, widened
from casemate.solve.one_bit.protocol import Floats, Trail

RUNGS = 12
FIRST_RUNG = 0.1  # in deviations
NEXT_RUNG = 1.35  # times as far


class OffsetLadder:
    """A bank until the scale is found, then one belief and a ladder of thresholds."""

    def __init__(self, bank: ScaleBank, rho: float, first: int) -> None:
        self._bank, self._rho, self._first = bank, rho, first
        self._belief: tuple[Floats, Floats] | None = None
        self._ladder = np.zeros(RUNGS), np.zeros(RUNGS), np.zeros(RUNGS)
        self._pace, self._fit = np.array([0, 0, 0]), np.zeros(3)

    @property
    def _finder(self) -> tuple[object, object, object]:
        return self._ladder, self._pace, self._fit

    @property
    def settled(self) -> bool:
        """Whether the scale has been found."""
        return self._belief is not None

    @property
    def scale(self) -> float:
        """The deviation of the noise, as far as it is known."""
        return float(self._fit[2]) if self.settled else self._bank.scale

    @property
    def offset(self) -> float:
        """How far from the prediction it asks: 0 at the median."""
        return float(self._ladder[0][self._pace[1]]) if self._pace[1] > 0 else 0.0

    @property
    def mean(self) -> Floats:
        """The mean of the belief."""
        return self._bank.mean if self._belief is None else self._belief[0]

    @property
    def root(self) -> Floats:
        """A root of its covariance."""
        return self._bank.root if self._belief is None else self._belief[1]

    def answer(self, x: Floats) -> float:
        """The mean of w . q, without the noise's own shift."""
        if self._belief is None:
            return self._bank.answer(x)
        return float(self.mean[self._first :] @ x[self._first :])

    def threshold(self, x: Floats) -> float:
        """At a rung, on a side chosen by chance, or at the median."""
        from casemate.solve.one_bit.kalman_ladder_kernel import offset

        if self._belief is None:
            return self._bank.threshold(x)
        chance = float(self._bank.chances(1)[0])
        return float(self.mean @ x) + float(offset(self._finder, chance))

    def deviation(self, x: Floats) -> float:
        """How sure the belief is of w . q."""
        return float(np.linalg.norm(self.root[self._first :].T @ x[self._first :]))

    def learn(self, x: Floats, threshold: float, above: bool) -> None:
        """Learn from a bit, and about the noise."""
        from casemate.solve.one_bit.kalman_kernel import predict
        from casemate.solve.one_bit.kalman_ladder_kernel import take

        if self._belief is None:
            self._bank.learn(x, threshold, above)
            self._take_over()
            return
        room = self._room()
        centre, variance = predict(self._belief, x, room)
        asked = variance, threshold - centre, self._rho
        take(self._finder, self._belief, room, asked, above)

    def _room(self) -> tuple[Floats, Floats]:
        return np.empty(len(self.mean)), np.empty(len(self.mean))

    def _take_over(self) -> None:
        """Go on from the member that the bank has kept."""
        if not self._bank.settled:
            return
        self._belief = self._bank.mean.copy(), self._bank.root.copy()
        self._fit[:2], self._fit[2] = self._bank.slope, self._bank.scale
        self._ladder[0][:] = self._fit[2] * FIRST_RUNG * NEXT_RUNG ** np.arange(RUNGS)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        if self._belief is None:
            self._bank.widen(mean, root)
        else:
            self._belief = widened(*self._belief, mean, root)

    def follow(self, columns: Floats, noisy: Floats) -> Trail:
        """A whole stream, compiled."""
        from casemate.solve.one_bit.kalman_ladder_kernel import run_ladder

        trail, chances = empty_trail(len(columns)), self._bank.chances(len(columns))
        stream, done = (columns, noisy, chances), 0
        if self._belief is None:
            done = self._bank.run(stream, trail, halt=True)
            self._take_over()
        if self._belief is not None:
            said = trail.answers[done:], trail.thresholds[done:], trail.above[done:]
            rest = columns[done:], noisy[done:], chances[done:]
            run_ladder(
                self._finder, self._belief, (self._room(), self._rho, self._first), rest, said
            )
        return trail
