"""The robust tracker of source document 001, as it is written.

Source     Source document 001, Section 4: Algorithm 1 at the sites (`Blocks`), Algorithm 2 with
           Algorithm 3 (the Binary Mechanism) inside at the server of one round (`Phases`), in
           rounds (`Robust`).
Guarantee  Theorem 1: the count is within alpha N of N at all times until the horizon with
           probability 1 - delta, against anybody who sees the published counts and nothing else.
           Whether that is proved for these numbers is `Robust.proved` (`robust_theorem`); where
           it is not, the confidence of an estimate is 0. Whoever sees when messages travel, or how
           many there were, sees the thresholds, and is not covered.
           Lemma 5: what goes out of a round is (epsilon, 0, L)-partially private for the sites'
           thresholds, where each of the L phases gives away the one block that ended it.
Cost       About 2Ck + 3k words for each factor 1 + alpha sqrt(k) / 4 of N, after a start in which
           every item is reported (`predicted_words`). O(1) for a bit, O(log L) and four draws for a
           phase.
Departure  - Algorithm 1 sends "when c > r" with c from 0 to Delta - 1, by which some blocks never
             send; a site sends when the count within the block, from 1 to Delta, reaches r, which
             is uniform on 1 to Delta. Then the expected number of bits is N / Delta
             (`test_the_bits_are_unbiased`, `test_the_printed_comparison_is_biased`).
           - Thresholds are drawn when their block begins. A site's signal that it has passed k'
             blocks is its report from the block after them.
           - Blocks hold whole numbers of items. Before they hold two, every item is reported.
           - Line 9 of Algorithm 2 prints "j > sqrt(k)"; the Binary Mechanism has L = ceil(sqrt(k))
             places, so the round ends after phase L.
           - Lemma 5 is false for a threshold of 0 or less, which acts like 1: it is drawn again
             (docs/derivations/partial_privacy.md, section 6).
           - The noise of the Binary Mechanism is the discrete Laplace law, as its inputs are whole
             numbers, and splits epsilon / 4 over floor(log2 L) + 1 levels.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.mechanisms import BinaryMechanism
from casemate.track.engine import EndRound, Marks, PublishedCount, SiteTally, Wish
from casemate.track.protocols.robust_theorem import RobustConstants, accuracy, constants
from casemate.track.reporting_rule import Blocks, Draw, Every, Rule
from casemate.track.setting import Setting

# One round ---------------------------------------------------------------------------------------


class Phases:
    """The phases of one round."""

    def __init__(self, tracker: RobustConstants, draw: Draw) -> None:
        self._tracker, self._draw = tracker, draw
        epsilon = Fraction(tracker.epsilon) / 4
        self._mechanism = BinaryMechanism(tracker.phases, epsilon, whole_noise(draw))
        self._left = tracker.phases
        self._bits = 0  # c_j
        self.total = 0  # b-hat: the private count of the bits of the phases that are over
        self._threshold = self._noisy_threshold()

    def _noisy_threshold(self) -> int:
        """How many bits end the phase: the first whole number that is not below T-hat."""
        while True:
            noise = self._tracker.noise_scale * laplace(self._draw)
            if self._tracker.threshold + noise > 0:
                return math.ceil(self._tracker.threshold + noise)

    @property
    def over(self) -> bool:
        """Whether the last phase has ended."""
        return not self._left

    @property
    def room(self) -> int:
        """How many bits may still come without ending the phase."""
        return self._threshold - 1 - self._bits

    def take(self, bits: int) -> None:
        """Count so many bits, one after the other, until the last phase is over."""
        while bits > 0 and not self.over:
            taken = min(bits, self.room + 1)
            bits -= taken
            self._bits += taken
            if self._bits == self._threshold:
                self._end_phase()

    def _end_phase(self) -> None:
        self.total = self._mechanism.add(self._bits)
        self._bits = 0
        self._left -= 1
        if self._left:
            self._threshold = self._noisy_threshold()


def laplace(draw: Draw) -> float:
    """Laplace noise of scale 1: the difference of two exponential variables."""
    return math.log1p(-draw()) - math.log1p(-draw())


def whole_noise(draw: Draw) -> Callable[[Fraction, int], NDArray[Any]]:
    """Discrete Laplace noise: the difference of two geometric variables, by inversion.

    It hides thresholds, not people, and only from who sees counts alone, so that uniform numbers
    of 53 bits will do.
    """

    def draw_many(scale: Fraction, size: int) -> NDArray[Any]:
        s = float(scale)
        up_down = [(math.log1p(-draw()), math.log1p(-draw())) for _ in range(size)]
        return np.array([int(-s * up) - int(-s * down) for up, down in up_down], dtype=np.int64)

    return draw_many


# The tracker -------------------------------------------------------------------------------------


class Robust:
    """The engine of the tracker, for at most the items of its setting."""

    def __init__(self, setting: Setting, draw: Draw) -> None:
        self.constants = constants(setting)
        self._accuracy = accuracy(self.constants)
        self._draw = draw
        self._rounds = self._block = 0
        self._phases: Phases | None = None  # while every item is reported
        self.tally = SiteTally(setting.sites)
        self._begin_exactly([0] * setting.sites)

    @property
    def proved(self) -> bool:
        """Whether the promised accuracy is proved for these numbers."""
        return self._accuracy.proved

    def opening(self) -> Rule:
        """Report every item."""
        return Every()

    def summons(self) -> None:
        """Collect first: the rule depends on the exact count."""
        return

    def begin(self, counts: Sequence[int]) -> Rule:
        """Begin a round, with blocks if they hold enough items."""
        if sum(counts) < self.constants.begins_at:
            return self._begin_exactly(counts)
        self._rounds += 1
        self._exact, self._taken = sum(counts), 0  # N0, and the bits that phases have taken
        self._block = self.constants.block_size(self._exact)
        self._phases = Phases(self.constants, self._draw)
        rule = Blocks(float(self._block))
        self.tally.begin_all(counts, rule)
        self._publish(self._phases)
        return rule

    def _begin_exactly(self, counts: Sequence[int]) -> Rule:
        self._phases = None
        self.tally.begin_all(counts, Every())
        self.tally.hidden = None
        self.tally.marks = Marks(value=self.constants.begins_at)
        return Every()

    def _publish(self, phases: Phases) -> None:
        """Show the count of the phases so far until one more is over, or a site ends the round."""
        self.tally.hidden = self._exact + float(phases.total * self._block)
        self.tally.marks = Marks(
            draws=self._taken + phases.room + 1, site_draws=self.constants.blocks + 1
        )

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Count an item, or the bits that a report stands for."""
        if self._phases is not None and begun != self.tally.reported[site]:
            self._taken -= int(self.tally.drawn[site])  # the site begins anew; its bits stay taken
            self._publish(self._phases)
        due = self.tally.note(site, rule, begun, reports, count)
        return self.decide(site) if due else None

    def decide(self, site: int) -> Wish:
        """A phase is over, and perhaps the round, or every item was reported for long enough."""
        if self._phases is None:
            return EndRound()
        self._phases.take(self.tally.draws - self._taken)
        self._taken = self.tally.draws
        if self._phases.over or self.tally.drawn[site] > self.constants.blocks:
            return EndRound()
        self._publish(self._phases)
        return None

    def estimate(self) -> PublishedCount:
        """The exact count of the last call, and the blocks that are privately counted since."""
        value = self.tally.value()
        if self._phases is None:
            return PublishedCount(value, value, value, 1.0)
        exact = float(self._exact)
        reach = self.constants.setting.alpha * exact
        lo = max(min(exact, value), value - reach)  # noise may lead below the exact count
        return PublishedCount(value, lo, value + reach, self._confidence())

    def _confidence(self) -> float:
        covered = self._rounds <= self._accuracy.rounds
        return 1 - self.constants.setting.delta if self.proved and covered else 0.0
