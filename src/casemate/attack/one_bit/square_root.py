"""The Kalman filter of one-bit answers in square-root form (Potter), for noise of a known scale.

Method     The belief about the coefficients is normal: mean, and covariance root root'. One bit at
           threshold t about w . q + noise truncates the normal law of that number at t; the mean
           and variance of the truncated law are carried back to the coefficients. With the
           threshold at the predicted mean the bit is a fair one, and the step is sqrt(2/pi)
           deviations up or down. While the belief is wide beside the noise, a variance shrinks only
           `rho` as fast.
Cost       O(n^2) a query and O(n^2) memory for n columns.
Departure  The root is kept because without noise the covariance itself may end below 0:
           `test_queries_that_repeat_break_the_form_with_the_covariance_and_not_the_root`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.compiled import compiled
from casemate.exact import ANY_ORDER

LEAST_NOISE_RATIO = 1e-12
"""Noise is taken to be at least this part of the widest belief about a coefficient."""


class KnownScale:
    """A belief, and how a bit or a cell changes it."""

    def __init__(
        self, mean: Floats, root: Floats, scale: float, rho: float, nuisances: int
    ) -> None:
        self.mean, self.root, self.nuisances = mean, root, nuisances
        self.scale = max(scale, LEAST_NOISE_RATIO * float(np.linalg.norm(root)))
        self._rho = rho

    def answer(self, x: Floats) -> float:
        """The mean of w . q, without the noise's own shift."""
        return float(self.mean[self.nuisances :] @ x[self.nuisances :])

    def threshold(self, x: Floats, _draw: float = 0.5) -> float:
        """The predicted mean."""
        return float(self.mean @ x)

    def spread(self, x: Floats) -> float:
        """The deviation of what the oracle compares: belief and noise."""
        return math.hypot(self.scale, float(np.linalg.norm(self.root.T @ x)))

    def learn(self, x: Floats, _draw: float, threshold: float, above: bool) -> None:
        """Truncate the belief at a threshold."""
        low, high = (threshold, math.inf) if above else (-math.inf, threshold)
        self.learn_between(x, low, high)

    def learn_between(self, x: Floats, low: float, high: float) -> None:
        """Truncate the belief at both ends of a cell."""
        belief, workspace = (self.mean, self.root), new_workspace(self.mean)
        centre, variance = predict(belief, x, workspace)
        noise = self.scale**2
        spread = math.sqrt(noise + variance)
        step, shrink, _ = cell_moments((low - centre) / spread, (high - centre) / spread)
        potter_update(belief, workspace, (variance, noise, self._rho), (step, shrink))

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self.mean, self.root = embed_belief(self.mean, self.root, mean, root)

    def follow(self, columns: Floats, noisy: Floats, _draws: Floats, trail: AnswerTrail) -> int:
        """A whole stream, compiled."""
        self._follow_cells(columns, noisy, np.zeros(1), trail.arrays)
        return len(columns)

    def successor(self) -> "KnownScale":
        """Itself, for good."""
        return self

    def follow_levels(
        self, columns: Floats, noisy: Floats, offsets: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """A whole stream of an oracle with several answers: what was answered, and the cells."""
        answers, predictions = np.empty((2, len(columns)))
        cells = np.empty(len(columns), np.int64)
        self._follow_cells(columns, noisy, offsets, (answers, predictions, cells))
        return answers, cells

    def _follow_cells(
        self, columns: Floats, noisy: Floats, offsets: Floats, trail: "CellTrail"
    ) -> None:
        ends = np.concatenate(([-np.inf], offsets, [np.inf]))
        model, stream = (self.scale**2, self._rho, self.nuisances), (columns, noisy, ends)
        run_cells(((self.mean, self.root), new_workspace(self.mean)), model, stream, trail)


def embed_belief(
    mean: Floats, root: Floats, wider_mean: Floats, wider_root: Floats
) -> tuple[Floats, Floats]:
    """A belief in its place at the head of a wider prior, whose new columns stand alone."""
    size = mean.shape[-1]
    means = np.broadcast_to(wider_mean, (*mean.shape[:-1], len(wider_mean))).copy()
    roots = np.broadcast_to(wider_root, (*mean.shape[:-1], *wider_root.shape)).copy()
    means[..., :size], roots[..., :size, :size] = mean, root
    return means, roots


# Compiled steps: a bit, a cell of K, a whole stream ---------------------------------------------
#
# Kernels take plain tuples: an interrupt in one leaks what it was given, and a class would hold its
# module, and with it DuckDB, until after the end.


Belief = tuple[Floats, Floats]
"""(mean, root): the coefficients are normal with this mean and the covariance root root'."""

Workspace = tuple[Floats, Floats]
"""(projection, gain): root' x and root root' x, which `predict` fills and `potter_update` reads."""

FilterState = tuple[Belief, Workspace]

ScaleModel = tuple[float, float, int]
"""(variance of the noise, rho, nuisances)."""

CellTrail = tuple[Floats, Floats, NDArray[np.int64] | NDArray[np.bool_]]
"""(answers, predictions, cells) as kernels fill them in: of two cells the second is `above`."""

Spread = tuple[float, float, float]
"""(variance of w . q, variance of the noise, rho)."""

Moments = tuple[float, float, float]
"""Of a truncated standard normal: the mean, one minus the variance, the logarithm of its chance."""

MEDIAN_SHRINK = 2 / math.pi  # one minus the variance of a half normal
TAIL_SERIES_DEVIATIONS = 25.0  # beyond these the normal tail is written as a series
MOST_SHRINK = 0.999  # of the variance along a query, in one step


def new_workspace(mean: Floats) -> Workspace:
    """What `predict` fills, for a belief with this mean."""
    return np.empty_like(mean), np.empty_like(mean)


@compiled
def above_moments(k: float) -> Moments:
    """A standard normal above k."""
    if k > TAIL_SERIES_DEVIATIONS:
        inverse = 1.0 / (k * k)
        mean = k * (1.0 + inverse * (1.0 - 2.0 * inverse))
        chance = -0.5 * k * k - math.log(k * math.sqrt(2.0 * math.pi)) - inverse
        return mean, min(1.0 - inverse, MOST_SHRINK), chance
    tail = 0.5 * math.erfc(k / math.sqrt(2.0))
    mean = math.exp(-0.5 * k * k) / (math.sqrt(2.0 * math.pi) * tail)
    return mean, min(mean * (mean - k), MOST_SHRINK), math.log(tail)


@compiled
def bit_moments(k: float, above: bool) -> Moments:
    """The same for what one bit says: above k, or not."""
    if above:
        return above_moments(k)
    mean, shrink, chance = above_moments(-k)
    return -mean, shrink, chance


@compiled
def cell_moments(low: float, high: float) -> Moments:
    """The same for a standard normal between two numbers, either of them infinite."""
    if low == -math.inf:
        return bit_moments(high, False)
    if high == math.inf:
        return bit_moments(low, True)
    if low + high > 0.0:  # the tail on this side keeps its digits
        mean, shrink, chance = cell_moments_left(-high, -low)
        return -mean, shrink, chance
    return cell_moments_left(low, high)


@compiled
def cell_moments_left(low: float, high: float) -> Moments:
    """The same for a cell whose middle is not above 0."""
    root = math.sqrt(2.0)
    chance = 0.5 * (math.erfc(-high / root) - math.erfc(-low / root))
    if chance < 1e-300:  # as good as the nearer end, and certain of it
        return high, MOST_SHRINK, -0.5 * high * high
    left = math.exp(-0.5 * low * low) / math.sqrt(2.0 * math.pi)
    right = math.exp(-0.5 * high * high) / math.sqrt(2.0 * math.pi)
    mean = (left - right) / chance
    shrink = mean * mean - (low * left - high * right) / chance
    return mean, min(max(shrink, 0.0), MOST_SHRINK), math.log(chance)


@compiled(fastmath=ANY_ORDER)
def predict(belief: Belief, x: Floats, workspace: Workspace) -> tuple[float, float]:
    """The mean and the variance of w . q; the workspace is left ready for `potter_update`."""
    mean, root = belief
    projection, gain = workspace
    size = x.shape[0]
    centre, variance = 0.0, 0.0
    for j in range(size):
        projection[j] = 0.0
    for i in range(size):
        centre += mean[i] * x[i]
        for j in range(size):
            projection[j] += root[i, j] * x[i]
    for j in range(size):
        variance += projection[j] * projection[j]
    for i in range(size):
        along = 0.0
        for j in range(size):
            along += root[i, j] * projection[j]
        gain[i] = along
    return centre, variance


@compiled
def potter_update(
    belief: Belief, workspace: Workspace, spread: Spread, moments: tuple[float, float]
) -> None:
    """Move the mean and shrink the root along the query: Potter's form.

    `moments` are (step, shrink) of the standardised answer; rho slows shrinking only while the
    variance of w . q is not small beside that of the noise.
    """
    variance, noise, rho = spread
    if not variance > 0.0:
        return
    mean, root = belief
    projection, gain = workspace
    step, shrink = moments
    total = noise + variance
    share = variance / total
    lost = shrink * share * (1.0 - (1.0 - rho) * share)
    step /= math.sqrt(total)
    factor = lost / ((1.0 + math.sqrt(1.0 - lost)) * variance)  # (1 - sqrt(1 - lost)) / variance
    for i in range(mean.shape[0]):
        mean[i] += step * gain[i]
        scaled_gain = factor * gain[i]
        for j in range(mean.shape[0]):
            root[i, j] -= scaled_gain * projection[j]


@compiled
def nuisance_part(mean: Floats, x: Floats, nuisances: int) -> float:
    """What the nuisance coefficients, such as the noise's own shift, add to a prediction."""
    total = 0.0
    for i in range(nuisances):
        total += mean[i] * x[i]
    return total


@compiled
def run_cells(
    state: FilterState,
    model: ScaleModel,
    stream: tuple[Floats, Floats, Floats],
    trail: CellTrail,
) -> None:
    """Answer a stream (columns, noisy, ends), with one threshold a query or several.

    `ends` are those of the cells, in deviations from the prediction, the first and the last of them
    infinite.
    """
    belief, workspace = state
    noise, rho, nuisances = model
    columns, noisy, ends = stream
    answers, predictions, cells = trail
    for place in range(columns.shape[0]):
        x = columns[place]
        centre, variance = predict(belief, x, workspace)
        answers[place], predictions[place] = centre - nuisance_part(belief[0], x, nuisances), centre
        spread = math.sqrt(noise + variance)
        cell = 0
        while noisy[place] > centre + spread * ends[cell + 1]:
            cell += 1
        cells[place] = cell
        step, shrink, _ = cell_moments(ends[cell], ends[cell + 1])
        potter_update(belief, workspace, (variance, noise, rho), (step, shrink))
