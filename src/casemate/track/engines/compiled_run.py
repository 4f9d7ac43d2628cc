"""One compiled run: the sites' true counts and triggers beside the tally of an engine.

The loop over items is compiled; what is rare happens here, where the very engine of a real tracker
decides. So a run is equal, word for word, to one over `Site` and `Server` objects.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from casemate.track.adversary.compiled import Compiled, Rngs
from casemate.track.engine import Change, EndRound, Engine, Rules, Wish
from casemate.track.engines import mixed_kernel as kernel
from casemate.track.engines.tally import Tally
from casemate.track.instruction import Rule, Standing
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.setting import Run, Setting


class Tallied(Engine, Protocol):
    """An engine that keeps a tally and decides where a mark of it is reached."""

    tally: Tally

    def decide(self) -> Wish:
        """What it wants now that a mark is reached."""
        ...


class CompiledRun:
    """One run: the sites' true counts and triggers beside the server's tally."""

    def __init__(
        self,
        setting: Setting,
        adversary: Compiled,
        rngs: Rngs,
        tally: Tally,
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
        return Run(dict(self._words), float(self._seen[kernel.WORST]), self._rounds)

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
        due = kernel.go_on(
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
        self._words["report"] += int(sums[kernel.HEARD]) - t.heard
        t.low, t.high, t.base, t.draws, t.heard, self._items = map(int, sums)
        return bool(due)

    def take_all(self, rules: Rules) -> None:
        """Every site takes the rule, or its own of these."""
        for site in range(self._setting.sites):
            self.take(site, rules[site] if isinstance(rules, Sequence) else rules)

    def take(self, site: int, rule: Rule) -> int:
        """The site takes a rule and finds its next trigger; its count."""
        count = int(self._counts[site])
        at = Standing(count, 0, count, count)
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
    setting: Setting, engine: Tallied, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """A run of an engine with a tally."""
    run = CompiledRun(setting, adversary, rngs, engine.tally, pace)
    run.take_all(engine.opening())
    while run.go_on():
        run.grant(engine, engine.decide())
    return run.result()
