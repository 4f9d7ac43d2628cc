"""The tuned robust tracker: secret coins at the sites, phases of noisy length at the server.

Source     Source document 001, Algorithms 1 and 2, made cheap; see `tuned_design` for what differs.
Guarantee  Against everybody who sees only what is published: with probability 1 - delta the count
           is within alpha at all times (docs/derivations/robust_tuned.md). Whoever sees messages
           come and go sees the coins, and the guarantee is void.
Cost       See `tuned_plan.predicted_words`. Windows come first, until blocks hold two items.

What each step from the tracker of source document 001 to the tuned one saves.

The figures are words for each factor e of the count, over those of centred windows; all but the
first and the last come from the approximation that `tuned_search` uses.
"""

import math
import random
from collections.abc import Sequence

import numpy as np

from casemate.track.engine import Change, EndRound, PublishedCount, Rules, Wish
from casemate.track.instruction import Blocks, Draw, Rule
from casemate.track.protocols.robust.theorem import constants
from casemate.track.protocols.tuned.design import (
    SEEN,
    SPREAD,
    TunedDesign,
    best_budget,
    block_size,
    design,
    round_at,
    search,
    share,
    start,
)
from casemate.track.protocols.windows.windows import Windows, centred_rule
from casemate.track.setting import Setting

_UNPREDICTABLE = random.SystemRandom().random  # or somebody could foresee where phases end


class TunedRound:
    """The phases of one round, and what is published in each."""

    def __init__(self, design: TunedDesign, counts: Sequence[int], size: int, draw: Draw) -> None:
        self.design, self.size = design, size
        self.begun = np.array(counts, dtype=np.int64)  # where the blocks of each site begin
        self.reports = np.zeros(len(counts), dtype=np.int64)  # of each site since
        self._lengths, self._mean, self._draw = design.lengths, design.lengths.mean, draw
        self.base = sum(counts)  # N0
        self.exact = self.base  # and what exact counts have corrected since
        self.passed = 0  # phases
        self.heard = 0  # reports in this phase
        self.length = self._lengths.drawn(draw())

    def hear(self, site: int, begun: int, reports: int) -> Wish:
        """Take a report; one that ends a phase makes its site begin its block again."""
        if begun != self.begun[site]:
            self._begin_again(site, begun)
        self.heard += reports - int(self.reports[site])
        self.reports[site] = reports
        if self.heard < self.length:
            return None
        self.reports[site] -= self.heard - self.length  # the phase ended before these, if any
        self.passed += 1
        if self.passed == self.design.phases:
            return EndRound()
        self.heard, self.length = 0, self._lengths.drawn(self._draw())
        return Change(narrower={site: Blocks(float(self.size))})

    def _begin_again(self, site: int, begun: int) -> None:
        """A site's exact count takes the place of what its reports stood for."""
        self.exact += begun - int(self.begun[site]) - self.size * int(self.reports[site])
        self.begun[site], self.reports[site] = begun, 0

    def nominal(self, passed: float) -> float:
        """The count to be expected after so many phases."""
        return self.exact + self.size * (passed * self._mean)

    def middle(self) -> float:
        """The count to be expected in the middle of this phase, or of the last one."""
        passed = min(self.passed, self.design.phases - 1)
        return self.nominal(passed) + self.size * ((self._mean - 1) / 2)


class RobustTuned:
    """The engine: windows while the count is small, then rounds of phases."""

    def __init__(
        self, sites: int, alpha: float, delta: float = 0.01, draw: Draw = _UNPREDICTABLE
    ) -> None:
        self._sites, self._alpha, self._delta, self._draw = sites, alpha, delta, draw
        self.start = start(sites, alpha, delta)
        self._window = centred_rule(alpha)
        self.windows = Windows(sites, self._window)
        self.round: TunedRound | None = None  # none while there are windows
        self._size = 0  # of the blocks that were ordered last; 0 is windows
        self._rounds = 0
        self._spent = 0.0  # the proved failure of all rounds so far

    def opening(self) -> Rules:
        """Windows."""
        return self.windows.opening()

    def summons(self) -> Rule:
        """Blocks as large as the count allows; windows while they would be too small."""
        count, least = self._expected()
        if count < self.start:
            self._size = 0
            return self._window
        self._size = block_size(self._sites, self._alpha, self._share(), count, least)
        return Blocks(float(self._size))

    def begin(self, counts: Sequence[int]) -> None:
        """Begin a round of the kind that was ordered."""
        if not self._size:
            self.round = None
            self.windows.begin(counts)
            return
        total = sum(counts)
        plan = round_at(self._sites, self._alpha, self._share(), total, self._size)
        self.round = TunedRound(plan, counts, self._size, self._draw)
        self._rounds += 1
        self._spent += plan.failure

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Take a report."""
        if self.round is not None:
            return self.round.hear(site, begun, reports)
        self.windows.hear(site, rule, begun, reports, count)
        return EndRound() if self.windows.estimate().value >= self.start else None

    def estimate(self) -> PublishedCount:
        """The centre of what is possible, so that it is within alpha of both ends."""
        if self.round is None:
            return self.windows.estimate()
        a, middle = self._alpha, self.round.middle()
        sure = max(0.0, 1.0 - self._spent)
        return PublishedCount((1 - a * a) * middle, (1 - a) * middle, (1 + a) * middle, sure)

    def _expected(self) -> tuple[float, float]:
        """The count to be expected now, and one that it has at least."""
        if self.round is None:
            known = self.windows.estimate()
            return known.value, known.lo
        least = max(float(self.round.base), (1 - self._alpha) * self.round.middle())
        return self.round.nominal(self.round.passed), least

    def _share(self) -> float:
        return share(self._delta, self._rounds)


# Tuned steps ------------------------------------------------------------------------------------


_A_LATE_ROUND = 16


def improvements(sites: int, alpha: float, delta: float, horizon: int) -> dict[str, float]:
    """The steps by name, each with its cost relative to centred windows.

    >>> steps = improvements(4096, 0.01, 0.01, 10**8)
    >>> list(steps.values()) == sorted(steps.values(), reverse=True)
    True
    """
    centred = sites / (2 * alpha)
    failure = share(delta, _A_LATE_ROUND)
    union = math.sqrt(math.log(4 / failure) / 2)  # half of the failure for the coins, at any time
    final = design(sites, alpha, failure, best_budget(sites, alpha, failure))
    steps = {
        "as in source document 001": _literal(Setting(sites, alpha, delta, horizon)),
        "one noise, nominal and centred": _cheapest(sites, alpha, failure / 2, union),
        "failure at the first bad time": _cheapest(sites, alpha, failure * SEEN, SPREAD),
        "a budget that grows with the count": final.rate,
    }
    return {name: cost / centred for name, cost in steps.items()}


def _literal(setting: Setting) -> float:
    known = constants(setting)
    return (known.phases * known.threshold + 3 * setting.sites) / math.log(known.growth)


def _cheapest(sites: int, alpha: float, target: float, spread: float) -> float:
    budgets = np.geomspace(2, 40, 60) * math.sqrt(sites)
    found = (search(sites, alpha, target, float(b), spread=spread, grows=False) for b in budgets)
    return min((one.rate for one in found if one is not None), default=math.inf)
