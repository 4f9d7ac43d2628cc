"""A site's place in a tracker that runs elsewhere: its process, what it counts, and who takes it.

>>> from casemate.track.service.membership import join
>>> def work(address, hits):  # in each worker
...     with join(address, "edge-7", journal="edge-7.journal") as site:
...         for _ in hits:
...             site.add()
"""

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from casemate.errors import Misconfigured, UnknownSite
from casemate.track.journal import FileJournal, Journal, JournalEntry, MemoryJournal, new_number
from casemate.track.messages import Order, SiteReport
from casemate.track.service.attendant import BEATS_PER_HEARTBEAT, Beats, Over
from casemate.track.site import Send, Site
from casemate.track.transport.address import open_transport, without_secrets
from casemate.track.transport.network import Network, Notes, Transport

# Whether a server takes what a site counts; one that never came would be found out too late ------

UNANSWERED_SECONDS = 3.0
"""Seconds after which a site says that no server answered."""

LAST_ANSWER_SECONDS = 1.0
"""Seconds for which a site that ends waits for the first answer."""


def is_answered(site: Site, seconds: float = LAST_ANSWER_SECONDS) -> bool:
    """Whether a server ever gave an order to this site; one that knows it does so at once."""
    until = time.monotonic() + seconds
    while not (site.epoch or site.refused) and time.monotonic() < until:
        time.sleep(0.02)
    if site.refused:
        raise UnknownSite(site.name)
    return site.epoch > 0


def not_taken(site: Site, place: str, journal: str | os.PathLike[str] | None) -> str:
    """What to say of a site that ends without any answer."""
    if journal is not None:
        rest = f"it is kept in the journal {os.fspath(journal)}: run the site again with it"
    elif place.startswith("redis"):
        rest = "the broker keeps it for a server that starts"
    else:
        rest = "it is lost: give the site a journal"
    return (
        f"no server at {place} answered site {site.name!r}, so its count {site.count:,} was not "
        f"taken; {rest}; check the address and the name (a server says so if it does not know "
        f"it), or start the server"
    )


@contextmanager
def note_silence(site: Site, place: str, notes: Notes) -> Iterator[None]:
    """Inside, say once, after a while, that no server answers or that the one there refuses."""

    def look() -> None:
        if site.refused:
            notes.say(str(UnknownSite(site.name)), about=UnknownSite)
        elif not site.epoch:
            notes.say(
                f"no server has answered yet at {place}; start one, or check the address and the "
                f"name {site.name!r}",
                about=note_silence,
            )

    timer = threading.Timer(UNANSWERED_SECONDS, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# Membership --------------------------------------------------------------------------------------


HEARTBEAT_SECONDS = 2.0
"""Seconds of silence after which a site says again what it said last; something new sooner."""


@contextmanager
def join(
    address: str | Transport,
    name: str,
    journal: str | os.PathLike[str] | None = None,
    heartbeat: float = HEARTBEAT_SECONDS,
    notes: Notes | None = None,
) -> Iterator[Site]:
    """Count as this site of a tracker for the length of the block; its last word is its count.

    Without a journal a site that ends comes back as another one: its count starts at zero, and
    what its predecessor had reported stays counted as long as the server lives. One with a journal
    goes on where it was. Where the server does not know the name, the next `add` or the end of the
    block raises `UnknownSite`; where no server answers for some seconds, a note says so.
    """
    with _book(name, journal, heartbeat) as book:
        place = without_secrets(address) if isinstance(address, str) else "the transport given"
        transport = open_transport(address, notes) if isinstance(address, str) else address
        try:
            with _run_site(transport, name, book, heartbeat) as site, ExitStack() as stack:
                if isinstance(transport, Network):
                    stack.enter_context(_note_if_unanswered(site, place, journal, notes or Notes()))
                yield site
        finally:
            transport.close()


@contextmanager
def _note_if_unanswered(
    site: Site, place: str, journal: str | os.PathLike[str] | None, notes: Notes
) -> Iterator[None]:
    """Inside, and at the end, say so where nobody takes what is counted."""
    with note_silence(site, place, notes):
        yield
        if not is_answered(site) and site.count:
            notes.say(not_taken(site, place, journal), about=not_taken)


@contextmanager
def attach(
    transport: Transport,
    name: str,
    journal: str | os.PathLike[str] | None = None,
    heartbeat: float = HEARTBEAT_SECONDS,
) -> Iterator[Site]:
    """The same over a transport that is open already and stays open."""
    with (
        _book(name, journal, heartbeat) as book,
        _run_site(transport, name, book, heartbeat) as site,
    ):
        yield site


@contextmanager
def _book(
    name: str, journal: str | os.PathLike[str] | None, heartbeat: float
) -> Iterator[Journal[JournalEntry]]:
    """The journal, once it is known that nothing is wrong with what was asked for."""
    if not 0 < heartbeat < threading.TIMEOUT_MAX:
        raise Misconfigured(f"a heartbeat is a number of seconds above 0, got {heartbeat:g}")
    if journal is None:
        yield MemoryJournal(new_number())
        return
    with closing(FileJournal(Path(journal), name)) as book:
        yield book


@contextmanager
def _run_site(
    transport: Transport, name: str, book: Journal[JournalEntry], heartbeat: float
) -> Iterator[Site]:
    with _Pulse(transport.report, heartbeat) as pulse:
        site = Site(name, pulse.send, journal=book)
        pulse.start(site)
        if isinstance(transport, Network):
            transport.when_disowned(name, site.refuse)
        transport.join(name, pulse.obey)
        site.add(0)  # pass what it was killed before passing
        site.report()
        yield site
    site.report()


class _Pulse:
    """A site's life on a network: it obeys, and says again what it said in silence."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self._beats = Beats()
        self._over = threading.Event()
        # Nothing is obeyed once the journal may be closed; an answer may lead to the next order.
        self._obeying = threading.RLock()
        self._thread: threading.Thread | None = None
        self._site: Site | None = None

    def send(self, report: SiteReport) -> None:
        """Send, and remember that something was."""
        self._beats.note_sent(report)
        self._send(report)

    def start(self, site: Site) -> None:
        """Begin to beat for this site."""
        self._site = site
        self._thread = threading.Thread(target=self._beat, args=(site,), daemon=True)
        self._thread.start()

    def obey(self, order: Order) -> None:
        """Let the site obey, as long as it is there."""
        with self._obeying:
            if self._site is not None and not self._over.is_set():
                self._site.obey(order)

    def _beat(self, site: Site) -> None:
        while not self._over.wait(self._seconds / BEATS_PER_HEARTBEAT):
            if self._beats.is_due():
                site.report()

    def __enter__(self) -> "_Pulse":
        return self

    def __exit__(self, *_: object) -> None:
        with self._obeying:
            self._over.set()
        if self._thread is not None:
            self._thread.join()


# Where items come from: lines of a pipe, or a rate for trying it out -----------------------------


Counted = Callable[[list[bytes]], int]
"""How many items some lines stand for."""

_READ_BYTES = 1 << 16
_POLL_SECONDS = 0.1  # seconds after which a feed sees that it is over
_PORTION_SECONDS = 0.01  # seconds between two portions of a rate


def each_line(lines: list[bytes]) -> int:
    """Every line is one item.

    >>> each_line([b"GET /", b"", b"GET /a"])
    3
    """
    return len(lines)


class Numbers:
    """Every line is a number of items; one that is none is noted and counts nothing.

    >>> Numbers(Notes(say=print))([b"3", b" 4 ", b"-1", b""])
    a line of the input is no number of items and was left out; send whole numbers, or use --lines
    7
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.left_out = 0  # lines that are no number

    def __call__(self, lines: list[bytes]) -> int:
        """The sum of the lines."""
        return sum(map(self._number, lines))

    def _number(self, line: bytes) -> int:
        text = line.strip()
        if text.isdigit() and len(text) <= 18:
            return int(text)
        if text:
            self.left_out += 1
            self._notes.say(
                "a line of the input is no number of items and was left out; "
                "send whole numbers, or use --lines",
                about=Numbers,
            )
        return 0


def read_pipe(source: int, counted: Counted, over: Over) -> Iterator[int]:
    """How many items each piece of a pipe stands for, until it ends or it is over."""
    rest = b""
    while piece := _read(source, over):
        *lines, rest = (rest + piece).split(b"\n")
        yield counted(lines)
    if rest:
        yield counted([rest])  # a last line without an end


def _read(source: int, over: Over) -> bytes:
    """The next piece, or nothing when there is none any more."""
    while not over.is_set():
        if select.select([source], [], [], _POLL_SECONDS)[0]:
            return os.read(source, _READ_BYTES)
    return b""


def at_rate(rate: float, over: Over) -> Iterator[int]:
    """So many items a second, in small portions, until it is over."""
    begun, sent = time.monotonic(), 0
    while not over.is_set():
        time.sleep(_PORTION_SECONDS)
        due = int((time.monotonic() - begun) * rate)
        yield due - sent
        sent = due
