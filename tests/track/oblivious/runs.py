"""Runs of the oblivious trackers for their tests."""

from collections.abc import Callable

from numpy.random import default_rng

from casemate.track.adversary.compiled import Compiled, Rngs, compiled
from casemate.track.setting import Run, Setting

Simulate = Callable[[Setting, Compiled, Rngs], Run]


def three(seed: int) -> Rngs:
    adversary, sites, server = default_rng(seed).spawn(3)
    return adversary, sites, server


def attacked(simulate: Simulate, setting: Setting, adversary: str, seed: int) -> list[float]:
    """The largest errors of 20 runs, over alpha."""
    return [
        simulate(setting, compiled(adversary, setting.sites), three(s)).max_error_over_alpha
        for s in range(seed, seed + 20)
    ]
