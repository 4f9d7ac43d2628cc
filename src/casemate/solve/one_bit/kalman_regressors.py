"""What a one-bit filter knows of a query: its coordinates, in a basis that is given or found.

Method     w is even on [0, 1] in each coordinate, so that C w has mean C1/2 and, to be on the safe
           side, the covariance diag(|e_i|_1^2)/12 + (C1)(C1)'/12: the second term is a level common
           to all of w, without which a filter may be stuck for good when the noise is small.
           A basis that is found is grown by Gram and Schmidt: no preliminary period, no angles. The
           level is then a column of its own, 1 . q, which says the same as the term above.
           A shift of the noise is a column of ones that comes first and is left out of answers.
"""

import math
from typing import Protocol

import numpy as np

from casemate.solve.one_bit.protocol import Floats

NEW = 1e-6
"""A query opens a direction when this part of it lies outside those known."""


class Regressors(Protocol):
    """Columns of a query, the first of which may stand for the noise's own shift."""

    @property
    def directions(self) -> Floats:
        """The orthonormal directions in use, one a row."""
        ...

    def columns(self, q: Floats) -> Floats:
        """The columns of one query."""
        ...

    def prior(self) -> tuple[Floats, Floats]:
        """Mean of the coefficients and a root of their covariance, for the columns in use."""
        ...

    def vector(self, coefficients: Floats) -> Floats:
        """The vector of the queries' space whose products with queries the coefficients give."""
        ...


class GivenBasis:
    """Coordinates in a given orthonormal basis; the identity is the full-dimension form."""

    def __init__(self, basis: Floats, shift: float = 0.0) -> None:
        self.directions = np.ascontiguousarray(basis, float)
        self._shift = shift
        if not np.allclose(self.directions @ self.directions.T, np.eye(len(basis)), atol=1e-6):
            raise ValueError("need an orthonormal basis, one vector a row, and these are not")

    def columns(self, q: Floats) -> Floats:
        """The coordinates, after a 1 where the noise may be shifted."""
        return with_ones(self.directions @ q, self._shift)

    def prior(self) -> tuple[Floats, Floats]:
        """Even coordinates of w and a common level of them."""
        level, spread = self.directions.sum(axis=1), np.abs(self.directions).sum(axis=1)
        covariance = (np.diag(spread**2) + np.outer(level, level)) / 12
        root = np.asarray(np.linalg.cholesky(covariance), np.float64)
        return shifted(0.5 * level, root, self._shift)

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
