"""What travels between the sites of a quota and its server: cumulative, numbered, idempotent.

A site says all it knows in one kind of message, so the newest makes older ones superfluous. What
the server sends is numbered for each incarnation of a site: a site follows only what is newer than
what it follows already, so messages may be lost, repeated and overtaken. Denials, calls and hails
change no bound.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from casemate.errors import Refused
from casemate.track.messages import decode
from casemate.track.transport.network import Carrier, DirectCarrier


@dataclass(frozen=True)
class Claim:
    """Where a site stands, and what it needs; answers to the server are claims, too."""

    window: int  # of the server it follows; 0 before it heard of one
    site: str
    incarnation: int  # a site that lost its journal comes back with another one
    sequence: int  # of the newest order it follows
    bound: int  # it never uses more than this without a newer order
    used: int  # everything it has admitted
    wanted: int  # what it is asked to admit now; 0 when it only answers


@dataclass(frozen=True)
class Lease:
    """The site may use `bound` in all, and need not ask for more than `ceiling` at a time."""

    window: int
    incarnation: int
    sequence: int
    bound: int
    ceiling: int | None = None  # None: ask


@dataclass(frozen=True)
class Recall:
    """The site shall lower its bound and answer: it keeps at most `numerator / denominator` of
    what it has used, and at most half of what it has left."""

    window: int
    incarnation: int
    sequence: int
    numerator: int
    denominator: int = 1

    def __post_init__(self) -> None:
        if self.denominator < 1:
            raise ValueError(f"a denominator is at least 1, got {self.denominator}")

    def retention(self, used: int, unused: int) -> int:
        """What a site with so much left over keeps of it.

        >>> Recall(1, 1, 1, numerator=1, denominator=4).retention(used=100, unused=60)
        25
        >>> Recall(1, 1, 1, numerator=0).retention(used=100, unused=60)
        0
        """
        return min(unused // 2, used * self.numerator // self.denominator)


Numbered = Lease | Recall
"""What a site follows."""


class Why(StrEnum):
    """Why a server leases nothing to whoever asks."""

    UNKNOWN = "unknown"  # it was not made for this site
    STOPPED = "stopped"  # it has found leases that are not in its journal, or another server


@dataclass(frozen=True)
class Denial:
    """The server that hears this incarnation leases nothing to it; another one may."""

    incarnation: int
    why: Why


@dataclass(frozen=True)
class ServerCall:
    """A server with a new journal is about to serve: who follows another one shall say so."""

    window: int


Order = Numbered | Denial | ServerCall
"""What a server sends to sites."""
_ORDERS: tuple[type[Order], ...] = (Lease, Recall, Denial, ServerCall)


@dataclass(frozen=True)
class Hail:
    """What servers at one address tell each other."""

    run: int  # of the process that speaks
    leases: bool  # whether it has leased anything
    asks: bool  # it is about to serve, and wants to hear of those who do


def decode_claim(data: bytes) -> Claim:
    """The claim of a line; a line that is none is refused in a sentence."""
    return decode(data, "claim", Claim, whose="quota")


def decode_order(data: bytes) -> Order:
    """The order of a line; a line that is none is refused in a sentence."""
    return decode(data, "order", *_ORDERS, whose="quota")


def decode_hail(data: bytes) -> Hail:
    """The hail of a line; a line that is none is refused in a sentence."""
    return decode(data, "server's word", Hail, whose="quota")


def other_journal(site: str) -> Refused:
    """What is said where a site turns out to follow a server with another journal."""
    return Refused(
        f"site {site!r} holds a lease of another journal of this quota than its server's; serve "
        f"with that journal, or give the site a new journal, or the quota another address"
    )


Receive = Callable[[Claim], None]
Take = Callable[[Order], None]
QuotaTransport = Carrier[Claim, Order]
QuotaInProcess = DirectCarrier[Claim, Order]
