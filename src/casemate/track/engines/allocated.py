"""The square-root-allocated deterministic tracker: windows as wide as each site's load asks for.

Guarantee  Sure, against anybody, as for centred windows.
Cost       (sum of sqrt w)^2 / (2 alpha) words for each factor e of N, where w are the sites' shares
           of the load. For 1,024 sites that is half of what centred windows take at Zipf's law, and
           a seventh at exponent 1.5. Even loads and single sites cost what they cost with centred
           windows. Whatever comes, it is at most twice centred windows' words and 7k + 1.
"""

from casemate.track.engines.mixed import Mixed
from casemate.track.engines.plan import plan_windows


def allocated(sites: int, alpha: float) -> Mixed:
    """An engine that keeps windows only."""
    return Mixed(sites, alpha, plan_windows)
