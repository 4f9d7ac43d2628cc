"""One compiled run of any protocol: the sites' true counts and triggers beside the server's tally.

The loop over items is compiled: it keeps the columns and sums of a `SiteTally` as engines do, and
comes back to Python where a mark is reached or it shall pause. What is rare happens there, where
the very engine of a real tracker decides. So a run is equal, word for word and error for error, to
one over `Site` and `Server` objects.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.engine import Change, EndRound, Rules, TalliedEngine, Wish
from casemate.track.instruction import Rule, SiteStanding, gap
from casemate.track.setting import Run, Setting
from casemate.track.simulate.adversary import CompiledAdversary, Rngs, next_site
from casemate.track.simulate.pace import UNWATCHED, Pace

LOW, HIGH, BASE, DRAWS, HEARD, COUNTED, REPORTERS, ITEMS = range(8)  # places of `sums`
SHOWN, WORST, CHANGED = range(3)  # of `seen`

Whole = NDArray[np.int64]
_gap: Any = compiled(gap)


class SeededAdversary(NamedTuple):
    """An adversary and its randomness."""

    kind: int
    memory: Whole
    numbers: NDArray[np.float64]
    rng: Generator


class Columns(NamedTuple):
    """What is known of each site, here and at the server."""

    counts: Whole
    triggers: Whole
    known: Whole
    top: Whole
    drawn: Whole
    reached: Whole
    numerator: Whole
    denominator: Whole
    sampled: NDArray[np.bool_]
    rng: Generator


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
def _published(scale: Any, sums: Any) -> Any:
    """What `SiteTally.value` says."""
    if scale.hides:
        return scale.hidden
    windows = sums[LOW] + (sums[HIGH] - sums[LOW]) * scale.weight
    if scale.last_counts:
        return windows + (sums[BASE] + sums[COUNTED] + sums[REPORTERS] / scale.probability)
    if scale.block > 0.0:
        return windows + (sums[BASE] + sums[DRAWS] * scale.block)
    return windows + (sums[BASE] + sums[DRAWS] / scale.probability)


@compiled
def _draw(site: Any, sites: Any, scale: Any, sums: Any) -> None:
    """Take the report of a sampled site whose count reached its trigger, and set its next one."""
    count, known = sites.counts[site], sites.known[site]
    while count >= sites.triggers[site]:
        sites.drawn[site] += 1
        sums[DRAWS] += 1
        if scale.block > 0.0:
            offset = (sites.drawn[site] + 1 - sites.rng.random()) * scale.block
            sites.triggers[site] = known + math.ceil(offset)
        else:
            sites.triggers[site] += _gap(sites.rng.random(), scale.probability)
    if scale.last_counts:
        sums[REPORTERS] += sites.reached[site] == 0
        sums[COUNTED] += count - known - max(sites.reached[site], 1)
        sites.reached[site] = count - known


@compiled
def _due(drawn: Any, limits: Any, sums: Any) -> Any:
    """What `SiteTally.due` says of a site that was drawn so often, but for the value."""
    if sums[DRAWS] >= limits.draws or sums[HEARD] >= limits.heard:
        return True
    excess = limits.down * sums[HIGH] - limits.up * sums[LOW] > limits.room
    return excess or drawn >= limits.site_draws


@compiled
def _error(output: Any, items: Any, alpha: Any) -> Any:
    return abs(output - items) / (alpha * items) if items > 0 else 0.0


@compiled
def take_items(  # noqa: PLR0917 - compiled code takes no keyword arguments
    attack: Any, sites: Any, scale: Any, limits: Any, sums: Any, seen: Any
) -> Any:
    """Publish, then take items until one reaches a mark, or it shall pause: its site, or -1.

    What is shown errs most at the first or the last item while it is shown.
    """
    kind, memory, numbers, rng = attack  # taken out of their tuples once, not for every item
    counts, triggers, known, top, drawn = sites[:5]
    numerator, denominator, sampled = sites[6:9]
    pause = limits.items
    round_number, step = scale.round_number, scale.step
    output, items = _published(scale, sums), sums[ITEMS]
    changed = output != seen[SHOWN] or seen[CHANGED] != 0.0
    worst = max(seen[WORST], _error(output, items, scale.alpha))
    due = -1
    while due < 0 and items < pause:
        site = next_site(kind, memory, numbers, rng, output, changed, round_number, step)
        items += 1
        counts[site] += 1
        changed = False
        if counts[site] >= triggers[site]:
            sums[HEARD] += 1
            if sampled[site]:
                _draw(site, sites, scale, sums)
            else:
                above = counts[site] * numerator[site] // denominator[site]
                sums[LOW] += counts[site] - known[site]
                sums[HIGH] += above - top[site]
                known[site], top[site], triggers[site] = counts[site], above, above + 1
            shown = _published(scale, sums)
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
        self._rng = rngs[1]
        self._attack = SeededAdversary(adversary.kind, adversary.memory, adversary.numbers, rngs[0])
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
        columns = (t.known, t.top, t.drawn, t.reached, t.numerator, t.denominator, t.sampled)
        sites = Columns(self._counts, self._triggers, *columns, self._rng)
        estimate = (t.weight, t.probability, t.block, t.last_counts)
        hidden = (t.hidden is not None, t.hidden or 0.0)
        scale = ReportScale(self._setting.alpha, *estimate, *hidden, self._rounds, t.step)
        limits = Limits(m.room, m.draws, m.heard, m.site_draws, m.value, t.up, t.down, pause)
        known = [t.low, t.high, t.base, t.draws, t.heard, t.counted, t.reporters, self._items]
        sums = np.array(known, dtype=np.int64)
        due = int(take_items(self._attack, sites, scale, limits, sums, self._seen))
        self._words["report"] += int(sums[HEARD]) - t.heard
        t.low, t.high, t.base, t.draws, t.heard = (int(each) for each in sums[:COUNTED])
        t.counted, t.reporters, self._items = (int(each) for each in sums[COUNTED:])
        return due

    def _take_all(self, rules: Rules) -> None:
        """Every site takes the rule, or its own of these."""
        for site in range(self._setting.sites):
            self._take(site, rules[site] if isinstance(rules, Sequence) else rules)

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
            case Change(wider, narrower):
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
        rules = self._engine.begin(self._counts.tolist())
        if rules is not None:
            self._words["rule"] += self._setting.sites
            self._take_all(rules)


def run_compiled(
    setting: Setting,
    engine: TalliedEngine,
    adversary: CompiledAdversary,
    rngs: Rngs,
    pace: Pace = UNWATCHED,
) -> Run:
    """Track all items of a setting, and keep the largest error there was at any time."""
    return CompiledRun(setting, engine, adversary, rngs, pace).run()
