"""When a site says again what it said: soon after something new, and then now and then.

A window is used up when its site reports, so a report that is lost is an error that grows until the
next one. Said again after a sixteenth of a heartbeat and after a quarter of one, it is late for a
moment instead; that is at most two words more for each that has something new, and none for a site
that has something new all the time.
"""

from casemate.track.messages import Report

BEATS = 16
"""Beats in a heartbeat, after which a silent site repeats itself in any case."""

_SOON = (1, 4)  # beats after which something new is said again


class Beats:
    """The silence of one site, in beats.

    >>> beats = Beats()
    >>> beats.sent(Report("a", 7, 3, 10, 2, 15))
    >>> [beat for beat in range(40) if beats.is_due()]
    [1, 4, 16, 32]
    """

    def __init__(self) -> None:
        self._said: tuple[int, int] | None = None
        self._new = False
        self._silent = 0

    def sent(self, report: Report) -> None:
        """Something was sent, perhaps new; any thread may say so."""
        said = report.epoch, report.reports
        if said != self._said:
            self._said, self._new = said, True

    def is_due(self) -> bool:
        """Whether the site should say again what it said; ask once in each beat."""
        self._silent = 0 if self._new else self._silent + 1
        self._new = False
        return self._silent in _SOON or (self._silent > 0 and self._silent % BEATS == 0)
