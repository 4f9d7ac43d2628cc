"""One compiled run of any protocol: the sites' true counts and triggers beside the server's tally.

The loop over items is compiled: it keeps the columns and sums of a `SiteTally` as engines do, and
comes back to Python where a mark is reached or it shall pause. What is rare happens there, where
the very engine of a real tracker decides. So a run is equal, word for word and error for error, to
one over `Site` and `Server` objects.
"""

import math
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.engine import EndRound, RuleChange, TalliedEngine, Wish
from casemate.track.reporting_rule import Rule, SiteStanding, gap
from casemate.track.setting import Run, Setting
from casemate.track.simulate.adversary import CompiledAdversary, Floats, Rngs, Whole, next_site

# Pauses -----------------------------------------------------------------------------------------
#
# Where a long simulated run pauses: to say how far it is, and so that it can be interrupted there.
#
# Compiled code neither shows progress nor notices an interrupt, so a run goes through its items in
# pieces. A pause falls between two items and changes nothing: the run goes on from the same state,
# and draws the same numbers.
#
# Python raises an interrupt wherever its own code runs next. Numba runs some of that while it hands
# a generator over to compiled code, does not look whether it failed, and the whole program crashes.
# So while a run is compiled, an interrupt is only noted, until the next pause; somebody who
# interrupts once more is not made to wait.

PAUSE_ITEMS = 1 << 22
"""The items of a piece: about a tenth of a second, and far more than it costs to pause."""


def _nobody(_items: int) -> None:
    """There is nobody to tell."""


@dataclass(frozen=True)
class Pace:
    """Who is told how many items have come, and how often."""

    tell: Callable[[int], None] = _nobody
    every: int = PAUSE_ITEMS

    def pause(self, items: int, last: int) -> int:
        """The item after which a run that has taken so many of `last` pauses next.

        >>> [Pace(every=10).pause(items, last=25) for items in (0, 9, 10, 24, 25)]
        [10, 10, 20, 25, 25]
        """
        return min(items - items % self.every + self.every, last)

    def note(self, items: int, last: int) -> None:
        """So many of `last` items have come: tell, if this is a pause or the end."""
        if items == last or items % self.every == 0:
            self.tell(items)


UNWATCHED = Pace()


# Interrupts -------------------------------------------------------------------------------------


class HeldInterrupts:
    """Holds back interrupts that would end the program, and raises them where that is safe.

    >>> with HeldInterrupts() as interrupts:
    ...     interrupts.release()
    """

    def __init__(self) -> None:
        self._came = self._holding = False

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()  # no other is interrupted
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._holding = True
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._holding:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._holding = False
        if kind is None:
            self.release()

    def release(self) -> None:
        """Raise the interrupt that has come, if one has."""
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True


# The run ----------------------------------------------------------------------------------------

LOW, HIGH, BASE, DRAWS, HEARD, COUNTED, REPORTERS, ITEMS = range(8)  # places of `sums`
SHOWN, WORST, CHANGED = range(3)  # of `seen`

_gap = compiled(gap)


class Columns(NamedTuple):
    """What is known of each site, here and at the server."""

    counts: Whole
    triggers: Whole
    reported: Whole
    top: Whole
    drawn: Whole
    reached: Whole
    numerator: Whole
    denominator: Whole
    sampled: NDArray[np.bool_]


class ReportScale(NamedTuple):
    """What reports stand for, and what everybody sees of it."""

    alpha: float
    weight: float
    probability: float
    block: float
    last_counts: bool
    hides: bool
    hidden: float
    round_number: int
    step: float


class Limits(NamedTuple):
    """What the kernel must not pass."""

    room: int
    draws: int
    heard: int
    site_draws: int
    value: float
    up: int
    down: int
    items: int  # until it shall pause


@compiled
def _published_value(scale: ReportScale, sums: Whole) -> float:
    """What `SiteTally.value` says."""
    if scale.hides:
        return scale.hidden
    windows: float = sums[LOW] + (sums[HIGH] - sums[LOW]) * scale.weight
    sampled: float
    if scale.last_counts:
        sampled = sums[BASE] + sums[COUNTED] + sums[REPORTERS] / scale.probability
    elif scale.block > 0.0:
        sampled = sums[BASE] + sums[DRAWS] * scale.block
    else:
        sampled = sums[BASE] + sums[DRAWS] / scale.probability
    return windows + sampled


@compiled
def _draw(site: int, sites: Columns, rng: Generator, scale: ReportScale, sums: Whole) -> None:
    """Take the report of a sampled site whose count reached its trigger, and set its next one."""
    count, begun = sites.counts[site], sites.reported[site]
    while count >= sites.triggers[site]:
        sites.drawn[site] += 1
        sums[DRAWS] += 1
        if scale.block > 0.0:
            offset = (sites.drawn[site] + 1 - rng.random()) * scale.block
            sites.triggers[site] = begun + math.ceil(offset)
        else:
            sites.triggers[site] += _gap(rng.random(), scale.probability)
    if scale.last_counts:
        sums[REPORTERS] += sites.reached[site] == 0
        sums[COUNTED] += count - begun - max(sites.reached[site], 1)
        sites.reached[site] = count - begun


@compiled
def _due(drawn: int, limits: Limits, sums: Whole) -> bool:
    """What `SiteTally.due` says of a site that was drawn so often, but for the value."""
    if sums[DRAWS] >= limits.draws or sums[HEARD] >= limits.heard:
        return True
    excess = limits.down * sums[HIGH] - limits.up * sums[LOW] > limits.room
    return excess or drawn >= limits.site_draws


@compiled
def _error(output: float, items: int, alpha: float) -> float:
    return abs(output - items) / (alpha * items) if items > 0 else 0.0


@compiled
def take_items(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: CompiledAdversary,
    adversary_rng: Generator,
    sites: Columns,
    rng: Generator,
    scale: ReportScale,
    limits: Limits,
    sums: Whole,
    seen: Floats,
) -> int:
    """Publish, then take items until one reaches a mark, or it shall pause: its site, or -1.

    What is shown errs most at the first or the last item while it is shown. Generators are
    arguments of their own: within a tuple, Numba would look at everything in it at every call.
    """
    kind, memory, numbers = adversary  # taken out of their tuples once, not for every item
    counts, triggers, known, top, drawn = sites[:5]
    numerator, denominator, sampled = sites[6:9]
    pause = limits.items
    round_number, step = scale.round_number, scale.step
    output, items = _published_value(scale, sums), sums[ITEMS]
    changed = output != seen[SHOWN] or seen[CHANGED] != 0.0
    worst = max(seen[WORST], _error(output, items, scale.alpha))
    due = -1
    while due < 0 and items < pause:
        site = next_site(kind, memory, numbers, adversary_rng, output, changed, round_number, step)
        items += 1
        counts[site] += 1
        changed = False
        if counts[site] >= triggers[site]:
            sums[HEARD] += 1
            if sampled[site]:
                _draw(site, sites, rng, scale, sums)
            else:
                above = counts[site] * numerator[site] // denominator[site]
                sums[LOW] += counts[site] - known[site]
                sums[HIGH] += above - top[site]
                known[site], top[site], triggers[site] = counts[site], above, above + 1
            shown = _published_value(scale, sums)
            if shown >= limits.value or _due(drawn[site], limits, sums):
                due = site
            elif shown != output:
                worst = max(worst, _error(output, items - 1, scale.alpha))
                output, changed = shown, True
                worst = max(worst, _error(output, items, scale.alpha))
    last = items - 1 if due >= 0 else items
    sums[ITEMS] = items
    seen[SHOWN], seen[CHANGED] = output, changed
    seen[WORST] = max(worst, _error(output, last, scale.alpha))
    return due


class CompiledRun:
    """One run: the sites' true counts and triggers beside the server's tally."""

    def __init__(
        self,
        setting: Setting,
        engine: TalliedEngine,
        adversary: CompiledAdversary,
        rngs: Rngs,
        pace: Pace,
    ) -> None:
        if engine.tally.up > 1:
            setting.check_windows()
        self._setting, self._engine, self._pace = setting, engine, pace
        self._adversary, (self._adversary_rng, self._rng) = adversary, rngs
        self._counts, self._triggers = np.zeros((2, setting.sites), dtype=np.int64)
        self._seen = np.zeros(3)
        self._items = self._rounds = 0
        self._words = {"report": 0, "call": 0, "answer": 0, "rule": 0}

    def run(self) -> Run:
        """All items of the setting."""
        last = self._setting.items
        self._take_all(self._engine.opening())
        due = 0
        while due >= 0 or self._items < last:
            due = self._take_items(self._pace.pause(self._items, last))
            self._pace.note(self._items, last)
            if due >= 0:
                self._grant(self._engine.decide(due))
        return Run(self._words, float(self._seen[WORST]), self._rounds)

    def _take_items(self, pause: int) -> int:
        """Take items until the engine must decide, because of a site; -1 when it is to pause."""
        t, m = self._engine.tally, self._engine.tally.marks
        columns = (t.reported, t.top, t.drawn, t.reached, t.numerator, t.denominator, t.sampled)
        sites = Columns(self._counts, self._triggers, *columns)
        estimate = (t.weight, t.probability, t.block, t.last_counts)
        hidden = (t.hidden is not None, t.hidden or 0.0)
        scale = ReportScale(self._setting.alpha, *estimate, *hidden, self._rounds, t.step)
        limits = Limits(m.room, m.draws, m.heard, m.site_draws, m.value, t.up, t.down, pause)
        totals = [t.low, t.high, t.base, t.draws, t.heard, t.counted, t.reporters, self._items]
        sums = np.array(totals, dtype=np.int64)
        attack = (self._adversary, self._adversary_rng)
        due = int(take_items(*attack, sites, self._rng, scale, limits, sums, self._seen))
        self._words["report"] += int(sums[HEARD]) - t.heard
        t.low, t.high, t.base, t.draws, t.heard = (int(total) for total in sums[:COUNTED])
        t.counted, t.reporters, self._items = (int(total) for total in sums[COUNTED:])
        return due

    def _take_all(self, rule: Rule) -> None:
        """Every site takes the rule."""
        for site in range(self._setting.sites):
            self._take(site, rule)

    def _take(self, site: int, rule: Rule) -> int:
        """The site takes a rule and finds its next trigger; its count."""
        count = int(self._counts[site])
        at = SiteStanding(count, 0, count, count)
        self._triggers[site] = rule.after(at, self._rng.random)
        return count

    def _grant(self, wish: Wish) -> None:
        """Do as the server does."""
        match wish:
            case EndRound():
                self._call_round()
            case RuleChange(wider, narrower):
                for site, rule in wider.items():
                    self._words["rule"] += 1
                    self._take(site, rule)
                self._ask(narrower)

    def _ask(self, rules: Mapping[int, Rule]) -> None:
        for site, rule in rules.items():
            count = self._take(site, rule)
            self._words["rule"] += 1
            self._words["answer"] += 1
            self._grant(self._engine.hear(site, rule, count, 0, count))

    def _call_round(self) -> None:
        for kind in ("call", "answer"):
            self._words[kind] += self._setting.sites
        self._rounds += 1
        summoned = self._engine.summons()
        if summoned is not None:
            self._take_all(summoned)
        rule = self._engine.begin(self._counts.tolist())
        if rule is not None:
            self._words["rule"] += self._setting.sites
            self._take_all(rule)


def run_compiled(
    setting: Setting,
    engine: TalliedEngine,
    adversary: CompiledAdversary,
    rngs: Rngs,
    pace: Pace = UNWATCHED,
) -> Run:
    """Track all items of a setting, and keep the largest error there was at any time."""
    return CompiledRun(setting, engine, adversary, rngs, pace).run()
