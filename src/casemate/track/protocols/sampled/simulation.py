"""Simulated runs of sampled rounds: word for word those over the real sites and server.

Items, one after another, in a sampled round: the compiled loop.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.adversary.compiled import CompiledAdversary, Rngs, next_site
from casemate.track.instruction import gap
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.protocols.sampled.design import Round, RoundDesign, design
from casemate.track.setting import Run, Setting

BASE, HEARD, ITEMS, REPORTS, ROUNDS = range(5)  # places of `sums`
SHOWN, WORST, CHANGED = range(3)  # of `seen`

_gap: Any = compiled(gap)


@compiled
def begin(counts: Any, triggers: Any, probability: Any, rng: Any) -> None:
    """Every site finds the first item that it reports."""
    for site in range(len(counts)):
        draw = 0.0 if probability == 1.0 else rng.random()
        triggers[site] = counts[site] + _gap(draw, probability)


@compiled
def go_on(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any, sites: Any, sums: Any, seen: Any, limits: Any, rng: Any
) -> None:
    """Publish, then take items until the round has its reports or it shall pause."""
    kind, memory, fractions, adversary_rng = adversary
    counts, triggers = sites
    probability, alpha, last_report, pause = limits
    step = 0.0 if probability == 1.0 else 1.0 / probability
    base, heard, items, rounds = sums[BASE], sums[HEARD], sums[ITEMS], sums[ROUNDS]
    output, worst = base + heard / probability, seen[WORST]
    changed = output != seen[SHOWN] or seen[CHANGED] != 0.0
    while True:
        if items > 0:
            worst = max(worst, abs(output - items) / (alpha * items))
        if items == pause:
            break
        site = next_site(kind, memory, fractions, adversary_rng, output, changed, rounds, step)
        items += 1
        counts[site] += 1
        changed = counts[site] >= triggers[site]
        if changed:
            draw = 0.0 if probability == 1.0 else rng.random()
            triggers[site] += _gap(draw, probability)
            heard += 1
            if heard >= last_report:
                break
            output = base + heard / probability
    sums[REPORTS] += heard - sums[HEARD]
    sums[HEARD], sums[ITEMS] = heard, items
    seen[SHOWN], seen[WORST] = output, worst
    seen[CHANGED] = changed and heard < last_report  # the end of a round is yet to be published


# Simulation -------------------------------------------------------------------------------------


def simulate_sampled(
    setting: Setting, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """A run of sampled rounds; the items are compiled, the rounds are planned in between."""
    plan = design(setting.sites, setting.alpha, setting.delta, float(setting.items))
    return simulate_rounds(plan, setting.items, adversary, rngs, pace)


def simulate_rounds(
    plan: RoundDesign, items: int, adversary: CompiledAdversary, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """A run of this design, which may be meant for another horizon."""
    against = (adversary.kind, adversary.memory, adversary.numbers, rngs[0])
    sites = np.zeros(plan.sites, dtype=np.int64), np.zeros(plan.sites, dtype=np.int64)
    sums, seen = np.zeros(5, dtype=np.int64), np.zeros(3)
    probability, reports, spent = 1.0, plan.exact_until(0.0), 0.0
    begin(*sites, probability, rngs[1])
    while True:
        limits = (probability, plan.alpha, reports, pace.pause(int(sums[ITEMS]), items))
        go_on(against, sites, sums, seen, limits, rngs[1])
        pace.note(int(sums[ITEMS]), items)
        if sums[HEARD] >= reports:
            base, heard = int(sums[BASE]), int(sums[HEARD])
            least = plan.least(base, probability, heard, reports)
            probability = plan.probability(base + heard / probability, least, spent)
            begin(*sites, probability, rngs[1])
            sums[BASE], sums[HEARD] = sums[ITEMS], 0
            sums[ROUNDS] += 1
            now = _next_round(plan, int(sums[ITEMS]), probability, spent)
            reports, spent = now.reports, spent + now.failure
        elif sums[ITEMS] == items:
            return _result(plan.sites, sums, seen)


def _next_round(plan: RoundDesign, base: int, probability: float, spent: float) -> Round:
    if probability == 1.0:
        return Round(max(plan.exact_until(spent) - base, 1), 0.0)
    return plan.round(base, probability, spent)


def _result(sites: int, sums: NDArray[np.int64], seen: NDArray[np.float64]) -> Run:
    rounds = int(sums[ROUNDS])
    calls = rounds * sites
    words = {"report": int(sums[REPORTS]), "call": calls, "answer": calls, "rule": 0}
    return Run(words, float(seen[WORST]), rounds)
