"""How messages of sites reach their server, and its orders them: in one process or by a broker.

A `Carrier` carries messages; trackers carry reports and quotas carry claims. `DirectCarrier` is one
within a process. `Network` is one over a `Wire`, which is all that is needed of a message broker:
channels that carry bytes, and no more.

Channels   report (sites to server), order.SITE and orders (server to one site, to all of them),
           unknown.SITE (server to a site that is none of its own), count (server to whoever
           watches), ask (a watcher who wants the count now).
Guarantee  A message that is none of casemate's, or that the receiver refuses, is noted in one line
           and changes nothing; the next one is dealt with.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

from casemate.errors import CasemateError, Misconfigured
from casemate.track.messages import Order, SiteReport, decode, encode
from casemate.track.setting import Count

Say = Callable[[str], None]
_LOG = logging.getLogger("casemate.track")  # to stderr where nobody set logging up
REPEAT_NOTE_SECONDS = 60.0
"""Seconds until the same trouble is worth another line."""


def silent() -> "Notes":
    """Notes that nobody reads."""
    return Notes(say=lambda _: None)


class Notes:
    """Lines about troubles, each kind of trouble at most once a minute.

    >>> notes = Notes(say=print)
    >>> notes.say("an unknown site reports", about="unknown")
    an unknown site reports
    >>> notes.say("an unknown site reports", about="unknown")
    """

    def __init__(
        self,
        say: Say = _LOG.warning,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._clock = say, clock
        self._said: dict[object, float] = {}

    def say(self, sentence: str, about: object) -> None:
        """Say it, unless something was said about this a moment ago."""
        now = self._clock()
        if now - self._said.get(about, -REPEAT_NOTE_SECONDS) >= REPEAT_NOTE_SECONDS:
            self._said[about] = now
            self._say(sentence)

    def say_lost(self, place: str) -> None:
        """Say that a broker went away."""
        self.say(f"the broker at {place} is lost; trying to reach it again", about=("lost", place))

    def say_back(self, place: str) -> None:
        """Say that a broker is there again."""
        self.say(f"the broker at {place} is back", about=("back", place))

    def careful(self, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """The same, with what casemate refuses said instead of raised."""

        def take_or_say(data: bytes) -> None:
            try:
                take(data)
            except CasemateError as error:
                self.say(str(error), about=type(error))

        return take_or_say


# Carriers ---------------------------------------------------------------------------------------


Up = TypeVar("Up")
Down = TypeVar("Down")
Receive = Callable[[SiteReport], None]
Obey = Callable[[Order], None]


class Carrier(Protocol[Up, Down]):
    """A way for messages, which may lose, repeat and reorder them."""

    def serve(self, receive: Callable[[Up], None]) -> None:
        """Deliver what sites say to this server from now on."""
        ...

    def join(self, site: str, take: Callable[[Down], None]) -> None:
        """Deliver orders for this site from now on."""
        ...

    def report(self, report: Up) -> None:
        """Carry what a site says to the server."""
        ...

    def order(self, site: str, order: Down) -> None:
        """Carry an order to a site."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


Transport = Carrier[SiteReport, Order]
"""A way for the messages of a tracker."""


class DirectCarrier(Generic[Up, Down]):
    """Server and sites in one process: whoever sends comes back when all of it is dealt with.

    Messages are delivered one after another and never one within another, so that nobody is called
    in the middle of what it does; none is lost.
    """

    def __init__(self) -> None:
        self._receive: Callable[[Up], None] | None = None
        self._sites: dict[str, Callable[[Down], None]] = {}
        self.turn = threading.RLock()  # of whoever deals with the server
        self._delivering = False
        self._queue: deque[Callable[[], None]] = deque()

    def serve(self, receive: Callable[[Up], None]) -> None:
        """Deliver what sites say to this server from now on."""
        self._receive = receive

    def join(self, site: str, take: Callable[[Down], None]) -> None:
        """Deliver orders for this site from now on."""
        self._sites[site] = take

    def report(self, report: Up) -> None:
        """Hand over what a site says."""
        receive = self._receive
        if receive is not None:
            self._deliver(lambda: receive(report))

    def order(self, site: str, order: Down) -> None:
        """Hand the order over."""
        take = self._sites.get(site)
        if take is not None:
            self._deliver(lambda: take(order))

    def close(self) -> None:
        """Nothing is held."""

    def _deliver(self, handing_over: Callable[[], None]) -> None:
        with self.turn:
            self._queue.append(handing_over)
            if self._delivering:
                return
            self._delivering = True
            try:
                while self._queue:
                    self._queue.popleft()()
            finally:
                self._delivering = False


InProcess = DirectCarrier[SiteReport, Order]
"""That of a tracker."""


# Wires -------------------------------------------------------------------------------------------


Take = Callable[[bytes], None]
"""Deals with one message; called in a thread of the wire, one message at a time."""


@dataclass(frozen=True)
class Parcel:
    """A message on its way out."""

    channel: str
    data: bytes
    key: str = ""  # a later message of the same channel and key makes this one superfluous


class Wire(Protocol):
    """A connection to a broker; what is published while it is broken may be lost."""

    def publish(self, parcel: Parcel) -> None:
        """Send, some time soon, from any thread, without waiting."""
        ...

    def subscribe(self, channel: str, take: Take) -> None:
        """Take every message of a channel, instead of who took them before.

        From the return of this call on, none is missed.
        """
        ...

    def recall(self, channel: str) -> Sequence[bytes]:
        """The newest message of every key, where the broker keeps them; nothing where not."""
        ...

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        ...


class Outbox:
    """Messages that wait to be sent; of those that replace each other only the newest stays.

    So a broker that is slow or away costs a place for each site and not for each report.

    >>> box = Outbox()
    >>> box.put(Parcel("report", b"1", "a")), box.put(Parcel("report", b"2", "a"))
    (True, False)
    >>> [parcel.data for parcel in box.take()], box.take()
    ([b'2'], [])
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parcels: dict[object, Parcel] = {}

    def put(self, parcel: Parcel) -> bool:
        """Keep the parcel; whether it is the first, so that somebody must be woken."""
        with self._lock:
            first = not self._parcels
            self._parcels[(parcel.channel, parcel.key) if parcel.key else object()] = parcel
        return first

    def take(self) -> list[Parcel]:
        """Everything that waits."""
        with self._lock:
            parcels, self._parcels = self._parcels, {}
        return list(parcels.values())

    def put_back(self, parcels: Sequence[Parcel]) -> None:
        """Keep what could not be sent, where it has a key and nothing newer came meanwhile."""
        with self._lock:
            old: dict[object, Parcel] = {
                (parcel.channel, parcel.key): parcel for parcel in parcels if parcel.key
            }
            self._parcels = {**old, **self._parcels}


# Network ----------------------------------------------------------------------------------------


Look = Callable[[Count], None]
_MAX_NAME_LETTERS = 200


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
        self._wire.subscribe(channel, self._notes.careful(lambda data: obey(_order(data))))

    def report(self, report: SiteReport) -> None:
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
        self._wire.publish(Parcel("count", encode(count)))

    def when_asked(self, answer: Callable[[], None]) -> None:
        """Do this whenever somebody asks for the count."""
        self._wire.subscribe("ask", lambda _: answer())

    def watch(self, look: Look) -> None:
        """Look at every count that is shown from now on, and ask for the first one."""
        self._wire.subscribe(
            "count", self._notes.careful(lambda data: look(decode(data, "count", Count)))
        )
        self._wire.publish(Parcel("ask", b""))

    def look_away(self) -> None:
        """Look at no count any more."""
        self._wire.subscribe("count", lambda _: None)

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        self._wire.close()

    def _obey_all(self, data: bytes) -> None:
        order = _order(data)
        for obey in list(self._sites.values()):
            obey(order)

    def _taker(self, receive: Receive) -> Take:
        def take(data: bytes) -> None:
            with self._turn:
                receive(decode(data, "report", SiteReport))

        return self._notes.careful(take)


def token(site: str) -> str:
    """A site's name as one word of a channel: letters, digits, - and _, the rest escaped.

    >>> token("edge-7"), token("eu.west/2 *")
    ('edge-7', 'eu%2Ewest%2F2%20%2A')
    """
    if not 0 < len(site) <= _MAX_NAME_LETTERS or not site.isprintable():
        raise Misconfigured(
            f"a site's name is 1 to {_MAX_NAME_LETTERS} letters without control characters; "
            f"give this one another name"
        )
    return quote(site, safe="").replace(".", "%2E").replace("~", "%7E")


def _order(data: bytes) -> Order:
    return decode(data, "order", Order)
