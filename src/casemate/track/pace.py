"""Where a long simulated run pauses: to say how far it is, and so that it can be interrupted there.

Compiled code neither shows progress nor notices an interrupt, so a run goes through its items in
pieces. A pause falls between two items and changes nothing: the run goes on from the same state,
and draws the same numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

EVERY = 1 << 22
"""The items of a piece: about a tenth of a second, and far more than it costs to pause."""


def _nobody(_items: int) -> None:
    """There is nobody to tell."""


@dataclass(frozen=True)
class Pace:
    """Who is told how many items have come, and how often."""

    tell: Callable[[int], None] = _nobody
    every: int = EVERY

    def pause(self, items: int, last: int) -> int:
        """The item after which a run that has taken so many of `last` pauses next.

        >>> [Pace(every=10).pause(items, last=25) for items in (0, 9, 10, 24, 25)]
        [10, 10, 20, 25, 25]
        """
        return min(items - items % self.every + self.every, last)

    def note(self, items: int, last: int) -> None:
        """So many of `last` items have come: tell, if this is a pause or the end."""
        if items == last or items % self.every == 0:
            self.tell(items)


UNWATCHED = Pace()
