"""The arithmetic behind OnlineBisection: what its lemmas say, with explicit constants.

Source     Source document 000, section 4: Lemmas 4.1 to 4.3 and Theorem 2.1.
Departure  The printed forms stand beside the sharp ones; the latter are derived in
           docs/derivations/online_bisection.md, with the errata of the printed proofs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from casemate.solve.one_bit.bisection_reading import Constants
from casemate.solve.one_bit.laws_protocol import Law
from casemate.solve.one_bit.protocol import Floats

SHRINK = 0.75  # alpha
"""What is left of a side when it shrinks."""

NEVER = 1 << 62
"""As many observations as nobody will ever have."""


# The lemmas ---------------------------------------------------------------------------------------


def wrong_side_printed(observations: float, difference: float) -> float:
    """Lemma 4.1: the chance that a count is on the wrong side of the middle, as printed."""
    return math.exp(-observations * difference**2 / 10)


def wrong_side(observations: float, difference: float) -> float:
    """The same chance by Hoeffding's inequality, whose exponent is five times larger."""
    return math.exp(-observations * difference**2 / 2)


def extent_printed(share: float, angle: float, directions: int) -> float:
    """Lemma 4.3: the extent, in sides, of what lies below a share of a cube, as printed."""
    return share + 8 * math.sin(angle / 2) * math.sqrt(directions)


def extent(share: float, angle: float, directions: int) -> float:
    """The least such bound: it is attained by a direction that leans to all others alike."""
    return min(1.0, share * (1 + math.tan(angle) * math.sqrt(directions - 1)))


# Decisions ----------------------------------------------------------------------------------------


def gaps(sides: Floats, constants: Constants) -> Floats:
    """How far w . q is at least from the middle, for each direction whose outer quarter holds w.

    With u and v the parts of a query along and across its direction, the middle is passed by at
    least |u| side / 4 - |v| (half the diagonal of the other sides).
    """
    angle, squares = constants.angle_for(len(sides)), sides**2
    others = np.sqrt(np.maximum(squares.sum() - squares, 0.0))
    exact: Floats = np.cos(angle) * sides / 4 - np.sin(angle) * others / 2
    if not constants.exact_gap:
        exact = np.minimum(exact, sides / 8)
    return np.asarray(constants.shortest * exact, np.float64)


@dataclass(frozen=True)
class Evidence:
    """What the bits near one direction say about the half of its interval that holds w."""

    least: float  # p1
    """At most this share of the bits is "above" when w is in the lowest quarter."""

    difference: float  # Delta p
    """And at least so much more when it is in the highest."""

    @classmethod
    def of(cls, law: Law | None, gap: float) -> "Evidence":
        """The evidence of bits whose thresholds are so far from the truth."""
        if gap <= 0:
            return cls(0.0, 0.0)
        if law is None:  # no noise at all
            return cls(0.0, 1.0)
        above, below = float(law.cdf(gap)), float(law.cdf(-gap))
        return cls(1 - above, above - below)

    def needed(self, constants: Constants, horizon: int) -> int:  # N_crit
        """How many bits decide, except with a chance of horizon^-3."""
        squared = self.difference**2
        if squared == 0:
            return NEVER
        return min(NEVER, math.ceil(constants.observations * math.log(horizon) / squared))

    @property
    def middle(self) -> float:
        """More than this share of "above" speaks for the upper part."""
        return self.least + self.difference / 2


def first_side(dimension: int) -> float:
    """The side of the box at the start: no unit vector has a larger part of a w in [0, 1]^D."""
    return 2 * math.sqrt(dimension)


def stopping_side(horizon: int, directions: int) -> float:
    """The side at which Algorithm 1 stops shrinking."""
    return math.log(horizon) / math.sqrt(horizon * directions)


# Whole streams ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A stream: D, d, T, the noise on an answer, and the share of queries near each direction."""

    dimension: int  # D
    directions: int  # d
    horizon: int  # T
    law: Law | None
    share: float  # p
    longest: float | None = None
    """The largest Euclidean length of a query; None is sqrt(D)."""

    def phases(self, constants: Constants) -> Iterator[tuple[float, int]]:
        """The side and the observations needed of every phase, until the stopping side."""
        side = first_side(self.dimension)
        while side > stopping_side(self.horizon, self.directions):
            gap = float(gaps(np.full(self.directions, side), constants)[0])
            yield side, Evidence.of(self.law, gap).needed(constants, self.horizon)
            side *= SHRINK


def error_bound(setting: Setting, constants: Constants) -> float:
    """Theorem 2.1 with constants: the average error while w stays in the box.

    A phase takes at most 2 N_crit / p queries (all d directions in one count, Chernoff), and a
    query errs by at most its length times half the diagonal of the box.
    """
    length = math.sqrt(setting.dimension) if setting.longest is None else setting.longest
    worst = length * math.sqrt(setting.directions) / 2
    left, total, side = setting.horizon, 0.0, first_side(setting.dimension)
    for now, needed in setting.phases(constants):
        taken = min(left, math.ceil(2 * needed / setting.share))
        left, total, side = left - taken, total + taken * worst * now, now * SHRINK
        if left == 0:
            break
    return (total + left * worst * side) / setting.horizon


def loss_bound(setting: Setting, constants: Constants) -> float:
    """The chance that w ever leaves the box: a union over phases and over directions."""
    chance = 0.0
    for side, needed in setting.phases(constants):
        if needed > setting.horizon:
            break
        gap = float(gaps(np.full(setting.directions, side), constants)[0])
        chance += wrong_side(needed, Evidence.of(setting.law, gap).difference)
    return min(1.0, setting.directions * chance)


def delay_bound(setting: Setting, constants: Constants) -> float:
    """The chance that some phase takes more queries than `error_bound` counts.

    Of 2 N / p queries at least N are near a direction except with a chance of exp(-N / 4).
    """
    late = sum(math.exp(-needed / 4) for _, needed in setting.phases(constants))
    return min(1.0, setting.directions * late)


def batch_claim(dimension: int, horizon: int) -> float:
    """Corollary 2.1: what the final answers are said to err by at most."""
    return math.sqrt(dimension) * math.log(horizon) / math.sqrt(horizon)
