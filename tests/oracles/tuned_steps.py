"""What each step from the tracker of source document 001 to the tuned one saves.

The figures are words for each factor e of the count, over those of centred windows; all but the
first and the last come from the approximation by which designs are searched for.
"""

import math

import numpy as np

from casemate.track.protocols.robust_theorem import constants
from casemate.track.protocols.tuned import (
    COIN_SPREAD_ROOTS,
    SEEN_FAILURE_SHARE,
    best_budget,
    design,
    failure_share,
    search,
)
from casemate.track.setting import Setting

_A_LATE_ROUND = 16


def improvements(sites: int, alpha: float, delta: float, horizon: int) -> dict[str, float]:
    """The steps by name, each with its cost relative to centred windows."""
    centred = sites / (2 * alpha)
    failure = failure_share(delta, _A_LATE_ROUND)
    union = math.sqrt(math.log(4 / failure) / 2)  # half of the failure for the coins, at any time
    final = design(sites, alpha, failure, best_budget(sites, alpha, failure))
    steps = {
        "as in source document 001": _literal(Setting(sites, alpha, delta, horizon)),
        "one noise, nominal and centred": _cheapest(sites, alpha, failure / 2, union),
        "failure at the first bad time": _cheapest(
            sites, alpha, failure * SEEN_FAILURE_SHARE, COIN_SPREAD_ROOTS
        ),
        "a budget that grows with the count": final.rate,
    }
    return {name: cost / centred for name, cost in steps.items()}


def _literal(setting: Setting) -> float:
    known = constants(setting)
    return (known.phases * known.threshold + 3 * setting.sites) / math.log1p(
        known.phases * known.threshold / known.start
    )


def _cheapest(sites: int, alpha: float, target: float, spread: float) -> float:
    budgets = np.geomspace(2, 40, 60) * math.sqrt(sites)
    found = (search(sites, alpha, target, float(b), spread=spread, grows=False) for b in budgets)
    return min((one.rate for one in found if one is not None), default=math.inf)
