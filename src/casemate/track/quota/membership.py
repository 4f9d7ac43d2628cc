"""A site's place in a quota whose server runs elsewhere.

>>> from casemate.track.quota.membership import join
>>> def work(address, requests):  # in each worker
...     with join(address, "edge-7", journal="edge-7.journal") as site:
...         for request in requests:
...             if site.acquire():
...                 request()
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from casemate.errors import CasemateError
from casemate.track.quota.broker import PATIENCE, opened
from casemate.track.quota.site import QuotaSite
from casemate.track.quota.site_journal import FileJournal, Memory
from casemate.track.quota.transport import Transport


@contextmanager
def join(
    address: str | Transport,
    name: str,
    journal: str | os.PathLike[str] | None = None,
    patience: float = PATIENCE,
) -> Iterator[QuotaSite]:
    """Admit as this site of a quota for the length of the block.

    A site with a journal that ends, or is killed, goes on later where it was. Without one it comes
    back as another, and what its lease had left is lost to everybody: never too much is admitted.
    `acquire` raises `UnknownSite` where the server was not made for this name, and `Refused` where
    the server that answers is not the one with this quota's journal, or not the only one.
    """
    book = Memory() if journal is None else FileJournal(Path(journal))
    with closing(book), closing(opened(address)) as transport:  # the journal is closed last
        site = QuotaSite(name, transport, book, patience)
        try:
            yield site
        finally:
            with suppress(CasemateError):  # a server in this process may refuse to hear it
                site.tell()
