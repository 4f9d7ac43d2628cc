"""Claims: a linear classifier is copied through its labels, with noise and without.

Without noise: the largest angle of all runs to the truth, and the most queries, checks included,
for each unknown (weights and intercept). With noise: the mean angle over that of a logistic
regression on the very same queries. Boundaries are random: normal weights, an intercept of 0.3
deviations; points lie in the cube from -1 to 1.
"""

import time

import numpy as np

from benchmarks.claims import Claim, show
from casemate.attack.extract import extract
from casemate.attack.extract.boundary import Bits, Boundary, Floats
from casemate.attack.extract.extraction import ExtractLearnerName
from casemate.attack.extract.noisy import logistic_regression, with_one

EACH = 500


class Noisy:
    """A linear classifier with noise across the boundary and flips anywhere, which remembers."""

    def __init__(self, dimension: int, noise: float, flips: float, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        weights = self.random.normal(size=dimension)
        weights /= np.linalg.norm(weights)
        self.truth = Boundary(weights, 0.3 * float(self.random.normal()))
        self.noise, self.flips = noise, flips
        self.points: list[Floats] = []
        self.labels: list[Bits] = []

    def predict(self, points: Floats) -> Bits:
        noise = self.noise * self.random.normal(size=len(points))
        flipped = self.random.random(len(points)) < self.flips
        above = (self.truth.heights(points) + noise > 0) ^ flipped
        self.points.append(points)
        self.labels.append(above)
        return above

    def regression(self) -> float:
        """The angle of a logistic regression on everything that was asked."""
        points, labels = np.concatenate(self.points), np.concatenate(self.labels)
        found = logistic_regression(with_one(points), labels)
        return Boundary.of(found.vector).angle(self.truth)


def quiet(dimension: int, runs: int) -> Claim:
    angles, counts = [], []
    for seed in range(runs):
        target = Noisy(dimension, 0.0, 0.0, seed)
        found = extract(
            target.predict, dimension, truth=target.truth, random=np.random.default_rng(seed)
        )
        angles.append(found.truth.angle(found.found) if found.truth else np.nan)
        counts.append(found.queries / (dimension + 1))
    return Claim(
        f"no noise, {dimension} dimensions, {runs} runs: angle; queries an unknown",
        "1e-5; 21",
        f"{max(angles):.1e}; {max(counts):.1f} at most",
    )


def noisy(
    dimension: int,
    noise: float,
    flips: float,
    runs: int,
    learner: ExtractLearnerName = ExtractLearnerName.FILTER,
) -> Claim:
    ours, theirs, start = [], [], time.process_time()
    for seed in range(runs):
        target = Noisy(dimension, noise, flips, seed)
        found = extract(
            target.predict,
            dimension,
            queries=EACH * (dimension + 1),
            learner=learner,
            random=np.random.default_rng(seed),
        )
        ours.append(found.found.angle(target.truth))
        theirs.append(target.regression())
    seconds = (time.process_time() - start) / runs
    what = f"noise {noise:g}, flips {100 * flips:g} %, {dimension} dimensions, {runs} runs"
    return Claim(
        f"{learner}, {what}: angle; over regression",
        "–; 1.15",
        f"{np.mean(ours):.2e}; {np.mean(ours) / np.mean(theirs):.2f} ({seconds:.1f} s a run)",
    )


def main() -> None:
    show(
        [
            *(quiet(dimension, 50) for dimension in (2, 8, 20, 100)),
            *(noisy(20, noise, 0.0, 10) for noise in (0.003, 0.05, 0.3, 1.0)),
            *(noisy(50, noise, 0.0, 3) for noise in (0.05, 0.3, 1.0)),
            noisy(20, 0.0, 0.1, 10),
            noisy(20, 0.1, 0.1, 10),
            *(
                noisy(20, noise, 0.0, 10, ExtractLearnerName.RETRAINING)
                for noise in (0.05, 0.3, 1.0)
            ),
        ]
    )
