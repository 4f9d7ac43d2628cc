"""OnlineBisection: a secret vector from one noisy bit a query, in logarithmic memory.

Source     Source document 000, Algorithms 1 and 2, with the closed form of Lemma 5.1.
Guarantee  Theorem 2.1, corrected: while the queries concentrate near the basis, the average error
           falls like sqrt(log T / T), except with a chance of about d log(T) / T^3;
           `casemate.papers` has both with explicit constants.
Cost       O(dD) time a query for its coordinates. The basis (dD numbers) and 4d numbers beside it,
           with what follows from them: the evidence that each direction needs in its phase.
Departure  Fifteen errata, listed in docs/derivations/online_bisection.md. Those that change what
           happens are fields of `Errata` and `BisectionConstants`, each with a test of the printed
           text. Without a basis the first queries are answered by one half of everything, until
           directions are found.

Finding the directions near which queries concentrate.

Source     Source document 000, section 3: "some orthonormal basis" of the queries' space, for
           instance by principal components.
Departure  OnlineBisection uses a query only within a small angle of a basis vector, so the basis
           has to consist of the directions of the queries themselves: the densest ones, made
           orthonormal. Principal components are those only by accident:
           `test_a_basis_of_principal_components_never_shrinks`.
Cost       n^2 D time for n queries, each used once; d D numbers are kept.

Compiled steps of OnlineBisection, up to the end of a phase.

Arguments come in groups: `stream` is (coordinates, secret, noise); `span` is (first, end); `state`
is (test, box, counts); `said` is (answers, thresholds, bits), without rows when nobody asked for
them. A test is (cosine squared, shortest squared, whether the threshold is the middle); a box is
(middle, half sides); counts are (above, seen, needed, waiting), where waiting is how many
directions have to become ready.

How the text of OnlineBisection is read: its errata as switches, and its constants as numbers.

docs/derivations/online_bisection.md lists every erratum and what it does.

A box that holds the secret, and the linear programme over it in closed form.

Source     Source document 000, Algorithm 2 (ShrinkHyperCube) and Lemma 5.1.
Guarantee  `most` and `least` are exact; a shrink leaves three quarters of a side.
Cost       O(d) time and 4d numbers: two ends and two counts for each direction.

OnlineBisection on coordinates: what a query in the basis says about the box.

Source     Source document 000, Algorithms 1 and 2. Here x = Cq are the coordinates of a query and
           C w those of the secret; `bisection` puts a basis in front.
Guarantee  Theorem 2.1, as `error_bound`, `loss_bound` and `delay_bound` of `casemate.papers`.
Cost       O(d) time a query; 4d numbers and a few more, none of which grows with the stream.
Departure  An unknown horizon is doubled whenever it is passed, and the box is kept: only the
           evidence that later shrinks need grows. `Errata` names the corrected errata.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.oracle import Bits, Floats, checked_basis
from casemate.compiled import compiled

NEARLY_ORTHOGONAL = 0.5
"""Directions whose least singular value is below this are no basis of concentration."""


def concentrated_basis(queries: Floats, directions: int, angle: float) -> Floats | None:
    """The directions near which most queries are, made orthonormal; None when there are too few.

    Each is the mean of the largest group of queries within twice the angle of one of them. The
    nearest orthonormal vectors (the polar factor) undo a lean to all other directions alike.
    """
    lengths = np.linalg.norm(queries, axis=1)
    left = queries[lengths > 0] / lengths[lengths > 0, None]
    found: list[Floats] = []
    while len(found) < directions and len(left) > 0:
        centre = _densest(left, 2 * angle)
        found.append(centre)
        left = left[left @ centre < math.cos(math.pi / 4)]
    if len(found) < directions:
        return None
    outer, sizes, inner = np.linalg.svd(np.array(found), full_matrices=False)
    return np.asarray(outer @ inner) if sizes[-1] > NEARLY_ORTHOGONAL else None


def _densest(rows: Floats, angle: float) -> Floats:
    """The mean direction of the largest group of rows within an angle of one of them."""
    near = rows @ rows.T >= math.cos(angle)
    mean = rows[near[int(near.sum(axis=0).argmax())]].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def principal_basis(queries: Floats, directions: int) -> Floats:
    """The first principal components of the queries, each pointing to where most of them are."""
    _, _, inner = np.linalg.svd(queries, full_matrices=False)
    chosen = inner[:directions]
    signs = np.where((queries @ chosen.T).sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(chosen * signs[:, None])


# Bisection kernel -------------------------------------------------------------------------------


@compiled(inline="always")
def _speaks_of(x: Any, cosine_squared: Any, shortest_squared: Any) -> Any:
    """The direction about which a query speaks; -1 when there is none."""
    total, nearest = 0.0, 0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
        if x[j] > x[nearest]:
            nearest = j
    part = x[nearest]
    near = part > 0.0 and part * part >= cosine_squared * total
    return nearest if near and total >= shortest_squared else -1


@compiled
def advance(stream: Any, span: Any, state: Any, said: Any) -> Any:
    """Answer the queries of a span, and count, until a phase ends; where, and the sum of errors.

    Without directions to wait for, it only answers.
    """
    coordinates, secret, noise = stream
    place, end = span
    test, box, counts = state
    cosine_squared, shortest_squared, in_the_middle = test
    middle, half = box
    above, seen, needed, waiting = counts
    errors = 0.0
    counting, keeping = waiting > 0, said[0].shape[0] > 0
    while place < end:
        x = coordinates[place]
        answer, truth, spread = 0.0, 0.0, 0.0
        for j in range(x.shape[0]):
            answer += middle[j] * x[j]
            truth += secret[j] * x[j]
            spread += half[j] * abs(x[j])
        errors += abs(answer - truth)
        threshold = answer if in_the_middle else spread
        bit = truth + noise[place] > threshold
        if keeping:
            said[0][place], said[1][place], said[2][place] = answer, threshold, bit
        place += 1
        if counting:
            direction = _speaks_of(x, cosine_squared, shortest_squared)
            if direction >= 0:
                above[direction] += bit
                seen[direction] += 1
                if seen[direction] == needed[direction]:
                    waiting -= 1
                    if waiting == 0:
                        break
    return place, errors


# Bisection reading ------------------------------------------------------------------------------


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


def printed_angle(directions: int) -> float:
    """The angle of Algorithm 1: 2 arcsin(1 / 64 sqrt d)."""
    return 2 * math.asin(1 / (64 * math.sqrt(directions)))


# Bisection evidence -----------------------------------------------------------------------------


SHRINK = 0.75  # alpha
"""What is left of a side when it shrinks."""

NEVER = 1 << 62
"""As many observations as nobody will ever have."""


# Decisions ----------------------------------------------------------------------------------------


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

    def needed(self, constants: BisectionConstants, horizon: int) -> int:  # N_crit
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


def phases(
    dimension: int, directions: int, horizon: int, law: Law | None, constants: BisectionConstants
) -> Iterator[tuple[float, int, float]]:
    """Of every phase until the stopping side: the side, the bits needed, and Delta p."""
    side = first_side(dimension)
    while side > stopping_side(horizon, directions):
        gap = float(gaps(np.full(directions, side), constants)[0])
        evidence = HalfEvidence.of(law, gap)
        yield side, evidence.needed(constants, horizon), evidence.difference
        side *= SHRINK


# Bisection box ----------------------------------------------------------------------------------


Counts = NDArray[np.int64]


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
        kept = SHRINK * (high - low)
        if upper:
            self.low[direction] = high - kept
        else:
            self.high[direction] = low + kept


# Bisection search -------------------------------------------------------------------------------


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
            fresh = HalfEvidence.of(self.law, float(gap))
            soon = fresh.needed(self.constants, self.horizon)
            if ended[i] or soon < self.needed[i] - self.box.seen[i]:
                self._evidence[i] = fresh
                self.box.forget(i)
        self._weigh()

    def _weigh(self) -> None:
        found = [each.needed(self.constants, self.horizon) for each in self._evidence]
        self.needed: Counts = np.array(found, np.int64)  # N_crit of each direction


# Bisection --------------------------------------------------------------------------------------


PRELIMINARY = 64
"""So many queries for each direction are looked at before a basis is sought."""


SAME = 1e-9
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
        self.basis = None if basis is None else checked_basis(basis, dimension)
        count = int(directions or 0) if self.basis is None else len(self.basis)
        self.search = BisectionSearch(
            dimension, count, law, horizon=horizon, reading=reading, constants=constants
        )
        self._batch = PRELIMINARY * count if preliminary is None else preliminary
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
            self._look(q)
            return
        x = self.basis @ q
        if abs(threshold - self.search.threshold(x)) <= SAME * self.search.spread(x):
            self.search.learn(x, above, float(q @ q))
        else:
            self.search.skip()

    def _look(self, q: Floats) -> None:
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
