"""The protocol of source document 000: a query, a number, a threshold, and one bit that comes back.

A secret w lies in [0, 1]^D. For each query q in [0, 1]^D the learner states its answer, an estimate
of w . q, and a threshold; the oracle says whether w . q plus fresh noise is above it. Learners see
nothing else. `AnswerTrail` is the transcript of a stream, `NoisyOracle` an oracle with a law,
and `StagedLearner` the loop of all learners whose belief goes through stages.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.laws import Law

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


def orthonormal_basis(basis: Floats | None, dimension: int) -> Floats:
    """An orthonormal basis of the queries' space, one vector a row; None is all of the space."""
    rows = np.eye(dimension) if basis is None else np.ascontiguousarray(basis, np.float64)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise ValueError(f"need a basis of vectors of length {dimension}, got shape {rows.shape}")
    if not np.allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-6):
        raise ValueError("need an orthonormal basis, one vector a row, and these are not")
    return rows


class OneBitLearner(Protocol):
    """Something that answers queries and learns from one bit about each."""

    def answer(self, q: Floats) -> float:
        """Its estimate of w . q."""

    def threshold(self, q: Floats) -> float:
        """The number about which the oracle is asked: is w . q plus noise above it?"""

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take note of the oracle's answer."""


class ThresholdOracle(Protocol):
    """One call a query: whether the noisy answer is above the threshold."""

    def above(self, q: Floats, threshold: float) -> bool:
        """Whether w . q plus fresh noise is above the threshold."""


Trail = tuple[Floats, Floats, Bits]
"""An `AnswerTrail` as kernels fill it in: a plain tuple, so that an interrupt leaks no module."""


DrawnStream = tuple[Floats, Floats, Floats]
"""(columns, noisy, draws) of a stream as kernels read it: the regressors of each query, its answer
with the noise as the oracle compares it, and a uniform draw."""


class AnswerTrail(NamedTuple):
    """What was said about each query of a stream, in order."""

    answers: Floats
    thresholds: Floats
    above: Bits

    @classmethod
    def empty(cls, count: int) -> Self:
        """Room for what is said about so many queries."""
        return cls(np.empty(count), np.empty(count), np.empty(count, np.bool_))

    @property
    def arrays(self) -> Trail:
        """The arrays that kernels fill in."""
        return self.answers, self.thresholds, self.above

    def after(self, place: int) -> "AnswerTrail":
        """The room for the queries from this place on."""
        return AnswerTrail(self.answers[place:], self.thresholds[place:], self.above[place:])


@dataclass(frozen=True, eq=False)
class NoisyOracle:
    """Says whether w . q plus fresh noise is above a threshold; without a law there is no noise."""

    w: Floats
    law: Law | None
    rng: np.random.Generator

    def above(self, q: Floats, threshold: float) -> bool:
        """One call: one bit."""
        return bool(self.noisy(q[None, :])[0] > threshold)

    def noisy(self, queries: Floats) -> Floats:
        """Perturbed answers for a whole stream, for learners that run compiled.

        A learner may use each number for one comparison with its threshold, and nothing else.
        """
        truth = queries @ self.w
        return truth if self.law is None else truth + self.law.sample(self.rng, len(queries))


# Learners in stages -----------------------------------------------------------------------------
#
# Learners whose belief goes through stages, each a filter: the loop over queries is written once.
#
# A stage is a normal belief about coefficients, asks in its own way, and names its successor: the
# fitted scale after a bank of scales, the median after an edge that turned out to be none. Every
# query takes one uniform draw whatever the stage does with it, so that a stream that is answered
# whole is the same as its queries one by one.


class FilterStage(Protocol):
    """A belief about the coefficients of queries: normal, with covariance root root'."""

    nuisances: int
    """Leading coefficients that thresholds depend on and answers do not."""

    @property
    def mean(self) -> Floats:
        """The mean of the coefficients."""

    @property
    def root(self) -> Floats:
        """A square root of their covariance."""

    def answer(self, x: Floats) -> float:
        """The mean of w . q."""

    def threshold(self, x: Floats, draw: float) -> float:
        """Where to ask."""

    def learn(self, x: Floats, draw: float, threshold: float, above: bool) -> None:
        """Take a bit about a threshold for which this draw was used."""

    def follow(self, columns: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """Answer a stream, or its head until the stage is over; how many were answered."""

    def successor(self) -> "FilterStage":
        """What goes on from here: itself until it is over."""


class StagedLearner(ABC):
    """A one-bit learner that puts queries, as columns of a regression, to its present stage."""

    def __init__(
        self, stage: FilterStage, random: np.random.Generator | None, centre: float = 0.0
    ) -> None:
        self.stage, self._centre = stage, centre  # the median of the noise
        self._random = np.random.default_rng() if random is None else random
        self._draw = 0.5

    @abstractmethod
    def _columns(self, q: Floats) -> Floats:
        """The regressors of a query."""

    @property
    def belief(self) -> tuple[Floats, Floats]:
        """The mean of the coordinates of w, and a root of their covariance."""
        nuisances = self.stage.nuisances
        return self.stage.mean[nuisances:], self.stage.root[nuisances:]

    def answer(self, q: Floats) -> float:
        """The mean of the belief about w . q."""
        return self.stage.answer(self._columns(q))

    def threshold(self, q: Floats) -> float:
        """The number about which the oracle is asked next."""
        self._draw = self._random.random()
        return self.stage.threshold(self._columns(q), self._draw) + self._centre

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take a bit about the last threshold, or about any other."""
        self.stage.learn(self._columns(q), self._draw, threshold - self._centre, above)
        self.stage = self.stage.successor()

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        """Answer a whole stream, compiled: queries in the basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        columns = np.ascontiguousarray(coordinates, float)
        compared = np.ascontiguousarray(noisy, float) - self._centre
        trail, draws, done = AnswerTrail.empty(len(columns)), self._random.random(len(columns)), 0
        while done < len(columns):
            rest = columns[done:], compared[done:], draws[done:]
            done += self.stage.follow(*rest, trail.after(done))
            self.stage = self.stage.successor()
        trail.thresholds[:] += self._centre
        return trail
