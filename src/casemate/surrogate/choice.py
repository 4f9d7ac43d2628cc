"""Which stand-in a universe gets: every cell where memory allows it, a mixture of products above.

The dense stand-in is closer to the truth; 8 bytes a cell and a pass over all of them for each
measured table are what it costs. `LocalSurrogate` is never chosen here: it answers at once, but its
answers need not agree with each other.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from casemate.grid import Floats, Scope
from casemate.surrogate.dense import LARGEST_DENSE
from casemate.surrogate.mixture import MixtureSurrogate
from casemate.surrogate.protocol import Fitted
from casemate.surrogate.replay import DenseSurrogate

DENSEST = LARGEST_DENSE
"""A universe of no more cells is dense (two hundred million: 1.6 gigabytes)."""


class DailyStandIn(Fitted, Protocol):
    """A stand-in for daily use, of a universe of any size."""

    shape: tuple[int, ...]

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """Its counts over many scopes."""
        ...


def stand_in_for(
    shape: tuple[int, ...], total: float, total_variance: float = 0.0, *, densest: int = DENSEST
) -> DailyStandIn:
    """The stand-in of a universe; `total` and `total_variance` are what is known of its size.

    >>> type(stand_in_for((10, 16, 7), 1_000.0)).__name__
    'DenseSurrogate'
    >>> type(stand_in_for((10,) * 12, 1_000.0)).__name__
    'MixtureSurrogate'
    """
    if math.prod(int(width) for width in shape) <= densest:
        return DenseSurrogate(shape, total, total_variance)
    return MixtureSurrogate(shape, total, total_variance)
