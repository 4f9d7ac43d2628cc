"""One hash-chained, append-only book: in memory, in an SQLite file, or in PostgreSQL.

`book` is its form, its chain and its stores; `files` and `postgres_session` are the two engines.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.book.book import (
        IN_MEMORY,
        Book,
        MemoryBook,
        Result,
        SqlStore,
        Store,
        open_book,
    )
    from casemate.privacy.book.chain import START, Form, Head
    from casemate.privacy.book.files import connected, locked, make_durable, open_private
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
