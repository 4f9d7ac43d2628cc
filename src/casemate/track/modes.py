"""The protocols, listed once: how each is made, what it promises, and what it will cost."""

from collections.abc import Callable
from dataclasses import dataclass

from casemate.errors import Misconfigured
from casemate.track.engine import TalliedEngine
from casemate.track.protocols import doubling, robust, robust_theorem, sampled, tuned
from casemate.track.protocols.mixed import allocated_tracker, automatic_tracker
from casemate.track.protocols.windows import (
    Windows,
    centred_rule,
    centred_windows,
    even_load_words,
    paper_rule,
)
from casemate.track.reporting_rule import UNPREDICTABLE, Draw, Every
from casemate.track.setting import Setting

SURE = "always"
MESSAGES = "with probability 1 - delta, whoever adapts to counts and messages"
COUNTS = "with probability 1 - delta, whoever adapts to counts"
BREAKS = "not against anybody who adapts"
NOT_PROVED = "not proved for these numbers"

Words = Callable[[Setting], float]
"""The words until all items have come, evenly, to the sites."""


@dataclass(frozen=True)
class Mode:
    """A protocol: how its engine is made, when its count is within alpha, and what it costs."""

    name: str
    make: Callable[[Setting, Draw], TalliedEngine]  # its server takes noise from the draws
    promise: str
    words: Words
    drawn: bool = False  # whether its words are drawn as a curve
    proved: Callable[[Setting], bool] = lambda _: True  # whether the promise is, for these numbers

    def promise_for(self, setting: Setting) -> str:
        """When its count is within alpha, for these numbers."""
        return self.promise if self.proved(setting) else NOT_PROVED


def windows_words(s: Setting) -> float:
    """The reports of centred windows.

    >>> round(windows_words(Setting(1024, 0.01)), -3)
    417000.0
    """
    return even_load_words(centred_rule(s.alpha), s.sites, int(s.items))


def paper_words(s: Setting) -> float:
    """The reports of the windows of source document 001.

    >>> round(paper_words(Setting(1024, 0.01)), -3)
    767000.0
    """
    return even_load_words(paper_rule(s.alpha), s.sites, int(s.items))


def auto_words(s: Setting) -> float:
    """The cheaper of windows and sampling for all; skewed loads cost less."""
    return min(windows_words(s), sampled.predicted_words(s))


_MODES = (
    Mode(
        "auto",
        lambda s, _: automatic_tracker(s.sites, s.alpha, s.delta, s.items),
        MESSAGES,
        auto_words,
        drawn=True,
    ),
    Mode(
        "deterministic",
        lambda s, _: centred_windows(s.sites, s.alpha),
        SURE,
        windows_words,
        drawn=True,
    ),
    Mode(
        "deterministic-paper", lambda s, _: Windows(s.sites, paper_rule(s.alpha)), SURE, paper_words
    ),
    Mode("allocated", lambda s, _: allocated_tracker(s.sites, s.alpha), SURE, windows_words),
    Mode("sampled", sampled.make, MESSAGES, sampled.predicted_words, drawn=True),
    Mode(
        "robust",
        robust.Robust,
        COUNTS,
        robust_theorem.predicted_words,
        drawn=True,
        proved=robust_theorem.is_proved,
    ),
    Mode(
        "robust-tuned",
        lambda s, draw: tuned.RobustTuned(s.sites, s.alpha, s.delta, draw),
        COUNTS,
        tuned.predicted_words,
        drawn=True,
    ),
    Mode("exact", lambda s, _: Windows(s.sites, Every()), SURE, lambda s: float(s.items)),
    Mode(
        "huang-yi-zhang",
        lambda s, _: doubling.huang_yi_zhang(s.sites, s.alpha),
        BREAKS,
        doubling.huang_yi_zhang_words,
    ),
    Mode("block", lambda s, _: doubling.block(s.sites, s.alpha), BREAKS, doubling.block_words),
)
MODES = {mode.name: mode for mode in _MODES}
TRACKERS = tuple(name for name, mode in MODES.items() if mode.promise is not BREAKS)
"""Those that a tracker may run; the others are there to be attacked in simulations."""


def mode_named(name: str) -> Mode:
    """The protocol of this name."""
    if name not in MODES:
        raise Misconfigured(f"there is no mode {name!r}; choose one of {', '.join(MODES)}")
    return MODES[name]


def make_engine(mode: str, setting: Setting, draw: Draw = UNPREDICTABLE) -> TalliedEngine:
    """A fresh engine of this protocol; `draw` is where its server takes noise from."""
    return mode_named(mode).make(setting, draw)


def tracker_engine(mode: str, setting: Setting) -> TalliedEngine:
    """An engine to track something real with: one that an adversary breaks is refused."""
    if mode_named(mode).promise is BREAKS:
        raise Misconfigured(
            f"mode {mode!r} is broken by anybody who adapts to the published count, so it is for "
            f"simulations only; choose one of {', '.join(TRACKERS)}"
        )
    return make_engine(mode, setting)


# Predictions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordsForecast:
    """The words of one protocol until the horizon, when loads are even."""

    setting: Setting
    mode: str
    words: float
    promise: str  # when its count is within alpha


def plan(
    sites: int, alpha: float, delta: float = 0.01, horizon: int = 10**8
) -> list[WordsForecast]:
    """Predict the words of every protocol for items that come evenly, the cheapest first.

    >>> [each.mode for each in plan(4096, 0.01)][:3]
    ['block', 'huang-yi-zhang', 'auto']
    """
    s = Setting(sites, alpha, delta, horizon)
    found = [WordsForecast(s, m.name, m.words(s), m.promise_for(s)) for m in _MODES]
    return sorted(found, key=lambda each: each.words)
