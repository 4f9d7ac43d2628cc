"""The limits of a stream that comes in blocks: those of `one_bit_limit`, carried along.

Guarantee  After the last block, the same figures as `one_bit_limit` on the whole stream, up to
           rounding (`test_limits_in_blocks_are_those_of_the_whole_stream`).
Cost       O(d^2) a query; nothing of the stream is kept.
"""

import math
from typing import Self

import numpy as np

from casemate.solve.one_bit.laws import Law
from casemate.solve.one_bit.limit import MEAN_ABSOLUTE, box_covariance
from casemate.solve.one_bit.limit_information import bit_information, full_information
from casemate.solve.one_bit.limit_kernel import spreads
from casemate.solve.one_bit.protocol import Floats


class Precision:
    """What is left of the uncertainty about w when each query has told so much."""

    def __init__(self, covariance: Floats, information: float) -> None:
        self._root = np.linalg.cholesky(covariance)
        self._information = information

    def add(self, queries: Floats) -> Floats:
        """The deviation of w . q of each query before its bit; afterwards all of them are known."""
        held = np.ascontiguousarray(queries, np.float64)
        found: Floats = spreads(held, self._root, self._information)  # the root follows the stream
        return found


class Limits:
    """The least errors anybody can have, summed over a stream of queries about groups."""

    def __init__(self, law: Law, groups: int) -> None:
        bit, full, unit = bit_information(law), full_information(law), np.eye(groups)
        self.kind = bit.kind
        reached = bit.best if math.isfinite(bit.best) else bit.median
        self._bit = Precision(box_covariance(unit), reached)
        self._full = Precision(box_covariance(unit), full) if math.isfinite(full) else None
        smooth = unit / (4 * math.pi**2)  # a squared cosine for each coordinate of w
        self._smooth = Precision(smooth, bit.best) if math.isfinite(bit.best) else None
        self.queries = 0
        self._sums = np.zeros(3)

    def add(self, queries: Floats) -> Self:
        """Take note of the next queries."""
        self.queries += len(queries)
        self._sums[0] += MEAN_ABSOLUTE * self._bit.add(queries).sum()
        if self._full is not None:
            self._sums[1] += MEAN_ABSOLUTE * self._full.add(queries).sum()
        if self._smooth is not None:
            self._sums[2] += float((self._smooth.add(queries) ** 2).sum())
        return self

    @property
    def mean(self) -> float:
        """Of the errors of a learner with one bit a query; at the median where the kind is none."""
        return float(self._sums[0]) / self.queries

    @property
    def full_mean(self) -> float | None:
        """Of the errors of a learner that sees whole noisy answers; None without a bound."""
        return None if self._full is None else float(self._sums[1]) / self.queries

    @property
    def van_trees(self) -> float | None:
        """The bound on root mean square errors; None where an edge leaves none."""
        return None if self._smooth is None else math.sqrt(float(self._sums[2]) / self.queries)
