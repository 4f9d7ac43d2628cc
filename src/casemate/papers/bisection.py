"""The arithmetic behind OnlineBisection: what its lemmas say, with explicit constants.

Source     Source document 000, section 4: Lemmas 4.1 to 4.3, Theorem 2.1 and Corollary 2.1.
Departure  The printed forms stand beside the sharp ones; the latter are derived in
           docs/derivations/online_bisection.md, with the errata of the printed proofs.

The algorithm itself is `casemate.OnlineBisection`; the phases of a stream come from there.
"""

import math
from dataclasses import dataclass

SIDE_SHRINK_FACTOR = 0.75  # alpha
"""What is left of a side when it shrinks."""


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


@dataclass(frozen=True)
class StreamSetting:
    """A stream: D, d, T, the share of queries near each direction, and the phases of the search.

    A phase is (side of the box, bits needed, how much likelier `above` is in the upper quarter).
    """

    dimension: int  # D
    directions: int  # d
    horizon: int  # T
    share: float  # p
    phases: tuple[tuple[float, int, float], ...]
    longest: float | None = None
    """The largest Euclidean length of a query; None is sqrt(D)."""


def error_bound(setting: StreamSetting) -> float:
    """Theorem 2.1 with constants: the average error while w stays in the box.

    A phase takes at most 2 N_crit / p queries (all d directions in one count, Chernoff), and a
    query errs by at most its length times half the diagonal of the box.
    """
    length = math.sqrt(setting.dimension) if setting.longest is None else setting.longest
    worst = length * math.sqrt(setting.directions) / 2
    left, total, side = setting.horizon, 0.0, 2 * math.sqrt(setting.dimension)
    for now, needed, _ in setting.phases:
        taken = min(left, math.ceil(2 * needed / setting.share))
        left, total, side = left - taken, total + taken * worst * now, now * SIDE_SHRINK_FACTOR
        if left == 0:
            break
    return (total + left * worst * side) / setting.horizon


def loss_bound(setting: StreamSetting) -> float:
    """The chance that w ever leaves the box: a union over phases and over directions."""
    chance = 0.0
    for _, needed, difference in setting.phases:
        if needed > setting.horizon:
            break
        chance += wrong_side(needed, difference)
    return min(1.0, setting.directions * chance)


def delay_bound(setting: StreamSetting) -> float:
    """The chance that some phase takes more queries than `error_bound` counts.

    Of 2 N / p queries at least N are near a direction except with a chance of exp(-N / 4).
    """
    late = sum(math.exp(-needed / 4) for _, needed, _ in setting.phases)
    return min(1.0, setting.directions * late)


def batch_claim(dimension: int, horizon: int) -> float:
    """Corollary 2.1: what the final answers are said to err by at most."""
    return math.sqrt(dimension) * math.log(horizon) / math.sqrt(horizon)
