"""The filter itself, for noise of one known scale: Potter's square-root form.

Method     The belief about the coefficients is normal: mean, and covariance root root'. One bit at
           threshold t about w . q + noise cuts the normal law of that number at t; the cut law's
           mean and variance are carried back to the coefficients. With the threshold at the own
           prediction the bit is a fair one, and the step is sqrt(2/pi) deviations up or down.
           While the belief is wide beside the noise, a variance shrinks only `rho` as fast.
Cost       O(n^2) a query and O(n^2) memory for n columns.
Departure  The root is kept because without noise the covariance itself may end below 0:
           `test_queries_that_repeat_break_the_form_with_the_covariance_and_not_the_root`.

Compiled steps of the one-bit filter with a known scale: a bit, a cell of K, a whole stream.

A belief is (mean, root): the coordinates of w are normal with this mean and the covariance
root root'. A room is (pulled, gain): root' x and root pulled, two vectors as long as the mean,
which `predict` fills and `potter_update` reads.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.compiled import compiled

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

    def spread(self, x: Floats) -> float:
        """The deviation of what the oracle compares: belief and noise."""
        return math.hypot(self.scale, float(np.linalg.norm(self.root.T @ x)))

    def learn(self, x: Floats, threshold: float, above: bool) -> None:
        """Cut the belief at a threshold."""
        low, high = (threshold, math.inf) if above else (-math.inf, threshold)
        self.learn_between(x, low, high)

    def learn_between(self, x: Floats, low: float, high: float) -> None:
        """Cut the belief at both ends of a cell."""
        belief, room = (self.mean, self.root), empty_room(self.mean)
        centre, variance = predict(belief, x, room)
        noise = self.scale**2
        spread = math.sqrt(noise + variance)
        step, shrink, _ = cell_moments((low - centre) / spread, (high - centre) / spread)
        potter_update(belief, room, (variance, noise, self._rho), (step, shrink))

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self.mean, self.root = widened(self.mean, self.root, mean, root)

    def follow(self, columns: Floats, noisy: Floats) -> AnswerTrail:
        """A whole stream, compiled."""
        trail, model = AnswerTrail.empty(len(columns)), (self.scale**2, self._rho, self._first)
        run((self.mean, self.root), empty_room(self.mean), model, (columns, noisy), tuple(trail))
        return trail

    def follow_levels(
        self, columns: Floats, noisy: Floats, offsets: Floats
    ) -> tuple[Floats, NDArray[np.int64]]:
        """A whole stream of an oracle with several answers: what was answered, and the cells."""
        answers, cells = np.empty(len(columns)), np.empty(len(columns), np.int64)
        room, ends = empty_room(self.mean), np.concatenate(([-np.inf], offsets, [np.inf]))
        model, stream = (self.scale**2, self._rho, self._first), (columns, noisy, ends, offsets)
        run_cells((self.mean, self.root), room, model, stream, (answers, cells))
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


def empty_room(mean: Floats) -> tuple[Floats, Floats]:
    """What `predict` fills and `potter_update` reads, for a belief with this mean."""
    return np.empty_like(mean), np.empty_like(mean)


# Kalman kernel ----------------------------------------------------------------------------------


MEDIAN_STEP = math.sqrt(2 / math.pi)  # the mean of a half normal
MEDIAN_SHRINK = 2 / math.pi  # and one minus its variance
FAR = 25.0  # beyond this many deviations the normal tail is written as a series
MOST_SHRINK = 0.999  # of the variance along a query, in one step


@compiled
def above_moments(k: Any) -> Any:
    """A standard normal above k: its mean, one minus its variance, the logarithm of its chance."""
    if k > FAR:
        inverse = 1.0 / (k * k)
        mean = k * (1.0 + inverse * (1.0 - 2.0 * inverse))
        chance = -0.5 * k * k - math.log(k * math.sqrt(2.0 * math.pi)) - inverse
        return mean, min(1.0 - inverse, MOST_SHRINK), chance
    tail = 0.5 * math.erfc(k / math.sqrt(2.0))
    mean = math.exp(-0.5 * k * k) / (math.sqrt(2.0 * math.pi) * tail)
    return mean, min(mean * (mean - k), MOST_SHRINK), math.log(tail)


@compiled
def bit_moments(k: Any, above: Any) -> Any:
    """The same for what one bit says: above k, or not."""
    if above:
        return above_moments(k)
    mean, shrink, chance = above_moments(-k)
    return -mean, shrink, chance


@compiled
def cell_moments(low: Any, high: Any) -> Any:
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
def cell_moments_left(low: Any, high: Any) -> Any:
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


@compiled
def predict(belief: Any, x: Any, room: Any) -> Any:
    """The mean and the variance of w . q; the room is left ready for `potter_update`."""
    mean, root = belief
    pulled, gain = room
    size = x.shape[0]
    centre, variance = 0.0, 0.0
    for j in range(size):
        pulled[j] = 0.0
    for i in range(size):
        centre += mean[i] * x[i]
        for j in range(size):
            pulled[j] += root[i, j] * x[i]
    for j in range(size):
        variance += pulled[j] * pulled[j]
    for i in range(size):
        along = 0.0
        for j in range(size):
            along += root[i, j] * pulled[j]
        gain[i] = along
    return centre, variance


@compiled
def potter_update(belief: Any, room: Any, spread: Any, moments: Any) -> None:
    """Move the mean and shrink the root along the query: Potter's form.

    `spread` is (variance of w . q, variance of the noise, rho), `moments` (step, shrink) of the
    standardised answer; rho slows shrinking only while the first is not small beside the second.
    """
    variance, noise, rho = spread
    if not variance > 0.0:
        return
    mean, root = belief
    pulled, gain = room
    step, shrink = moments
    total = noise + variance
    share = variance / total
    lost = shrink * share * (1.0 - (1.0 - rho) * share)
    step /= math.sqrt(total)
    shorter = lost / ((1.0 + math.sqrt(1.0 - lost)) * variance)  # (1 - sqrt(1 - lost)) / variance
    for i in range(mean.shape[0]):
        mean[i] += step * gain[i]
        part = shorter * gain[i]
        for j in range(mean.shape[0]):
            root[i, j] -= part * pulled[j]


@compiled
def run(belief: Any, room: Any, model: Any, stream: Any, trail: Any) -> None:
    """Answer a stream, each threshold at the own prediction.

    `model` is (noise, rho, first): columns before `first` take part in the threshold alone.
    `stream` is (coordinates, noisy): the answers with their noise, as the oracle compares them.
    """
    noise, rho, first = model
    coordinates, noisy = stream
    answers, thresholds, above = trail
    for place in range(coordinates.shape[0]):
        x = coordinates[place]
        centre, variance = predict(belief, x, room)
        thresholds[place] = centre
        answers[place] = centre - hidden(belief[0], x, first)
        above[place] = noisy[place] > centre
        step = MEDIAN_STEP if above[place] else -MEDIAN_STEP
        potter_update(belief, room, (variance, noise, rho), (step, MEDIAN_SHRINK))


@compiled
def hidden(mean: Any, x: Any, first: Any) -> Any:
    """What the columns of the noise's own shift add to a prediction."""
    total = 0.0
    for i in range(first):
        total += mean[i] * x[i]
    return total


@compiled
def run_cells(belief: Any, room: Any, model: Any, stream: Any, trail: Any) -> None:
    """The same with several thresholds a query; `stream` is (coordinates, noisy, ends, offsets).

    `offsets` are the thresholds in deviations from the prediction; `ends` is room for them between
    two infinities. `trail` is (answers, cells).
    """
    noise, rho, first = model
    coordinates, noisy, ends, offsets = stream
    answers, cells = trail
    for place in range(coordinates.shape[0]):
        x = coordinates[place]
        centre, variance = predict(belief, x, room)
        answers[place] = centre - hidden(belief[0], x, first)
        spread = math.sqrt(noise + variance)
        cell = 0
        for k in range(offsets.shape[0]):
            if noisy[place] > centre + spread * offsets[k]:
                cell += 1
        cells[place] = cell
        step, shrink, _ = cell_moments(ends[cell], ends[cell + 1])
        potter_update(belief, room, (variance, noise, rho), (step, shrink))
