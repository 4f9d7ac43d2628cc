"""One PostgreSQL session that keeps a store: made again when it was lost, durable at every commit.

Where      postgresql://…/database#name: the store's tables begin with `name_`, or with
           `casemate_ledger_` without a name.
Shared     READ COMMITTED: whoever takes a lock first and reads after it sees every commit there is.
Durable    A session with synchronous_commit = off switches it on.
One place  Names are looked up in the schema that is the session's first and nowhere else, temporary
           tables last: a table of the same name in another schema of the path is never taken.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urldefrag

from casemate.errors import LedgerUnavailable, Misconfigured
from casemate.privacy.book.chain import Form

if TYPE_CHECKING:
    import psycopg


DEFAULT_NAME = "casemate_ledger"
WAIT_FOR_THE_DISK = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)

ONE_SCHEMA = (
    "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', false) "
    "WHERE current_schema() IS NOT NULL"
)


def address_and_prefix(url: str) -> tuple[str, str]:
    """The address of a ledger's database, and what the names of its tables begin with."""
    address, name = urldefrag(url)
    name = name or DEFAULT_NAME
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", name):
        raise Misconfigured(
            f"a ledger's name in PostgreSQL is at most 40 lower-case letters, digits and _, "
            f"got {name!r}"
        )
    return address, name + "_"


class PostgresSession:
    """A session for books of one form, used by one thread at a time."""

    types: ClassVar[dict[str, str]] = {"integer": "BIGINT", "bytes": "BYTEA"}

    def __init__(self, url: str, form: Form[Any]) -> None:
        address, self.prefix = address_and_prefix(url)
        try:
            import psycopg
        except ImportError as reason:
            raise Misconfigured(
                f"a {form.name} in PostgreSQL needs psycopg; install casemate[postgres]"
            ) from reason
        self._psycopg, self._address, self._form = psycopg, address, form
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is done in the block is durable when it has ended, or undone."""
        with self.translate_errors(), self._live_connection().transaction():
            yield

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run one statement; ? marks a parameter."""
        return self._live_connection().execute(_with_percents(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> None:
        """Run one statement for each row, in one journey to the server."""
        with self._live_connection().cursor() as cursor:
            cursor.executemany(_with_percents(sql), parameters)

    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""
        return bool(self.execute("SELECT to_regclass(?)::text", (table,)).fetchone() != (None,))

    def lock(self, name: str) -> None:
        """Wait until nobody else holds the lock of this name, and hold it to the end."""
        self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (name,))

    def protect(self, table: str, what: str, unless: str = "") -> None:
        """Have the database refuse to delete rows, and to update them (only `unless` that)."""
        condition = f"WHEN (NOT ({unless}))" if unless else ""
        self.execute(
            f"CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql "
            f"AS $$ BEGIN RAISE EXCEPTION 'the {what} is append-only'; END $$"
        )
        for name, change, scope in (
            ("change", "UPDATE", f"FOR EACH ROW {condition}"),
            ("leave", "DELETE", "FOR EACH ROW"),
            ("empty", "TRUNCATE", "FOR EACH STATEMENT"),
        ):
            self.execute(
                f"CREATE TRIGGER never_{name} BEFORE {change} ON {table} {scope} "
                f"EXECUTE FUNCTION {table}_refuse()"
            )

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Say what went wrong with the database in casemate's own errors, without its address."""
        try:
            yield
        except self._psycopg.IntegrityError:  # its text quotes the row
            raise self._form.damaged(
                f"the {self._form.name}'s own constraints refuse what comes next; "
                f"restore it from a copy that verifies"
            ) from None
        except self._psycopg.Error as reason:
            raise LedgerUnavailable(
                f"the {self._form.name} in PostgreSQL could not be used ({type(reason).__name__}); "
                f"nothing left; see to it and {self._form.again}"
            ) from None  # its text may quote the address

    def _live_connection(self) -> "psycopg.Connection[Any]":
        if self._connection is None or self._connection.closed:
            self._connection = self._psycopg.connect(self._address, autocommit=True)
            self._connection.isolation_level = self._psycopg.IsolationLevel.READ_COMMITTED
            self.execute(WAIT_FOR_THE_DISK, ())
            self.execute(ONE_SCHEMA, ())
        return self._connection


def _with_percents(sql: str) -> bytes:
    """The statement in psycopg's notation for parameters."""
    return sql.replace("?", "%s").encode()
