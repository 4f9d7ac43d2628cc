"""The one-bit filter for labels: a boundary learnt from noisy labels, one at a time.

Source     Source document 000's protocol with the threshold at the learner's own prediction: for a
           classifier that is a point on the boundary believed so far. The filter is Gaussian and in
           square-root form (Potter), as `OneBitKalman`; the unknown is the vector of weights and
           intercept divided by the noise, so the noise's scale is part of what is learnt.
Model      P(above) = flips + (1 - 2 flips) Phi(vector . point): noise that grows small with the
           distance to the boundary, and labels flipped wherever the point is.
Guarantee  None is proved; its angle is compared with logistic regression on the same queries.
Cost       O(d^2) time a label and O(d^2) memory, however many labels there were.
"""

import math

import numpy as np

from casemate.attack.extract_boundary import Boundary, Floats

DAMPING = 0.7
"""How much of the shrinking is believed while the noise is smaller than what is unknown."""

SURPRISE = 25.0
"""Standard deviations beyond which a label is as surprising as at them."""

LOGISTIC = 1.702
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
        self.root = np.array(root, np.float64)  # S, with covariance S S'
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
        across = point @ self.root
        variance = float(across @ across)
        if not variance > 0:
            return
        total = 1.0 + variance
        side = 1.0 if above else -1.0
        pull, shrink = moments(side * float(point @ self.mean) / math.sqrt(total), self.flips)
        gain = self.root @ across
        self.mean += (side * pull / math.sqrt(total)) * gain
        share = variance / total
        shrink *= share * (1 - (1 - DAMPING) * share)
        self.root -= np.outer(((1 - math.sqrt(1 - shrink)) / variance) * gain, across)


def moments(height: float, flips: float) -> tuple[float, float]:
    """How a label moves the mean, and which part of the variance it takes away.

    `height` is how far inside the side of its label the point was believed, in deviations.
    """
    height = max(height, -SURPRISE)
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
        heights = np.clip(LOGISTIC * right_by[:, None] / spread, -60.0, 60.0)
        right = 1 / (1 + np.exp(-heights))
        rates = self.RATES[:, None, None]
        odds = np.log(np.maximum(rates + (1 - 2 * rates) * right, 1e-12)).sum(axis=1)
        self._likely = self._likely * math.exp(-2 * len(right_by) / seen) + odds

    def best(self) -> tuple[float, float]:
        """The most likely rate of flips and scale."""
        told = self._likely + self._prior
        rate, scale = np.unravel_index(int(told.argmax()), told.shape)
        return float(self.RATES[rate]), float(self.SCALES[scale])

    def better_by(self, scale: float) -> float:
        """How much more likely the best scale is than this one (a logarithm)."""
        told = self._likely + self._prior
        near = int(np.abs(np.log(self.SCALES / scale)).argmin())
        rate = int(np.unravel_index(int(told.argmax()), told.shape)[0])
        return float(told[rate].max() - told[rate, near])
