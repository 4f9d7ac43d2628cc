"""Processes that do a piece of work and end: they may be killed on the way."""

import os
import traceback
from collections.abc import Callable

FINISHED, FAILED = 0, 1
"""How a process ends that was not killed."""


def forked(work: Callable[[], None]) -> int:
    """Start a process that does the work, and return its number."""
    child = os.fork()
    if child == 0:
        status = FAILED
        try:
            work()
            status = FINISHED
        finally:
            if status == FAILED:
                traceback.print_exc()
            os._exit(status)  # nothing of the parent's is cleaned up here
    return child


def ended(child: int) -> int:
    """How a process ended, once it has."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
