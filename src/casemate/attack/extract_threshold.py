"""A classifier as the threshold oracle of source document 000.

Source     Label of x - c v is the sign of w . x + b - c (w . v): along a direction v with w . v = 1
           it says whether w . x + b is above the threshold c.
Departure  The source's queries lie in [0, 1]^D and its secret has no intercept; here both are free,
           and the unit of a threshold is whatever w . v is, because nobody knows it.
"""

from dataclasses import dataclass

import numpy as np

from casemate.attack.extract_asking import Asking
from casemate.attack.extract_boundary import Bits, Floats


@dataclass(frozen=True, eq=False)
class LabelThreshold:
    """Asks a classifier whether heights are above thresholds, along one direction."""

    asking: Asking
    direction: Floats

    def above(self, q: Floats, threshold: float) -> bool:
        """Whether the height of one point is above the threshold."""
        return bool(self.above_all(q[None, :], np.array([threshold]))[0])

    def above_all(self, points: Floats, thresholds: Floats) -> Bits:
        """The same for many points at once."""
        return self.asking.ask(points - thresholds[:, None] * self.direction)
