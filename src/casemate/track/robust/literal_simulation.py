"""The robust tracker simulated: items are compiled, phases and rounds are the real ones.

The run equals one over the real sites, server and engine, word for word: the sites draw in the
same order, and the server's noise comes from the same code.
"""

import numpy as np

from casemate.track.adversary.compiled import Compiled, Rngs
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.robust.literal_kernel import (
    Attack,
    Limits,
    News,
    Shown,
    Sites,
    begin_blocks,
    count_exactly,
    count_until_news,
)
from casemate.track.robust.literal_phases import Phases
from casemate.track.robust.theorem import constants
from casemate.track.setting import Run, Setting


def simulate_robust(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Track all items of a setting."""
    run = _Simulation(setting, adversary, rngs, pace)
    run.start_up()
    while run.items < setting.items:
        run.round()
    run.note_error(setting.items)
    calls = run.rounds * setting.sites
    words = {"report": run.reports, "call": calls, "answer": calls, "rule": calls}
    return Run(words, run.worst, run.rounds)


class _Simulation:
    def __init__(self, setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace) -> None:
        self._setting, self._constants, self._pace = setting, constants(setting), pace
        rng, site_rng, server_rng = rngs
        self._attack = Attack(adversary.kind, adversary.memory, adversary.numbers, rng)
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
        shown = Shown(self._output, self._changed, self.rounds, size)
        pause = self._pace.pause(self.items, self._setting.items)
        limits = Limits(room, self._constants.blocks, pause - self.items)
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
