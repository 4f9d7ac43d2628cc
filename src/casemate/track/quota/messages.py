"""What travels between the sites of a quota and its server: cumulative, numbered, idempotent.

A site says all it knows in one kind of message, so the newest makes older ones superfluous. What
the server sends is numbered for each incarnation of a site: a site follows only what is newer than
what it follows already, so messages may be lost, repeated and overtaken. Denials, calls and hails
change no bound.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from casemate.errors import Misconfigured
from casemate.track.transport.in_process import Carrier, DirectCarrier


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

    def kept(self, used: int, unused: int) -> int:
        """What a site with so much left over keeps of it.

        >>> Recall(1, 1, 1, numerator=1, denominator=4).kept(used=100, unused=60)
        25
        >>> Recall(1, 1, 1, numerator=0).kept(used=100, unused=60)
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


@dataclass(frozen=True)
class Hail:
    """What servers at one address tell each other."""

    run: int  # of the process that speaks
    leases: bool  # whether it has leased anything
    asks: bool  # it is about to serve, and wants to hear of those who do


def encode(message: Claim | Order | Hail) -> bytes:
    """One line of JSON without spaces.

    >>> encode(Claim(5, "a", 7, 3, 100, 90, 1))
    b'["a",5,7,3,100,90,1]'
    """
    m: Any = message
    match message:
        case Claim():
            fields = [m.site, m.window, m.incarnation, m.sequence, m.bound, m.used, m.wanted]
        case Lease():
            fields = ["lease", m.window, m.incarnation, m.sequence, m.bound, m.ceiling]
        case Recall():
            fields = ["recall", m.window, m.incarnation, m.sequence, m.numerator, m.denominator]
        case Denial():
            fields = ["denial", m.incarnation, m.why]
        case ServerCall():
            fields = ["call", m.window]
        case Hail():
            fields = ["server", m.run, int(m.leases), int(m.asks)]
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_claim(data: bytes) -> Claim:
    """The claim of a line; a line that is none is refused in a sentence."""
    match _parsed(data):
        case [str(site), *numbers] if _counts(numbers, 6):
            window, incarnation, sequence, bound, used, wanted = numbers
            return Claim(window, site, incarnation, sequence, bound, used, wanted)
    raise _not_one("claim")


def decode_order(data: bytes) -> Order:
    """The order of a line; a line that is none is refused in a sentence."""
    match _parsed(data):
        case ["lease", *numbers, None] if _counts(numbers, 4):
            return Lease(*numbers)
        case ["lease", *numbers] if _counts(numbers, 5):
            return Lease(*numbers)
        case ["recall", *numbers] if _counts(numbers, 5) and numbers[-1] > 0:
            return Recall(*numbers)
        case ["denial", int(incarnation), "unknown" | "stopped" as why] if incarnation >= 0:
            return Denial(incarnation, Why(why))
        case ["call", int(window)] if window >= 0:
            return ServerCall(window)
    raise _not_one("order")


def decode_hail(data: bytes) -> Hail:
    """The hail of a line; a line that is none is refused in a sentence."""
    match _parsed(data):
        case ["server", *numbers] if _counts(numbers, 3):
            run, leases, asks = numbers
            return Hail(run, bool(leases), bool(asks))
    raise _not_one("server's word")


def _counts(numbers: list[Any], many: int) -> bool:
    return len(numbers) == many and all(type(n) is int and n >= 0 for n in numbers)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _not_one(kind: str) -> Misconfigured:
    return Misconfigured(
        f"a message on this quota's subject is no {kind} of casemate; "
        f"give the quota a subject of its own"
    )


Receive = Callable[[Claim], None]
Take = Callable[[Order], None]
QuotaTransport = Carrier[Claim, Order]
QuotaInProcess = DirectCarrier[Claim, Order]
