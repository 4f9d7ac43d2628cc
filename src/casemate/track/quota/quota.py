"""A hard limit in one object: its server, its sites, and the messages between them.

`join` is a site's place in a quota whose server runs elsewhere:

>>> from casemate.track.quota.quota import join
>>> def work(address, requests):  # in each worker
...     with join(address, "edge-7", journal="edge-7.journal") as site:
...         for request in requests:
...             if site.acquire():
...                 request()
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

from casemate.errors import CasemateError, Misconfigured, UnknownSite
from casemate.track.journal import MemoryJournal, folder_of, new_number
from casemate.track.messages import site_names
from casemate.track.quota.broker import ANSWER_TIMEOUT_SECONDS, Broker, open_quota_transport
from casemate.track.quota.journals import QuotaFileJournal, ServerFile, ServerMemory, SiteJournal
from casemate.track.quota.messages import QuotaInProcess, QuotaTransport
from casemate.track.quota.server import QuotaServer
from casemate.track.quota.site import QuotaSite
from casemate.track.transport.network import DirectCarrier, token


class Quota:
    """At most `limit` things are admitted, by all sites together, as long as its journal is kept.

    >>> quota = Quota(limit=100, sites=["paris", "tokyo"])
    >>> quota.site("paris").acquire(60), quota.site("tokyo").acquire(30)
    (True, True)
    >>> quota.site("tokyo").acquire(30), quota.left()
    (False, 10)

    With a folder for its journals it survives the end of its process. Without a transport all sites
    are in this process. With one, or with the address of a broker, this is the server of sites
    anywhere, which `casemate.track.quota.quota.join` makes; those that `site` gives are in
    this process, too. It serves until it is closed or its process ends.

    Such a server needs a journal, since workers outlive it, and an address has one server with one
    journal: another server is refused, and so is another journal where workers hold leases of the
    first. A journal that is lost is a limit begun anew; of what was admitted before, only what
    workers say who are there then is known.
    """

    def __init__(
        self,
        limit: int,
        sites: int | Sequence[str] = 1,
        *,
        remainder: float = 0.01,  # the share that may be left over when somebody is refused
        journal: Path | str | None = None,
        transport: QuotaTransport | str | None = None,
    ) -> None:
        names = site_names(sites)
        _ensure_journal(transport, journal)
        self._names = dict.fromkeys(names)  # in their order
        self._folder = folder_of(journal)
        self._patience = 0.0 if transport is None else ANSWER_TIMEOUT_SECONDS
        self._sites: dict[str, QuotaSite] = {}
        self._making, self._over = threading.Lock(), False
        with ExitStack() as stack:
            path = self._folder and self._folder / "quota.sqlite"
            server_journal = ServerFile(path) if path else ServerMemory()
            stack.callback(server_journal.close)
            stack.callback(self._close_sites)
            self._transport = QuotaInProcess() if transport is None else _open_for(transport, names)
            stack.callback(self._transport.close)  # first: then nothing is delivered any more
            if isinstance(self._transport, Broker):
                _, leased = server_journal.load(limit)
                self._transport.prepare(server_journal.window, () if leased else names)
            self.server = QuotaServer(
                limit, names, self._transport, remainder=remainder, journal=server_journal
            )
            if isinstance(self._transport, Broker):
                self._transport.guard(self.server)
            if transport is None:
                for name in names:
                    self.site(name)
            self._held = stack.pop_all()

    @property
    def limit(self) -> int:
        """The limit in force."""
        return self.server.limit

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of all sites."""
        return tuple(self._names)

    @property
    def messages(self) -> int:
        """Messages in both directions so far."""
        return sum(self.server.messages.values())

    def site(self, name: str | int) -> QuotaSite:
        """The site of this name, in this process."""
        made = self._sites.get(str(name))
        return self._make_site(str(name)) if made is None else made

    def _make_site(self, name: str) -> QuotaSite:
        if name not in self._names:
            raise UnknownSite(name)
        with self._making, ExitStack() as stack:
            if self._over:
                raise ValueError("this quota is closed; make it again to go on")
            if name not in self._sites:
                journal = self._journal(name)
                stack.callback(journal.close)  # unless the site can be made
                self._sites[name] = QuotaSite(name, self._transport, journal, self._patience)
                stack.pop_all()
            return self._sites[name]

    def _journal(self, name: str) -> SiteJournal:
        if self._folder is None:
            return MemoryJournal(new_number())
        return QuotaFileJournal(self._folder / f"site-{quote(name, safe='')}")

    def acquire(self, n: int = 1) -> bool:
        """Admit n things at the only site."""
        if len(self._names) > 1:
            raise ValueError(f"this quota has {len(self._names)} sites; call site(name).acquire(n)")
        return self.site(*self._names).acquire(n)

    def left(self) -> int:
        """What this process could admit by itself: what nobody holds, and what its own sites hold.

        What workers elsewhere hold is theirs, used or not: this may be 0 while they go on for long.
        """
        free = self.server.limit - self.server.granted
        return max(0, free) + sum(site.left for site in list(self._sites.values()))

    def admitted(self) -> int:
        """What was admitted so far, at least: by the sites of this process, and what others said.

        A worker says what it used whenever it asks for more or gives back, and not in between; so
        this is exact where all sites are in this process, and otherwise it may be more by now.
        """
        heard = self.server.heard  # first, or what is said meanwhile would count twice
        return heard + sum(
            site.unsaid(self.server.reported_use) for site in list(self._sites.values())
        )

    def raise_limit(self, limit: int) -> None:
        """Allow more from now on."""
        self.server.raise_limit(limit)

    def lower_limit(self, limit: int) -> int:
        """Allow less: the limit in force afterwards, which is never below what was used."""
        return self.server.lower_limit(limit)

    def close(self) -> None:
        """Let go of the transport and of the journals."""
        self._held.close()

    def _close_sites(self) -> None:
        with self._making:
            self._over = True
            for site in self._sites.values():
                site.close()
            self._sites = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ensure_journal(transport: QuotaTransport | str | None, journal: Path | str | None) -> None:
    if journal is None and not isinstance(transport, DirectCarrier | None):
        raise Misconfigured(
            "a quota that other processes can reach needs a journal, or it would lease its limit "
            "once more when it is started again; give it journal=FOLDER"
        )


def _open_for(transport: QuotaTransport | str, names: Sequence[str]) -> QuotaTransport:
    """The transport, once it is known that every name can travel."""
    if isinstance(transport, str | Broker):
        for name in names:
            token(name)
    return open_quota_transport(transport)


# A place in a quota elsewhere --------------------------------------------------------------------


@contextmanager
def join(
    address: str | QuotaTransport,
    name: str,
    journal: str | os.PathLike[str] | None = None,
    patience: float = ANSWER_TIMEOUT_SECONDS,
) -> Iterator[QuotaSite]:
    """Admit as this site of a quota for the length of the block.

    A site with a journal that ends, or is killed, goes on later where it was. Without one it comes
    back as another, and what its lease had left is lost to everybody: never too much is admitted.
    `acquire` raises `UnknownSite` where the server was not made for this name, and `Refused` where
    the server that answers is not the one with this quota's journal, or not the only one.
    """
    book: SiteJournal
    book = MemoryJournal(new_number()) if journal is None else QuotaFileJournal(Path(journal))
    with (
        closing(book),
        closing(open_quota_transport(address)) as transport,
    ):  # the journal is closed last
        site = QuotaSite(name, transport, book, patience)
        try:
            yield site
        finally:
            with suppress(CasemateError):  # a server in this process may refuse to hear it
                site.tell()
