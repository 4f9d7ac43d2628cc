"""Learners for noisy labels: the one-bit filter, and retraining a logistic regression.

Both ask about points near the boundary they believe in, corners slid onto it, in batches that grow
with what is known. Of several such points the filter asks the one it is least certain about; some
of its points lie off the boundary on purpose, because on it every label is a coin and says nothing
about the noise.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from casemate.attack.extract_asking import Asking
from casemate.attack.extract_boundary import Boundary, Floats, corners, slid
from casemate.attack.extract_filter import LOGISTIC, LabelFilter, NoiseScale
from casemate.attack.extract_regression import logistic_regression, with_one
from casemate.attack.extract_sides import two_sides

FIRST = 10
"""Points for each unknown before there is a first fit."""

CANDIDATES = 8
BATCH = 32
"""A batch is one part in so many of what was asked before."""

LARGEST = 512
NEAR, FAR, OFF = 0.16, 0.04, (0.03, 2.5)
"""Shares of points that lie off the boundary, and far off it; and how many deviations `off` is."""

WRONG_SCALE = 1.5
"""The filter's scale is replaced when it is so many times off, and far less likely."""


@dataclass
class OneBitFilter:
    """The filter of `extract_filter` before a classifier."""

    random: np.random.Generator
    name: str = "filter"
    model: LabelFilter | None = None
    _noise: NoiseScale = field(default_factory=NoiseScale)

    def rounds(self, asking: Asking) -> Iterator[Boundary]:
        """Better and better boundaries, until there are no queries left."""
        self.model = learner = _started(asking, self.random)
        yield learner.boundary
        while size := _batch(asking):
            self._round(asking, learner, size)
            yield learner.boundary

    def _round(self, asking: Asking, learner: LabelFilter, size: int) -> None:
        points, variances = self._points(learner, size, asking.box.dimension)
        above = asking.ask(points[:, :-1])
        right = np.where(above, 1.0, -1.0) * (points @ learner.mean) * learner.scale
        self._noise.learn(right, variances * learner.scale**2, asking.count)
        for point, bit in zip(points, above.tolist(), strict=True):
            learner.learn(point, bit)
        self._rescale(learner)

    def _points(self, learner: LabelFilter, size: int, dimension: int) -> tuple[Floats, Floats]:
        """The most uncertain of several points, `size` times, with their variances."""
        heights = np.repeat(_heights(self.random, size), CANDIDATES)
        tried = corners(self.random, size * CANDIDATES, dimension)
        points = with_one(slid(tried, learner.boundary, heights))
        variances = learner.variances(points).reshape(size, CANDIDATES)
        best = np.arange(size) * CANDIDATES + variances.argmax(axis=1)
        return points[best], variances.max(axis=1)

    def _rescale(self, learner: LabelFilter) -> None:
        """Take over the rate of flips, and the scale where the filter's own is plainly wrong."""
        learner.flips, scale = self._noise.best()
        factor = learner.scale / scale
        if max(factor, 1 / factor) > WRONG_SCALE and self._noise.better_by(learner.scale) > 3:
            # What is known about the direction counts labels, whatever the noise was taken for.
            learner.mean *= min(max(factor, 0.5), 2.0)


def _heights(random: np.random.Generator, size: int) -> Floats:
    """How far off the boundary to ask, in deviations: mostly not at all."""
    kind, side = random.random(size), random.choice(np.array([-1.0, 1.0]), size)
    off = np.exp(random.uniform(math.log(OFF[0]), math.log(OFF[1]), size))
    return side * np.where(kind < FAR, 8.0, np.where(kind < FAR + NEAR, off, 0.0))


def _batch(asking: Asking) -> int:
    return min(max(1, asking.count // BATCH), LARGEST, asking.left)


def _started(asking: Asking, random: np.random.Generator) -> LabelFilter:
    """A filter that begins where a regression on random corners ends."""
    first_points(asking, random)
    points, above = asking.seen()
    fitted = logistic_regression(with_one(points), above, ridge=0.01)
    covariance = np.linalg.inv(fitted.curvature)
    root = np.linalg.cholesky((covariance + covariance.T) / 2) / LOGISTIC
    return LabelFilter(fitted.vector / LOGISTIC, np.asarray(root, np.float64))


def first_points(asking: Asking, random: np.random.Generator) -> None:
    """Ask random corners, so many that all unknowns are seen, and both labels."""
    dimension = asking.box.dimension
    wanted = min(FIRST * (dimension + 1) - asking.count, asking.left // 4)
    if wanted > 0:
        asking.ask(corners(random, wanted, dimension))
    if len(asking.labels) < 2:
        two_sides(asking, random)


@dataclass
class Retraining:
    """Adaptive retraining: fit a logistic regression, ask on its boundary, and fit again."""

    random: np.random.Generator
    name: str = "retraining"
    model: LabelFilter | None = None

    def rounds(self, asking: Asking) -> Iterator[Boundary]:
        """Better and better boundaries, until there are no queries left."""
        first_points(asking, self.random)
        while True:
            points, above = asking.seen()
            vector = logistic_regression(with_one(points), above).vector
            self.model = LabelFilter(vector / LOGISTIC, np.zeros((len(vector), len(vector))))
            found = self.model.boundary
            yield found
            size = min(max(asking.box.dimension + 1, asking.count // 4), asking.left)
            if not size:
                return
            tried = self.random.uniform(-1, 1, (size, asking.box.dimension))
            asking.ask(slid(tried, found))
