"""The learners an attack may use, each with what it is told of the noise.

`auto` takes thresholds at the edge where the law has one that pays within the stream, or where a
better threshold than the median is known from the law; otherwise the filter at the median. Where
nothing is known of the noise, it takes the learner that looks for an edge by itself.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from casemate.attack.one_bit.automatic import AutomaticKalman
from casemate.attack.one_bit.bisection import TIGHT, BisectionSearch
from casemate.attack.one_bit.bisection_simulation import simulate_trail
from casemate.attack.one_bit.edge import EdgeKalman
from casemate.attack.one_bit.kalman import OneBitKalman
from casemate.attack.one_bit.laws import Law, centred, effective_scale
from casemate.attack.one_bit.limit import bit_information, edge_pays_after
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import shortest_single
from casemate.errors import Misconfigured

UNSHIFTED = 1e-9
"""A median of the noise below this part of its scale is none."""


class OneBitLearnerName(StrEnum):
    """The learners that can be asked for."""

    AUTO = "auto"
    BISECTION = "bisection"
    KALMAN = "kalman"
    EDGE = "edge"
    AUTOMATIC = "automatic"


class KnownNoise(StrEnum):
    """What the attacker knows of the noise: its law, its scale only, or nothing."""

    LAW = "law"
    SCALE = "scale"
    NOTHING = "nothing"


class StreamLearner(Protocol):
    """Answers a stream in blocks, and says in the end what it believes of each group."""

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """What is answered; noisy answers are compared with thresholds and not used otherwise."""
        ...

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:
        """An estimate of each group's scaled mean, and an interval of so many deviations."""
        ...


def chosen(
    name: OneBitLearnerName, told: KnownNoise, law: Law, queries: int, groups: int
) -> OneBitLearnerName:
    """The learner that is used; `auto` becomes one of the others."""
    if name in (OneBitLearnerName.EDGE, OneBitLearnerName.BISECTION) and told is not KnownNoise.LAW:
        raise Misconfigured(
            f"the learner {name} has to know the law of the noise; use --told law, or the learner "
            f"kalman"
        )
    if name is not OneBitLearnerName.AUTO:
        return name
    if told is KnownNoise.NOTHING and not middle(law):
        return OneBitLearnerName.AUTOMATIC
    pays = edge_pays_after(law) * groups <= queries or bit_information(law).kind == "supremum"
    return OneBitLearnerName.EDGE if told is KnownNoise.LAW and pays else OneBitLearnerName.KALMAN


def learner_for(
    name: OneBitLearnerName,
    told: KnownNoise,
    law: Law,
    reach: Floats,
    *,
    queries: int,
    random: np.random.Generator,
) -> StreamLearner:
    """A learner before its first query."""
    if name is OneBitLearnerName.BISECTION:
        return Bisecting(law, reach, queries)
    if name is OneBitLearnerName.EDGE:
        return AtTheEdge(law, len(reach), random)
    if name is OneBitLearnerName.AUTOMATIC:
        return Looking(reach, random)
    return Filtering(told, law, reach, random)


class Filtering:
    """`OneBitKalman` with one coordinate for each group."""

    def __init__(
        self, told: KnownNoise, law: Law, reach: Floats, random: np.random.Generator
    ) -> None:
        shift = 0.2 * float(reach.sum())  # where the noise is not centred, and nobody says how far
        self._middle = middle(law) if told is KnownNoise.LAW else 0.0
        self.kalman = OneBitKalman(
            len(reach),
            np.eye(len(reach)),
            None if told is KnownNoise.NOTHING else effective_scale(law),
            shift=shift if told is not KnownNoise.LAW and middle(law) else 0.0,
            widest=2 * float(reach.sum()),
            random=random,
        )

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """Thresholds are above the predictions by the median of the noise."""
        return self.kalman.follow(queries, noisy - self._middle).answers

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:
        """The belief, which is normal."""
        units = np.eye(self.kalman.dimension)
        return _normal(
            self.kalman.vector, np.array([self.kalman.deviation(e) for e in units]), deviations
        )


class AtTheEdge:
    """`EdgeKalman` with one coordinate for each group."""

    def __init__(self, law: Law, groups: int, random: np.random.Generator) -> None:
        self._middle = middle(law)
        self.kalman = EdgeKalman(groups, centred(law) if self._middle else law, random=random)

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """Thresholds are where the learner puts them, moved by the median of the noise."""
        return self.kalman.follow(queries, noisy - self._middle).answers

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:
        """The belief, which is normal; after an alarm that of the fallback."""
        belief = self.kalman if self.kalman.fallback is None else self.kalman.fallback
        return _normal(belief.mean, np.linalg.norm(belief.root, axis=1), deviations)


class Looking:
    """`AutomaticKalman` with one coordinate for each group; it believes in a median of 0."""

    def __init__(self, reach: Floats, random: np.random.Generator) -> None:
        self._unit = float(reach.max())  # so that queries are in [0, 1], as it expects
        self.kalman = AutomaticKalman(len(reach), random=random)

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """In units of the largest group."""
        said = self.kalman.follow(queries / self._unit, noisy / self._unit)
        return np.asarray(self._unit * said.answers)

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:
        """The belief, which is normal; at an edge the noise's ends come first in it."""
        belief = self.kalman.bank if self.kalman.edges is None else self.kalman.edges
        groups = len(self.kalman.basis)
        spread = np.linalg.norm(belief.root, axis=1)
        return _normal(belief.mean[-groups:], spread[-groups:], deviations)


class Bisecting:
    """OnlineBisection with one direction for each group, with the tightened constants.

    Queries near a group are as long as the smallest group makes them, and the evidence is weighed
    accordingly.
    """

    def __init__(self, law: Law, reach: Floats, queries: int) -> None:
        self._middle, groups = middle(law), len(reach)
        self.search = BisectionSearch(
            groups,
            groups,
            centred(law) if self._middle else law,
            horizon=max(2, queries),
            constants=replace(TIGHT, shortest=shortest_single(reach)),
        )

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """From the middle of the box."""
        nothing = np.zeros(queries.shape[1])  # noisy answers hold the secret already
        return simulate_trail(self.search, queries, nothing, noisy - self._middle).answers

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:  # noqa: ARG002 - a box is certain
        """The box, which holds the secret except with the chance of Theorem 2.1."""
        box = self.search.box
        return box.middle, box.middle - box.sides / 2, box.middle + box.sides / 2


def middle(law: Law) -> float:
    """The median of the noise; 0 where it is rounding."""
    found = float(law.quantile(0.5))
    return found if abs(found) > UNSHIFTED * law.scale else 0.0


def _normal(mean: Floats, spread: Floats, deviations: float) -> tuple[Floats, Floats, Floats]:
    return mean.copy(), mean - deviations * spread, mean + deviations * spread
