"""Whole numbers from estimates of them: how likely each is, before which none is preferred.

The estimate of a whole number k errs by a known law, so that, all whole numbers of its range being
alike beforehand, k is as likely as the density of an error of estimate - k. From this come the
probability of the number reported and the fewest numbers that hold the true one with probability
`level`. Averaged over numbers drawn alike from the range both are exact. For yes or no, the average
probability is right at every prevalence, because errors do not know which of the two is true.
"""

from dataclasses import replace

import numpy as np

from casemate.attack.interval import Estimate, intervals
from casemate.attack.standard import Flags
from casemate.solve.rows import Floats

FINE = 8.0
"""With larger deviations than this, sums over whole numbers are integrals."""

WINDOW = 64
"""So many whole numbers on either side of the estimate are looked at."""

HOPELESS = -690.0
"""Logarithms of densities below this are not told apart by doubles."""

BLOCK = 4_096


def whole_numbers(
    estimate: Estimate, values: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """The ends of the likeliest whole numbers, and the probability of the values given.

    >>> from casemate.attack.error_law import ErrorLaw
    >>> law = ErrorLaw.of("gaussian", np.zeros(2))
    >>> bits = Estimate(np.array([0.9, 0.5]), np.full(2, 0.3), law, np.zeros(2), np.ones(2))
    >>> low, high, probability = whole_numbers(bits, np.array([1.0, 0.0]), 0.9)
    >>> low.tolist(), high.tolist(), probability.round(3).tolist()
    ([1.0, 0.0], [1.0, 1.0], [0.988, 0.5])
    """
    low, high, probability = (np.empty(len(values)) for _ in range(3))
    fine = estimate.deviation <= FINE
    for which, work in ((fine, _counted), (~fine, _integrated)):
        places = np.flatnonzero(which)
        for first in range(0, len(places), BLOCK):
            some = places[first : first + BLOCK]
            found = work(estimate.some(some), values[some], level)
            low[some], high[some], probability[some] = found
    return low, high, probability


def _counted(estimate: Estimate, values: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Number by number, within a window around the estimate."""
    ends = np.ceil(estimate.low), np.floor(estimate.high)
    middle = np.clip(np.round(estimate.centre), *ends)
    numbers = middle[:, None] + np.arange(-WINDOW, WINDOW + 1)
    apart = (estimate.centre[:, None] - numbers) / np.maximum(estimate.deviation, 1e-300)[:, None]
    possible = (numbers >= ends[0][:, None]) & (numbers <= ends[1][:, None])
    chances = _normalised(estimate.law.log_density(apart), np.abs(apart), possible)
    kept = _fewest(chances, level)
    low = np.where(kept, numbers, np.inf).min(axis=1)
    high = np.where(kept, numbers, -np.inf).max(axis=1)
    return low, high, (chances * (numbers == values[:, None])).sum(axis=1)


def _normalised(logarithms: Floats, apart: Floats, possible: Flags) -> Floats:
    """Probabilities from logarithms; where all of them are hopeless, the nearest has it all."""
    ranked = logarithms - np.where(logarithms < HOPELESS, apart, 0.0)
    masked = np.where(possible, ranked, -np.inf)
    chances = np.exp(masked - masked.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _fewest(chances: Floats, level: float) -> Flags:
    """The fewest numbers that are together as likely as the level."""
    order = np.argsort(-chances, axis=1, kind="stable")
    falling = np.take_along_axis(chances, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    kept = np.zeros(chances.shape, np.bool_)
    np.put_along_axis(kept, order, before < level, axis=1)
    return kept


def _integrated(estimate: Estimate, values: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """By the distribution function, where a whole number more or less changes little."""
    wide = replace(estimate, low=estimate.low - 0.5, high=estimate.high + 0.5)
    low, high = intervals(wide, level)

    def below(ends: Floats) -> Floats:
        return estimate.law.cdf((ends - estimate.centre) / estimate.deviation)

    all_of_it = np.maximum(below(wide.high) - below(wide.low), 1e-300)
    own = below(values + 0.5) - below(values - 0.5)
    ends = np.ceil(estimate.low), np.floor(estimate.high)
    first, last = (np.clip(end, *ends) for end in (np.ceil(low), np.floor(high)))
    return np.minimum(first, last), last, np.clip(own / all_of_it, 0.0, 1.0)
