"""Ctrl-C, and a limit that a check does not keep, end the check that runs and no more.

The first Ctrl-C stops the clock of the searches, which then end by themselves with what they have
proved. A check that has not ended a moment later, or a moment after the limit, is broken off. A
second Ctrl-C ends the program as it always does.
"""

import _thread
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Self

from casemate.audit.time_limit import Clock, Stop

GRACE_SECONDS = 1.0
"""How long a check may go on once its clock is over."""

LOOKS_PER_SECOND = 10


class CheckBroken(KeyboardInterrupt):
    """A check was broken off: it did not end by itself in time."""


class CheckGuard:
    """Breaks off a check that does not end in time; in the main thread of a program only.

    Signals are seen by a thread of its own, because the main thread hears of none while it is in a
    solver's code.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._clock: Clock | None = None
        self._over_since: float | None = None
        self._lock = threading.Lock()
        self._holding = self._running = self._broke = False
        self._sent = self._read_own = False  # a signal of this thread, to be handled and to be read
        self._asked = self._again = False  # somebody interrupts for the first, the second time

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()  # no other is interrupted
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._heard, told = socket.socketpair()
            self._told = told
            told.setblocking(False)
            self._heard.settimeout(1 / LOOKS_PER_SECOND)
            self._before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGINT, self._handle)
            self._holding = True
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._holding:
            self._holding = False
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.set_wakeup_fd(self._before)
            self._told.send(b"\0")  # wakes the thread
            self._thread.join()
            self._heard.close()
            self._told.close()

    def ran(self, check: Callable[[], None], clock: Clock) -> bool:
        """Run a check; False if it was broken off, or interrupted, which stops all others too."""
        with self._lock:
            self._clock, self._over_since, self._broke = clock, None, False
        self._running = True
        try:
            check()
        except BaseException as error:  # a library may have put another in its place
            if self._again or not (self._broke or isinstance(error, KeyboardInterrupt)):
                raise
            if not self._broke:
                self._stop.now()
            return False
        finally:
            self._running = False
            with self._lock:
                self._clock = None
        return True

    def _look(self) -> None:
        """Stop searches at the first signal, and break off what does not heed the clock."""
        while self._holding:
            try:
                came = signal.SIGINT in self._heard.recv(64)
            except TimeoutError:
                came = False
            if came and not self._read_own:
                self._stop.now()
            self._read_own = self._read_own and not came
            with self._lock:
                if self._is_late():
                    self._clock, self._sent, self._read_own = None, True, True
                    _thread.interrupt_main()

    def _is_late(self) -> bool:
        clock = self._clock
        if clock is None or not clock.over:
            return False
        if self._over_since is None:
            self._over_since = time.monotonic()
        return time.monotonic() - self._over_since > GRACE_SECONDS

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._sent:
            self._sent, self._broke = False, self._running
            if self._running:
                raise CheckBroken
        elif self._asked:
            self._again = True
            raise KeyboardInterrupt
        else:
            self._asked = True
