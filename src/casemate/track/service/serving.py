"""The server process: it takes reports from a network, and shows the count now and then."""

import queue
import threading
import time
from collections.abc import Callable, Sequence

from casemate.errors import Refused
from casemate.track.count import Count
from casemate.track.engine import Engine
from casemate.track.messages import Report
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Timing
from casemate.track.service.over import Over
from casemate.track.transport.network import Network, token
from casemate.track.transport.notes import Notes

_TICK = 0.02  # seconds between two looks at the clock, at least


class Serving:
    """A server that lives in one thread; what comes from the network waits in line for it."""

    def __init__(
        self,
        network: Network,
        sites: Sequence[str],
        engine: Engine,
        timing: Timing = Timing(),  # noqa: B008 - immutable
        notes: Notes | None = None,
    ) -> None:
        for site in sites:
            token(site)  # a name that cannot travel is refused before anything is asked
        self._network, self._timing = network, timing
        server = Server(sites, engine, network.order, send_all=network.order_all)
        self.attendant = Attendant(server, sites, timing, notes=notes, disown=network.disown)
        # No SimpleQueue: interrupted by a signal at its deadline, its `get` may wait for ever.
        self._inbox: queue.Queue[Report | None] = queue.Queue()  # None: show the count
        self._turn = threading.Lock()

    def run(self, over: Over, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until it is over, `ready` once nothing is missed; nothing needs to be saved."""
        self._network.serve(self._inbox.put)
        self._network.when_asked(lambda: self._inbox.put(None))
        with self._turn:
            self.attendant.open()
        self._network.recall(self._inbox.put)
        ready()
        show = _Every(self._timing.interval)
        while not over.is_set():
            self._take_one()
            with self._turn:
                self.attendant.tick()
            if show.is_due():
                self._show()

    def read(self) -> Count:
        """The count as it is known now; any thread may ask."""
        with self._turn:
            return self.attendant.read()

    def poll(self) -> int:
        """Call a round, and give the number that the one it begins will have."""
        with self._turn:
            self.attendant.poll()
            return self.attendant.server.rounds + 1

    def exact(self, round_number: int) -> int | None:
        """What all sites answered at the beginning of a round; None before, or if one did not."""
        server = self.attendant.server
        with self._turn:
            return server.heard if server.rounds >= round_number and not server.awaited else None

    def _take_one(self) -> None:
        try:
            report = self._inbox.get(timeout=min(_TICK, self._timing.repeat / 4))
        except queue.Empty:
            return
        if report is None:
            self._show()
        else:
            with self._turn:
                self.attendant.receive(report)

    def _show(self) -> None:
        """Show the count, once there is one: before the first answers nothing is known."""
        if self.attendant.server.rounds:
            self._network.show(self.read())


class _Every:
    """Whether an interval has passed since the last time it had."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._next = seconds, 0.0

    def is_due(self) -> bool:
        now = time.monotonic()
        due = now >= self._next
        if due:
            self._next = now + self._seconds
        return due


def serve(
    network: Network,
    sites: Sequence[str],
    engine: Engine,
    over: Over,
    *,
    timing: Timing = Timing(),  # noqa: B008 - immutable
    notes: Notes | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until it is over: count what the sites report, and show it to whoever watches."""
    Serving(network, sites, engine, timing, notes).run(over, ready)


def ensure_alone(network: Network, over: Over, place: str, seconds: float = 0.75) -> None:
    """Refuse to be the second server of one subject; the first would answer at once.

    One that still waits for its first answers shows nothing and is not seen here; its clock or
    ours is then found to be behind the epoch of the other.
    """
    shown: queue.Queue[Count] = queue.Queue()
    network.watch(shown.put)
    until = time.monotonic() + seconds
    while shown.empty() and time.monotonic() < until and not over.is_set():
        time.sleep(_TICK)
    network.look_away()
    if not shown.empty():
        raise Refused(f"another server shows counts at {place}; stop it, or use another subject")
