"""What one bit says about w . q when the law of the noise is known: chances and moments.

A belief holds w . q to be normal with some deviation; everything here is in units of it, counted
from its mean. A bit at an offset from the mean is read by Bayes' rule: the chance that it is above,
and what the mean and the variance become. Letters: v the standardised w . q, H(v) the chance of
`above` given v, and the moments E[H], E[vH], E[v²H], from which all else follows.
"""

import math
from dataclasses import dataclass

import numpy as np

from casemate.solve.one_bit.laws import Law
from casemate.solve.one_bit.protocol import Floats

SEARCH_RHO = 0.7
"""How much of a step is taken while the belief is wide beside the noise, as in the plain filter."""

EDGE_RHO = 0.9
"""The same at an edge: the likelihood has a corner there, and a normal belief is too sure of it."""

ONE_EDGE_RHO = 0.7
"""The same where only one edge is asked at: no other one brings the belief back."""

RAREST = 1e-9
"""A bit of a smaller chance is not read: it says that the law is wrong, not where w . q is."""

SHARP = 1e-6
"""Noise narrower than this part of the deviation is read as none."""

NODES = np.linspace(-6.0, 6.0, 241)
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
_POWERS = np.stack([WEIGHTS, WEIGHTS * NODES, WEIGHTS * NODES**2])


@dataclass(frozen=True)
class Reading:
    """One bit, before it is known: the chance of `above`, and each bit's step and shrinking."""

    chance: float
    step_above: float
    shrink_above: float  # one minus the variance that is left
    step_below: float
    shrink_below: float

    def after(self, above: bool) -> tuple[float, float]:
        """The step of the mean and the shrinking of the variance; none where it cannot happen."""
        if (self.chance if above else 1 - self.chance) < RAREST:
            return 0.0, 0.0
        if above:
            return self.step_above, self.shrink_above
        return self.step_below, self.shrink_below


def reading_of(moments: tuple[float, float, float]) -> Reading:
    """Bayes' rule for both bits, from E[H], E[vH] and E[v²H]."""
    chance, first, second = moments
    above, below = max(chance, RAREST), max(1 - chance, RAREST)
    up, down = first / above, -first / below
    left_above, left_below = second / above - up * up, (1 - second) / below - down * down
    return Reading(chance, up, 1 - left_above, down, 1 - left_below)


def uniform_moments(bound: float, offset: float, deviation: float) -> tuple[float, float, float]:
    """The three moments for noise even on [-bound, bound], in closed form.

    H is a difference of two ramps, (v + k)⁺ / (k₁ - k₂) at k₁ and k₂, whose moments are
    φ + kΦ, Φ and 2φ + kΦ.
    """
    if bound < SHARP * deviation:
        k = offset / deviation
        tail, height = _normal_cdf(-k), _normal_density(k)
        return tail, height, tail + k * height
    start, end = (bound - offset) / deviation, (-bound - offset) / deviation
    slope = deviation / (2 * bound)
    ramps = zip(_ramp(start), _ramp(end), strict=True)
    chance, first, second = (slope * (high - low) for high, low in ramps)
    return chance, first, second


def _ramp(k: float) -> tuple[float, float, float]:
    below, height = _normal_cdf(k), _normal_density(k)
    return height + k * below, below, 2 * height + k * below


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _normal_density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def law_moments(law: Law, offsets: Floats, deviation: float) -> Floats:
    """The three moments for any law, by quadrature: one row for each offset."""
    above = 1 - law.cdf(offsets[:, None] - deviation * NODES)
    found: Floats = above @ _POWERS.T
    return found
