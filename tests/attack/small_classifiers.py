"""Small classifiers to steal: with noise, and some that are not linear."""

import numpy as np

from casemate.attack.extract.boundary import Bits, Boundary, Floats
from casemate.attack.extract.noisy import logistic_regression, with_one


class Asked:
    """A boundary as a classifier, with noise across it and flips anywhere; it remembers."""

    def __init__(
        self, truth: Boundary, seed: int = 0, noise: float = 0.0, flips: float = 0.0
    ) -> None:
        self.truth, self.noise, self.flips = truth.unit(), noise, flips
        self.random = np.random.default_rng(seed)
        self.points: list[Floats] = []
        self.labels: list[Bits] = []

    @classmethod
    def drawn(cls, dimension: int, seed: int, noise: float = 0.0, flips: float = 0.0) -> "Asked":
        random = np.random.default_rng(seed)
        weights = random.normal(size=dimension)
        level = 0.3 * float(random.normal() * np.linalg.norm(weights))
        return cls(Boundary(weights, level), seed + 1, noise, flips)

    def __call__(self, points: Floats) -> Bits:
        noise = self.noise * self.random.normal(size=len(points))
        flipped = self.random.random(len(points)) < self.flips
        above = np.asarray((self.truth.heights(points) + noise > 0) ^ flipped)
        self.points.append(points)
        self.labels.append(above)
        return above

    @property
    def count(self) -> int:
        return sum(map(len, self.points))

    def regression(self) -> float:
        """The angle of a logistic regression on everything that was asked."""
        points, labels = np.concatenate(self.points), np.concatenate(self.labels)
        return Boundary.of(logistic_regression(with_one(points), labels).vector).angle(self.truth)


def parabola(points: Floats) -> Bits:
    return np.asarray(points[:, 1] > points[:, 0] ** 2 - 0.2)


def ball(points: Floats) -> Bits:
    return np.asarray((points**2).sum(axis=1) < 0.5)
