"""The least error that any learner can have on a stream of one-bit answers, beside two yardsticks.

Source     The local asymptotic minimax theorem (Hajek, Le Cam) for the loss |.|, and van Trees'
           inequality; the quantity they bound is the average error of source document 000,
           Theorem 2.1. Derived in docs/derivations/one_bit_limit.md.
Guarantee  `root_mean_square` is a theorem: over a smooth law of secrets inside the cube, no learner
           with adaptive thresholds has a smaller root of the mean of its squared errors. `mean` is
           a benchmark: no learner is better everywhere as the stream grows, but at a finite length
           ratios down to .9 are seen.
Cost       O(d^2) a query, O(d^2) memory besides the stream.
Departure  None of the source's bounds is used: they are 28 to 140 times larger.
"""

import math
from dataclasses import dataclass

import numpy as np

from casemate.solve.one_bit.laws_protocol import Floats, Law
from casemate.solve.one_bit.limit_information import (
    Kind,
    bit_information,
    full_information,
)
from casemate.solve.one_bit.limit_kernel import spreads
from casemate.solve.one_bit.limit_levels import level_information
from casemate.solve.one_bit.streams import Stream

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean size of a standard Gaussian number."""

COUNTS_BELOW = 0.25
"""A ratio to the limit counts only where the limit is below this part of answering one half."""


@dataclass(frozen=True, eq=False)
class Limit:
    """What the best learner can hope for on one stream.

    Where the kind is "none", an edge of the noise lets a learner do better than any such figure;
    `errors` and `mean` are then those of thresholds at the median, and van Trees' bound is 0.
    """

    kind: Kind
    information: float  # of one answer at the best thresholds; infinite where the kind is none
    median_information: float
    full_information: float
    errors: Floats  # of each query, about w . q
    mean: float
    root_mean_square: float  # van Trees
    full_mean: float  # the same as `mean`, for a learner that sees every noisy answer whole
    half: float  # expected error of answering one half of everything, under the prior

    def counts(self, baseline: float | None = None) -> bool:
        """Whether the stream is long enough for a ratio to mean something."""
        return self.mean < COUNTS_BELOW * (self.half if baseline is None else baseline)

    def ratio(self, error: float, baseline: float | None = None) -> float | None:
        """An average error over the limit, where that counts."""
        return error / self.mean if self.counts(baseline) else None

    @property
    def price_of_the_oracle(self) -> float:
        """How much larger errors are behind the oracle than without it; not a number at an edge."""
        if self.kind == "none":
            return math.nan
        return math.sqrt(self.full_information / self.information)


def one_bit_limit(stream: Stream, law: Law, prior: Floats | None = None, levels: int = 2) -> Limit:
    """The limit on a stream; `prior` is the learner's covariance in the stream's basis."""
    covariance = box_covariance(stream.basis) if prior is None else np.asarray(prior, float)
    bit, full = bit_information(law), full_information(law)
    kind, best = bit.kind, bit.best
    if levels > 2 and kind != "none":
        kind, best = "supremum", level_information(law, levels).best
    reached = best if math.isfinite(best) else bit.median
    errors = MEAN_ABSOLUTE * deviations(stream.coordinates, covariance, reached)
    return Limit(
        kind=kind,
        information=best,
        median_information=bit.median,
        full_information=full,
        errors=errors,
        mean=_mean(errors),
        root_mean_square=van_trees(stream, best),
        full_mean=_full_mean(stream, covariance, full),
        half=MEAN_ABSOLUTE * _mean(deviations(stream.coordinates, covariance, 0.0)),
    )


def deviations(coordinates: Floats, covariance: Floats, information: float) -> Floats:
    """sqrt(x' J^-1 x) of each query x, where J grows by `information` x x' with each."""
    root = np.linalg.cholesky(np.asarray(covariance, float))
    return spreads(np.ascontiguousarray(coordinates, float), root, float(information))  # type: ignore[no-any-return]  # numba


def box_covariance(basis: Floats) -> Floats:
    """The covariance of C w for w in [0, 1]^D: even in each direction, plus a level common to all.

    >>> box_covariance(np.array([[1.0, 0.0], [0.0, 1.0]])) * 12
    array([[2., 1.],
           [1., 2.]])
    """
    lengths, level = np.abs(basis).sum(axis=1), basis.sum(axis=1)
    return (np.diag(lengths**2) + np.outer(level, level)) / 12


def van_trees(stream: Stream, information: float) -> float:
    """A lower bound on the root mean square error, averaged over a smooth law of secrets.

    The law is a squared cosine: of each coordinate of w, or of each coordinate of C w around one
    half of everything; the better of the two, and both keep w in the cube.
    """
    if len(stream) == 0 or not math.isfinite(information):
        return 0.0
    crowding = float(np.abs(stream.basis).sum(axis=0).max())  # directions in one coordinate of w
    prior = 4 * math.pi**2 * min(1.0, crowding**2)  # 4 pi^2 over the square of the width
    covariance = np.eye(len(stream.basis)) / prior
    return math.sqrt(_mean(deviations(stream.coordinates, covariance, information) ** 2))


def half_of_everything(queries: Floats, w: Floats) -> float:
    """The average error of answering one half of everything, without any oracle."""
    return _mean(np.abs(queries @ (0.5 - np.asarray(w, float))))


def _full_mean(stream: Stream, covariance: Floats, information: float) -> float:
    if not math.isfinite(information):
        return 0.0
    return MEAN_ABSOLUTE * _mean(deviations(stream.coordinates, covariance, information))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0
