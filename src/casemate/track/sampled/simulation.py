"""Simulated runs of sampled rounds: word for word those over the real sites and server."""

import numpy as np
from numpy.typing import NDArray

from casemate.track.adversary.compiled import Compiled, Rngs
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.sampled import simulation_kernel as kernel
from casemate.track.sampled.design import Round, RoundDesign, design
from casemate.track.setting import Run, Setting


def simulate_sampled(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """A run of sampled rounds; the items are compiled, the rounds are planned in between."""
    plan = design(setting.sites, setting.alpha, setting.delta, float(setting.items))
    return simulate_rounds(plan, setting.items, adversary, rngs, pace)


def simulate_rounds(
    plan: RoundDesign, items: int, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """A run of this design, which may be meant for another horizon."""
    against = (adversary.kind, adversary.memory, adversary.numbers, rngs[0])
    sites = np.zeros(plan.sites, dtype=np.int64), np.zeros(plan.sites, dtype=np.int64)
    sums, seen = np.zeros(5, dtype=np.int64), np.zeros(3)
    probability, reports, spent = 1.0, plan.exact_until(0.0), 0.0
    kernel.begin(*sites, probability, rngs[1])
    while True:
        limits = (probability, plan.alpha, reports, pace.pause(int(sums[kernel.ITEMS]), items))
        kernel.go_on(against, sites, sums, seen, limits, rngs[1])
        pace.note(int(sums[kernel.ITEMS]), items)
        if sums[kernel.HEARD] >= reports:
            base, heard = int(sums[kernel.BASE]), int(sums[kernel.HEARD])
            least = plan.least(base, probability, heard, reports)
            probability = plan.probability(base + heard / probability, least, spent)
            kernel.begin(*sites, probability, rngs[1])
            sums[kernel.BASE], sums[kernel.HEARD] = sums[kernel.ITEMS], 0
            sums[kernel.ROUNDS] += 1
            now = _next_round(plan, int(sums[kernel.ITEMS]), probability, spent)
            reports, spent = now.reports, spent + now.failure
        elif sums[kernel.ITEMS] == items:
            return _result(plan.sites, sums, seen)


def _next_round(plan: RoundDesign, base: int, probability: float, spent: float) -> Round:
    if probability == 1.0:
        return Round(max(plan.exact_until(spent) - base, 1), 0.0)
    return plan.round(base, probability, spent)


def _result(sites: int, sums: NDArray[np.int64], seen: NDArray[np.float64]) -> Run:
    rounds = int(sums[kernel.ROUNDS])
    calls = rounds * sites
    words = {"report": int(sums[kernel.REPORTS]), "call": calls, "answer": calls, "rule": 0}
    return Run(words, float(seen[kernel.WORST]), rounds)
