"""The learners an attack may use, each with what it is told of the noise.

`auto` takes thresholds at the edge where the law has one that pays within the stream, or where a
better threshold than the median is known from the law; otherwise the filter at the median. Where
nothing is known of the noise, it takes the learner that looks for an edge by itself.
"""

from dataclasses import replace
from enum import StrEnum

import numpy as np

from casemate.attack.one_bit.automatic import AutomaticKalman
from casemate.attack.one_bit.bisection import TIGHT, BisectionSearch
from casemate.attack.one_bit.bisection_simulation import feed
from casemate.attack.one_bit.edge import EdgeKalman
from casemate.attack.one_bit.kalman import OneBitKalman
from casemate.attack.one_bit.laws import Law, centred, effective_scale, median
from casemate.attack.one_bit.limit import bit_information, edge_pays_after
from casemate.attack.one_bit.oracle import Floats, StagedLearner
from casemate.attack.one_bit.streams import shortest_single
from casemate.errors import Misconfigured


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


def choose_learner(
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
    if told is KnownNoise.NOTHING and not median(law):
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
) -> "StreamLearner":
    """A learner before its first query, with one coordinate for each group."""
    groups, total, centre = len(reach), float(reach.sum()), median(law)
    if name is OneBitLearnerName.BISECTION:
        return Bisecting(law, reach, queries)
    if name is OneBitLearnerName.EDGE:
        return Filtering(EdgeKalman(groups, law, random=random))
    if name is OneBitLearnerName.AUTOMATIC:  # it believes in a median of 0 and queries in [0, 1]
        return Filtering(AutomaticKalman(groups, random=random), unit=float(reach.max()))
    unknown_shift = centre != 0 and told is not KnownNoise.LAW
    kalman = OneBitKalman(
        groups,
        np.eye(groups),
        None if told is KnownNoise.NOTHING else effective_scale(law),
        shift=0.2 * total if unknown_shift else 0.0,
        widest=2 * total,
        random=random,
    )
    return Filtering(kalman, centre if told is KnownNoise.LAW else 0.0)


class Filtering:
    """A filter whose thresholds are moved by the median of the noise, in a unit of its own."""

    def __init__(
        self,
        filter_: StagedLearner,
        centre: float = 0.0,
        unit: float = 1.0,
    ) -> None:
        self._filter, self._centre, self._unit = filter_, centre, unit

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """What the filter says, in the unit of the queries."""
        trail = self._filter.follow(queries / self._unit, (noisy - self._centre) / self._unit)
        return np.asarray(self._unit * trail.answers)

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:
        """The belief, which is normal."""
        mean, root = self._filter.belief
        reach = deviations * np.linalg.norm(root, axis=1)
        return mean.copy(), mean - reach, mean + reach


class Bisecting:
    """OnlineBisection with one direction for each group, with the tightened constants.

    Queries near a group are as long as the smallest group makes them, and the evidence is weighed
    accordingly.
    """

    def __init__(self, law: Law, reach: Floats, queries: int) -> None:
        self._centre, groups = median(law), len(reach)
        self.search = BisectionSearch(
            groups,
            groups,
            centred(law),
            horizon=max(2, queries),
            constants=replace(TIGHT, shortest=shortest_single(reach)),
        )

    def follow(self, queries: Floats, noisy: Floats) -> Floats:
        """From the middle of the box."""
        trail, _ = feed(self.search, queries, noisy - self._centre)
        return trail.answers

    def ends(self, deviations: float) -> tuple[Floats, Floats, Floats]:  # noqa: ARG002 - a box is certain
        """The box, which holds the secret except with the chance of Theorem 2.1."""
        box = self.search.box
        return box.middle, box.middle - box.sides / 2, box.middle + box.sides / 2


StreamLearner = Filtering | Bisecting
"""Answers a stream in blocks, and says in the end what it believes of each group."""
