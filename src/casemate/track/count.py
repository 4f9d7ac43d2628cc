"""What a tracker publishes."""

from dataclasses import dataclass


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
