"""What is tracked (`Setting`), what a tracker publishes (`Count`), what came of a run (`Run`)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from casemate.errors import Misconfigured

MOST_COUNTED = 1 << 53
"""What anybody counts at most: up to here a float is exact, too."""

MOST_ITEMS = 1 << 32
"""Of a compiled run with windows, whose fixed point has 31 of 63 bits below it."""


@dataclass(frozen=True)
class Setting:
    """Sites, accuracy, the probability of ever being wrong, and how many items will come."""

    sites: int  # k in source document 001
    alpha: float
    delta: float = 0.01
    items: int = 10**8  # N in source document 001

    def __post_init__(self) -> None:
        if not _is_number_of(self.sites):
            raise Misconfigured(f"a tracker needs at least one site, got {self.sites!r}")
        if not _is_share(self.alpha):
            raise Misconfigured(
                f"alpha is a relative error between 0 and 1, as 0.01, got {self.alpha!r}"
            )
        if not _is_share(self.delta):
            raise Misconfigured(
                f"delta is a probability between 0 and 1, as 0.01, got {self.delta!r}"
            )
        if not _is_number_of(self.items):
            raise Misconfigured(
                f"the items that will come are a whole number from 1 to 2^53, got {self.items!r}"
            )

    def check_windows(self) -> None:
        """Refuse more items than the windows of a compiled run can count."""
        if self.items > MOST_ITEMS:
            raise Misconfigured(
                f"a simulation of windows goes up to {MOST_ITEMS:,} items, got {self.items:,}; "
                "simulate fewer, or see what a plan predicts for all of them"
            )


def _is_number_of(things: object) -> bool:
    if isinstance(things, bool) or not isinstance(things, int | float | np.integer):
        return False
    return bool(1 <= things <= MOST_COUNTED and things % 1 == 0)


def _is_share(number: object) -> bool:
    return isinstance(number, int | float) and 0 < number < 1


@dataclass(frozen=True)
class Run:
    """What one simulated run sent, and the largest error at any time."""

    words_by_kind: Mapping[str, int]  # report, call, answer, rule, as `Server` counts them
    max_error_over_alpha: float
    rounds: int

    @property
    def words(self) -> int:
        """Messages in both directions."""
        return sum(self.words_by_kind.values())

    @property
    def violated(self) -> bool:
        """Whether the count was ever off by more than alpha of the truth."""
        return self.max_error_over_alpha > 1.0


@dataclass(frozen=True)
class Count:
    """A count with its interval, and what it cost to know it."""

    value: float
    lo: float
    hi: float
    confidence: float  # that every published interval so far was right; 1 for a sure one
    lag: float  # seconds since the oldest news this count rests on; 0 within one process
    epoch: int
    stale_sites: tuple[str, ...]  # their counts are frozen: what they counted since is unknown
    words: int
