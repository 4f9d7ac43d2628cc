"""Logistic regression by Newton's method: the batch fit that every other learner is compared with.

Source    The maximum of the likelihood of P(above) = 1 / (1 + exp(-vector . point)), with a small
          ridge so that it exists where a boundary separates the labels.
Cost      O(t d^2) a step for t points of d coordinates, and about ten steps.
"""

from dataclasses import dataclass

import numpy as np

from casemate.attack.extract_boundary import Bits, Floats

STEPS = 100
ENOUGH = 1e-10
"""Gain of a step, relative to the loss, below which the fit is done."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The vector of the fit, and the curvature of its loss: the inverse of its covariance."""

    vector: Floats
    curvature: Floats


def with_one(points: Floats) -> Floats:
    """Points with a coordinate 1 added, so that the intercept is a weight like the others."""
    return np.column_stack([points, np.ones(len(points))])


def logistic_regression(points: Floats, above: Bits, ridge: float = 1e-6) -> Fitted:
    """Fit weights and intercept (no intercept is added: see `with_one`)."""
    signed = np.where(above, 1.0, -1.0)[:, None] * points
    vector = np.zeros(points.shape[1])
    loss = _loss(signed, vector, ridge)
    for _ in range(STEPS):
        slope, curvature = _derivatives(signed, vector, ridge)
        step = np.asarray(np.linalg.solve(curvature, slope), np.float64)
        vector, before = vector - _length(signed, vector, ridge, step, loss) * step, loss
        loss = _loss(signed, vector, ridge)
        if before - loss <= ENOUGH * (1 + before):
            break
    return Fitted(vector, _derivatives(signed, vector, ridge)[1])


def _loss(signed: Floats, vector: Floats, ridge: float) -> float:
    return float(np.logaddexp(0.0, -(signed @ vector)).sum() + ridge / 2 * (vector @ vector))


def _derivatives(signed: Floats, vector: Floats, ridge: float) -> tuple[Floats, Floats]:
    wrong = 0.5 * (1 - np.tanh(signed @ vector / 2))
    slope = ridge * vector - signed.T @ wrong
    curvature = (signed.T * (wrong * (1 - wrong))) @ signed + ridge * np.eye(len(vector))
    return slope, curvature


def _length(signed: Floats, vector: Floats, ridge: float, step: Floats, loss: float) -> float:
    """How far to go along Newton's step: halved until the loss does not rise."""
    length = 1.0
    while length > 1e-9 and not _loss(signed, vector - length * step, ridge) <= loss:
        length /= 2
    return length
