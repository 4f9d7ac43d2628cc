"""What a process that must go on says about what went wrong: one line, and not again and again."""

import logging
import time
from collections.abc import Callable

from casemate.errors import CasemateError
from casemate.track.transport.wire import Take

Say = Callable[[str], None]
_LOG = logging.getLogger("casemate.track")  # to stderr where nobody set logging up
AGAIN_AFTER = 60.0
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
        if now - self._said.get(about, -AGAIN_AFTER) >= AGAIN_AFTER:
            self._said[about] = now
            self._say(sentence)

    def lost(self, place: str) -> None:
        """Say that a broker went away."""
        self.say(f"the broker at {place} is lost; trying to reach it again", about=("lost", place))

    def back(self, place: str) -> None:
        """Say that a broker is there again."""
        self.say(f"the broker at {place} is back", about=("back", place))

    def careful(self, take: Take) -> Take:
        """The same, with what casemate refuses said instead of raised."""

        def taken(data: bytes) -> None:
            try:
                take(data)
            except CasemateError as error:
                self.say(str(error), about=type(error))

        return taken
