"""OnlineBisection on coordinates: what a query in the basis says about the box.

Source     Source document 000, Algorithms 1 and 2. Here x = Cq are the coordinates of a query and
           C w those of the secret; `bisection` puts a basis in front.
Guarantee  Theorem 2.1 as `bisection_theory.error_bound`, `loss_bound` and `delay_bound`.
Cost       O(d) time a query; 4d numbers and a few more, none of which grows with the stream.
Departure  An unknown horizon is doubled whenever it is passed, and the box is kept: only the
           evidence that later shrinks need grows. `Reading` names the corrected errata.
"""

import math

import numpy as np

from casemate.solve.one_bit.bisection_box import Box, Counts
from casemate.solve.one_bit.bisection_reading import CORRECTED, PRINTED, Constants, Reading
from casemate.solve.one_bit.bisection_theory import (
    Evidence,
    first_side,
    gaps,
    stopping_side,
)
from casemate.solve.one_bit.laws_protocol import Law
from casemate.solve.one_bit.protocol import Bits, Floats

FIRST_HORIZON = 1024
"""Where doubling starts when nobody says how long the stream is."""


class BisectionSearch:
    """A box around the coordinates of a secret, halved in noise; one mutating verb, `learn`.

    >>> search = BisectionSearch(dimension=4, directions=2, law=None, horizon=100)
    >>> search.box.low.tolist(), search.needed.tolist()
    ([-2.0, -2.0], [139, 139])
    """

    def __init__(
        self,
        dimension: int,  # D
        directions: int,  # d
        law: Law | None,
        *,
        horizon: int | None = None,  # T
        reading: Reading = CORRECTED,
        constants: Constants = PRINTED,
    ) -> None:
        if not 1 <= directions <= dimension:
            raise ValueError(
                f"need between 1 and {dimension} directions in that dimension, got {directions}"
            )
        if horizon is not None and horizon < 2:
            raise ValueError(f"need a horizon of at least 2 queries, got {horizon}")
        self.law, self.reading, self.constants = law, reading, constants
        self.box = Box.around(directions, first_side(dimension) / 2)
        self.horizon = FIRST_HORIZON if horizon is None else horizon
        self.doubles = horizon is None
        self.queries = self.shrinks = 0
        self._angle = constants.angle_for(directions)
        self._evidence = [Evidence(0.0, 0.0)] * directions
        self._weigh()
        self._start_phase(np.ones(directions, np.bool_))

    # What it knows --------------------------------------------------------------------------------

    @property
    def side(self) -> float:
        """The longest side of the box."""
        return float(self.box.sides.max())

    @property
    def stopped(self) -> bool:
        """Whether the box is as small as Algorithm 1 asks for."""
        return self.side <= stopping_side(self.horizon, len(self.box.low))

    @property
    def cosine_squared(self) -> float:
        """How much of a query's square has to lie along one direction."""
        return math.cos(self._angle) ** 2

    @property
    def shortest_squared(self) -> float:
        """The least square of a query that counts."""
        return self.constants.shortest**2 if self.reading.short_queries_left_out else 0.0

    # The protocol, on coordinates -----------------------------------------------------------------

    def answer(self, x: Floats) -> float:
        """The value of a query at the middle of the box."""
        return float(self.box.middle @ x)

    def threshold(self, x: Floats) -> float:
        """The middle between the least and the largest value over the box."""
        least = self.box.least(x) if self.reading.threshold_in_the_middle else self.box.most(-x)
        return (least + self.box.most(x)) / 2

    def spread(self, x: Floats) -> float:
        """The difference between the largest and the least value over the box."""
        return self.box.most(x) - self.box.least(x)

    def direction(self, x: Floats, squared: float | None = None) -> int | None:
        """The direction about which a query speaks, if any; `squared` is its squared length."""
        total = float(x @ x) if squared is None else squared
        nearest = int(np.argmax(x))
        part = float(x[nearest])
        if total < self.shortest_squared or part <= 0:
            return None
        return nearest if part * part >= self.cosine_squared * total else None

    def learn(self, x: Floats, above: bool, squared: float | None = None) -> None:
        """Take note of one bit, and shrink the box when there is evidence enough."""
        self.skip()
        if self.stopped:
            return
        direction = self.direction(x, squared)
        if direction is not None:
            self.box.observe(direction, above)
            self.settle()

    def skip(self) -> None:
        """Let one query pass without a bit."""
        self.make_room()
        self.queries += 1

    def make_room(self) -> None:
        """Double a horizon that nobody gave once it is used up: shrinks then need more evidence."""
        if self.doubles and self.queries >= self.horizon:
            self.horizon *= 2
            self._weigh()

    # Algorithm 2 ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Shrink what is ready: all directions once all are, or each on its own."""
        ready = self.box.seen >= self.needed
        if not (ready.all() if self.constants.shrink_together else ready.any()):
            return
        for i in map(int, np.flatnonzero(ready)):
            share = self._evidence[i].middle
            self.box.shrink(i, upper=bool(self.box.above[i] > self.box.seen[i] * share))
        self.shrinks += 1
        self._start_phase(ready)

    def _start_phase(self, ended: Bits) -> None:
        """Count again where a phase has ended, or where that comes to an end sooner.

        Evidence weighed in an earlier box stays right, as the other sides only shrink.
        """
        distances = gaps(self.box.sides, self.constants)
        for i, gap in enumerate(distances):
            fresh = Evidence.of(self.law, float(gap))
            soon = fresh.needed(self.constants, self.horizon)
            if ended[i] or soon < self.needed[i] - self.box.seen[i]:
                self._evidence[i] = fresh
                self.box.forget(i)
        self._weigh()

    def _weigh(self) -> None:
        found = [each.needed(self.constants, self.horizon) for each in self._evidence]
        self.needed: Counts = np.array(found, np.int64)  # N_crit of each direction
