"""Learning w . q from one bit a query: a square-root Kalman filter that nearly reaches the limit.

Source     Source document 000, section 2 (the protocol), in place of its Algorithms 1 and 2. The
           filter is Kalman's with Potter's root; cutting a normal law at a bit is old as well.
Method     The threshold is the own prediction, every query is used, and nothing is asked of its
           angle: `potter` has one scale, `kalman_bank` any, `kalman_ladder` symmetric noise.
Guarantee  None that is proved. Measured, the average error is .9 to 1.1 times the limit of
           `one_bit_limit` at 1e5 queries; docs/derivations/one_bit_kalman.md.
Cost       O(d D) a query for the coordinates, O(d^2) for the rest; O(d^2) memory besides the basis.

What a one-bit filter knows of a query: its coordinates, in a basis that is given or found.

Method     w is even on [0, 1] in each coordinate, so that C w has mean C1/2 and, to be on the safe
           side, the covariance diag(|e_i|_1^2)/12 + (C1)(C1)'/12: the second term is a level common
           to all of w, without which a filter may be stuck for good when the noise is small.
           A basis that is found is grown by Gram and Schmidt: no preliminary period, no angles. The
           level is then a column of its own, 1 . q, which says the same as the term above.
           A shift of the noise is a column of ones that comes first and is left out of answers.

Thresholds of an oracle with K answers: where cells should end to tell the most.

Source     Lloyd (1957) and Max (1960): the quantiser of a standard normal number with the least
           squared error. What K cells say about a Gaussian location is 1 minus that error, so the
           same ends are best here. Source document 000, section 1.2, speaks of oracles with more
           than two answers.
Cost       That of `level_information`, once for each K.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.kalman_bank import SLOWED, ScaleBank
from casemate.attack.one_bit.kalman_ladder import OffsetLadder
from casemate.attack.one_bit.laws import Gaussian
from casemate.attack.one_bit.limit import box_prior, level_information
from casemate.attack.one_bit.oracle import AnswerTrail, Floats, checked_basis
from casemate.attack.one_bit.potter import KnownScale

NEW = 1e-6
"""A query opens a direction when this part of it lies outside those known."""


class GivenBasis:
    """Coordinates in a given orthonormal basis; the identity is the full-dimension form.

    The first of the columns may stand for the noise's own shift.
    """

    def __init__(self, basis: Floats, dimension: int, shift: float = 0.0) -> None:
        self.directions = checked_basis(basis, dimension)
        self._shift = shift

    def columns(self, q: Floats) -> Floats:
        """The coordinates, after a 1 where the noise may be shifted."""
        return with_ones(self.directions @ q, self._shift)

    def prior(self) -> tuple[Floats, Floats]:
        """Even coordinates of w and a common level of them."""
        return shifted(*box_prior(self.directions), self._shift)

    def vector(self, coefficients: Floats) -> Floats:
        """The combination of the directions."""
        return np.asarray(coefficients[-len(self.directions) :] @ self.directions)


class GrownBasis:
    """Directions found as queries come, and the level as a column of its own."""

    def __init__(self, dimension: int, shift: float = 0.0) -> None:
        self._rows = np.empty((4, dimension))
        self._count, self._shift = 0, shift

    @property
    def directions(self) -> Floats:
        """Those found so far."""
        return self._rows[: self._count]

    def columns(self, q: Floats) -> Floats:
        """The level and the coordinates; a direction not seen before is added to the basis."""
        self._look(q)
        return with_ones(np.concatenate(([q.sum()], self.directions @ q)), self._shift)

    def _look(self, q: Floats) -> None:
        rest, size = q, float(np.linalg.norm(q))
        for _ in range(2):  # the second time takes away what rounding left the first time
            rest = rest - (self.directions @ rest) @ self.directions
        left = float(np.linalg.norm(rest))
        if left > NEW * size and self._count < len(q):
            self._add(rest / left)

    def _add(self, direction: Floats) -> None:
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self._count] = direction
        self._count += 1

    def prior(self) -> tuple[Floats, Floats]:
        """A level around one half, and nothing else but spread."""
        deviations = np.concatenate(([1.0], np.abs(self.directions).sum(axis=1))) / math.sqrt(12)
        mean = np.zeros_like(deviations)
        mean[0] = 0.5
        return shifted(mean, np.diag(deviations), self._shift)

    def vector(self, coefficients: Floats) -> Floats:
        """The combination of the directions, and the level of everything seen."""
        own = coefficients[-(self._count + 1) :]
        seen = self.directions.sum(axis=1) @ self.directions  # what queries see of (1, ..., 1)
        return np.asarray(own[0] * seen + own[1:] @ self.directions)


def with_ones(columns: Floats, shift: float) -> Floats:
    """The columns after one of ones, where the noise may be shifted."""
    if shift == 0:
        return columns
    ones = np.ones((*columns.shape[:-1], 1))
    return np.concatenate([ones, columns], axis=-1)


def shifted(mean: Floats, root: Floats, shift: float) -> tuple[Floats, Floats]:
    """A prior with a coefficient more, of mean 0 and this deviation, where that is not 0."""
    if shift == 0:
        return mean, root
    wider = np.zeros((len(mean) + 1, len(mean) + 1))
    wider[0, 0], wider[1:, 1:] = shift, root
    return np.concatenate(([0.0], mean)), wider


# Kalman levels ----------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def level_offsets(levels: int) -> tuple[float, ...]:
    """The K - 1 thresholds, in deviations from the prediction.

    >>> [round(offset, 3) for offset in level_offsets(4)]
    [-0.982, 0.0, 0.982]
    """
    ends = np.array(level_information(Gaussian(1.0), levels).thresholds)
    return tuple(((ends - ends[::-1]) / 2).tolist())  # rounding aside, it is symmetric


# Kalman -----------------------------------------------------------------------------------------


class OneBitKalman:
    """A one-bit filter for secrets in [0, 1]^dimension and noise with median 0.

    `basis` holds orthonormal vectors of the queries' space, one a row; None finds it as queries
    come, and the identity is the full-dimension form for queries that are only near a space.
    `scale` is the deviation of the Gaussian noise with the same density at its median (for any law,
    `effective_scale(law)`); None finds it, and 0 says that there is no noise. `shift` is how far
    the noise's median may lie from 0, as a deviation; dimension / 5 if nothing is known. Where the
    scale is to be found, `widest` is the largest to begin with, and `random` moves thresholds; for
    noise that is known to be `symmetric` they go where they tell the most, be it not the median.

    >>> secret, learner = np.array([0.2, 0.9]), OneBitKalman(2, basis=np.eye(2), scale=0)
    >>> for q in [np.array([1.0, 0.5]), np.array([0.0, 1.0])] * 60:
    ...     t = learner.threshold(q)
    ...     learner.learn(q, t, bool(secret @ q > t))
    >>> learner.vector.round(6).tolist()
    [0.2, 0.9]
    """

    def __init__(
        self,
        dimension: int,
        basis: Floats | None = None,
        scale: float | None = None,
        *,
        shift: float = 0.0,
        rho: float = SLOWED,
        symmetric: bool = False,
        widest: float | None = None,
        random: np.random.Generator | None = None,
    ) -> None:
        _check(dimension, scale, shift, rho)
        if symmetric and scale is not None:
            raise ValueError(
                "symmetric noise is explored for an unknown scale: leave the scale out"
            )
        self.dimension = dimension
        self._shift = shift
        self._regressors: GrownBasis | GivenBasis = (
            GrownBasis(dimension, shift) if basis is None else GivenBasis(basis, dimension, shift)
        )
        first, prior = int(shift > 0), self._regressors.prior()
        self._belief: KnownScale | ScaleBank | OffsetLadder
        if scale is not None:
            self._belief = KnownScale(*prior, scale, rho, first)
        else:
            draws = np.random.default_rng() if random is None else random
            bank = ScaleBank(*prior, widest or 2.0 * dimension, rho, first=first, random=draws)
            self._belief = OffsetLadder(bank, rho, first) if symmetric else bank

    @property
    def basis(self) -> Floats:
        """The directions in use, one a row."""
        return self._regressors.directions

    @property
    def scale(self) -> float:
        """The deviation of the noise: as given, or as far as it is known."""
        return self._belief.scale

    @property
    def settled(self) -> bool:
        """Whether the scale is known: given, or measured by now."""
        return isinstance(self._belief, KnownScale) or self._belief.settled

    @property
    def offset(self) -> float:
        """How far from its prediction it asks: 0 unless symmetric noise tells more elsewhere."""
        return self._belief.offset if isinstance(self._belief, OffsetLadder) else 0.0

    @property
    def vector(self) -> Floats:
        """The estimate of w as far as queries can see it: its projection on the basis."""
        return self._regressors.vector(self._belief.mean)

    @property
    def shift(self) -> float:
        """The estimate of the noise's median."""
        return float(self._belief.mean[0]) if self._shift > 0 else 0.0

    def answer(self, q: Floats) -> float:
        """The mean of the belief about w . q."""
        return self._belief.answer(self._columns(q))

    def deviation(self, q: Floats) -> float:
        """How far off that may be: the deviation of the belief."""
        x, first = self._columns(q), int(self._shift > 0)
        return float(np.linalg.norm(self._belief.root[first:].T @ x[first:]))

    def threshold(self, q: Floats) -> float:
        """The own prediction; once in a while a little beside it, if the scale is to be found."""
        return self._belief.threshold(self._columns(q))

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take a bit about any threshold."""
        self._belief.learn(self._columns(q), threshold, above)

    # An oracle with more than two answers

    def thresholds(self, q: Floats, levels: int) -> Floats:
        """Where the cells of an oracle with so many answers should end."""
        x, belief = self._columns(q), self._known()
        return belief.threshold(x) + belief.spread(x) * np.array(level_offsets(levels))

    def learn_level(self, q: Floats, thresholds: Floats, level: int) -> None:
        """Take an answer that says how many of the thresholds are passed."""
        ends = np.concatenate(([-np.inf], thresholds, [np.inf]))
        self._known().learn_between(self._columns(q), float(ends[level]), float(ends[level + 1]))

    # Whole streams, compiled

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        """Answer a whole stream: queries in the given basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        return self._belief.follow(self._laid(coordinates), np.ascontiguousarray(noisy, float))

    def follow_queries(self, queries: Floats, noisy: Floats) -> AnswerTrail:
        """The same for queries as they are, in any basis, given or found."""
        rows = [self._columns(q) for q in queries]
        columns = np.zeros((len(rows), len(self._belief.mean)))
        for row, place in zip(rows, columns, strict=True):
            place[: len(row)] = row
        return self._belief.follow(columns, np.ascontiguousarray(noisy, float))

    def follow_levels(
        self, coordinates: Floats, noisy: Floats, levels: int
    ) -> tuple[Floats, NDArray[np.int64]]:
        """The same with several answers a query: what was answered, and which cells came back."""
        offsets = np.array(level_offsets(levels))
        columns = self._laid(coordinates)
        return self._known().follow_levels(columns, np.ascontiguousarray(noisy, float), offsets)

    def _laid(self, coordinates: Floats) -> Floats:
        if isinstance(self._regressors, GrownBasis):
            raise ValueError("coordinates need a basis: give one, or use follow_queries")
        return np.ascontiguousarray(with_ones(np.asarray(coordinates, float), self._shift))

    def _known(self) -> KnownScale:
        if not isinstance(self._belief, KnownScale):
            raise ValueError("an oracle with several answers needs the scale of its noise: give it")
        return self._belief

    def _columns(self, q: Floats) -> Floats:
        if q.shape != (self.dimension,):
            raise ValueError(f"need a query of length {self.dimension}, got shape {q.shape}")
        x = self._regressors.columns(np.asarray(q, float))
        if len(x) > len(self._belief.mean):
            self._belief.widen(*self._regressors.prior())
        return x


def _check(dimension: int, scale: float | None, shift: float, rho: float) -> None:
    if dimension < 1:
        raise ValueError(f"need at least one dimension, got {dimension}")
    if scale is not None and not 0 <= scale < np.inf:
        raise ValueError(f"need a finite scale of the noise that is not negative, got {scale}")
    if not (0 <= shift < np.inf and 0 < rho <= 1):
        raise ValueError(f"need a shift of at least 0 and rho in (0, 1], got {shift} and {rho}")
