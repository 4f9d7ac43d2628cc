"""Durable stores: one SQLite file for many processes, or one session of PostgreSQL."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.book.files import connected, locked, make_durable, open_private
    from casemate.privacy.book.postgres_session import PostgresSession, address_and_prefix
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
