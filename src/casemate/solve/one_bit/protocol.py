"""The protocol of source document 000: a query, a number, a threshold, and one bit that comes back.

A secret w lies in [0, 1]^D. For each query q in [0, 1]^D the learner states its answer, an estimate
of w . q, and a threshold; the oracle says whether w . q plus fresh noise is above it. Learners see
nothing else. `Trail` is the transcript of a stream.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


class OneBitLearner(Protocol):
    """Something that answers queries and learns from one bit about each."""

    def answer(self, q: Floats) -> float:
        """Its estimate of w . q."""
        ...

    def threshold(self, q: Floats) -> float:
        """The number about which the oracle is asked: is w . q plus noise above it?"""
        ...

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take note of the oracle's answer."""
        ...


class ThresholdOracle(Protocol):
    """One call a query: whether the noisy answer is above the threshold."""

    def above(self, q: Floats, threshold: float) -> bool:
        """Whether w . q plus fresh noise is above the threshold."""
        ...


@dataclass(frozen=True, eq=False)
class Trail:
    """What was said about each query of a stream, in order."""

    answers: Floats
    thresholds: Floats
    above: Bits


def play(learner: OneBitLearner, oracle: ThresholdOracle, queries: Floats) -> Trail:
    """Put a learner before an oracle, one query after the other: the slow, obvious form."""
    count = len(queries)
    trail = Trail(np.empty(count), np.empty(count), np.empty(count, np.bool_))
    for place, q in enumerate(queries):
        trail.answers[place] = learner.answer(q)
        trail.thresholds[place] = learner.threshold(q)
        trail.above[place] = oracle.above(q, trail.thresholds[place])
        learner.learn(q, float(trail.thresholds[place]), bool(trail.above[place]))
    return trail
