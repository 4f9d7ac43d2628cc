"""A quota over a message broker: its claims and orders on two channels of a wire.

Guarantee  A message that is none of a quota's, or that the receiver refuses, is noted in one line
           and changes nothing.
"""

import threading

from casemate.track.quota.messages import Claim, Order, decode_claim, decode_order, encode
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

    def __init__(self, wire: Wire, notes: Notes | None = None) -> None:
        self._wire, self._notes = wire, notes or Notes()
        self._turn = threading.RLock()  # claims are dealt with one at a time

    def serve(self, receive: Receive) -> None:
        """Deliver claims to this server from now on."""

        def taken(data: bytes) -> None:
            with self._turn:
                receive(decode_claim(data))

        self._wire.subscribe(CLAIMS, self._notes.careful(taken))

    def join(self, site: str, take: Take) -> None:
        """Deliver orders for this site from now on."""
        channel = f"{ORDERS}.{token(site)}"
        self._wire.subscribe(channel, self._notes.careful(lambda data: take(decode_order(data))))

    def claim(self, claim: Claim) -> None:
        """Carry a claim to the server."""
        self._wire.publish(Parcel(CLAIMS, encode(claim)))

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site."""
        self._wire.publish(Parcel(f"{ORDERS}.{token(site)}", encode(order)))

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        self._wire.close()


def opened(transport: Transport | str) -> Transport:
    """The transport, or the broker of an address, connected."""
    return Broker(open_wire(transport)) if isinstance(transport, str) else transport
