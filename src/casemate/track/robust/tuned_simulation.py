"""Simulated runs of the tuned robust tracker.

The loop over items is compiled; where a phase ends, the very engine of a real tracker decides. So a
run is equal, word for word, to one over `Site` and `Server` objects.
"""

import numpy as np

from casemate.track.adversary.compiled import Compiled, Rngs
from casemate.track.engine import Change, EndRound, Wish
from casemate.track.engines.windows import centred_rule
from casemate.track.instruction import Blocks, Growth, Rule, Standing, step_of
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.robust import tuned_kernel as kernel
from casemate.track.robust.tuned import RobustTuned, TunedRound
from casemate.track.setting import Run, Setting


def simulate_robust_tuned(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Track all items of a setting."""
    run = _Simulation(setting, adversary, rngs)
    more = True
    while more:
        more = run.go_on(pace.pause(run.items, setting.items)) or run.items < setting.items
        pace.note(run.items, setting.items)
    return run.result()


class _Simulation:
    """The sites' true counts and triggers, beside the engine."""

    def __init__(self, setting: Setting, adversary: Compiled, rngs: Rngs) -> None:
        setting.check_windows()
        self._adversary = (adversary.kind, adversary.memory, adversary.numbers, rngs[0])
        self._sites, self._rng = setting.sites, rngs[1]
        self._engine = RobustTuned(setting.sites, setting.alpha, setting.delta, rngs[2].random)
        rule = centred_rule(setting.alpha)
        self._window = np.array([rule.numerator, rule.denominator], dtype=np.int64)
        self._counts, self._triggers, self._known = np.zeros((3, setting.sites), dtype=np.int64)
        self._whole = np.zeros(4, dtype=np.int64)
        self._seen = np.array([0.0, 0.0, 0.0, setting.alpha, 0.0])
        self._words = {"report": 0, "call": 0, "answer": 0, "rule": 0}
        self._all_take(rule)

    def result(self) -> Run:
        """What has come of it."""
        words = {**self._words, "report": int(self._whole[kernel.REPORTS])}
        rounds = int(self._whole[kernel.ROUND])
        return Run(words, float(self._seen[kernel.WORST]), rounds)

    @property
    def items(self) -> int:
        """How many have come."""
        return int(self._whole[kernel.ITEMS])

    def go_on(self, pause: int) -> bool:
        """Take items until the engine has decided something; False when it is time to pause."""
        self._whole[kernel.PAUSE] = pause
        tracked = self._engine.round
        site = self._windows() if tracked is None else self._phase(tracked)
        if site < 0:
            return False
        self._whole[kernel.REPORTS] += 1
        value = self._engine.estimate().value
        self._seen[kernel.CHANGED] = float(value != self._seen[kernel.OUTPUT])
        self._seen[kernel.OUTPUT] = value
        return True

    def _windows(self) -> int:
        """Windows, until a report makes them give way to rounds."""
        sites = (self._counts, self._triggers, self._known, self._window, self._engine.start)
        site = int(kernel.windows(self._adversary, *sites, self._whole, self._seen))
        if site >= 0:
            self._engine.windows.begin(self._known.tolist())
            rule, count = Growth(*self._window.tolist()), int(self._counts[site])
            self._grant(self._engine.hear(site, rule, 0, 1, count))
        return site

    def _phase(self, tracked: TunedRound) -> int:
        """A phase, or the rest of one, until the report that ends it."""
        sites = (self._counts, self._triggers, tracked.begun, tracked.reports)
        left = tracked.length - tracked.heard
        public = (float(tracked.size), left, self._whole, self._seen)
        before = int(self._whole[kernel.REPORTS])
        site = int(kernel.blocks(self._adversary, *sites, *public, self._rng))
        tracked.heard += int(self._whole[kernel.REPORTS]) - before
        if site >= 0:
            rule, begun = Blocks(float(tracked.size)), int(tracked.begun[site])
            reports, count = int(tracked.reports[site]) + 1, int(self._counts[site])
            rule.after(Standing(begun, reports, count, count), self._rng.random)  # a site draws
            self._grant(self._engine.hear(site, rule, begun, reports, count))
        return site

    def _grant(self, wish: Wish) -> None:
        """Do as the server does."""
        match wish:
            case EndRound():
                self._call_round()
            case Change(_, narrower):
                for site, rule in narrower.items():
                    self._words["rule"] += 1
                    self._words["answer"] += 1
                    count = self._take(site, rule)
                    self._grant(self._engine.hear(site, rule, count, 0, count))

    def _call_round(self) -> None:
        rules = self._engine.summons()
        self._all_take(rules)
        self._words["call"] += self._sites
        self._words["answer"] += self._sites
        self._whole[kernel.ROUND] += 1
        self._seen[kernel.STEP] = step_of(rules)
        self._engine.begin(self._counts.tolist())

    def _all_take(self, rule: Rule) -> None:
        for site in range(self._sites):
            self._take(site, rule)

    def _take(self, site: int, rule: Rule) -> int:
        """The site takes a rule at its count, and finds its next trigger."""
        count = int(self._counts[site])
        at = Standing(count, 0, count, count)
        self._triggers[site] = rule.after(at, self._rng.random)
        return count
