"""What the trackers of this package will send when every site is equally busy."""

from collections.abc import Callable

import numpy as np

from casemate.track.engines.price import Centred
from casemate.track.engines.windows import centred_rule, paper_rule
from casemate.track.instruction import Growth
from casemate.track.sampled.design import predicted_words as predicted_sampled

Predict = Callable[[int, float, float, float], float]
"""Words from sites, alpha, delta and the count at the end."""


def predicted_exact(sites: int, alpha: float, delta: float, horizon: float) -> float:  # noqa: ARG001 - one signature for all
    """A word for every item."""
    return horizon


def predicted_deterministic(sites: int, alpha: float, delta: float, horizon: float) -> float:  # noqa: ARG001 - one signature for all
    """The reports of centred windows.

    >>> round(predicted_deterministic(1024, 0.01, 0.01, 1e8), -3)
    417000.0
    """
    return _of_windows(centred_rule(alpha), sites, horizon)


def predicted_paper(sites: int, alpha: float, delta: float, horizon: float) -> float:  # noqa: ARG001 - one signature for all
    """The reports of the windows of source document 001.

    >>> round(predicted_paper(1024, 0.01, 0.01, 1e8), -3)
    767000.0
    """
    return _of_windows(paper_rule(alpha), sites, horizon)


def predicted_auto(sites: int, alpha: float, delta: float, horizon: float) -> float:
    """The cheaper of windows and sampling for all; skewed loads cost less."""
    windows = predicted_deterministic(sites, alpha, delta, horizon)
    return min(windows, predicted_sampled(sites, alpha, delta, horizon))


def _of_windows(rule: Growth, sites: int, horizon: float) -> float:
    each, more = divmod(int(horizon), sites)  # so many sites have one item more
    fewer, most = (Centred(rule).words(np.array([count])) for count in (each, each + 1))
    return float((sites - more) * fewer + more * most)
