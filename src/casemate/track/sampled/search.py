"""The search for the cheapest round: how many reports, with how much slack."""

import math
from dataclasses import dataclass

import numpy as np

from casemate.track.sampled.allowance import FOR_EVER, Allowance
from casemate.track.sampled.closed_forms import chernoff_slack
from casemate.track.sampled.slack import slack_for

_LONGEST = 1e9  # reports of a round


@dataclass(frozen=True)
class Trial:
    """A round of small p, and what rounds like it cost up to the horizon."""

    reports: int
    slack: float
    failure: float
    opening: int
    allowance: Allowance
    words: float


def best_reports(sites: int, alpha: float, slack: float) -> int:
    """The reports at which (m + 2k) / ln(1 + alpha m / E) is least, were all lengths safe."""
    scale = slack / alpha
    low, high = 1.0, _LONGEST
    while high > low * 1.001:
        m = math.sqrt(low * high)
        if math.log1p(m / scale) * (scale + m) > m + 2 * sites:
            high = m
        else:
            low = m
    return math.ceil(high)


def trial(
    sites: int, alpha: float, delta: float, horizon: float, *, reports: int, share: float
) -> Trial:
    """A round of so many reports, with this share of the slack that the closed bound takes."""
    slack = share * chernoff_slack(reports, alpha, delta / 100)
    for _ in range(5):
        opening = _opening(sites, alpha, reports, slack)
        first, growth = math.log(opening), math.log1p(alpha * reports / slack)
        last = max(math.log(horizon), first + 1.0)
        failure = delta * (1 - FOR_EVER) * growth / (last - first + growth)
        slack = share * chernoff_slack(reports, alpha, failure)
    words = opening + (last - first) * (reports + 2 * sites) / growth
    return Trial(reports, slack, failure, opening, Allowance(delta, failure, first, last), words)


def _opening(sites: int, alpha: float, reports: int, slack: float) -> int:
    """The count from which a round costs fewer words than it has items: p <= m / (m + 2k)."""
    p = min(reports / (reports + 2 * sites), 0.8)
    return math.ceil(slack * math.sqrt(1 - p) / (alpha * p))


def cheapest(sites: int, alpha: float, delta: float, horizon: float) -> Trial:
    """The round of the fewest words: coarse with the closed bound, then with the exact slack."""
    share = 0.9

    def best(lengths: list[int]) -> Trial:
        trials = (trial(sites, alpha, delta, horizon, reports=m, share=share) for m in lengths)
        return min(trials, key=lambda each: each.words)

    chosen = best(_lengths(2 + sites / 2, 200 + 40 * sites, 25))
    exact = slack_for(chosen.reports, alpha, chosen.failure)
    share = exact / chernoff_slack(chosen.reports, alpha, chosen.failure)
    return best(_lengths(chosen.reports / 1.3, chosen.reports * 1.3, 25))


def _lengths(low: float, high: float, number: int) -> list[int]:
    return sorted({round(m) for m in np.geomspace(low, high, number)})
