"""Whether a server takes what a site counts; one that never came would be found out too late."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from casemate.errors import UnknownSite
from casemate.track.site import Site
from casemate.track.transport.notes import Notes

UNANSWERED = 3.0
"""Seconds after which a site says that no server answered."""

LAST_WAIT = 1.0
"""Seconds for which a site that ends waits for the first answer."""


def is_answered(site: Site, seconds: float = LAST_WAIT) -> bool:
    """Whether a server ever gave an order to this site; one that knows it does so at once."""
    until = time.monotonic() + seconds
    while not (site.epoch or site.refused) and time.monotonic() < until:
        time.sleep(0.02)
    if site.refused:
        raise UnknownSite(site.name)
    return site.epoch > 0


def not_taken(site: Site, place: str, journal: str | os.PathLike[str] | None) -> str:
    """What to say of a site that ends without any answer."""
    if journal is not None:
        rest = f"it is kept in the journal {os.fspath(journal)}: run the site again with it"
    elif place.startswith("redis"):
        rest = "the broker keeps it for a server that starts"
    else:
        rest = "it is lost: give the site a journal"
    return (
        f"no server at {place} answered site {site.name!r}, so its count {site.count:,} was not "
        f"taken; {rest}; check the address and the name (a server says so if it does not know "
        f"it), or start the server"
    )


@contextmanager
def noting_silence(site: Site, place: str, notes: Notes) -> Iterator[None]:
    """Inside, say once, after a while, that no server answers or that the one there refuses."""

    def look() -> None:
        if site.refused:
            notes.say(str(UnknownSite(site.name)), about=UnknownSite)
        elif not site.epoch:
            notes.say(
                f"no server has answered yet at {place}; start one, or check the address and the "
                f"name {site.name!r}",
                about=noting_silence,
            )

    timer = threading.Timer(UNANSWERED, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
