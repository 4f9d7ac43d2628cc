"""A hard limit in one object: its server, its sites, and the messages between them."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from casemate.errors import Misconfigured, UnknownSite
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.server_journal import ServerFile, ServerMemory
from casemate.track.quota.site import QuotaSite
from casemate.track.quota.site_journal import FileJournal, Memory
from casemate.track.quota.transport import InProcess, Transport

PATIENCE = 0.25
"""Seconds a site waits for an answer over a network before it asks again."""


class Quota:
    """At most `limit` things are admitted, by all sites together, ever.

    >>> quota = Quota(limit=100, sites=["paris", "tokyo"])
    >>> quota.site("paris").acquire(60), quota.site("tokyo").acquire(30)
    (True, True)
    >>> quota.site("tokyo").acquire(30), quota.left()
    (False, 10)

    With a folder for its journals it survives the end of its process. In several processes, make a
    `QuotaServer` in one of them and a `QuotaSite` in each of the others.
    """

    def __init__(
        self,
        limit: int,
        sites: int | Sequence[str] = 1,
        *,
        remainder: float = 0.01,  # the share that may be left over when somebody is refused
        journal: Path | str | None = None,
        transport: Transport | None = None,
    ) -> None:
        names = _names(sites)
        folder = _folder(journal)
        self._transport = transport or InProcess()
        kept = ServerFile(folder / "quota.sqlite") if folder else ServerMemory()
        try:
            self.server = QuotaServer(
                limit, names, self._transport, remainder=remainder, journal=kept
            )
        except BaseException:
            kept.close()
            raise
        patience = 0.0 if transport is None else PATIENCE
        self._sites: dict[str, QuotaSite] = {}
        try:
            for name in names:
                own = FileJournal(folder / f"site-{quote(name, safe='')}") if folder else Memory()
                self._sites[name] = QuotaSite(name, self._transport, own, patience)
        except BaseException:
            self.close()
            raise

    @property
    def limit(self) -> int:
        """The limit in force."""
        return self.server.limit

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of all sites."""
        return tuple(self._sites)

    @property
    def messages(self) -> int:
        """Messages in both directions so far."""
        return sum(self.server.messages.values())

    def site(self, name: str | int) -> QuotaSite:
        """The site of this name."""
        if str(name) not in self._sites:
            raise UnknownSite(str(name))
        return self._sites[str(name)]

    def acquire(self, n: int = 1) -> bool:
        """Admit n things at the only site."""
        if len(self._sites) > 1:
            raise ValueError(f"this quota has {len(self._sites)} sites; call site(name).acquire(n)")
        return next(iter(self._sites.values())).acquire(n)

    def left(self) -> int:
        """What can surely be admitted yet; what incarnations hold that are gone does not count."""
        free = self.server.limit - self.server.granted
        return max(0, free) + sum(site.left for site in self._sites.values())

    def raise_limit(self, limit: int) -> None:
        """Allow more from now on."""
        self.server.raise_limit(limit)

    def lower_limit(self, limit: int) -> int:
        """Allow less: the limit in force afterwards, which is never below what was used."""
        return self.server.lower_limit(limit)

    def close(self) -> None:
        """Let go of the journals and of the transport."""
        for site in self._sites.values():
            site.close()
        self._sites = {}
        self.server.close()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _names(sites: int | Sequence[str]) -> list[str]:
    if isinstance(sites, int):
        return [str(number) for number in range(sites)]
    return list(sites)


def _folder(journal: Path | str | None) -> Path | None:
    if journal is None:
        return None
    folder = Path(journal)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as reason:
        raise Misconfigured(
            f"the folder {folder} for a quota's journals cannot be made ({reason.strerror}); "
            f"name one that can be written"
        ) from reason
    return folder
