"""A server on a network beside the work of a process: in a thread of its own."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from casemate.track.count import Count
from casemate.track.engine import Engine
from casemate.track.service.attendant import Timing
from casemate.track.service.serving import Serving
from casemate.track.transport.network import Network

_LOOK = 0.002  # seconds between two looks at whether answers are in


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
            time.sleep(_LOOK)
        return self.read()

    def close(self) -> None:
        """Stop serving."""
        self._over.set()
        self._thread.join()
