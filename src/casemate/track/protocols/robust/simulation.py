"""The robust tracker simulated: items are compiled, phases and rounds are the real ones.

The run equals one over the real sites, server and engine, word for word: the sites draw in the
same order, and the server's noise comes from the same code.

The items of a simulated round, compiled: what happens while the published count stands still.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.adversary.compiled import CompiledAdversary, Rngs, next_site
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.protocols.robust.theorem import constants
from casemate.track.protocols.robust.tracker import Phases
from casemate.track.setting import Run, Setting


class SeededAdversary(NamedTuple):
    """An adversary and its randomness."""

    kind: int
    memory: NDArray[np.int64]
    numbers: NDArray[np.float64]
    rng: Generator


class Sites(NamedTuple):
    """The sites in a round of blocks, and their randomness."""

    counts: NDArray[np.int64]
    begun: NDArray[np.int64]
    reports: NDArray[np.int64]
    triggers: NDArray[np.int64]
    rng: Generator


class PublicState(NamedTuple):
    """What is public before the next item."""

    output: float
    changed: bool
    round_number: int
    size: float  # of a block


class KernelLimits(NamedTuple):
    """What a kernel must not pass."""

    room: int  # bits that fit into the phase
    last_block: int  # of a site
    items: int  # until it shall pause


class News(NamedTuple):
    """Why a kernel stopped."""

    items: int  # that were counted
    words: int
    bits: int
    signalled: bool  # a site has passed its last block


@compiled
def count_exactly(attack: Any, counts: Any, items: Any, last: Any) -> None:
    """Report each of the items after so many until the last."""
    for now in range(items, last):
        site = next_site(
            attack.kind, attack.memory, attack.numbers, attack.rng, float(now), now > 0, 0, 0.0
        )
        counts[site] += 1


@compiled
def begin_blocks(sites: Any, size: Any) -> None:
    """Every site takes the rule of a round, in turn."""
    for site in range(len(sites.counts)):
        sites.begun[site] = sites.counts[site]
        sites.reports[site] = 0
        _next_trigger(sites, site, size)


@compiled
def _next_trigger(sites: Any, site: Any, size: Any) -> None:
    """Draw as `Blocks.after` does."""
    offset = (sites.reports[site] + 1 - sites.rng.random()) * size
    sites.triggers[site] = sites.begun[site] + math.ceil(offset)


@compiled
def count_until_news(attack: Any, sites: Any, shown: Any, limits: Any) -> Any:
    """Count items until a phase has more bits than room, or a site has passed its last block.

    Where neither happens before it shall pause, that is no news: the same phase goes on. It returns
    what a `News` is made of: to make one would be Python code, where an interrupt may be raised.
    """
    changed, words, bits = shown.changed, 0, 0
    for item in range(1, limits.items + 1):
        site = next_site(
            attack.kind,
            attack.memory,
            attack.numbers,
            attack.rng,
            shown.output,
            changed,
            shown.round_number,
            shown.size,
        )
        changed = False
        sites.counts[site] += 1
        if sites.counts[site] < sites.triggers[site]:
            continue
        words += 1
        while sites.counts[site] >= sites.triggers[site]:
            bits += 1
            sites.reports[site] += 1
            _next_trigger(sites, site, shown.size)
        signalled = sites.reports[site] > limits.last_block
        if bits > limits.room or signalled:
            return item, words, bits, signalled
    return limits.items, words, bits, False


# Literal simulation -----------------------------------------------------------------------------


def simulate_robust(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Track all items of a setting."""
    run = _RobustSimulation(setting, adversary, rngs, pace)
    run.start_up()
    while run.items < setting.items:
        run.round()
    run.note_error(setting.items)
    calls = run.rounds * setting.sites
    words = {"report": run.reports, "call": calls, "answer": calls, "rule": calls}
    return Run(words, run.worst, run.rounds)


class _RobustSimulation:
    def __init__(
        self, setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace
    ) -> None:
        self._setting, self._constants, self._pace = setting, constants(setting), pace
        rng, site_rng, server_rng = rngs
        self._attack = SeededAdversary(adversary.kind, adversary.memory, adversary.numbers, rng)
        counts, begun, reports, triggers = np.zeros((4, setting.sites), np.int64)
        self._sites = Sites(counts, begun, reports, triggers, site_rng)
        self._draw = server_rng.random
        self.items = self.rounds = self.reports = 0
        self._output, self._changed, self._since = 0.0, False, 1
        self.worst = 0.0  # the largest error so far, as a multiple of alpha

    def start_up(self) -> None:
        """Report every item until blocks hold enough of them."""
        items = min(self._setting.items, self._constants.begins_at)
        while self.items < items:
            pause = self._pace.pause(self.items, items)
            count_exactly(self._attack, self._sites.counts, self.items, pause)
            self._pass(pause - self.items, pause - self.items)
        self.rounds = int(items == self._constants.begins_at)
        self._output, self._changed, self._since = float(items), True, items

    def round(self) -> None:
        """Run a round until its end, or that of the items."""
        base, size = self.items, self._constants.block_size(self.items)
        begin_blocks(self._sites, float(size))
        phases, over = Phases(self._constants, self._draw), False
        while self.items < self._setting.items and not over:
            room = phases.room
            news = self._until_news(room, float(size))
            phases.take(news.bits)
            over = phases.over or news.signalled
            if over or news.bits > room:
                self._show(float(self.items) if over else base + float(phases.total * size))
        self.rounds += over

    def _until_news(self, room: int, size: float) -> News:
        shown = PublicState(self._output, self._changed, self.rounds, size)
        pause = self._pace.pause(self.items, self._setting.items)
        limits = KernelLimits(room, self._constants.blocks, pause - self.items)
        news = News(*count_until_news(self._attack, self._sites, shown, limits))
        self._pass(news.items, news.words)
        self._changed = False  # until something else is shown
        return news

    def _pass(self, items: int, reports: int) -> None:
        """So many items came, and so many reports of them."""
        self.items += items
        self.reports += reports
        self._pace.note(self.items, self._setting.items)

    def _show(self, output: float) -> None:
        """Show a count from the last item on."""
        self.note_error(self.items - 1)
        self._changed = output != self._output
        self._output, self._since = output, self.items

    def note_error(self, last: int) -> None:
        """Note how far the count shown until this item was off: most at an end of its time."""
        for items in (self._since, last):
            if self._since <= items <= last:
                error = abs(self._output - items) / (self._setting.alpha * items)
                self.worst = max(self.worst, error)
