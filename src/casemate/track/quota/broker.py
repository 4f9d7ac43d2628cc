"""A quota over a message broker: its claims and orders on two channels of a wire.

Guarantee  A message that is none of a quota's, or that the receiver refuses, is noted in one line
           and changes nothing; a site whose claim is refused is told so.
"""

import threading
from collections.abc import Sequence

from casemate.errors import Refused, UnknownSite
from casemate.track.quota.messages import (
    Call,
    Claim,
    Denial,
    Order,
    Why,
    decode_claim,
    decode_order,
    encode,
)
from casemate.track.quota.presence import LOOK, Guarded, Presence
from casemate.track.quota.transport import Receive, Take, Transport
from casemate.track.transport.address import open_wire
from casemate.track.transport.network import token
from casemate.track.transport.notes import Notes
from casemate.track.transport.wire import Parcel, Wire

CLAIMS, ORDERS = "quota.claim", "quota.order"


PATIENCE = 0.25
"""Seconds a site waits for an answer over a network before it asks again."""


class Broker:
    """Claims and orders over a wire to NATS or Redis."""

    def __init__(self, wire: Wire, notes: Notes | None = None, look: float = LOOK) -> None:
        self._wire, self._notes = wire, notes or Notes()
        self._presence = Presence(wire, self._notes, look)
        self._turn = threading.RLock()  # claims are dealt with one at a time

    def serve(self, receive: Receive) -> None:
        """Deliver claims to this server from now on."""

        def taken(data: bytes) -> None:
            claim = decode_claim(data)
            if claim.wanted and not self._presence.may_answer():
                return
            try:
                with self._turn:
                    receive(claim)
            except UnknownSite:
                self._deny(claim, Why.UNKNOWN)
                raise
            except Refused:
                self._deny(claim, Why.STOPPED)
                raise

        self._wire.subscribe(CLAIMS, self._notes.careful(taken))

    def _deny(self, claim: Claim, why: Why) -> None:
        if claim.wanted:
            self.order(claim.site, Denial(claim.incarnation, why))

    def prepare(self, window: int, call: Sequence[str]) -> None:
        """Refuse to serve beside another server, or beside another journal as those called say."""

        def taken(data: bytes) -> None:
            self._presence.see_claim(decode_claim(data), window)

        self._wire.subscribe(CLAIMS, self._notes.careful(taken))
        for site in call:
            self.order(site, Call(window))
        self._presence.ensure_alone()

    def guard(self, server: Guarded) -> None:
        """Stop this server when another one is heard of."""
        self._presence.guard(server)

    def join(self, site: str, take: Take) -> None:
        """Deliver orders for this site from now on."""
        channel = f"{ORDERS}.{token(site)}"
        self._wire.subscribe(channel, self._notes.careful(lambda data: take(decode_order(data))))

    def claim(self, claim: Claim) -> None:
        """Carry a claim to the server."""
        self._wire.publish(Parcel(CLAIMS, encode(claim)))

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site."""
        self._presence.beat()
        self._wire.publish(Parcel(f"{ORDERS}.{token(site)}", encode(order)))

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        self._wire.close()


def opened(transport: Transport | str) -> Transport:
    """The transport, or the broker of an address, connected."""
    return Broker(open_wire(transport)) if isinstance(transport, str) else transport
