"""A quota over a message broker: its claims and orders on two channels of a wire, and one server.

Guarantee  A message that is none of a quota's, or that the receiver refuses, is noted in one line
           and changes nothing; a site whose claim is refused is told so.
           Two servers that hear each other are one soon: of two that start, one does; of two that
           serve, the one that has leased nothing stops, and before its first lease; if both have
           leased, both stop. Who is not heard, because the network is divided, is not noticed.
"""

import threading
import time
from collections.abc import Callable, Sequence

from casemate.errors import Refused, UnknownSite
from casemate.track.journal import new_number
from casemate.track.messages import encode
from casemate.track.quota.messages import (
    Claim,
    Denial,
    Hail,
    Order,
    QuotaTransport,
    Receive,
    ServerCall,
    Take,
    Why,
    decode_claim,
    decode_hail,
    decode_order,
    other_journal,
)
from casemate.track.quota.server import QuotaServer
from casemate.track.transport.address import open_wire
from casemate.track.transport.network import Notes, Parcel, Wire, token

SERVERS = "quota.server"

SERVER_DISCOVERY_SECONDS = 0.75
"""Seconds a server listens for others before it serves."""

HAIL_INTERVAL_SECONDS = 1.0
"""Seconds between two hails of a server that sends orders."""


class Presence:
    """A server as others at its address hear it."""

    def __init__(
        self,
        wire: Wire,
        notes: Notes,
        look: float = SERVER_DISCOVERY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wire, self._notes, self._look, self._clock = wire, notes, look, clock
        self._run = new_number()
        self._server: QuotaServer | None = None  # until it serves
        self._why: Refused | None = None  # it must not
        self._found = threading.Event()
        self._next = 0.0  # when a hail is due
        self._yields = False  # the quota is another server's: this one is silent
        self._asked = False  # whether a server without leases has made sure that it may lease

    def ensure_alone(self) -> None:
        """Ask who serves here, and refuse to be the second."""
        self._wire.subscribe(SERVERS, self._notes.careful(self._hear))
        self._say(asks=True)
        self._found.wait(self._look)
        self._refuse()

    def see_claim(self, claim: Claim, window: int) -> None:
        """Notice, before it serves, a site that follows a server with another journal."""
        if claim.window not in (0, window):
            self._note_conflict(other_journal(claim.site))

    def guard(self, server: QuotaServer) -> None:
        """From now on this server serves."""
        self._server = server
        self._refuse()
        self._say()

    def beat(self) -> None:
        """Say that it serves, now and then; called with every order."""
        server = self._server
        if server is not None and not server.stopped and self._clock() >= self._next:
            self._say()

    def may_answer(self) -> bool:
        """Whether to answer a request: a server that has leased nothing yet hails before.

        Whoever asked asks again soon; until then a server with leases has stopped this one, which
        leaves requests to that one from then on.
        """
        server = self._server
        if self._yields:
            return False
        if self._asked or server is None or server.granted:
            return True
        self._asked = True
        self._say()
        return False

    def _say(self, asks: bool = False) -> None:
        self._next = self._clock() + HAIL_INTERVAL_SECONDS
        leases = self._server is not None and self._server.granted > 0
        self._wire.publish(Parcel(SERVERS, encode(Hail(self._run, leases, asks))))

    def _hear(self, data: bytes) -> None:
        hail = decode_hail(data)
        if hail.run == self._run:
            return
        if self._server is None:
            self._while_starting(hail)
        else:
            self._while_serving(self._server, hail)

    def _while_starting(self, hail: Hail) -> None:
        """Of two that start at once the one with the smaller number goes on."""
        if not (hail.asks and self._run < hail.run):
            self._note_conflict(_second())
        elif self._why is None:
            self._say()

    def _while_serving(self, server: QuotaServer, hail: Hail) -> None:
        if not server.stopped:
            self._say()
        if hail.asks or self._outranks(server, hail):
            return
        self._yields = not server.granted
        if not server.stopped:
            raise server.stop(_second())

    def _outranks(self, server: QuotaServer, hail: Hail) -> bool:
        """Whether the other one stops, and only that."""
        if hail.leases or server.stopped:
            return False
        return server.granted > 0 or self._run < hail.run

    def _note_conflict(self, why: Refused) -> None:
        self._why = self._why or why
        self._found.set()

    def _refuse(self) -> None:
        if self._why is not None:
            raise self._why


def _second() -> Refused:
    return Refused(
        "another server of this quota serves at its address, so this one leases nothing; "
        "stop one of them, or give this quota another subject or prefix"
    )


# Channels ----------------------------------------------------------------------------------------


CLAIMS, ORDERS = "quota.claim", "quota.order"


ANSWER_TIMEOUT_SECONDS = 0.25
"""Seconds a site waits for an answer over a network before it asks again."""


class Broker:
    """Claims and orders over a wire to NATS or Redis."""

    def __init__(
        self, wire: Wire, notes: Notes | None = None, look: float = SERVER_DISCOVERY_SECONDS
    ) -> None:
        self._wire, self._notes = wire, notes or Notes()
        self._presence = Presence(wire, self._notes, look)
        self._turn = threading.RLock()  # claims are dealt with one at a time

    def serve(self, receive: Receive) -> None:
        """Deliver claims to this server from now on."""

        def take(data: bytes) -> None:
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

        self._wire.subscribe(CLAIMS, self._notes.careful(take))

    def _deny(self, claim: Claim, why: Why) -> None:
        if claim.wanted:
            self.order(claim.site, Denial(claim.incarnation, why))

    def prepare(self, window: int, call: Sequence[str]) -> None:
        """Refuse to serve beside another server, or beside another journal as those called say."""

        def take(data: bytes) -> None:
            self._presence.see_claim(decode_claim(data), window)

        self._wire.subscribe(CLAIMS, self._notes.careful(take))
        for site in call:
            self.order(site, ServerCall(window))
        self._presence.ensure_alone()

    def guard(self, server: QuotaServer) -> None:
        """Stop this server when another one is heard of."""
        self._presence.guard(server)

    def join(self, site: str, take: Take) -> None:
        """Deliver orders for this site from now on."""
        channel = f"{ORDERS}.{token(site)}"
        self._wire.subscribe(channel, self._notes.careful(lambda data: take(decode_order(data))))

    def report(self, report: Claim) -> None:
        """Carry a claim to the server."""
        self._wire.publish(Parcel(CLAIMS, encode(report)))

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site."""
        self._presence.beat()
        self._wire.publish(Parcel(f"{ORDERS}.{token(site)}", encode(order)))

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        self._wire.close()


def open_quota_transport(transport: QuotaTransport | str) -> QuotaTransport:
    """The transport, or the broker of an address, connected."""
    return Broker(open_wire(transport)) if isinstance(transport, str) else transport
