"""The filter itself, for noise of one known scale: Potter's square-root form.

Method     The belief about the coefficients is normal: mean, and covariance root root'. One bit at
           threshold t about w . q + noise cuts the normal law of that number at t; the cut law's
           mean and variance are carried back to the coefficients. With the threshold at the own
           prediction the bit is a fair one, and the step is sqrt(2/pi) deviations up or down.
           While the belief is wide beside the noise, a variance shrinks only `rho` as fast.
Cost       O(n^2) a query and O(n^2) memory for n columns.
Departure  The root is kept because without noise the covariance itself may end below 0:
           `test_queries_that_repeat_break_the_form_with_the_covariance_and_not_the_root`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from casemate.solve.one_bit.protocol import Floats, Trail

SILENT = 1e-12
"""Noise is taken to be at least this part of the widest belief about a coefficient."""


class KnownScale:
    """A belief, and how a bit or a cell changes it."""

    def __init__(self, mean: Floats, root: Floats, scale: float, rho: float, first: int) -> None:
        self.mean, self.root = mean, root
        self.scale = max(scale, SILENT * float(np.linalg.norm(root)))
        self._rho, self._first = rho, first

    def answer(self, x: Floats) -> float:
        """The mean of w . q, without the noise's own shift."""
        return float(self.mean[self._first :] @ x[self._first :])

    def threshold(self, x: Floats) -> float:
        """The own prediction."""
        return float(self.mean @ x)

    def deviation(self, x: Floats) -> float:
        """How sure the belief is of w . q."""
        return float(np.linalg.norm(self.root[self._first :].T @ x[self._first :]))

    def spread(self, x: Floats) -> float:
        """The deviation of what the oracle compares: belief and noise."""
        return math.hypot(self.scale, float(np.linalg.norm(self.root.T @ x)))

    def learn(self, x: Floats, threshold: float, above: bool) -> None:
        """Cut the belief at a threshold."""
        low, high = (threshold, math.inf) if above else (-math.inf, threshold)
        self.learn_between(x, low, high)

    def learn_between(self, x: Floats, low: float, high: float) -> None:
        """Cut the belief at both ends of a cell."""
        from casemate.solve.one_bit.kalman_kernel import cell_moments

        pulled = self.root.T @ x
        variance, centre = float(pulled @ pulled), float(self.mean @ x)
        if not variance > 0:
            return
        total = self.scale**2 + variance
        spread, share = math.sqrt(total), variance / total
        step, shrink, _ = cell_moments((low - centre) / spread, (high - centre) / spread)
        lost = shrink * share * (1 - (1 - self._rho) * share)
        gain = self.root @ pulled
        self.mean += step / spread * gain
        self.root -= lost / ((1 + math.sqrt(1 - lost)) * variance) * np.outer(gain, pulled)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self.mean, self.root = widened(self.mean, self.root, mean, root)

    def follow(self, columns: Floats, noisy: Floats) -> Trail:
        """A whole stream, compiled."""
        from casemate.solve.one_bit.kalman_kernel import run

        trail, room = empty_trail(len(columns)), np.empty((2, len(self.mean)))
        model = self.scale**2, self._rho, self._first
        said = trail.answers, trail.thresholds, trail.above
        run((self.mean, self.root), (room[0], room[1]), model, (columns, noisy), said)
        return trail

    def follow_levels(
        self, columns: Floats, noisy: Floats, offsets: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """A whole stream of an oracle with several answers: what was answered, and the cells."""
        from casemate.solve.one_bit.kalman_kernel import run_cells

        answers, cells = np.empty(len(columns)), np.empty(len(columns), np.int64)
        room, ends = np.empty((2, len(self.mean))), np.concatenate(([-np.inf], offsets, [np.inf]))
        model, stream = (self.scale**2, self._rho, self._first), (columns, noisy, ends, offsets)
        run_cells((self.mean, self.root), (room[0], room[1]), model, stream, (answers, cells))
        return answers, cells


def widened(
    mean: Floats, root: Floats, wider_mean: Floats, wider_root: Floats
) -> tuple[Floats, Floats]:
    """A belief in its place at the head of a wider prior, whose new columns stand alone."""
    known = mean.shape[-1]
    wide = np.broadcast_to(wider_mean, (*mean.shape[:-1], len(wider_mean))).copy()
    deep = np.broadcast_to(wider_root, (*mean.shape[:-1], *wider_root.shape)).copy()
    wide[..., :known], deep[..., :known, :known] = mean, root
    return wide, deep


def empty_trail(count: int) -> Trail:
    """Room for what is said about so many queries."""
    return Trail(np.empty(count), np.empty(count), np.empty(count, np.bool_))
