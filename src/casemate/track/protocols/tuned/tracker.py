"""The tuned robust tracker: secret coins at the sites, phases of noisy length at the server.

Source     Source document 001, Algorithms 1 and 2, made cheap; see `tuned_design` for what differs.
Guarantee  Against everybody who sees only what is published: with probability 1 - delta the count
           is within alpha at all times (docs/derivations/robust_tuned.md). Whoever sees messages
           come and go sees the coins, and the guarantee is void.
Cost       See `design.predicted_words`. Windows come first, until blocks hold two items.
"""

import random
from collections.abc import Sequence

from casemate.track.engine import Change, EndRound, PublishedCount, Rules, Wish
from casemate.track.instruction import Blocks, Draw, Rule
from casemate.track.protocols.tuned.design import (
    TunedDesign,
    block_size,
    round_at,
    share,
    start,
)
from casemate.track.protocols.windows import centred, centred_rule
from casemate.track.tally import Marks, SiteTally

_UNPREDICTABLE = random.SystemRandom().random  # or somebody could foresee where phases end


class TunedRound:
    """The phases of one round, and what is published in each."""

    def __init__(self, design: TunedDesign, counts: Sequence[int], size: int, draw: Draw) -> None:
        self.design, self.size = design, size
        self._lengths, self._mean, self._draw = design.lengths, design.lengths.mean, draw
        self.base = sum(counts)  # N0
        self.exact = self.base  # and what exact counts have corrected since
        self.passed = 0  # phases
        self.tally = SiteTally(len(counts))
        self.tally.begin_all(counts, Blocks(float(size)))
        self._begin_phase()

    def _begin_phase(self) -> None:
        self._ends_at = self.tally.draws + self._lengths.drawn(self._draw())  # reports
        self._publish()

    def _publish(self) -> None:
        self.tally.hidden = self.published
        self.tally.marks = Marks(draws=self._ends_at)

    def hear(self, site: int, begun: int, reports: int) -> Wish:
        """Take a report; one that ends a phase makes its site begin its block again."""
        t = self.tally
        if begun != t.known[site]:  # an exact count takes the place of what reports stood for
            heard = int(t.drawn[site])
            self.exact += begun - int(t.known[site]) - self.size * heard
            self._ends_at -= heard
            self._publish()
        due = t.note(site, Blocks(float(self.size)), begun, reports, begun)
        return self.decide(site) if due else None

    def decide(self, site: int) -> Wish:
        """A phase is over."""
        t = self.tally
        kept = int(t.drawn[site]) - (t.draws - self._ends_at)  # it ended before the rest, if any
        t.sample(site, int(t.known[site]), kept)
        self.passed += 1
        if self.passed == self.design.phases:
            return EndRound()
        self._begin_phase()
        return Change(narrower={site: Blocks(float(self.size))})

    @property
    def published(self) -> float:
        """The centre of what is possible, so that it is within alpha of both ends."""
        return (1 - self.design.alpha**2) * self.middle()

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
        self._window, self.windows = centred_rule(alpha), centred(sites, alpha)
        self.windows.tally.marks = Marks(value=self.start)
        self.round: TunedRound | None = None  # none while there are windows
        self._size = 0  # of the blocks that were ordered last; 0 is windows
        self._rounds = 0
        self._spent = 0.0  # the proved failure of all rounds so far

    @property
    def tally(self) -> SiteTally:
        """That of the round, or of the windows before."""
        return self.windows.tally if self.round is None else self.round.tally

    def opening(self) -> Rules:
        """Windows."""
        return self._window

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
        due = self.tally.note(site, rule, begun, reports, count)
        return EndRound() if due else None

    def decide(self, site: int) -> Wish:
        """A phase is over, or windows have led far enough."""
        return EndRound() if self.round is None else self.round.decide(site)

    def estimate(self) -> PublishedCount:
        """What the round publishes, and what is possible; or what the windows say."""
        if self.round is None:
            return self.windows.estimate()
        a, middle = self._alpha, self.round.middle()
        sure = max(0.0, 1.0 - self._spent)
        return PublishedCount(self.tally.value(), (1 - a) * middle, (1 + a) * middle, sure)

    def _expected(self) -> tuple[float, float]:
        """The count to be expected now, and one that it has at least."""
        if self.round is None:
            known = self.windows.estimate()
            return known.value, known.lo
        least = max(float(self.round.base), (1 - self._alpha) * self.round.middle())
        return self.round.nominal(self.round.passed), least

    def _share(self) -> float:
        return share(self._delta, self._rounds)
