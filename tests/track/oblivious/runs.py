"""Runs of the oblivious trackers for their tests."""

from collections.abc import Callable

from numpy.random import default_rng

from casemate.track.adversary.compiled import CompiledAdversary, Rngs, named_adversary
from casemate.track.protocols.oblivious.doubling import Doubling
from casemate.track.setting import Run, Setting
from casemate.track.simulate.simulate import PlainRun

Simulate = Callable[[Setting, CompiledAdversary, Rngs], Run]
Make = Callable[[int, float, float], Doubling]
RUNS = 300


def three(seed: int) -> Rngs:
    adversary, sites, server = default_rng(seed).spawn(3)
    return adversary, sites, server


def attacked(simulate: Simulate, setting: Setting, adversary: str, seed: int) -> list[float]:
    """The largest errors of 20 runs, over alpha."""
    return [
        simulate(setting, named_adversary(adversary, setting.sites), three(s)).max_error_over_alpha
        for s in range(seed, seed + 20)
    ]


def wrong_at_the_end(make: Make, constant: float, seed: int) -> int:
    """How many of the runs over items that do not look are off by more than alpha at the end."""
    alpha, items, wrong = 0.1, 400, 0
    for rng in default_rng(seed).spawn(RUNS):
        run = PlainRun(4, make(4, alpha, constant), rng.random)
        for i in range(items):
            run.add(i % 4)
        wrong += abs(run.output - items) > alpha * items
    return wrong
