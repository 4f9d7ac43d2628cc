"""The frame of the oblivious trackers: exact at first, then rounds in which the estimate doubles.

Source     Source document 001, Section 1: "let N be the current number of items" is the exact
           count at the beginning of a round, and a round ends when the estimate is twice that.
Cost       (strength / alpha + 2k) words for each doubling. Sites are exact until a report stands
           for two items; then k words tell them the first rule, because their counts are known.
Departure  The rule of a round is made of the estimate that ends the one before, not of the exact
           counts, so that it travels with the call for them: 2k words a round instead of 3k.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from casemate.track.engine import Change, EndRound, PublishedCount, Rules, Wish
from casemate.track.instruction import Blocks, Every, Rule, Sample

SHORTEST_STEP = 2.0
"""The items a report stands for when reporting every item stops."""


class Scheme(Protocol):
    """How reports of one round become an estimate."""

    def rule(self, step: float) -> Sample | Blocks:
        """The rule whose reports stand for so many items."""
        ...

    def begin(self, rule: Sample | Blocks) -> None:
        """Forget the reports of the round before."""
        ...

    def hear(self, site: int, begun: int, reports: int, count: int) -> None:
        """Take a report of a site; it passed `reports` triggers since it had counted `begun`."""
        ...

    def gained(self) -> float:
        """The estimate of what all sites counted since the round began."""
        ...


class Doubling:
    """The engine of a scheme whose reports stand for alpha N / strength items each."""

    def __init__(self, sites: int, alpha: float, strength: float, scheme: Scheme) -> None:
        if strength <= 0:
            raise ValueError(f"reports must become rarer by a positive factor, got {strength}")
        self._counts = [0] * sites
        self._alpha, self._strength, self._scheme = alpha, strength, scheme
        self._start = start(alpha, strength)
        self._base = 0
        self._exact = True
        self._rule: Sample | Blocks = scheme.rule(SHORTEST_STEP)

    def opening(self) -> Rules:
        """Every item, while there are few."""
        return Every()

    def summons(self) -> Rule:
        """The rule for what the count is thought to be."""
        total = self.estimate().value
        self._exact = total < self._start
        if self._exact:
            return Every()
        self._rule = self._scheme.rule(step_at(total, self._alpha, self._strength))
        return self._rule

    def begin(self, counts: Sequence[int]) -> None:
        """A round begins at the exact counts."""
        self._counts = list(counts)
        self._base = sum(counts)
        self._scheme.begin(self._rule)

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Follow exact counts until there are enough of them; then estimate."""
        if isinstance(rule, Every):
            return self._follow(site, count)
        self._scheme.hear(site, begun, reports, count)
        return EndRound() if self.estimate().value >= 2 * self._base else None

    def _follow(self, site: int, count: int) -> Wish:
        self._base += count - self._counts[site]
        self._counts[site] = count
        if self._base < self._start:
            return None
        rule = self.summons()
        self._scheme.begin(self._rule)
        return Change(wider=dict.fromkeys(range(len(self._counts)), rule))

    def estimate(self) -> PublishedCount:
        """The count, with the interval that holds for items chosen beforehand and not otherwise."""
        value = float(self._base) if self._exact else self._base + self._scheme.gained()
        if self._exact:
            return PublishedCount(value, value, value, 1.0)
        return PublishedCount(value, value / (1 + self._alpha), value / (1 - self._alpha), 0.0)


def start(alpha: float, strength: float) -> int:
    """The first count at which a report stands for more than one item."""
    return math.ceil(SHORTEST_STEP * strength / alpha)


def step_at(total: float, alpha: float, strength: float) -> float:
    """The items that a report stands for in a round that begins at this count."""
    return alpha * total / strength


def words(sites: int, alpha: float, strength: float, horizon: int) -> float:
    """Words for this many items at an even load: each doubling has strength / alpha reports."""
    begun = start(alpha, strength)
    if horizon <= begun:
        return float(horizon)
    rounds = math.floor(math.log2(horizon / begun))
    rest = horizon / math.ldexp(begun, rounds) - 1
    return begun + sites + rounds * (strength / alpha + 2 * sites) + rest * strength / alpha
