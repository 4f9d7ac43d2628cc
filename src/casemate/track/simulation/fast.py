"""Compiled runs by the name of the protocol."""

from collections.abc import Callable

from casemate.track.adversary.compiled import Compiled, Rngs
from casemate.track.engines.mixed_simulation import (
    simulate_allocated,
    simulate_auto,
    simulate_deterministic,
    simulate_deterministic_paper,
    simulate_exact,
)
from casemate.track.modes import mode_named
from casemate.track.oblivious.block import simulate_block
from casemate.track.oblivious.huang_yi_zhang import simulate_huang_yi_zhang
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.robust.literal_simulation import simulate_robust
from casemate.track.robust.tuned_simulation import simulate_robust_tuned
from casemate.track.sampled.simulation import simulate_sampled
from casemate.track.setting import Run, Setting

FAST: dict[str, Callable[[Setting, Compiled, Rngs, Pace], Run]] = {
    "auto": simulate_auto,
    "deterministic": simulate_deterministic,
    "deterministic-paper": simulate_deterministic_paper,
    "allocated": simulate_allocated,
    "sampled": simulate_sampled,
    "robust": simulate_robust,
    "robust-tuned": simulate_robust_tuned,
    "exact": simulate_exact,
    "huang-yi-zhang": simulate_huang_yi_zhang,
    "block": simulate_block,
}


def fast_run(
    mode: str, setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """One compiled run of the protocol of this name."""
    return FAST[mode_named(mode).name](setting, adversary, rngs, pace)
