"""Predicted words against the number of sites: for curves, so to a few per cent, and quickly.

`casemate.track.plan` goes through the rounds of the tuned tracker one by one; here their rate is
taken once, for the round in the middle.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from casemate.track.robust import theorem
from casemate.track.robust.tuned_design import TunedDesign, best_budget, design, share
from casemate.track.robust.tuned_plan import start, windows_words
from casemate.track.sampled.design import predicted_words as sampled_words
from casemate.track.setting import Setting

SITES = tuple(4**power for power in range(1, 9))
"""The numbers of sites at which a curve is computed."""

Words = Callable[[int, float, float, int], float]


@dataclass(frozen=True)
class Curve:
    """The words of one protocol against the number of sites."""

    mode: str
    points: tuple[tuple[int, float], ...]


def curves(setting: Setting, sites: Sequence[int] = SITES) -> list[Curve]:
    """The words of every protocol that promises something but to report everything."""
    given = (setting.alpha, setting.delta, setting.items)
    words = {mode: [of(k, *given) for k in sites] for mode, of in _WORDS.items()}
    words["auto"] = list(map(min, words["deterministic"], words["sampled"]))
    return [Curve(mode, tuple(zip(sites, found, strict=True))) for mode, found in words.items()]


def tuned_words(sites: int, alpha: float, delta: float, horizon: int) -> float:
    """The words of the tuned tracker by the rate of its middle round."""
    begin = start(sites, alpha, delta)
    words = windows_words(sites, alpha, min(begin, horizon))
    if begin >= horizon:
        return words
    span = math.log(horizon / begin)
    rounds = span / math.log(_round(sites, alpha, delta, 0).growth)
    middle = _round(sites, alpha, delta, math.floor(rounds / 2))
    return words + 2 * sites + span * middle.rate


def _round(sites: int, alpha: float, delta: float, number: int) -> TunedDesign:
    failure = share(delta, number)
    return design(sites, alpha, failure, best_budget(sites, alpha, failure))


def _deterministic(sites: int, alpha: float, _delta: float, horizon: int) -> float:
    return windows_words(sites, alpha, horizon)


_WORDS: dict[str, Words] = {
    "deterministic": _deterministic,
    "sampled": sampled_words,
    "robust": theorem.predicted_words,
    "robust-tuned": tuned_words,
}
