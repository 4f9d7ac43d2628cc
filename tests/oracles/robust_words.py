"""Theorem 1 of source document 001 with every constant: a bound on the words of its tracker."""

import math

from casemate.track.protocols.robust_theorem import EARLY_END_DELTA_SHARE, constants, most_rounds
from casemate.track.setting import Setting


def most_words(setting: Setting) -> float:
    """Theorem 1 with every constant: more words than this come with probability at most delta."""
    tracker = constants(setting)
    rounds = most_rounds(tracker)
    failure = (
        (1 - EARLY_END_DELTA_SHARE)
        * setting.delta
        / rounds
        * (1 - tracker.redrawn) ** tracker.phases
    )
    excess = laplace_sum(tracker.phases, failure) * tracker.noise_scale
    bits = tracker.phases * (tracker.threshold + 1) + excess
    return min(setting.items, tracker.begins_at) + rounds * (bits + 3 * setting.sites)


def laplace_sum(summands: int, failure: float) -> float:
    """What a sum of Laplace noise of scale 1 exceeds with at most this probability (Chernoff)."""
    log_odds = math.log(1 / failure)
    grid = (u / 100 for u in range(1, 100))
    return min((log_odds - summands * math.log1p(-u * u)) / u for u in grid)
