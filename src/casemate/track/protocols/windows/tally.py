"""What a server knows of each site, as columns that a compiled loop can keep, too.

A site has a window, in which its count lies (from `known` to `top`), or it is sampled: `known` was
its count when that began and `drawn` is how often it was drawn since. A plain engine tells the
tally one report at a time; `mixed_kernel` changes the same columns and sums item by item. Both go
on until a mark is reached, where the engine has something to decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.track.instruction import NEVER, ONE, Every, Growth, Rule, Sample
from casemate.track.setting import MOST_COUNTED

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Marks:
    """Where an engine wants to be asked again."""

    room: int = NEVER  # of (1 - alpha) U - (1 + alpha) L in fixed point; it may not be passed
    draws: int = NEVER  # of all sampled sites since the round began
    heard: int = NEVER  # reports of any kind
    value: float = np.inf  # what is published


class WindowTally:
    """The columns, and their sums."""

    def __init__(self, sites: int, up: int, down: int, weight: float) -> None:
        self.up, self.down = up, down  # 1 + alpha and 1 - alpha in fixed point
        self.weight = weight  # where in [low, high] the published value lies
        self.known = np.zeros(sites, dtype=np.int64)
        self.top = np.zeros(sites, dtype=np.int64)
        self.drawn = np.zeros(sites, dtype=np.int64)
        self.sampled = np.zeros(sites, dtype=np.bool_)
        self.numerator = np.full(sites, ONE, dtype=np.int64)  # of the window's rule
        self.denominator = np.full(sites, ONE, dtype=np.int64)
        self.probability = 1.0  # with which items of sampled sites are drawn
        self.low = self.high = 0  # sums of `known` and `top` of sites with a window
        self.base = self.draws = 0  # sums of `known` and `drawn` of sampled sites
        self.heard = 0  # reports so far
        self.marks = Marks()

    def follow(self, site: int, rule: Rule) -> None:
        """Note the rule of a site's window."""
        match rule:
            case Growth(numerator, denominator):
                self.numerator[site], self.denominator[site] = numerator, denominator
            case Every():
                self.numerator[site] = self.denominator[site] = ONE

    def rule(self, site: int) -> Rule:
        """What the site does by itself now."""
        if self.sampled[site]:
            return Sample(self.probability)
        return Growth(int(self.numerator[site]), int(self.denominator[site]))

    def hold(self, site: int, count: int, top: int) -> None:
        """From now on the site's count lies in this window, as far as anybody counts."""
        self._forget(site)
        top = _reachable(count, top)
        self.known[site], self.top[site] = count, top
        self.low += count
        self.high += top

    def sample(self, site: int, begun: int, drawn: int) -> None:
        """From now on the site is sampled, since this count and with so many draws by now."""
        self._forget(site)
        self.sampled[site] = True
        self.known[site], self.drawn[site] = begun, drawn
        self.base += begun
        self.draws += drawn

    def widen(self, site: int, rule: Rule) -> None:
        """A site is sent this rule, and may take it with any count of its window."""
        if isinstance(rule, Growth):
            self.follow(site, rule)
            self.hold(site, int(self.known[site]), rule.top(int(self.top[site])))

    def end_sampling(self) -> None:
        """Take the likeliest counts of the sampled sites for what they are, until they answer."""
        likeliest = self.counts()
        for site in np.flatnonzero(self.sampled):
            count = round(float(likeliest[site]))
            self.hold(int(site), count, count)
        self.probability = 1.0

    def begin(self, counts: Sequence[int], light: Flags) -> None:
        """Every count is known exactly; the light sites are sampled from now on."""
        self.known = np.array(counts, dtype=np.int64)
        self.drawn = np.zeros(len(counts), dtype=np.int64)
        self.sampled = light.copy()
        tops = [c if light[i] else self._top(i, c) for i, c in enumerate(counts)]
        self.top = np.array(tops, dtype=np.int64)
        self.low, self.high = int(self.known[~light].sum()), int(self.top[~light].sum())
        self.base, self.draws = int(self.known[light].sum()), 0

    def _top(self, site: int, count: int) -> int:
        top = count * int(self.numerator[site]) // int(self.denominator[site])
        return _reachable(count, top)

    def _forget(self, site: int) -> None:
        if self.sampled[site]:
            self.base -= int(self.known[site])
            self.draws -= int(self.drawn[site])
            self.sampled[site] = False
        else:
            self.low -= int(self.known[site])
            self.high -= int(self.top[site])

    def value(self) -> float:
        """The published value: inside the windows, and the draws scaled up."""
        windows = self.low + (self.high - self.low) * self.weight
        return windows + (self.base + self.draws / self.probability)

    def excess(self) -> int:
        """By how much (1 - alpha) U - (1 + alpha) L passes its room; at most 0 is right."""
        return self.down * self.high - self.up * self.low - self.marks.room

    def due(self) -> bool:
        """Whether a mark is reached."""
        m = self.marks
        passed = self.draws >= m.draws or self.heard >= m.heard or self.value() >= m.value
        return passed or self.excess() > 0

    def counts(self) -> Floats:
        """The likeliest count of each site."""
        windows = self.known + (self.top - self.known) * self.weight
        return np.where(self.sampled, self.known + self.drawn / self.probability, windows)


def _reachable(count: int, top: int) -> int:
    """The top of a window at this count, as far as anybody counts."""
    return max(count, min(top, MOST_COUNTED))
