"""The tracker that chooses by itself: windows, sampling, or windows for the busy sites only.

Guarantee  As for `Mixed`: right at all times, except with probability delta.
Cost       It begins with centred windows, which take no words to set up, and changes to what is
           cheapest for the loads it has seen whenever the count has grown a little.
"""

from casemate.track.engines.light import LightSites
from casemate.track.engines.mixed import Mixed
from casemate.track.sampled.design import WIDEST


def automatic(sites: int, alpha: float, delta: float, horizon: float) -> Mixed:
    """An engine for any number of sites and any load."""
    return Mixed(sites, alpha, LightSites(min(alpha, WIDEST), delta, horizon))
