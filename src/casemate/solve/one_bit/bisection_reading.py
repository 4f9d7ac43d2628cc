"""How the text of OnlineBisection is read: its errata as switches, and its constants as numbers.

docs/derivations/online_bisection.md lists every erratum and what it does.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """Which errata are corrected; a field that is False follows the printed text.

    >>> Reading(threshold_in_the_middle=False) == Reading()
    False
    """

    threshold_in_the_middle: bool = True
    """m is the least value over the box; printed: the largest of -q, which is its negative."""

    short_queries_left_out: bool = True
    """Counts only queries as long as the gap assumes; printed: their length does not matter."""

    directions_from_clusters: bool = True
    """A basis that has to be found is where queries concentrate; printed: principal components."""

    @classmethod
    def as_printed(cls) -> "Reading":
        """The text as it stands."""
        return cls(False, False, False)


CORRECTED = Reading()
"""Every erratum corrected."""


@dataclass(frozen=True)
class Constants:
    """How much evidence a decision needs, and which queries give it."""

    observations: float = 30.0
    """A phase ends after so many times log(T) / (Delta p)^2 queries near each direction."""

    exact_gap: bool = False
    """The distance to the threshold by the exact form of Lemma 4.3, not an eighth of the side."""

    angle: float | None = None  # phi
    """How near to a direction a query has to be, in radians; None is 2 arcsin(1 / 64 sqrt d)."""

    shortest: float = 1.0
    """The least Euclidean length of a query that counts; evidence is weighed accordingly."""

    shrink_together: bool = True
    """All directions wait for the slowest, as printed; else each shrinks when it is ready."""

    def __post_init__(self) -> None:
        if not (self.observations > 0 and self.shortest > 0):
            raise ValueError(
                f"need observations > 0 and shortest > 0, got {self.observations} "
                f"and {self.shortest}"
            )
        if self.angle is not None and not 0 < self.angle < math.pi / 4:
            raise ValueError(f"need an angle between 0 and pi / 4, got {self.angle}")

    def angle_for(self, directions: int) -> float:
        """How near a query has to be when there are so many directions."""
        return printed_angle(directions) if self.angle is None else self.angle


PRINTED = Constants()
"""The constants of the source: 30 and one eighth."""

TIGHT = Constants(observations=6.0, exact_gap=True)
"""The same chance of failure from Hoeffding's inequality and the exact gap: a quarter the error."""


def printed_angle(directions: int) -> float:
    """The angle of Algorithm 1: 2 arcsin(1 / 64 sqrt d)."""
    return 2 * math.asin(1 / (64 * math.sqrt(directions)))
