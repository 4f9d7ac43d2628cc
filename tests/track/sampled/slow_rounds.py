"""Sampled rounds, slowly: item by item in fractions, in time check by check, and by chance."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson


def failure_item_by_item(
    reports: int, slack: Fraction, slope: Fraction, probability: Fraction
) -> Fraction:
    """Follow the law of X through every item, and take away what is outside."""
    states = {0: Fraction(1)}
    failed, items = Fraction(0), 0
    while states:
        items += 1
        then: dict[int, Fraction] = {}
        for x, chance in states.items():
            then[x] = then.get(x, Fraction(0)) + chance * (1 - probability)
            then[x + 1] = then.get(x + 1, Fraction(0)) + chance * probability
        then.pop(reports, None)  # the count is exact
        u = probability * items
        outside = [x for x in then if abs(x - u) > slack + slope * u]
        failed += sum((then.pop(x) for x in outside), Fraction(0))
        states = then
    return failed


def failure_check_by_check(reports: int, slack: float, slope: float) -> float:
    """A Poisson process between the boundaries: all states at once, from check to check."""
    j = np.arange(reports)
    early, late = (j - slack) / (1 + slope), (j + slack) / (1 - slope)
    checks = [(t, True, i) for i, t in enumerate(early.tolist()) if t > 0]
    checks += [(t, False, i) for i, t in enumerate(late.tolist())]
    law, clock, failed = np.eye(reports + 100)[0], 0.0, 0.0
    for moment, too_early, i in sorted(checks):
        step = poisson.pmf(np.arange(int(3 * (moment - clock)) + 50), moment - clock)
        law, clock = np.convolve(law, step)[: len(law)], moment
        outside = slice(i, None) if too_early else slice(0, i + 1)
        failed += float(law[outside].sum())
        law[outside] = 0.0
    return failed


def violated_rounds(
    rounds: int, shape: tuple[int, float, float, float], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Whether rounds of (reports, slack, slope, probability) leave the boundary, by simulation."""
    reports, slack, slope, probability = shape
    arrivals = rng.geometric(probability, (rounds, reports)).cumsum(axis=1)
    x = np.arange(reports)
    at = np.concatenate([np.zeros((rounds, 1)), arrivals[:, :-1]], axis=1) * probability
    before_next = (arrivals - 1) * probability
    too_many = x - at > slack + slope * at
    too_few = before_next - x > slack + slope * before_next
    return np.asarray((too_many | too_few).any(axis=1), dtype=np.bool_)
