"""Deterministic trackers: every site's count lies in a window that the server knows.

Source     Source document 001, Section 1.1: each site reports when its count has grown by 1 + alpha
           (`paper`). `centred` is ours: the server publishes a value inside the windows instead of
           their lower ends, so that a window may be twice as wide.
Guarantee  Sure, against anybody. Let L be the sum of the counts reported and U the sum of the
           windows' upper ends, so that L <= N <= U. Every value in [(1 - alpha) U, (1 + alpha) L]
           is within alpha N of N, whatever N is (docs/derivations/deterministic_tracking.md).
Cost       k / (2 alpha) words for each factor e of N when loads are even and windows centred, k /
           alpha as in the source; never more than one word an item.
"""

from collections.abc import Sequence
from fractions import Fraction

from casemate.track.engine import Estimate, Rules, Wish
from casemate.track.instruction import ONE, Every, Growth, Rule


def fixed(alpha: float) -> int:
    """Alpha in fixed point, a hair below what was asked: more than publishing a float loses."""
    return max(int(Fraction(alpha) * ONE) - 1, 0)


def weight_of_top(alpha: float) -> float:
    """Where the value halfway between (1 - alpha) U and (1 + alpha) L lies: 0 is L and 1 is U."""
    return (ONE - fixed(alpha)) / (2 * ONE)


def exact_rule() -> Every:
    """Report every item."""
    return Every()


def paper_rule(alpha: float) -> Growth:
    """Report when the count has grown by a factor of 1 + alpha."""
    return Growth(ONE + fixed(alpha), ONE)


def centred_rule(alpha: float) -> Growth:
    """Report when no value is within alpha of every count in the window any more."""
    return Growth(ONE + fixed(alpha), ONE - fixed(alpha))


class Windows:
    """The engine of trackers whose sites all keep one window rule for ever."""

    def __init__(self, sites: int, rule: Every | Growth, lower_ends: bool = False) -> None:
        self._rule, self._lower_ends = rule, lower_ends
        self._counts = [0] * sites
        self._low = self._high = 0

    def opening(self) -> Rules:
        """The one rule."""
        return self._rule

    def summons(self) -> Rules:
        """The one rule."""
        return self._rule

    def begin(self, counts: Sequence[int]) -> None:
        """Windows begin at the exact counts."""
        self._counts = list(counts)
        self._low = sum(counts)
        self._high = sum(map(self._rule.top, counts))

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:  # noqa: ARG002 - a window begins at the count
        """Move the site's window."""
        before = self._counts[site]
        self._counts[site] = count
        self._low += count - before
        self._high += self._rule.top(count) - self._rule.top(before)
        return None

    def estimate(self) -> Estimate:
        """A value inside the windows, or their lower ends."""
        value = float(self._low) if self._lower_ends else self._middle()
        return Estimate(value, self._low, self._high, 1.0)

    def _middle(self) -> float:
        """Halfway between (1 - alpha) U and (1 + alpha) L, whose ratio the rule holds at most 1."""
        if isinstance(self._rule, Every):
            return float(self._low)
        up, down = self._rule.numerator, self._rule.denominator
        return self._low + (self._high - self._low) * (down / (up + down))
