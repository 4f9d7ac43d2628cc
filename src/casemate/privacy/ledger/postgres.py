"""A ledger in a PostgreSQL database, shared by the processes of several hosts.

Where      postgresql://…/database#name keeps the tables `name_entries` and `name_head`; without a
           name they are `casemate_ledger_entries` and `casemate_ledger_head`. They are made if they
           are absent; after that a role needs only SELECT and INSERT on the first and SELECT and
           UPDATE on the second.
Shared     A transaction starts by locking the head row (SELECT … FOR UPDATE) and reads nothing
           before it holds the lock, so READ COMMITTED shows it every charge there is.
Durable    A session with synchronous_commit = off switches it on, and a server with fsync = off is
           refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from casemate.errors import LedgerDamaged, Misconfigured
from casemate.privacy.book.postgres_session import PostgresSession, address_and_prefix
from casemate.privacy.ledger.group_commit import GroupCommit
from casemate.privacy.ledger.sql import LedgerSqlBook, create
from casemate.privacy.ledger.store import LedgerBook

TRIGGERS = (
    """CREATE FUNCTION {prefix}refuse() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$""",
    """CREATE TRIGGER never_change BEFORE UPDATE OR DELETE ON {prefix}entries
       FOR EACH ROW EXECUTE FUNCTION {prefix}refuse()""",
    """CREATE TRIGGER never_empty BEFORE TRUNCATE ON {prefix}entries
       FOR EACH STATEMENT EXECUTE FUNCTION {prefix}refuse()""",
    """CREATE TRIGGER never_leave BEFORE DELETE ON {prefix}head
       FOR EACH ROW EXECUTE FUNCTION {prefix}refuse()""",
    """CREATE TRIGGER never_turn_back BEFORE UPDATE ON {prefix}head FOR EACH ROW
       WHEN (NEW.number <= OLD.number OR NEW.units < OLD.units)
       EXECUTE FUNCTION {prefix}refuse()""",
)


def open_postgres(url: str) -> GroupCommit:
    """The store at this URL, made if it is absent."""
    database = _LedgerDatabase(*address_and_prefix(url))
    return GroupCommit(database.transaction, database.close)


class _LedgerDatabase:
    """The tables of one ledger, used by one thread at a time."""

    def __init__(self, address: str, prefix: str) -> None:
        self._session = PostgresSession(address, "ledger", LedgerDamaged, "retry with the same key")
        self._prefix = prefix
        with self._session.transaction():
            self._require_durable()
            self._prepare()

    @contextmanager
    def transaction(self) -> Iterator[LedgerBook]:
        """The book under the lock of its head row; durable when the block has ended."""
        with self._session.transaction():
            book = LedgerSqlBook(self._session, self._prefix, lock=" FOR UPDATE")
            yield book
            book.flush()

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def _require_durable(self) -> None:
        shown = self._session.execute("SELECT current_setting('fsync')", ()).fetchone()
        if shown != ("on",):
            raise Misconfigured(
                "this PostgreSQL server runs with fsync = off, so no charge would be durable; "
                "switch it on, or keep the ledger elsewhere"
            )

    def _prepare(self) -> None:
        """Make the tables once, whoever comes first."""
        self._session.lock(self._prefix)
        if not self._session.has(self._prefix + "head"):
            create(self._session, self._prefix, integer="BIGINT", bytes="BYTEA")
            for trigger in TRIGGERS:
                self._session.execute(trigger.format(prefix=self._prefix), ())
