"""What an adversary sees before each item, and what it does: it names a site."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that is public before an item comes."""

    output: float  # what the server shows now
    changed: bool  # whether it showed something else before the last item
    round_number: int  # how many rounds have begun
    step: float  # the public size of a report: a block, one over a probability; 0 if none


class Adversary(Protocol):
    """Whoever sends the items; one made by you runs at the speed of Python."""

    def next_site(self, seen: Seen) -> int:
        """The number of the site, from 0, that receives the next item."""
        ...
