"""Simulated runs of every tracker that keeps windows, samples, or does both.

Items, one after another, against sites with windows and sampled sites: the compiled loop.

It keeps the columns and sums of a `Tally` as the plain engines do, measures the error after every
item, and comes back to Python where a mark is reached or it shall pause.

One compiled run: the sites' true counts and triggers beside the tally of an engine.

The loop over items is compiled; what is rare happens here, where the very engine of a real tracker
decides. So a run is equal, word for word, to one over `Site` and `Server` objects.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from casemate.compiled import compiled
from casemate.track.adversary.compiled import CompiledAdversary, Rngs, next_site
from casemate.track.engine import Change, EndRound, Engine, Rules, Wish
from casemate.track.instruction import ONE, Rule, SiteStanding, gap
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.protocols.mixed.mixed import allocated, automatic
from casemate.track.protocols.windows.tally import WindowTally
from casemate.track.protocols.windows.windows import (
    centred_rule,
    exact_rule,
    fixed,
    paper_rule,
    weight_of_top,
)
from casemate.track.setting import Run, Setting

LOW, HIGH, BASE, DRAWS, HEARD, ITEMS = range(6)  # places of `sums`
ROOM, DRAWS_MARK, HEARD_MARK, PAUSE = range(4)  # of `marks`
UP, DOWN = range(2)  # of `bounds`
WEIGHT, PROBABILITY, ALPHA, VALUE_MARK, STEP, ROUND = range(6)  # of `numbers`
SHOWN, WORST, CHANGED = range(3)  # of `seen`

_gap = compiled(gap)


@compiled
def _published(sums: Any, numbers: Any) -> Any:
    windows = sums[LOW] + (sums[HIGH] - sums[LOW]) * numbers[WEIGHT]
    return windows + (sums[BASE] + sums[DRAWS] / numbers[PROBABILITY])


@compiled
def _report(  # noqa: PLR0917 - compiled code takes no keyword arguments
    site: Any, sites: Any, sampled: Any, sums: Any, probability: Any, rng: Any
) -> None:
    """Take the report of a site whose count reached its trigger, and set its next one."""
    counts, triggers, known, top, drawn, numerator, denominator = sites
    sums[HEARD] += 1
    count = counts[site]
    if sampled[site]:
        drawn[site] += 1
        sums[DRAWS] += 1
        triggers[site] += _gap(rng.random(), probability)
        return
    above = count * numerator[site] // denominator[site]
    sums[LOW] += count - known[site]
    sums[HIGH] += above - top[site]
    known[site] = count
    top[site] = above
    triggers[site] = above + 1


@compiled
def _due(sums: Any, marks: Any, bounds: Any) -> Any:
    if sums[DRAWS] >= marks[DRAWS_MARK] or sums[HEARD] >= marks[HEARD_MARK]:
        return True
    return bounds[DOWN] * sums[HIGH] - bounds[UP] * sums[LOW] > marks[ROOM]


@compiled
def go_on(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any,
    sites: Any,
    sampled: Any,
    sums: Any,
    marks: Any,
    bounds: Any,
    numbers: Any,
    seen: Any,
    rng: Any,
) -> Any:
    """Publish, then take items until a mark is reached (True) or it shall pause (False)."""
    kind, memory, fractions, adversary_rng = adversary
    counts, triggers = sites[0], sites[1]
    output, worst, items = seen[SHOWN], seen[WORST], sums[ITEMS]
    pause, alpha = marks[PAUSE], numbers[ALPHA]
    shown = _published(sums, numbers)
    changed = shown != output or seen[CHANGED] != 0.0
    output = shown
    due = False
    while not due:
        if items > 0:
            error = abs(output - items) / (alpha * items)
            worst = max(worst, error)
        if items == pause:
            break
        site = next_site(
            kind,
            memory,
            fractions,
            adversary_rng,
            output,
            changed,
            int(numbers[ROUND]),
            numbers[STEP],
        )
        items += 1
        counts[site] += 1
        changed = False
        if counts[site] >= triggers[site]:
            _report(site, sites, sampled, sums, numbers[PROBABILITY], rng)
            shown = _published(sums, numbers)
            due = shown >= numbers[VALUE_MARK] or _due(sums, marks, bounds)
            if not due:
                changed = shown != output
                output = shown
    sums[ITEMS] = items
    seen[SHOWN], seen[WORST], seen[CHANGED] = output, worst, changed
    return due


# Compiled run -----------------------------------------------------------------------------------


class Tallied(Engine, Protocol):
    """An engine that keeps a tally and decides where a mark of it is reached."""

    tally: WindowTally

    def decide(self) -> Wish:
        """What it wants now that a mark is reached."""
        ...


class CompiledRun:
    """One run: the sites' true counts and triggers beside the server's tally."""

    def __init__(
        self,
        setting: Setting,
        adversary: CompiledAdversary,
        rngs: Rngs,
        tally: WindowTally,
        pace: Pace = UNWATCHED,
    ) -> None:
        setting.check_windows()
        self._setting, self._tally, self._pace = setting, tally, pace
        self._site_rng = rngs[1]
        self._adversary = (adversary.kind, adversary.memory, adversary.numbers, rngs[0])
        self._counts = np.zeros(setting.sites, dtype=np.int64)
        self._triggers = np.zeros(setting.sites, dtype=np.int64)
        self._seen = np.zeros(3)
        self._items = self._rounds = 0
        self._words = {"report": 0, "call": 0, "answer": 0, "rule": 0}

    def result(self) -> Run:
        """What has come of it."""
        return Run(dict(self._words), float(self._seen[WORST]), self._rounds)

    def go_on(self) -> bool:
        """Take items until the engine must decide; False when all have come."""
        last = self._setting.items
        while True:
            due = self._take_items(self._pace.pause(self._items, last))
            self._pace.note(self._items, last)
            if due or self._items == last:
                return due

    def _take_items(self, pause: int) -> bool:
        """Take items until the engine must decide; False when it is time to pause."""
        t = self._tally
        sites = (self._counts, self._triggers, t.known, t.top, t.drawn)
        sums = np.array([t.low, t.high, t.base, t.draws, t.heard, self._items])
        m = t.marks
        marks = np.array([m.room, m.draws, m.heard, pause])
        step = 1.0 / t.probability if t.sampled.any() else 0.0
        numbers = [t.weight, t.probability, self._setting.alpha, m.value, step, self._rounds]
        due = go_on(
            self._adversary,
            (*sites, t.numerator, t.denominator),
            t.sampled,
            sums,
            marks,
            np.array([t.up, t.down]),
            np.array(numbers, dtype=np.float64),
            self._seen,
            self._site_rng,
        )
        self._words["report"] += int(sums[HEARD]) - t.heard
        t.low, t.high, t.base, t.draws, t.heard, self._items = map(int, sums)
        return bool(due)

    def take_all(self, rules: Rules) -> None:
        """Every site takes the rule, or its own of these."""
        for site in range(self._setting.sites):
            self.take(site, rules[site] if isinstance(rules, Sequence) else rules)

    def take(self, site: int, rule: Rule) -> int:
        """The site takes a rule and finds its next trigger; its count."""
        count = int(self._counts[site])
        at = SiteStanding(count, 0, count, count)
        self._triggers[site] = rule.after(at, self._site_rng.random)
        return count

    def grant(self, engine: Engine, wish: Wish) -> None:
        """Do as the server does."""
        match wish:
            case EndRound():
                self._call_round(engine)
            case Change(wider, narrower):
                for site, rule in wider.items():
                    self._words["rule"] += 1
                    self.take(site, rule)
                self._ask(engine, narrower)

    def _ask(self, engine: Engine, rules: Mapping[int, Rule]) -> None:
        for site, rule in rules.items():
            count = self.take(site, rule)
            self._words["rule"] += 1
            self._words["answer"] += 1
            self.grant(engine, engine.hear(site, rule, count, 0, count))

    def _call_round(self, engine: Engine) -> None:
        rules = engine.summons()
        if rules is None:
            raise ValueError("an engine with a tally sends its rules with the call")
        self.take_all(rules)
        self._words["call"] += self._setting.sites
        self._words["answer"] += self._setting.sites
        self._rounds += 1
        engine.begin(self._counts.tolist())


def simulate_tallied(
    setting: Setting,
    engine: Tallied,
    adversary: CompiledAdversary,
    rngs: Rngs,
    pace: Pace = UNWATCHED,
) -> Run:
    """A run of an engine with a tally."""
    run = CompiledRun(setting, adversary, rngs, engine.tally, pace)
    run.take_all(engine.opening())
    while run.go_on():
        run.grant(engine, engine.decide())
    return run.result()


# Mixed simulation -------------------------------------------------------------------------------


def _simulate_windows(
    setting: Setting,
    rule: Rule,
    weight: float,
    adversary: CompiledAdversary,
    rngs: Rngs,
    *,
    pace: Pace,
) -> Run:
    """Every site keeps one rule for ever, so nothing is ever decided."""
    a = fixed(setting.alpha)
    tally = WindowTally(setting.sites, ONE + a, ONE - a, weight)
    run = CompiledRun(setting, adversary, rngs, tally, pace)
    for site in range(setting.sites):
        tally.follow(site, rule)
    run.take_all(rule)
    run.go_on()
    return run.result()


def simulate_exact(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Every item is reported."""
    return _simulate_windows(setting, exact_rule(), 0.0, adversary, rngs, pace=pace)


def simulate_deterministic(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """The centred windows."""
    rule, weight = centred_rule(setting.alpha), weight_of_top(setting.alpha)
    return _simulate_windows(setting, rule, weight, adversary, rngs, pace=pace)


def simulate_deterministic_paper(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """The windows of source document 001, whose lower ends are published."""
    rule = paper_rule(setting.alpha)
    return _simulate_windows(setting, rule, 0.0, adversary, rngs, pace=pace)


def simulate_allocated(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Windows as wide as loads ask for."""
    engine = allocated(setting.sites, setting.alpha)
    return simulate_tallied(setting, engine, adversary, rngs, pace)


def simulate_auto(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Whatever is cheapest for the loads seen."""
    engine = automatic(setting.sites, setting.alpha, setting.delta, setting.items)
    return simulate_tallied(setting, engine, adversary, rngs, pace)
