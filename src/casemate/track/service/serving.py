"""The server process: it takes reports from a network, and shows the count to those who watch.

`Serving` is the process itself, `InBackground` the same in a thread beside other work, and `watch`
gives the counts as they are shown, with how fast words are sent.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from casemate.errors import Misconfigured, Refused
from casemate.track.engine import Engine
from casemate.track.messages import SiteReport
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Over, Timing
from casemate.track.setting import Count
from casemate.track.transport.network import Network, Notes, token

_TICK_SECONDS = 0.02  # seconds between two looks at the clock, at least


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
        self._inbox: queue.Queue[SiteReport | None] = queue.Queue()  # None: show the count
        self._turn = threading.Lock()

    def run(self, over: Over, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until it is over, `ready` once nothing is missed; nothing needs to be saved."""
        self._network.serve(self._inbox.put)
        self._network.when_asked(lambda: self._inbox.put(None))
        with self._turn:
            self.attendant.open()
        self._network.recall(self._inbox.put)
        ready()
        show_at = 0.0
        while not over.is_set():
            self._take_one()
            with self._turn:
                self.attendant.tick()
            now = time.monotonic()
            if now >= show_at:
                show_at = now + self._timing.interval
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
            report = self._inbox.get(timeout=min(_TICK_SECONDS, self._timing.repeat / 4))
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


def ensure_alone(network: Network, over: Over, place: str, seconds: float = 0.75) -> None:
    """Refuse to be the second server of one subject; the first would answer at once.

    One that still waits for its first answers shows nothing and is not seen here; its clock or
    ours is then found to be behind the epoch of the other.
    """
    shown: queue.Queue[Count] = queue.Queue()
    network.watch(shown.put)
    until = time.monotonic() + seconds
    while shown.empty() and time.monotonic() < until and not over.is_set():
        time.sleep(_TICK_SECONDS)
    network.look_away()
    if not shown.empty():
        raise Refused(f"another server shows counts at {place}; stop it, or use another subject")


# Beside the work of a process --------------------------------------------------------------------


_ANSWER_POLL_SECONDS = 0.002  # seconds between two looks at whether answers are in


class InBackground:
    """Serves from when it is made until it is closed."""

    def __init__(self, network: Network, sites: Sequence[str], engine: Engine) -> None:
        self._timing = Timing()
        self._serving = Serving(network, sites, engine, self._timing)
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._serving.run(self._over)
        except BaseException as error:  # noqa: BLE001 - whoever reads next is told, whatever it was
            self._failure = error

    def read(self) -> Count:
        """The count with its lag, and the sites whose counts are frozen."""
        if self._failure is not None:
            raise self._failure
        return self._serving.read()

    def poll(self) -> Count:
        """Ask every site and wait for the answers: exact, unless some stay away."""
        number = self._serving.poll()
        until = time.monotonic() + self._timing.patience + 1.0
        while time.monotonic() < until:
            exact = self._serving.exact(number)
            if exact is not None:
                value = float(exact)
                return replace(self.read(), value=value, lo=value, hi=value, confidence=1.0)
            time.sleep(_ANSWER_POLL_SECONDS)
        return self.read()

    def close(self) -> None:
        """Stop serving."""
        self._over.set()
        self._thread.join()


# Those who watch ---------------------------------------------------------------------------------


_WATCH_POLL_SECONDS = 0.1  # seconds after which a watcher sees that it is over


@dataclass(frozen=True)
class Sight:
    """A count that was shown, and the words a second since the one before."""

    count: Count
    words_per_second: float | None  # None for the first


def watch(network: Network, over: Over, wait: float = 15.0) -> Iterator[Sight]:
    """Every count that is shown until it is over; nothing for `wait` seconds at first is wrong."""
    shown: queue.Queue[tuple[float, Count]] = queue.Queue()
    network.watch(lambda count: shown.put((time.monotonic(), count)))
    before: tuple[float, Count] | None = None
    deadline = time.monotonic() + wait
    while not over.is_set():
        try:
            now = shown.get(timeout=_WATCH_POLL_SECONDS)
        except queue.Empty:
            if before is None and time.monotonic() >= deadline:
                raise _nobody(wait) from None
            continue
        yield Sight(now[1], _rate(before, now))
        before = now


def _nobody(wait: float) -> Misconfigured:
    return Misconfigured(
        f"no server showed a count for {wait:g} s; one may still be waiting for its sites (its "
        f"--patience), or start `casemate track server` on this address, or check the subject"
    )


def _rate(before: tuple[float, Count] | None, now: tuple[float, Count]) -> float | None:
    """Words a second; a server that started again counts from zero."""
    if before is None or now[0] <= before[0]:
        return None
    return max(0, now[1].words - before[1].words) / (now[0] - before[0])
