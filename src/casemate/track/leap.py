"""A site that counts very many things at once passes the triggers in between in one leap."""

import math

from casemate.track.binomial import binomial
from casemate.track.instruction import Blocks, Draw, Rule, Sample, Standing

MANY = 1000
"""Triggers that are passed one after another, about; beyond it takes too long."""


def leap(rule: Rule, at: Standing, draw: Draw) -> Standing:
    """Where the site stands when it has passed what a loop would take too long for.

    It is the very law of the loop: how many of independent items are drawn is binomial, and the
    next one forgets where it comes from; every block that is full has had its one report.

    >>> leap(Blocks(4.0), Standing(0, 1, 3, 10**9 + 3), lambda: 0.5).reports
    249999999
    """
    match rule:
        case Sample(probability) if (at.count - at.trigger) * probability > MANY:
            drawn = binomial(at.count - at.trigger, probability, draw)
            return Standing(at.begun, at.reports + drawn, at.count, at.count)
        case Blocks(size) if (at.count - at.begun) / size - at.reports > MANY:
            full = math.floor((at.count - at.begun) / size) - 1  # one less, for floats
            return Standing(at.begun, full, at.trigger, at.count)
        case _:
            return at
