"""Simulated runs of the tuned robust tracker.

The loop over items is compiled; where a phase ends, the very engine of a real tracker decides. So a
run is equal, word for word, to one over `Site` and `Server` objects.

Items, one after another, until the tuned tracker must decide something or shall pause.
"""

import math
from typing import Any

import numpy as np

from casemate.compiled import compiled
from casemate.track.adversary.compiled import CompiledAdversary, Rngs, next_site
from casemate.track.engine import Change, EndRound, Wish
from casemate.track.instruction import Blocks, Growth, Rule, SiteStanding, step_of
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.protocols.tuned.tracker import RobustTuned, TunedRound
from casemate.track.protocols.windows.windows import centred_rule
from casemate.track.setting import Run, Setting

PAUSE, ITEMS, ROUND, REPORTS = range(4)  # places of `whole`
OUTPUT, CHANGED, WORST, ALPHA, STEP = range(5)  # of `seen`


@compiled
def _next(adversary: Any, whole: Any, seen: Any) -> Any:
    """Measure the error after the last item, and the site of the next; -1 to pause."""
    items = whole[ITEMS]
    if items > 0:
        error = abs(seen[OUTPUT] - items) / (seen[ALPHA] * items)
        seen[WORST] = max(seen[WORST], error)
    if items == whole[PAUSE]:
        return -1
    kind, memory, numbers, rng = adversary
    changed = seen[CHANGED] != 0.0
    return next_site(kind, memory, numbers, rng, seen[OUTPUT], changed, whole[ROUND], seen[STEP])


@compiled
def windows(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any,
    counts: Any,
    triggers: Any,
    known: Any,
    rule: Any,
    start: Any,
    whole: Any,
    seen: Any,
) -> Any:
    """Windows until a report takes the count to `start`: its site, not yet heard; or -1."""
    numerator, denominator = rule
    weight = denominator / (numerator + denominator)
    low, high = 0, 0
    for count in known:
        low += count
        high += count * numerator // denominator
    while True:
        site = _next(adversary, whole, seen)
        if site < 0:
            return -1
        whole[ITEMS] += 1
        counts[site] += 1
        seen[CHANGED] = 0.0
        count = counts[site]
        if count >= triggers[site]:
            top = count * numerator // denominator
            now_low = low + count - known[site]
            now_high = high + top - known[site] * numerator // denominator
            value = now_low + (now_high - now_low) * weight
            if value >= start:
                return site
            whole[REPORTS] += 1
            low, high, known[site], triggers[site] = now_low, now_high, count, top + 1
            seen[CHANGED] = 1.0 if value != seen[OUTPUT] else 0.0
            seen[OUTPUT] = value


@compiled
def blocks(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any,
    counts: Any,
    triggers: Any,
    begun: Any,
    reports: Any,
    size: Any,
    left: Any,
    whole: Any,
    seen: Any,
    rng: Any,
) -> Any:
    """A phase until the report that ends it, the `left`-th: its site, not yet heard; or -1."""
    while True:
        site = _next(adversary, whole, seen)
        if site < 0:
            return -1
        whole[ITEMS] += 1
        counts[site] += 1
        seen[CHANGED] = 0.0
        if counts[site] >= triggers[site]:
            if left == 1:
                return site
            left -= 1
            whole[REPORTS] += 1
            reports[site] += 1
            offset = math.ceil((reports[site] + 1 - rng.random()) * size)
            triggers[site] = begun[site] + int(offset)


# Tuned simulation -------------------------------------------------------------------------------


def simulate_robust_tuned(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Track all items of a setting."""
    run = _TunedSimulation(setting, adversary, rngs)
    more = True
    while more:
        more = run.go_on(pace.pause(run.items, setting.items)) or run.items < setting.items
        pace.note(run.items, setting.items)
    return run.result()


class _TunedSimulation:
    """The sites' true counts and triggers, beside the engine."""

    def __init__(self, setting: Setting, adversary: CompiledAdversary, rngs: Rngs) -> None:
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
        words = {**self._words, "report": int(self._whole[REPORTS])}
        rounds = int(self._whole[ROUND])
        return Run(words, float(self._seen[WORST]), rounds)

    @property
    def items(self) -> int:
        """How many have come."""
        return int(self._whole[ITEMS])

    def go_on(self, pause: int) -> bool:
        """Take items until the engine has decided something; False when it is time to pause."""
        self._whole[PAUSE] = pause
        tracked = self._engine.round
        site = self._windows() if tracked is None else self._phase(tracked)
        if site < 0:
            return False
        self._whole[REPORTS] += 1
        value = self._engine.estimate().value
        self._seen[CHANGED] = float(value != self._seen[OUTPUT])
        self._seen[OUTPUT] = value
        return True

    def _windows(self) -> int:
        """Windows, until a report makes them give way to rounds."""
        sites = (self._counts, self._triggers, self._known, self._window, self._engine.start)
        site = int(windows(self._adversary, *sites, self._whole, self._seen))
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
        before = int(self._whole[REPORTS])
        site = int(blocks(self._adversary, *sites, *public, self._rng))
        tracked.heard += int(self._whole[REPORTS]) - before
        if site >= 0:
            rule, begun = Blocks(float(tracked.size)), int(tracked.begun[site])
            reports, count = int(tracked.reports[site]) + 1, int(self._counts[site])
            rule.after(SiteStanding(begun, reports, count, count), self._rng.random)  # a site draws
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
        self._whole[ROUND] += 1
        self._seen[STEP] = step_of(rules)
        self._engine.begin(self._counts.tolist())

    def _all_take(self, rule: Rule) -> None:
        for site in range(self._sites):
            self._take(site, rule)

    def _take(self, site: int, rule: Rule) -> int:
        """The site takes a rule at its count, and finds its next trigger."""
        count = int(self._counts[site])
        at = SiteStanding(count, 0, count, count)
        self._triggers[site] = rule.after(at, self._rng.random)
        return count
