"""Waiting for what other threads and processes do: long enough on any machine, no longer."""

import time
from collections.abc import Callable

PATIENCE = 30.0


def eventually(happened: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Return when it has happened; fail when it has not for a long time."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
