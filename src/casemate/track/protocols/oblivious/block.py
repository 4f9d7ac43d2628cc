"""The block scheme: one report in each block, at a random point; broken by an adversary.

Source     Source document 001, Section 1.3: a site reports once in each block of Delta items, at a
           uniform point of it, and the server shows N + m Delta after m reports. Made robust, this
           becomes the source's Algorithms 1 and 2.
Guarantee  For items chosen beforehand: only the block that a site is in has an error, of mean 0 and
           in an interval of length Delta, so at each time the error exceeds alpha N with
           probability at most 2 exp(-z^2 / 2) (Hoeffding) where Delta = 2 alpha N / (z sqrt(k)).
           None against an adversary: `stop-on-change` leaves every site about 3/4 Delta too high.
Cost       z sqrt(k) / (2 alpha) + 2k words for each doubling of the count.
"""

import math

from casemate.track.adversary.compiled import CompiledAdversary, Rngs
from casemate.track.instruction import Blocks, Sample, step_of
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.protocols.oblivious.doubling import Doubling, words
from casemate.track.protocols.oblivious.simulation import run_doubling
from casemate.track.setting import Run, Setting

DEVIATIONS = 4.5  # z


class BlockEstimate:
    """The estimate from the number of reports."""

    def __init__(self) -> None:
        self._reports: dict[int, int] = {}
        self._total = 0
        self._step = 0.0

    def rule(self, step: float) -> Blocks:
        """One report in each block of this size."""
        return Blocks(step)

    def begin(self, rule: Sample | Blocks) -> None:
        """Nobody has reported."""
        self._reports, self._total, self._step = {}, 0, step_of(rule)

    def hear(self, site: int, begun: int, reports: int, count: int) -> None:  # noqa: ARG002 - a report is one bit
        """Count reports."""
        self._total += reports - self._reports.get(site, 0)
        self._reports[site] = reports

    def gained(self) -> float:
        """A block for each report."""
        return self._total * self._step


def block(sites: int, alpha: float, deviations: float = DEVIATIONS) -> Doubling:
    """The engine of this tracker."""
    return Doubling(sites, alpha, strength(sites, deviations), BlockEstimate())


def simulate_block(
    setting: Setting,
    adversary: CompiledAdversary,
    rngs: Rngs,
    pace: Pace = UNWATCHED,
    *,
    deviations: float = DEVIATIONS,
) -> Run:
    """A run of this tracker, compiled."""
    scheme = (strength(setting.sites, deviations), True)
    return run_doubling(setting, *scheme, adversary, rngs, pace=pace)


def predicted_words(sites: int, alpha: float, delta: float, horizon: int) -> float:  # noqa: ARG001 - it promises nothing for all times
    """Words for this many items at an even load."""
    return words(sites, alpha, strength(sites), horizon)


def chance_of_error(deviations: float = DEVIATIONS) -> float:
    """How likely the error exceeds alpha N at one time, at most, without an adversary."""
    return min(1.0, 2.0 * math.exp(-(deviations**2) / 2))


def strength(sites: int, deviations: float = DEVIATIONS) -> float:
    """Reports in a round, times alpha."""
    return deviations * math.sqrt(sites) / 2
