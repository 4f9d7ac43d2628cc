"""Which windows to narrow when the sum of the widths has become too large for the count."""

import numpy as np

from casemate.track.engines.tally import Floats, Tally
from casemate.track.instruction import Growth, Rule

_CUSHION = 0.005  # of all width is set free beyond what is needed, for it will go on like this
_HORIZON = 0.7  # of the count until the next plans: where halving a window costs its reports


def narrowed(tally: Tally, loads: Floats) -> dict[int, Rule]:
    """New rules for few sites, so that what is too wide is so no more, whatever they answer."""
    needed = tally.excess() + int(_CUSHION * (tally.up - tally.down) * max(tally.low, 1))
    orders: dict[int, Rule] = {}
    for site in _cheapest(tally, loads):
        if needed <= 0:
            break
        rule = _half(tally, site)
        needed -= _set_free(tally, site, rule)
        orders[site] = rule
    return orders


def _cheapest(tally: Tally, loads: Floats) -> list[int]:
    """The sites with a window, from the one that gives width away for the fewest words."""
    widths = np.where(tally.sampled, 0, tally.top - tally.known)
    wide = np.flatnonzero(widths > 0)
    words = 2.0 + _HORIZON * tally.value() * loads[wide] / (1.0 + widths[wide])
    found: list[int] = wide[np.argsort(words / widths[wide], kind="stable")].tolist()
    return found


def _half(tally: Tally, site: int) -> Growth:
    """Half the window, or none where that would be less than one."""
    numerator, denominator = int(tally.numerator[site]), int(tally.denominator[site])
    half = Growth(denominator + (numerator - denominator) // 2, denominator)
    count = int(tally.known[site])
    return half if half.top(count) > count else Growth(denominator, denominator)


def _set_free(tally: Tally, site: int, rule: Growth) -> int:
    """By how much (1 - alpha) U - (1 + alpha) L falls at least, whatever the site answers."""
    known, top = int(tally.known[site]), int(tally.top[site])
    after = max(tally.down * rule.top(count) - tally.up * count for count in (known, top))
    return tally.down * top - tally.up * known - after
