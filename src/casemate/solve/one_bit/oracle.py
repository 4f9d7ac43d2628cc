"""A secret vector behind yes/no answers: the database mechanism with its noise, and its oracle.

Source   Source document 000, section 2: the answer w . q, noise on it, one threshold a query.
"""

from dataclasses import dataclass

import numpy as np

from casemate.solve.one_bit.laws_protocol import Law
from casemate.solve.one_bit.protocol import Bits, Floats


@dataclass(frozen=True, eq=False)
class NoisyOracle:
    """Says whether w . q plus fresh noise is above a threshold; without a law there is no noise."""

    w: Floats
    law: Law | None
    rng: np.random.Generator

    def above(self, q: Floats, threshold: float) -> bool:
        """One call: one bit."""
        return bool(self.noisy(q[None, :])[0] > threshold)

    def level(self, q: Floats, thresholds: Floats) -> int:
        """One call of an oracle with several answers: how many of the thresholds are passed."""
        return int(np.sum(self.noisy(q[None, :])[0] > thresholds))

    def bits(self, queries: Floats, thresholds: Floats) -> Bits:
        """One bit for each row; the same draws as one call after the other."""
        return np.asarray(self.noisy(queries) > thresholds)

    def noisy(self, queries: Floats) -> Floats:
        """Perturbed answers for a whole stream, for learners that run compiled.

        A learner may use each number for one comparison with its threshold, and nothing else.
        """
        truth = queries @ self.w
        return truth if self.law is None else truth + self.law.sample(self.rng, len(queries))
