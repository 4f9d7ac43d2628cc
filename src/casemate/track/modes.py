"""The protocols by name, and what each of them promises."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from casemate.errors import Misconfigured
from casemate.track.engine import Engine
from casemate.track.instruction import Draw
from casemate.track.protocols.mixed.mixed import Sampled, allocated, automatic
from casemate.track.protocols.oblivious.block import block
from casemate.track.protocols.oblivious.huang_yi_zhang import huang_yi_zhang
from casemate.track.protocols.robust.tracker import Robust
from casemate.track.protocols.tuned.tracker import RobustTuned
from casemate.track.protocols.windows.windows import Windows, centred_rule, exact_rule, paper_rule
from casemate.track.setting import Setting

Make = Callable[[Setting, Draw], Engine]
SURE = "always"
MESSAGES = "with probability 1 - delta, whoever adapts to counts and messages"
COUNTS = "with probability 1 - delta, whoever adapts to counts"
BREAKS = "not against anybody who adapts"
_UNPREDICTABLE = random.SystemRandom().random  # or somebody could foresee the server's noise


@dataclass(frozen=True)
class Mode:
    """A protocol: how its engine is made, and when its count is within alpha."""

    name: str
    make: Make
    promise: str


def _windows(rule: Callable[[float], object], *, lower: bool = False) -> Make:
    def make(setting: Setting, _draw: Draw) -> Engine:
        return Windows(setting.sites, rule(setting.alpha), lower)  # type: ignore[arg-type] # one of the rules below

    return make


_MODES = (
    Mode("auto", lambda s, _: automatic(s.sites, s.alpha, s.delta, s.items), MESSAGES),
    Mode("deterministic", _windows(centred_rule), SURE),
    Mode("deterministic-paper", _windows(paper_rule, lower=True), SURE),
    Mode("allocated", lambda s, _: allocated(s.sites, s.alpha), SURE),
    Mode("sampled", lambda s, _: Sampled(s), MESSAGES),
    Mode("robust", lambda s, draw: Robust(s.sites, s.alpha, s.delta, s.items, draw), COUNTS),
    Mode("robust-tuned", lambda s, draw: RobustTuned(s.sites, s.alpha, s.delta, draw), COUNTS),
    Mode("exact", lambda s, _: Windows(s.sites, exact_rule()), SURE),
    Mode("huang-yi-zhang", lambda s, _: huang_yi_zhang(s.sites, s.alpha), BREAKS),
    Mode("block", lambda s, _: block(s.sites, s.alpha), BREAKS),
)
MODES = {mode.name: mode for mode in _MODES}
TRACKERS = tuple(name for name, mode in MODES.items() if mode.promise is not BREAKS)
"""Those that a tracker may run; the others are there to be attacked in simulations."""


def mode_named(name: str) -> Mode:
    """The protocol of this name."""
    if name not in MODES:
        raise Misconfigured(f"there is no mode {name!r}; choose one of {', '.join(MODES)}")
    return MODES[name]


def make_engine(mode: str, setting: Setting, draw: Draw = _UNPREDICTABLE) -> Engine:
    """A fresh engine of this protocol; `draw` is where its server takes noise from."""
    return mode_named(mode).make(setting, draw)


def tracker_engine(mode: str, setting: Setting) -> Engine:
    """An engine to track something real with: one that an adversary breaks is refused."""
    if mode_named(mode).promise is BREAKS:
        raise Misconfigured(
            f"mode {mode!r} is broken by anybody who adapts to the published count, so it is for "
            f"simulations only; choose one of {', '.join(TRACKERS)}"
        )
    return make_engine(mode, setting)
