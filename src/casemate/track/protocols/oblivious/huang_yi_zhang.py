"""The randomised tracker of Huang, Yi and Zhang: right on average, and broken by an adversary.

Source     Source document 001, Section 1.1 (its reference 13): each item is reported with
           probability p = c sqrt(k) / (alpha N), and a site whose last report in this round said n
           is taken to have counted n - 1 + 1/p since it began, one without a report nothing.
Guarantee  For items chosen beforehand: unbiased, variance at most k / p^2, so at each time the
           error exceeds alpha N with probability at most 1 / c^2. None against an adversary:
           `stop-on-change` leaves every site 1/p - 1 too high, sqrt(k) / c times alpha together.
Cost       c sqrt(k) / alpha + 2k words for each doubling of the count.
"""

import math

from casemate.track.adversary.compiled import CompiledAdversary, Rngs
from casemate.track.instruction import Blocks, Sample, step_of
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.protocols.oblivious.doubling import Doubling, words
from casemate.track.protocols.oblivious.simulation import run_doubling
from casemate.track.setting import Run, Setting

CONSTANT = 4.0  # c


class LastCounts:
    """The estimate from the last count that each site reported."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}  # reports of a site, and its count at the last
        self._counted = 0
        self._step = 0.0

    def rule(self, step: float) -> Sample:
        """Each item with a probability of one in `step`."""
        return Sample(min(1.0, 1.0 / step))

    def begin(self, rule: Sample | Blocks) -> None:
        """Nobody has reported."""
        self._last, self._counted, self._step = {}, 0, step_of(rule)

    def hear(self, site: int, begun: int, reports: int, count: int) -> None:
        """Keep the count at the newest trigger; a count between triggers would be a bias."""
        before, counted = self._last.get(site, (0, 0))
        if reports > before:
            self._last[site] = (reports, count - begun - 1)
            self._counted += count - begun - 1 - counted

    def gained(self) -> float:
        """What was counted before the last reports, and the mean of what came with and after."""
        return self._counted + len(self._last) * self._step


def huang_yi_zhang(sites: int, alpha: float, constant: float = CONSTANT) -> Doubling:
    """The engine of this tracker."""
    return Doubling(sites, alpha, strength(sites, constant), LastCounts())


def simulate_huang_yi_zhang(
    setting: Setting,
    adversary: CompiledAdversary,
    rngs: Rngs,
    pace: Pace = UNWATCHED,
    *,
    constant: float = CONSTANT,
) -> Run:
    """A run of this tracker, compiled."""
    scheme = (strength(setting.sites, constant), False)
    return run_doubling(setting, *scheme, adversary, rngs, pace=pace)


def predicted_words(sites: int, alpha: float, delta: float, horizon: int) -> float:  # noqa: ARG001 - it promises nothing for all times
    """Words for this many items at an even load."""
    return words(sites, alpha, strength(sites), horizon)


def chance_of_error(constant: float = CONSTANT) -> float:
    """How likely the error exceeds alpha N at one time, at most, without an adversary."""
    return min(1.0, 1.0 / constant**2)


def strength(sites: int, constant: float = CONSTANT) -> float:
    """Reports in a round, times alpha."""
    return constant * math.sqrt(sites)
