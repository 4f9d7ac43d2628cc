"""How much of what is left a site is leased, and how much of its lease it may keep.

A limit that is used up by everybody at the same moment needs no recall, so a site gets the share of
what is left that it had of what was used. What others hold is known from their last messages only;
half of it is taken for used. None of this matters for the guarantee, only for the messages.
"""

from dataclasses import dataclass

SPARED = 2
"""How many times its fair share of what is left a recalled site may keep (never above half)."""


@dataclass(frozen=True)
class Known:
    """What a server knows of its quota."""

    limit: int
    sites: int
    free: int  # in no site's hands
    used: int  # what those who answer have said to have used
    bound: int  # what they may use in all

    @property
    def possible(self) -> int:
        """The most that can be left, unless somebody who was silent speaks again."""
        return self.free + self.bound - self.used

    @property
    def believed_used(self) -> int:
        """What is taken for used."""
        return (self.used + self.bound) // 2

    @property
    def believed_left(self) -> int:
        """What is taken for left."""
        return self.free + (self.bound - self.used + 1) // 2


def lease(known: Known, used: int, need: int) -> int:
    """What to lease to a site that has used so much and needs so much more.

    >>> lease(Known(limit=1000, sites=4, free=1000, used=0, bound=0), used=0, need=1)
    250
    >>> lease(Known(limit=1000, sites=4, free=500, used=100, bound=500), used=100, need=1)
    233
    """
    if used == 0:
        fair = known.limit // known.sites  # taken for one of many alike
    else:
        fair = used * known.believed_left // max(1, known.believed_used)
    return min(known.free, max(need, fair))


def spared(known: Known, held_by_others: int, need: int) -> tuple[int, int]:
    """What recalled sites keep, as a fraction of what each has used; nothing if all is needed.

    >>> spared(Known(limit=1000, sites=4, free=0, used=600, bound=1000), 400, need=1)
    (400, 800)
    >>> spared(Known(limit=1000, sites=4, free=0, used=600, bound=1000), 400, need=300)
    (0, 1)
    """
    if held_by_others // 2 < need:
        return 0, 1
    return SPARED * known.believed_left, max(1, known.believed_used)
