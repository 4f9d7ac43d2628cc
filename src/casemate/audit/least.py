"""The fewest of some things that still suffice, found by leaving them out."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from casemate.audit.time_limit import Clock

Thing = TypeVar("Thing")


def least(
    things: Sequence[Thing], suffices: Callable[[Sequence[Thing]], bool], clock: Clock
) -> list[Thing]:
    """Some of the things, which suffice; none of them can be left out unless the time was up.

    Long runs are left out first, so that few of many are found in few trials. All things suffice,
    and so does whatever contains some that do.

    >>> from casemate.audit.time_limit import SearchLimit
    >>> least(range(100), lambda some: {3, 70} <= set(some), Clock(SearchLimit()))
    [3, 70]
    """
    kept, length = list(things), len(things)
    while kept and length:
        place = 0
        while place < len(kept):
            if clock.over:
                return kept
            fewer = kept[:place] + kept[place + length :]
            if suffices(fewer):
                kept = fewer
            else:
                place += length
        length = 0 if length == 1 else (length + 1) // 2
    return kept
