"""Learning w . q from one bit a query: a square-root Kalman filter that nearly reaches the limit.

Source     Source document 000, section 2 (the protocol), in place of its Algorithms 1 and 2. The
           filter is Kalman's with Potter's root; truncating a normal law at a bit is old as well.
           Thresholds of an oracle with K answers (section 1.2) are those of Lloyd (1957) and Max
           (1960).
Method     The threshold is the predicted mean, every query is used, and nothing is asked of its
           angle: `square_root` has one scale, `scale_bank` any, `offset_grid` symmetric noise.
Guarantee  None that is proved. Measured, the average error is .9 to 1.1 times the limit of
           `one_bit_limit` at 1e5 queries; docs/derivations/one_bit_kalman.md.
Cost       O(d D) a query for the coordinates, O(d^2) for the rest; O(d^2) memory besides the basis.
           Thresholds for K answers cost that of `level_information`, once for each K.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.laws import Gaussian
from casemate.attack.one_bit.limit import box_prior, level_information
from casemate.attack.one_bit.offset_grid import OffsetGrid
from casemate.attack.one_bit.oracle import AnswerTrail, Floats, StagedLearner, orthonormal_basis
from casemate.attack.one_bit.scale_bank import SEARCH_RHO, ScaleBank
from casemate.attack.one_bit.square_root import KnownScale

# The coordinates of a query, in a basis that is given or found ----------------------------------
#
# w is even on [0, 1] in each coordinate, so that C w has mean C1/2 and, to be on the safe side, the
# covariance diag(|e_i|_1^2)/12 + (C1)(C1)'/12: the second term is a level common to all of w,
# without which a filter may be stuck for good when the noise is small. A basis that is found is
# grown by Gram and Schmidt: no preliminary period, no angles. The level is then a column of its
# own, 1 . q, which says the same as the term above. A shift of the noise is a column of ones that
# comes first and is left out of answers.


NEW_DIRECTION_RATIO = 1e-6
"""A query opens a direction when this part of it lies outside those known."""


class GivenBasis:
    """Coordinates in a given orthonormal basis; the identity is the full-dimension form."""

    def __init__(self, basis: Floats, dimension: int) -> None:
        self.directions = orthonormal_basis(basis, dimension)

    def columns(self, q: Floats) -> Floats:
        """The coordinates."""
        return self.directions @ q

    def prior(self) -> tuple[Floats, Floats]:
        """Even coordinates of w and a common level of them."""
        return box_prior(self.directions)

    def vector(self, coefficients: Floats) -> Floats:
        """The combination of the directions."""
        return coefficients @ self.directions


class GrownBasis:
    """Directions found as queries come, and the level as a column of its own."""

    def __init__(self, dimension: int) -> None:
        self._rows, self._count = np.empty((4, dimension)), 0

    @property
    def directions(self) -> Floats:
        """Those found so far."""
        return self._rows[: self._count]

    def columns(self, q: Floats) -> Floats:
        """The level and the coordinates; a direction not seen before is added to the basis."""
        self._extend(q)
        return np.concatenate(([q.sum()], self.directions @ q))

    def _extend(self, q: Floats) -> None:
        rest, size = q, float(np.linalg.norm(q))
        for _ in range(2):  # the second time takes away what rounding left the first time
            rest = rest - (self.directions @ rest) @ self.directions
        residual = float(np.linalg.norm(rest))
        if residual > NEW_DIRECTION_RATIO * size and self._count < len(q):
            self._add(rest / residual)

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
        return mean, np.diag(deviations)

    def vector(self, coefficients: Floats) -> Floats:
        """The combination of the directions, and the level of everything seen."""
        seen = self.directions.sum(axis=1) @ self.directions  # what queries see of (1, ..., 1)
        return np.asarray(coefficients[0] * seen + coefficients[1:] @ self.directions)


def with_ones(columns: Floats, shift: float) -> Floats:
    """The columns after one of ones, where the noise may be shifted: its shift is a nuisance."""
    if shift == 0:
        return columns
    ones = np.ones((*columns.shape[:-1], 1))
    return np.concatenate([ones, columns], axis=-1)


def with_shift(mean: Floats, root: Floats, shift: float) -> tuple[Floats, Floats]:
    """A prior with a coefficient more, of mean 0 and this deviation, where that is not 0."""
    if shift == 0:
        return mean, root
    wider = np.zeros((len(mean) + 1, len(mean) + 1))
    wider[0, 0], wider[1:, 1:] = shift, root
    return np.concatenate(([0.0], mean)), wider


# Thresholds of an oracle with K answers: where cells should end to tell the most ----------------
#
# Lloyd and Max have the quantiser of a standard normal number with the least squared error. What K
# cells say about a Gaussian location is 1 minus that error, so the same ends are best here.


@lru_cache(maxsize=32)
def level_offsets(levels: int) -> tuple[float, ...]:
    """The K - 1 thresholds, in deviations from the prediction.

    >>> [round(offset, 3) for offset in level_offsets(4)]
    [-0.982, 0.0, 0.982]
    """
    ends = np.array(level_information(Gaussian(1.0), levels).thresholds)
    return tuple(((ends - ends[::-1]) / 2).tolist())  # rounding aside, it is symmetric


# The filter -------------------------------------------------------------------------------------


class OneBitKalman(StagedLearner):
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

    stage: KnownScale | ScaleBank | OffsetGrid

    def __init__(
        self,
        dimension: int,
        basis: Floats | None = None,
        scale: float | None = None,
        *,
        shift: float = 0.0,
        rho: float = SEARCH_RHO,
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
            GrownBasis(dimension) if basis is None else GivenBasis(basis, dimension)
        )
        nuisances, prior = int(shift > 0), with_shift(*self._regressors.prior(), shift)
        if scale is not None:
            super().__init__(KnownScale(*prior, scale, rho, nuisances), random)
        else:
            after_fit, largest = OffsetGrid if symmetric else None, widest or 2.0 * dimension
            bank = ScaleBank(*prior, largest, rho, nuisances=nuisances, after_fit=after_fit)
            super().__init__(bank, random)

    @property
    def basis(self) -> Floats:
        """The directions in use, one a row."""
        return self._regressors.directions

    @property
    def scale(self) -> float:
        """The deviation of the noise: as given, or as far as it is known."""
        return self.stage.scale

    @property
    def settled(self) -> bool:
        """Whether the scale is known: given, or measured by now."""
        return isinstance(self.stage, KnownScale) or self.stage.settled

    @property
    def offset(self) -> float:
        """How far from its prediction it asks: 0 unless symmetric noise tells more elsewhere."""
        return self.stage.offset if isinstance(self.stage, OffsetGrid) else 0.0

    @property
    def vector(self) -> Floats:
        """The estimate of w as far as queries can see it: its projection on the basis."""
        return self._regressors.vector(self.belief[0])

    @property
    def shift(self) -> float:
        """The estimate of the noise's median."""
        return float(self.stage.mean[0]) if self._shift > 0 else 0.0

    def deviation(self, q: Floats) -> float:
        """How far off an answer may be: the deviation of the belief."""
        x, (mean, root) = self._columns(q), self.belief
        return float(np.linalg.norm(root.T @ x[-len(mean) :]))

    # An oracle with more than two answers

    def thresholds(self, q: Floats, levels: int) -> Floats:
        """Where the cells of an oracle with so many answers should end."""
        x, belief = self._columns(q), self._known_scale()
        return belief.threshold(x) + belief.spread(x) * np.array(level_offsets(levels))

    def learn_level(self, q: Floats, thresholds: Floats, level: int) -> None:
        """Take an answer that says how many of the thresholds are passed."""
        ends = np.concatenate(([-np.inf], thresholds, [np.inf]))
        x = self._columns(q)
        self._known_scale().learn_between(x, float(ends[level]), float(ends[level + 1]))

    # Whole streams, compiled

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        """Answer a whole stream: queries in the given basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        return super().follow(self._stream_columns(coordinates), noisy)

    def follow_queries(self, queries: Floats, noisy: Floats) -> AnswerTrail:
        """The same for queries as they are, in any basis, given or found."""
        rows = [self._columns(q) for q in queries]
        columns = np.zeros((len(rows), len(self.stage.mean)))
        for row, place in zip(rows, columns, strict=True):
            place[: len(row)] = row
        return super().follow(columns, noisy)

    def follow_levels(
        self, coordinates: Floats, noisy: Floats, levels: int
    ) -> tuple[Floats, NDArray[np.int64]]:
        """The same with several answers a query: what was answered, and which cells came back."""
        columns, compared = self._stream_columns(coordinates), np.ascontiguousarray(noisy, float)
        offsets = np.array(level_offsets(levels))
        return self._known_scale().follow_levels(columns, compared, offsets)

    def _stream_columns(self, coordinates: Floats) -> Floats:
        if isinstance(self._regressors, GrownBasis):
            raise ValueError("coordinates need a basis: give one, or use follow_queries")
        return np.ascontiguousarray(with_ones(np.asarray(coordinates, float), self._shift))

    def _known_scale(self) -> KnownScale:
        if not isinstance(self.stage, KnownScale):
            raise ValueError("an oracle with several answers needs the scale of its noise: give it")
        return self.stage

    def _columns(self, q: Floats) -> Floats:
        if q.shape != (self.dimension,):
            raise ValueError(f"need a query of length {self.dimension}, got shape {q.shape}")
        x = with_ones(self._regressors.columns(np.asarray(q, float)), self._shift)
        if len(x) > len(self.stage.mean):
            self.stage.widen(*with_shift(*self._regressors.prior(), self._shift))
        return x


def _check(dimension: int, scale: float | None, shift: float, rho: float) -> None:
    if dimension < 1:
        raise ValueError(f"need at least one dimension, got {dimension}")
    if scale is not None and not 0 <= scale < np.inf:
        raise ValueError(f"need a finite scale of the noise that is not negative, got {scale}")
    if not (0 <= shift < np.inf and 0 < rho <= 1):
        raise ValueError(f"need a shift of at least 0 and rho in (0, 1], got {shift} and {rho}")
