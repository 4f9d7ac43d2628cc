"""What each protocol is predicted to cost, before anything is deployed."""

from dataclasses import dataclass

from casemate.track.modes import MODES
from casemate.track.protocols.mixed import plan as prediction
from casemate.track.protocols.oblivious import block, huang_yi_zhang
from casemate.track.protocols.robust import theorem
from casemate.track.protocols.robust.theorem import accuracy
from casemate.track.protocols.sampled import design
from casemate.track.protocols.tuned import design as tuned_plan
from casemate.track.setting import Setting


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
    setting = Setting(sites, alpha, delta, horizon)
    words = _words(setting)
    found = [WordsForecast(setting, mode, words[mode], _promise(mode, setting)) for mode in MODES]
    return sorted(found, key=lambda each: each.words)


def _promise(mode: str, setting: Setting) -> str:
    """What is promised; the proof of the source's robust tracker does not reach all numbers."""
    if mode == "robust" and not accuracy(theorem.constants(setting)).proved:
        return "not proved for these numbers"
    return MODES[mode].promise


def _words(s: Setting) -> dict[str, float]:
    given = (s.sites, s.alpha, s.delta, s.items)
    windows = prediction.predicted_deterministic(*given)
    return {
        "exact": prediction.predicted_exact(*given),
        "deterministic": windows,
        "deterministic-paper": prediction.predicted_paper(*given),
        "allocated": windows,
        "auto": prediction.predicted_auto(*given),
        "sampled": design.predicted_words(*given),
        "robust": theorem.predicted_words(*given),
        "robust-tuned": tuned_plan.predicted_words(*given),
        "huang-yi-zhang": huang_yi_zhang.predicted_words(*given),
        "block": block.predicted_words(*given),
    }
