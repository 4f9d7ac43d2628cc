"""How much more often an attack is right than the prediction without the target, and how surely.

Source     R. G. Newcombe, "Improved confidence intervals for the difference between binomial
           proportions based on paired data", Statistics in Medicine 17 (1998), method 10: the two
           score intervals of Wilson, joined with the correlation of the pairs.
Guarantee  Over the draw of the targets the interval holds the true difference with about its
           confidence, at small counts as well; `test_comparison` states how nearly.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from casemate.attack.subjects import Bits


@dataclass(frozen=True)
class Comparison:
    """Fractions right of the same targets, their difference, and between what the latter lies."""

    targets: int
    attack: float
    leave_one_out: float
    difference: float
    low: float
    high: float


class Pairs(NamedTuple):
    """How many targets both, the one, the other, and neither got right."""

    both: int
    one: int
    other: int
    neither: int


def compared(attack: Bits, leave_one_out: Bits, confidence: float) -> Comparison:
    """Compare two verdicts on each of some targets; there must be one at least."""
    pairs = Pairs(
        int((attack & leave_one_out).sum()),
        int((attack & ~leave_one_out).sum()),
        int((~attack & leave_one_out).sum()),
        int((~attack & ~leave_one_out).sum()),
    )
    first, second = float(attack.mean()), float(leave_one_out.mean())
    difference = (pairs.one - pairs.other) / sum(pairs)
    return Comparison(len(attack), first, second, difference, *paired_interval(pairs, confidence))


def paired_interval(pairs: Pairs, confidence: float) -> tuple[float, float]:
    """Between what the difference of the two true fractions lies.

    >>> [round(end, 4) for end in paired_interval(Pairs(20, 12, 2, 16), 0.95)]
    [0.0562, 0.3292]
    """
    count = sum(pairs)
    first, second = pairs.both + pairs.one, pairs.both + pairs.other
    down, up = _wilson(first, count, confidence)
    other_down, other_up = _wilson(second, count, confidence)
    shared = _correlation(pairs)
    middle = (pairs.one - pairs.other) / count
    return (
        max(-1.0, middle - _joined(down, other_up, shared)),
        min(1.0, middle + _joined(up, other_down, shared)),
    )


def _joined(one: float, other: float, shared: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * shared * one * other + other * other))


def _wilson(part: int, count: int, confidence: float) -> tuple[float, float]:
    """How far below and above its observed value a fraction may be, by Wilson's score."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = part / count, z * z / count
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / count + square / (4 * count))
    low = 0.0 if part == 0 else (middle - half) / (1 + square)
    high = 1.0 if part == count else (middle + half) / (1 + square)
    return share - low, high - share


def _correlation(pairs: Pairs) -> float:
    """The pairs' correlation; where it is above 0, corrected for small counts."""
    both, one, other, neither = pairs
    product = (both + one) * (other + neither) * (both + other) * (one + neither)
    if product == 0:
        return 0.0
    excess: float = both * neither - one * other
    if excess > 0:
        excess = max(0.0, excess - sum(pairs) / 2)
    return excess / math.sqrt(product)
