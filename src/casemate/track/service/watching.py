"""Those who watch: counts as they are shown, with how fast words are sent."""

import queue
import time
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.errors import Misconfigured
from casemate.track.count import Count
from casemate.track.service.over import Over
from casemate.track.transport.network import Network

_TURN = 0.1  # seconds after which a watcher sees that it is over


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
            now = shown.get(timeout=_TURN)
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
