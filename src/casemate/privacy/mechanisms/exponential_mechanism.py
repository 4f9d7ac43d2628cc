"""The exponential mechanism: choose the best of many candidates, privately and exactly.

Source     McSherry and Talwar, "Mechanism Design via Differential Privacy", FOCS 2007; source
           document 004 uses it to pick queries and tables. The zCDP cost: Dong, Durfee and Rogers,
           "Optimal Differential Privacy Composition for Exponential Mechanisms", ICML 2020, and
           Cesar and Rogers, "Bounding, Concentrating, and Truncating", ALT 2021 (bounded range).
Guarantee  Epsilon-differential privacy and epsilon^2/8-zCDP when no utility moves by more than
           `sensitivity` between neighbours. The law is exact: a uniform number is compared with
           enclosures of the cumulative weights, both at more bits until the answer is certain.
Cost       One pass over the candidates, and one product of 128-bit integers for each distinct
           utility within reach of the best. 128 random bits and those of one uniform integer; more
           with probability below candidates^3 / 2^124. No rejection, so no draw is slow.
Timing     It depends on the number of distinct utilities and of the ties of the chosen one, and
           so on private data: pad it where an observer has a clock.
Departure  Document 004, Appendix G, recalls the accuracy with a reversed sign: the event it calls
           rare, a score of at least the minimum less something, is certain. See `error_bound`:
           `test_the_chosen_utility_is_within_the_error_bound`. `monotone` drops the factor 2 where
           all utilities move in the same direction: the weights and their sum then move the same
           way, so their ratio moves by one factor only
           (`test_with_monotone_utilities_twice_the_rate_loses_at_most_epsilon`).
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, islice, pairwise
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.cost import Concentrated, Pure
from casemate.privacy.noise.noise import uniform_below
from casemate.privacy.noise.tape import Bits

Utilities = Sequence[int] | Sequence[Fraction] | NDArray[np.integer[Any]]

FIRST_PRECISION = 128  # bits; doubled as long as the comparison is not certain


@dataclass(frozen=True)
class ExponentialMechanism:
    """Choose candidate i with probability proportional to exp(rate * utility of i)."""

    epsilon: Fraction
    sensitivity: int | Fraction = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("sensitivity", self.sensitivity)):
            if not isinstance(value, Rational) or value <= 0:
                raise ValueError(f"{name} must be a positive integer or Fraction, got {value!r}")

    @property
    def rate(self) -> Fraction:
        """The factor in the exponent: epsilon / (2 sensitivity), or twice that if monotone."""
        return Fraction(self.epsilon) / (self.sensitivity * (1 if self.monotone else 2))

    @property
    def cost(self) -> Pure:
        """The cost in pure epsilon."""
        return Pure(Fraction(self.epsilon))

    @property
    def concentrated_cost(self) -> Concentrated:
        """The cost in zCDP: a quarter of epsilon^2/2, since losses span a width of epsilon only."""
        return Concentrated(Fraction(self.epsilon) ** 2 / 8)

    def choose(self, utilities: Utilities, bits: Bits | None = None) -> int:
        """Return the position of the chosen candidate."""
        candidates, levels = _levels(utilities)
        chosen = _draw_level(levels, self.rate, bits)
        rank = int(uniform_below(levels[chosen], 1, bits)[0])
        return next(islice((i for i, u in enumerate(candidates) if u == chosen), rank, None))

    def probabilities(
        self, utilities: Utilities, precision: int = FIRST_PRECISION
    ) -> list[tuple[Fraction, Fraction]]:
        """Return two rationals for each candidate, with its exact probability between them."""
        candidates, levels = _levels(utilities)
        weights = _weights(levels, self.rate, precision)
        within_reach = [(levels[level], *weight) for level, weight in weights.items()]
        least = sum(count * low for count, low, _ in within_reach)
        most = sum(count * high for count, _, high in within_reach) + _out_of_reach(levels, weights)
        enclosed = (weights.get(utility, (0, 1)) for utility in candidates)
        return [(Fraction(low, most), Fraction(high, least)) for low, high in enclosed]

    def error_bound(self, candidates: int, beta: float, best: int = 1) -> float:
        """How far below the maximum the chosen utility is at most, but for probability `beta`.

        `best` of the candidates are known to share the maximum. The bound is attained when all
        the others are equally bad.
        """
        if not 1 <= best <= candidates or not 0 < beta < 1:
            raise ValueError(
                f"need 1 <= best <= candidates and 0 < beta < 1, got {best}, {candidates}, {beta}"
            )
        odds = (candidates - best) * (1 - beta) / (best * beta)
        return math.log(odds) / float(self.rate) if odds > 1 else 0.0


def exponential(
    utilities: Utilities,
    epsilon: Fraction,
    sensitivity: int | Fraction = 1,
    bits: Bits | None = None,
    *,
    monotone: bool = False,
) -> int:
    """Return the position of a candidate, drawn by the exponential mechanism.

    >>> exponential([3, 90, 5], epsilon=Fraction(100))
    1
    """
    return ExponentialMechanism(epsilon, sensitivity, monotone).choose(utilities, bits)


def _levels(utilities: Utilities) -> tuple[Sequence[Any], Counter[Any]]:
    """The candidates in order, and how many share each utility."""
    candidates = utilities.tolist() if isinstance(utilities, np.ndarray) else utilities
    levels = Counter(candidates)
    if not levels:
        raise ValueError("there must be at least one candidate, got none")
    for kind in set(map(type, levels)):
        if not issubclass(kind, int | Fraction):
            raise ValueError(f"utilities must be integers or Fractions, got a {kind.__name__}")
    return candidates, levels


def _draw_level(levels: Counter[Any], rate: Fraction, bits: Bits | None) -> Any:
    """Draw a utility with probability proportional to count * exp(rate * utility)."""
    uniform, length, precision = 0, 0, FIRST_PRECISION
    while True:
        fresh = precision - length
        uniform = uniform << fresh | int(uniform_below(2**fresh, 1, bits)[0])
        length = precision
        weights = _weights(levels, rate, precision)
        lower = list(accumulate(levels[level] * low for level, (low, _) in weights.items()))
        upper = list(accumulate(levels[level] * high for level, (_, high) in weights.items()))
        total = upper[-1] + _out_of_reach(levels, weights)
        # The uniform number lies in [uniform, uniform + 1) / 2^length; times the total weight it
        # must be below the cumulative weight of the position and not below that of the one before.
        position = bisect_left(lower, -(-(uniform + 1) * total >> length))
        before = upper[position - 1] if position else 0
        if position < len(lower) and uniform * lower[-1] >= before << length:
            return list(weights)[position]
        precision *= 2


def _weights(levels: Counter[Any], rate: Fraction, precision: int) -> dict[Any, tuple[int, int]]:
    """Enclose exp(rate * (level - best)) * 2^precision, best first, down to a weight below 1.

    Each weight is the one before times that of the step between them, and steps repeat.
    """
    best = max(levels)
    reach = math.floor(best - precision / rate)
    within_reach = sorted((level for level in levels if level >= reach), reverse=True)
    weights, steps = {best: (2**precision, 2**precision)}, dict[Any, tuple[int, int]]()
    for before, level in pairwise(within_reach):
        step = before - level
        if step not in steps:
            steps[step] = _enclose(rate * step, precision)
        low, high = (a * b for a, b in zip(weights[before], steps[step], strict=True))
        weights[level] = low >> precision, -(-high >> precision)
    return weights


def _out_of_reach(levels: Counter[Any], weights: dict[Any, tuple[int, int]]) -> int:
    """How many candidates were left out of the weights; each weighs less than 1."""
    return levels.total() - sum(levels[level] for level in weights)


def _enclose(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Enclose exp(-exponent) * 2^precision, for an exponent of at most about `precision`."""
    with localcontext(Context(prec=math.ceil(precision * 0.302) + 10)):
        ratio = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        scaled = int((-ratio).exp() * 2**precision)  # off by less than 1: ten digits to spare
    return max(scaled - 1, 0), scaled + 2
