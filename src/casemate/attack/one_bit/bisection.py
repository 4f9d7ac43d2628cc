"""OnlineBisection: a secret vector from one noisy bit a query, in logarithmic memory.

`OnlineBisection` puts a basis in front of `BisectionSearch`, which works on coordinates: x = Cq of
a query, C w of the secret. A `SecretBox` holds the latter; bits are counted until there is evidence
for one half of a side, and then the box shrinks. `Errata` and `BisectionConstants` say how the text
of the source is read.

Source     Source document 000, Algorithm 1 and Algorithm 2 (ShrinkHyperCube), with the closed form
           of Lemma 5.1 for the linear programme over the box.
Guarantee  Theorem 2.1, corrected: while the queries concentrate near the basis, the average error
           falls like sqrt(log T / T), except with a chance of about d log(T) / T^3; with explicit
           constants in `error_bound`, `loss_bound` and `delay_bound` of `casemate.papers`. `most`
           and `least` of a box are exact; a shrink leaves three quarters of a side.
Cost       O(dD) time a query for its coordinates, O(d) for the rest. The basis (dD numbers) and 4d
           numbers beside it (two ends and two counts for each direction), with what follows from
           them: the evidence that each direction needs in its phase. None of it grows with the
           stream.
Departure  Fifteen errata, listed in docs/derivations/online_bisection.md with what each does. Those
           that change what happens are fields of `Errata` and `BisectionConstants`, each with a
           test of the printed text. An unknown horizon is doubled whenever it is passed, and the
           box is kept: only the evidence that later shrinks need grows. Without a basis the first
           queries are answered by one half of everything, until directions are found.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.oracle import Bits, Floats, orthonormal_basis
from casemate.attack.one_bit.streams import concentrated_basis, principal_basis, printed_angle

Counts = NDArray[np.int64]

# How the text is read: its errata as switches, its constants as numbers -------------------------


@dataclass(frozen=True)
class Errata:
    """Which errata are corrected; a field that is False follows the printed text.

    >>> Errata(threshold_in_the_middle=False) == Errata()
    False
    """

    threshold_in_the_middle: bool = True
    """m is the least value over the box; printed: the largest of -q, which is its negative."""

    short_queries_left_out: bool = True
    """Counts only queries as long as the gap assumes; printed: their length does not matter."""

    directions_from_clusters: bool = True
    """A basis that has to be found is where queries concentrate; printed: principal components."""

    @classmethod
    def as_printed(cls) -> "Errata":
        """The text as it stands."""
        return cls(False, False, False)


CORRECTED = Errata()
"""Every erratum corrected."""


@dataclass(frozen=True)
class BisectionConstants:
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


PRINTED = BisectionConstants()
"""The constants of the source: 30 and one eighth."""

TIGHT = BisectionConstants(observations=6.0, exact_gap=True)
"""The same chance of failure from Hoeffding's inequality and the exact gap: a quarter the error."""


# Evidence for one half of a side: how many bits a decision needs --------------------------------


SIDE_SHRINK = 0.75  # alpha
"""What is left of a side when it shrinks."""

UNREACHABLE_COUNT = 1 << 62
"""As many observations as nobody will ever have."""


def gaps(sides: Floats, constants: BisectionConstants) -> Floats:
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
class HalfEvidence:
    """What the bits near one direction say about the half of its interval that holds w."""

    least: float  # p1
    """At most this share of the bits is "above" when w is in the lowest quarter."""

    difference: float  # Delta p
    """And at least so much more when it is in the highest."""

    @classmethod
    def of(cls, law: Law | None, gap: float) -> "HalfEvidence":
        """The evidence of bits whose thresholds are so far from the truth."""
        if gap <= 0:
            return cls(0.0, 0.0)
        if law is None:  # no noise at all
            return cls(0.0, 1.0)
        above, below = float(law.cdf(gap)), float(law.cdf(-gap))
        return cls(1 - above, above - below)

    def critical_count(self, constants: BisectionConstants, horizon: int) -> int:  # N_crit
        """How many bits decide, except with a chance of horizon^-3."""
        squared = self.difference**2
        if squared == 0:
            return UNREACHABLE_COUNT
        return min(
            UNREACHABLE_COUNT, math.ceil(constants.observations * math.log(horizon) / squared)
        )

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


def phases(
    dimension: int, directions: int, horizon: int, law: Law | None, constants: BisectionConstants
) -> Iterator[tuple[float, int, float]]:
    """Of every phase until the stopping side: the side, the bits needed, and Delta p."""
    side = first_side(dimension)
    while side > stopping_side(horizon, directions):
        gap = float(gaps(np.full(directions, side), constants)[0])
        evidence = HalfEvidence.of(law, gap)
        yield side, evidence.critical_count(constants, horizon), evidence.difference
        side *= SIDE_SHRINK


# A box that holds the secret, and the linear programme over it in closed form -------------------


class SecretBox:
    """An interval for each coordinate of the secret, and what was observed about each.

    >>> box = SecretBox.around(directions=2, reach=4.0)
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
    def around(cls, directions: int, reach: float) -> "SecretBox":
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
        kept = SIDE_SHRINK * (high - low)
        if upper:
            self.low[direction] = high - kept
        else:
            self.high[direction] = low + kept


# On coordinates: what a query in the basis says about the box -----------------------------------


FIRST_HORIZON = 1024
"""Where doubling starts when nobody says how long the stream is."""


class BisectionSearch:
    """A box around the coordinates of a secret, halved in noise; one mutating verb, `learn`.

    >>> search = BisectionSearch(dimension=4, directions=2, law=None, horizon=100)
    >>> search.box.low.tolist(), search.critical_counts.tolist()
    ([-2.0, -2.0], [139, 139])
    """

    def __init__(
        self,
        dimension: int,  # D
        directions: int,  # d
        law: Law | None,
        *,
        horizon: int | None = None,  # T
        reading: Errata = CORRECTED,
        constants: BisectionConstants = PRINTED,
    ) -> None:
        if not 1 <= directions <= dimension:
            raise ValueError(
                f"need between 1 and {dimension} directions in that dimension, got {directions}"
            )
        if horizon is not None and horizon < 2:
            raise ValueError(f"need a horizon of at least 2 queries, got {horizon}")
        self.law, self.reading, self.constants = law, reading, constants
        self.box = SecretBox.around(directions, first_side(dimension) / 2)
        self.horizon = FIRST_HORIZON if horizon is None else horizon
        self.doubles = horizon is None
        self.queries = self.shrinks = 0
        self._angle = constants.angle_for(directions)
        self._evidence = [HalfEvidence(0.0, 0.0)] * directions
        self._set_critical_counts()
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
            self.shrink_ready()

    def skip(self) -> None:
        """Let one query pass without a bit."""
        self.extend_horizon()
        self.queries += 1

    def extend_horizon(self) -> None:
        """Double a horizon that nobody gave once it is used up: shrinks then need more evidence."""
        if self.doubles and self.queries >= self.horizon:
            self.horizon *= 2
            self._set_critical_counts()

    # Algorithm 2 ----------------------------------------------------------------------------------

    def shrink_ready(self) -> None:
        """Shrink what is ready: all directions once all are, or each on its own."""
        ready = self.box.seen >= self.critical_counts
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
            fresh = HalfEvidence.of(self.law, float(gap))
            count = fresh.critical_count(self.constants, self.horizon)
            if ended[i] or count < self.critical_counts[i] - self.box.seen[i]:
                self._evidence[i] = fresh
                self.box.forget(i)
        self._set_critical_counts()

    def _set_critical_counts(self) -> None:
        found = [each.critical_count(self.constants, self.horizon) for each in self._evidence]
        self.critical_counts: Counts = np.array(found, np.int64)  # N_crit of each direction


# The learner: a basis, given or found, in front of the search -----------------------------------


PRELIMINARY_QUERIES_PER_DIRECTION = 64
"""So many queries for each direction are looked at before a basis is sought."""


SAME_THRESHOLD_RATIO = 1e-9
"""Thresholds this near to each other, in widths of the box along a query, are the same."""


class OnlineBisection:
    """Answers queries from the middle of a box, and shrinks the box by what the oracle says.

    >>> learner = OnlineBisection(4, None, basis=np.eye(4)[:2], horizon=1_000)
    >>> q = np.array([1.0, 0.0, 0.0, 0.0])
    >>> learner.answer(q), learner.threshold(q), learner.uses(q)
    (0.0, 0.0, True)
    """

    def __init__(
        self,
        dimension: int,  # D
        law: Law | None,
        *,
        basis: Floats | None = None,  # C
        directions: int | None = None,  # d
        horizon: int | None = None,  # T
        reading: Errata = CORRECTED,
        constants: BisectionConstants = PRINTED,
        preliminary: int | None = None,
    ) -> None:
        if basis is None and directions is None:
            raise ValueError("need a basis, or the number of directions to find")
        self.basis = None if basis is None else orthonormal_basis(basis, dimension)
        count = int(directions or 0) if self.basis is None else len(self.basis)
        self.search = BisectionSearch(
            dimension, count, law, horizon=horizon, reading=reading, constants=constants
        )
        self._batch = (
            PRELIMINARY_QUERIES_PER_DIRECTION * count if preliminary is None else preliminary
        )
        self._first: list[Floats] = []
        if self._batch < count:
            raise ValueError(f"need at least {count} preliminary queries, got {self._batch}")

    def answer(self, q: Floats) -> float:
        """The value of a query at the middle of the box; one half of everything before."""
        if self.basis is None:
            return float(q.sum()) / 2
        return self.search.answer(self.basis @ q)

    def threshold(self, q: Floats) -> float:
        """Half way between the least and the largest value over the box."""
        if self.basis is None:
            return self.answer(q)
        return self.search.threshold(self.basis @ q)

    def uses(self, q: Floats) -> bool:
        """Whether the oracle's bit about this query would be counted; else it need not be asked."""
        if self.basis is None or self.search.stopped:
            return False
        return self.search.direction(self.basis @ q, float(q @ q)) is not None

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take note of the oracle's answer; one about another threshold is not evidence."""
        if self.basis is None:
            self.search.skip()
            self._find_basis(q)
            return
        x = self.basis @ q
        if abs(threshold - self.search.threshold(x)) <= SAME_THRESHOLD_RATIO * self.search.spread(
            x
        ):
            self.search.learn(x, above, float(q @ q))
        else:
            self.search.skip()

    def _find_basis(self, q: Floats) -> None:
        """Keep the first queries until directions are found in them; else look at the next ones."""
        self._first.append(np.array(q, np.float64))
        if len(self._first) < self._batch:
            return
        search, seen = self.search, np.array(self._first)
        count = len(search.box.low)
        if search.reading.directions_from_clusters:
            angle = search.constants.angle_for(count)
            self.basis = concentrated_basis(seen, count, angle)
        else:
            self.basis = principal_basis(seen, count)
        self._first.clear()
