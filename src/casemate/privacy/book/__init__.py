"""One hash-chained, append-only book: in memory, in an SQLite file, or in PostgreSQL.

`chain` is its form and its hashes, `book` its stores; `files` and `postgres_session` are the two
engines, and `files` also opens files that only their owner may use.
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
    from casemate.privacy.book.chain import START, Form, Head, canonical_json
    from casemate.privacy.book.files import (
        connect_sqlite,
        flush_folder,
        make_durable,
        open_private,
        write_transaction,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
