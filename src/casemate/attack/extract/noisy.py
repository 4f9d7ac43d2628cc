"""Learners for noisy labels: the one-bit filter, and retraining a logistic regression.

Both ask about points near the boundary they believe in, corners slid onto it, in batches that grow
with what is known. Of several such points the filter asks the one it is least certain about; some
of its points lie off the boundary on purpose, because on it every label is a coin and says nothing
about the noise.

Source     Source document 000's protocol with the threshold at the learner's own prediction: for a
           classifier that is a point on the boundary believed so far. The filter is Gaussian and in
           square-root form (Potter), as `OneBitKalman`; the unknown is the vector of weights and
           intercept divided by the noise, so the noise's scale is part of what is learnt.
Model      P(above) = flips + (1 - 2 flips) Phi(vector . point): noise that grows small with the
           distance to the boundary, and labels flipped wherever the point is.
Guarantee  None is proved; its angle is compared with logistic regression on the same queries.
Cost       O(d^2) time a label and O(d^2) memory for the filter, however many labels there were;
           O(t d^2) a step for a regression on t points, and about ten steps.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from casemate.attack.extract.boundary import (
    Bits,
    Boundary,
    CountedClassifier,
    Floats,
    corners,
    find_two_sides,
    slide_to_height,
)
from casemate.attack.one_bit.scale_bank import SEARCH_RHO
from casemate.attack.one_bit.square_root import new_workspace, potter_update, predict

MOST_SURPRISE_DEVIATIONS = 25.0
"""Standard deviations beyond which a label is as surprising as at them."""

LOGIT_PROBIT_RATIO = 1.702
"""A logistic curve so much steeper is within 0.01 of the normal one."""


class LabelFilter:
    """The vector of a boundary, divided by the noise: a mean and a root of the covariance.

    >>> learner = LabelFilter(np.array([0.0, 0.0]), np.eye(2))
    >>> learner.learn(np.array([1.0, 0.0]), above=True)
    >>> bool(learner.mean[0] > 0), learner.mean[1]
    (True, np.float64(0.0))
    """

    def __init__(self, mean: Floats, root: Floats, flips: float = 0.0) -> None:
        self.mean = np.array(mean, np.float64)  # mu in the source
        self.root = np.array(root, np.float64, order="C")  # S, with covariance S S'
        self.flips = flips

    @property
    def boundary(self) -> Boundary:
        """The boundary that is believed."""
        return Boundary.of(self.mean)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise, as a distance from the boundary."""
        return 1 / max(float(np.linalg.norm(self.mean[:-1])), 1e-300)

    def variances(self, points: Floats) -> Floats:
        """How uncertain the height of each point is."""
        return np.asarray(((points @ self.root) ** 2).sum(axis=1), np.float64)

    def learn(self, point: Floats, above: bool) -> None:
        """Take note of a point's label; the point's last coordinate is 1."""
        belief, workspace = (self.mean, self.root), new_workspace(self.mean)
        centre, variance = predict(belief, point, workspace)
        side = 1.0 if above else -1.0
        pull, shrink = label_moments(side * centre / math.sqrt(1.0 + variance), self.flips)
        potter_update(belief, workspace, (variance, 1.0, SEARCH_RHO), (side * pull, shrink))


def label_moments(height: float, flips: float) -> tuple[float, float]:
    """How a label moves the mean, and which part of the variance it takes away.

    `height` is how far inside the side of its label the point was believed, in deviations.
    """
    height = max(height, -MOST_SURPRISE_DEVIATIONS)
    right = 0.5 * math.erfc(-height / math.sqrt(2))
    density = math.exp(-height * height / 2) / math.sqrt(2 * math.pi)
    pull = (1 - 2 * flips) * density / (flips + (1 - 2 * flips) * right)
    # With flips a surprise may mean nothing; then the exact variance grows, and ours stays.
    return pull, min(max(pull * (pull + height), 0.0), 0.999)


class NoiseScale:
    """How likely each scale of the noise and each rate of flips is, by the labels of late.

    It judges labels by what was predicted before they were seen, and forgets slowly, because
    early predictions were made by a boundary that was far off.
    """

    SCALES = 10.0 ** np.arange(-8.0, 2.05, 0.1)
    RATES = np.array([0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])

    def __init__(self) -> None:
        self._likely = np.zeros((len(self.RATES), len(self.SCALES)))
        self._prior = -np.where(self.RATES > 0, 4.0, 0.0)[:, None]

    def learn(self, right_by: Floats, variances: Floats, seen: int) -> None:
        """Take note of labels: how far inside its side each was predicted, as a distance."""
        spread = np.sqrt(self.SCALES**2 + variances[:, None])
        heights = np.clip(LOGIT_PROBIT_RATIO * right_by[:, None] / spread, -60.0, 60.0)
        right = 1 / (1 + np.exp(-heights))
        rates = self.RATES[:, None, None]
        odds = np.log(np.maximum(rates + (1 - 2 * rates) * right, 1e-12)).sum(axis=1)
        self._likely = self._likely * math.exp(-2 * len(right_by) / seen) + odds

    def best(self) -> tuple[float, float]:
        """The most likely rate of flips and scale."""
        log_posterior = self._likely + self._prior
        rate, scale = np.unravel_index(int(log_posterior.argmax()), log_posterior.shape)
        return float(self.RATES[rate]), float(self.SCALES[scale])

    def better_by(self, scale: float) -> float:
        """How much more likely the best scale is than this one (a logarithm)."""
        log_posterior = self._likely + self._prior
        near = int(np.abs(np.log(self.SCALES / scale)).argmin())
        rate = int(np.unravel_index(int(log_posterior.argmax()), log_posterior.shape)[0])
        return float(log_posterior[rate].max() - log_posterior[rate, near])


# Logistic regression: the batch fit that every other learner is compared with -------------------
#
# The maximum of the likelihood of P(above) = 1 / (1 + exp(-vector . point)), with a small ridge so
# that it exists where a boundary separates the labels. By SciPy's trust region.


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The vector of the fit, and the curvature of its loss: the inverse of its covariance."""

    vector: Floats
    curvature: Floats


def with_one(points: Floats) -> Floats:
    """Points with a coordinate 1 added, so that the intercept is a weight like the others."""
    return np.column_stack([points, np.ones(len(points))])


def logistic_regression(points: Floats, above: Bits, ridge: float = 1e-6) -> LogisticFit:
    """Fit weights and intercept (no intercept is added: see `with_one`)."""
    from scipy.optimize import minimize
    from scipy.special import expit

    signed = np.where(above, 1.0, -1.0)[:, None] * points

    def loss(vector: Floats) -> tuple[float, Floats]:
        heights = signed @ vector
        total = np.logaddexp(0.0, -heights).sum() + ridge / 2 * (vector @ vector)
        return float(total), ridge * vector - signed.T @ expit(-heights)

    def curvature(vector: Floats) -> Floats:
        wrong = expit(-(signed @ vector))
        found: Floats = (signed.T * (wrong * (1 - wrong))) @ signed
        return found + ridge * np.eye(len(vector))

    found = minimize(
        loss,
        np.zeros(points.shape[1]),
        method="trust-exact",
        jac=True,
        hess=curvature,
        options={"gtol": 1e-6},
    )
    return LogisticFit(found.x, curvature(found.x))


# The learners: which points they ask, and what they make of the labels --------------------------


FIRST_POINTS_PER_UNKNOWN = 10
"""Points for each unknown before there is a first fit."""

CANDIDATES_PER_POINT = 8
BATCH_DIVISOR = 32
"""A batch has one point for so many that were asked before."""

MOST_BATCH_POINTS = 512
OFF_SHARE, OFF_DEVIATIONS = 0.16, (0.03, 2.5)
"""The share of points that lie off the boundary, and between how many deviations off it."""

FAR_SHARE, FAR_DEVIATIONS = 0.04, 8.0
"""The same for points far off it."""

WRONG_SCALE = 1.5
"""The filter's scale is replaced when it is so many times off, and far less likely."""


@dataclass
class OneBitFilter:
    """A filter for labels before a classifier."""

    random: np.random.Generator
    name: str = "filter"
    model: LabelFilter | None = None
    _noise: NoiseScale = field(default_factory=NoiseScale)

    def rounds(self, asking: CountedClassifier) -> Iterator[Boundary]:
        """Better and better boundaries, until there are no queries left."""
        self.model = learner = _initial_filter(asking, self.random)
        yield learner.boundary
        while size := min(
            max(1, asking.count // BATCH_DIVISOR), MOST_BATCH_POINTS, asking.remaining
        ):
            self._round(asking, learner, size)
            yield learner.boundary

    def _round(self, asking: CountedClassifier, learner: LabelFilter, size: int) -> None:
        points, variances = self._draw_points(learner, size, asking.box.dimension)
        above = asking.ask(points[:, :-1])
        right = np.where(above, 1.0, -1.0) * (points @ learner.mean) * learner.scale
        self._noise.learn(right, variances * learner.scale**2, asking.count)
        for point, bit in zip(points, above.tolist(), strict=True):
            learner.learn(point, bit)
        self._rescale(learner)

    def _draw_points(
        self, learner: LabelFilter, size: int, dimension: int
    ) -> tuple[Floats, Floats]:
        """The most uncertain of several points, `size` times, with their variances."""
        heights = np.repeat(_heights(self.random, size), CANDIDATES_PER_POINT)
        tried = corners(self.random, size * CANDIDATES_PER_POINT, dimension)
        points = with_one(slide_to_height(tried, learner.boundary, heights))
        variances = learner.variances(points).reshape(size, CANDIDATES_PER_POINT)
        best = np.arange(size) * CANDIDATES_PER_POINT + variances.argmax(axis=1)
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
    low, high = OFF_DEVIATIONS
    off = np.exp(random.uniform(math.log(low), math.log(high), size))
    near = np.where(kind < FAR_SHARE + OFF_SHARE, off, 0.0)
    return side * np.where(kind < FAR_SHARE, FAR_DEVIATIONS, near)


def _initial_filter(asking: CountedClassifier, random: np.random.Generator) -> LabelFilter:
    """A filter that begins where a regression on random corners ends."""
    ask_first_points(asking, random)
    points, above = asking.observations()
    fitted = logistic_regression(with_one(points), above, ridge=0.01)
    covariance = np.linalg.inv(fitted.curvature)
    root = np.linalg.cholesky((covariance + covariance.T) / 2) / LOGIT_PROBIT_RATIO
    return LabelFilter(fitted.vector / LOGIT_PROBIT_RATIO, np.asarray(root, np.float64))


def ask_first_points(asking: CountedClassifier, random: np.random.Generator) -> None:
    """Ask random corners, so many that all unknowns are seen, and both labels."""
    dimension = asking.box.dimension
    wanted = min(FIRST_POINTS_PER_UNKNOWN * (dimension + 1) - asking.count, asking.remaining // 4)
    if wanted > 0:
        asking.ask(corners(random, wanted, dimension))
    if len(asking.labels) < 2:
        find_two_sides(asking, random)


@dataclass
class Retraining:
    """Adaptive retraining: fit a logistic regression, ask on its boundary, and fit again."""

    random: np.random.Generator
    name: str = "retraining"
    model: LabelFilter | None = None

    def rounds(self, asking: CountedClassifier) -> Iterator[Boundary]:
        """Better and better boundaries, until there are no queries left."""
        ask_first_points(asking, self.random)
        while True:
            points, above = asking.observations()
            vector = logistic_regression(with_one(points), above).vector
            self.model = LabelFilter(
                vector / LOGIT_PROBIT_RATIO, np.zeros((len(vector), len(vector)))
            )
            found = self.model.boundary
            yield found
            size = min(max(asking.box.dimension + 1, asking.count // 4), asking.remaining)
            if not size:
                return
            tried = self.random.uniform(-1, 1, (size, asking.box.dimension))
            asking.ask(slide_to_height(tried, found))
