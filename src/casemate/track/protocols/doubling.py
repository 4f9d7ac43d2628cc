"""Trackers in rounds in which the estimate doubles; an adversary that adapts breaks both of them.

`huang_yi_zhang` is the randomised tracker of Huang, Yi and Zhang, and `block` the block scheme,
which, made robust, becomes the source's Algorithms 1 and 2. Both are exact until a report stands
for two items; then k words tell the sites the first rule, because their counts are known.

Source     Source document 001. Section 1.1 (its reference 13), `huang_yi_zhang`: each item is
           reported with probability p = c sqrt(k) / (alpha N), and a site whose last report in this
           round said n is taken to have counted n - 1 + 1/p since it began, one without a report
           nothing. Section 1.3, `block`: a site reports once in each block of Delta items, at a
           uniform point of it, and the server shows N + m Delta after m reports.
Guarantee  For items chosen beforehand. `huang_yi_zhang`: unbiased, variance at most k / p^2, so at
           each time the error exceeds alpha N with probability at most 1 / c^2. `block`: only the
           block that a site is in has an error, of mean 0 and in an interval of length Delta, so at
           each time the error exceeds alpha N with probability at most 2 exp(-z^2 / 2) (Hoeffding)
           where Delta = 2 alpha N / (z sqrt(k)).
           None against an adversary: `stop-on-change` leaves every site 1/p - 1 too high, sqrt(k) /
           c times alpha together, or about 3/4 Delta too high.
Cost       For each doubling of the count, c sqrt(k) / alpha + 2k words for `huang_yi_zhang` and
           z sqrt(k) / (2 alpha) + 2k for `block`.
Departure  The rule of a round is made of the estimate that ends the one before, not of the exact
           counts, so that it travels with the call for them: 2k words a round instead of 3k.
"""

import math
from collections.abc import Sequence

from casemate.track.engine import (
    EndRound,
    Marks,
    PublishedCount,
    RuleChange,
    SiteTally,
    Whole,
    Wish,
)
from casemate.track.reporting_rule import Blocks, Every, Rule, Sample
from casemate.track.setting import Setting

HUANG_YI_ZHANG_CONSTANT = 4.0  # c of Huang, Yi and Zhang
BLOCK_DEVIATIONS = 4.5  # z of the block scheme

MIN_STEP_ITEMS = 2.0
"""The items a report stands for when reporting every item stops."""


class Doubling:
    """The engine of a scheme whose reports stand for alpha N / strength items each."""

    def __init__(self, sites: int, alpha: float, strength: float, *, blocks: bool) -> None:
        self._alpha, self._strength, self._blocks = alpha, strength, blocks
        self._start = start(alpha, strength)
        self._rule: Rule = Every()
        self.tally = SiteTally(sites, last_counts=not blocks)
        self.begin([0] * sites)

    def opening(self) -> Rule:
        """Every item, while there are few."""
        return Every()

    def summons(self) -> Rule:
        """The rule for what the count is thought to be."""
        total = self.tally.value()
        step = self._alpha * total / self._strength
        if total < self._start:
            self._rule = Every()
        else:
            self._rule = Blocks(step) if self._blocks else Sample(1.0 / step)
        return self._rule

    def begin(self, counts: Sequence[int] | Whole) -> None:
        """A round begins at the exact counts."""
        self.tally.begin_all(counts, self._rule)
        exact = isinstance(self._rule, Every)
        self.tally.marks = Marks(value=self._start if exact else 2 * self.tally.base)

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Follow exact counts until there are enough of them; then estimate."""
        due = self.tally.note(site, rule, begun, reports, count)
        return self.decide(site) if due else None

    def decide(self, site: int) -> Wish:  # noqa: ARG002 - whoever brought it so far
        """The count has doubled, or there are enough items to report only some of them."""
        if not isinstance(self._rule, Every):
            return EndRound()
        rule = self.summons()
        self.begin(self.tally.reported)
        return RuleChange(wider=dict.fromkeys(range(len(self.tally.reported)), rule))

    def estimate(self) -> PublishedCount:
        """The count, with the interval that holds for items chosen beforehand and not otherwise."""
        value = self.tally.value()
        if isinstance(self._rule, Every):
            return PublishedCount(value, value, value, 1.0)
        return PublishedCount(value, value / (1 + self._alpha), value / (1 - self._alpha), 0.0)


def huang_yi_zhang(sites: int, alpha: float, constant: float = HUANG_YI_ZHANG_CONSTANT) -> Doubling:
    """The engine of Huang, Yi and Zhang."""
    return Doubling(sites, alpha, constant * math.sqrt(sites), blocks=False)


def block(sites: int, alpha: float, deviations: float = BLOCK_DEVIATIONS) -> Doubling:
    """The engine of the block scheme."""
    return Doubling(sites, alpha, deviations * math.sqrt(sites) / 2, blocks=True)


def huang_yi_zhang_words(s: Setting) -> float:
    """The words of Huang, Yi and Zhang at an even load."""
    return _words(s, HUANG_YI_ZHANG_CONSTANT * math.sqrt(s.sites))


def block_words(s: Setting) -> float:
    """The words of the block scheme at an even load."""
    return _words(s, BLOCK_DEVIATIONS * math.sqrt(s.sites) / 2)


def _words(s: Setting, strength: float) -> float:
    """Each doubling has strength / alpha reports."""
    begun = start(s.alpha, strength)
    if s.items <= begun:
        return float(s.items)
    rounds = math.floor(math.log2(s.items / begun))
    rest = s.items / math.ldexp(begun, rounds) - 1
    return begun + s.sites + rounds * (strength / s.alpha + 2 * s.sites) + rest * strength / s.alpha


def start(alpha: float, strength: float) -> int:
    """The first count at which a report stands for more than one item."""
    return math.ceil(MIN_STEP_ITEMS * strength / alpha)
