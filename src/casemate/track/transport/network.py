"""A transport over a broker: which messages go over which channel, and what is done with them.

Channels   report (sites to server), order.SITE and orders (server to one site, to all of them),
           unknown.SITE (server to a site that is none of its own), count (server to whoever
           watches), ask (a watcher who wants the count now).
Guarantee  A message that is none of casemate's, or that the receiver refuses, is noted in one line
           and changes nothing; the next one is dealt with.
"""

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from urllib.parse import quote

from casemate.errors import Misconfigured
from casemate.track.count import Count
from casemate.track.messages import Order, Report, decode_order, decode_report, encode
from casemate.track.transport.in_process import Obey, Receive
from casemate.track.transport.notes import Notes
from casemate.track.transport.wire import Parcel, Take, Wire

Look = Callable[[Count], None]
_LONGEST = 200


class Network:
    """Reports, orders and counts over the channels of a wire."""

    def __init__(self, wire: Wire, notes: Notes | None = None) -> None:
        self._wire, self._notes = wire, notes or Notes()
        self._turn = threading.RLock()  # reports are dealt with one at a time
        self._sites: dict[str, Obey] = {}

    def serve(self, receive: Receive) -> None:
        """Deliver reports to this server from now on."""
        self._wire.subscribe("report", self._taker(receive))

    def recall(self, receive: Receive) -> None:
        """Deliver the newest report of each site, where the broker kept them."""
        take = self._taker(receive)
        for data in self._wire.recall("report"):
            take(data)

    def join(self, site: str, obey: Obey) -> None:
        """Deliver orders for this site from now on."""
        first, self._sites[site] = not self._sites, obey
        if first:
            self._wire.subscribe("orders", self._notes.careful(self._obey_all))
        channel = f"order.{token(site)}"
        self._wire.subscribe(channel, self._notes.careful(lambda data: obey(decode_order(data))))

    def report(self, report: Report) -> None:
        """Carry a report to the server; one that waits is replaced by a newer one."""
        self._wire.publish(Parcel("report", encode(report), key=report.site))

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site."""
        self._wire.publish(Parcel(f"order.{token(site)}", encode(order)))

    def order_all(self, order: Order) -> None:
        """Carry one order to every site in one message."""
        self._wire.publish(Parcel("orders", encode(order)))

    def disown(self, site: str) -> None:
        """Tell a site that the server does not know it; one whose name cannot travel is not."""
        with contextlib.suppress(Misconfigured):
            self._wire.publish(Parcel(f"unknown.{token(site)}", b""))

    def when_disowned(self, site: str, do: Callable[[], None]) -> None:
        """Do this whenever a server says that it does not know this site."""
        self._wire.subscribe(f"unknown.{token(site)}", lambda _: do())

    def show(self, count: Count) -> None:
        """Tell whoever watches."""
        self._wire.publish(Parcel("count", json.dumps(asdict(count)).encode()))

    def when_asked(self, answer: Callable[[], None]) -> None:
        """Do this whenever somebody asks for the count."""
        self._wire.subscribe("ask", lambda _: answer())

    def watch(self, look: Look) -> None:
        """Look at every count that is shown from now on, and ask for the first one."""
        self._wire.subscribe("count", self._notes.careful(lambda data: look(_decode_count(data))))
        self._wire.publish(Parcel("ask", b""))

    def look_away(self) -> None:
        """Look at no count any more."""
        self._wire.subscribe("count", lambda _: None)

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        self._wire.close()

    def _obey_all(self, data: bytes) -> None:
        order = decode_order(data)
        for obey in list(self._sites.values()):
            obey(order)

    def _taker(self, receive: Receive) -> Take:
        def take(data: bytes) -> None:
            with self._turn:
                receive(decode_report(data))

        return self._notes.careful(take)


def token(site: str) -> str:
    """A site's name as one word of a channel: letters, digits, - and _, the rest escaped.

    >>> token("edge-7"), token("eu.west/2 *")
    ('edge-7', 'eu%2Ewest%2F2%20%2A')
    """
    if not 0 < len(site) <= _LONGEST or not site.isprintable():
        raise Misconfigured(
            f"a site's name is 1 to {_LONGEST} letters without control characters; "
            f"give this one another name"
        )
    return quote(site, safe="").replace(".", "%2E").replace("~", "%7E")


def _decode_count(data: bytes) -> Count:
    try:
        count = Count(**json.loads(data))
        return replace(count, stale_sites=tuple(count.stale_sites))
    except (TypeError, ValueError):
        raise Misconfigured(
            "a message on this tracker's subject is no count of casemate; "
            "give the tracker a subject of its own"
        ) from None
