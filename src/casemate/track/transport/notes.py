"""What a process that must go on says about what went wrong: one line, and not again and again."""

import logging
import time
from collections.abc import Callable

Say = Callable[[str], None]
_LOG = logging.getLogger("casemate.track")  # to stderr where nobody set logging up
AGAIN_AFTER = 60.0
"""Seconds until the same trouble is worth another line."""


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
        if now - self._said.get(about, -AGAIN_AFTER) >= AGAIN_AFTER:
            self._said[about] = now
            self._say(sentence)
