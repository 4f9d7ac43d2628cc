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
from contextlib import closing, contextmanager
from pathlib import Path

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
    """
    book = Memory() if journal is None else FileJournal(Path(journal))
    with closing(book), closing(opened(address)) as transport:  # the journal is closed last
        yield QuotaSite(name, transport, book, patience)
