"""Where a ledger and its transcript are kept, and the hands of somebody who tampers with them."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

from casemate.doors import Closed, Transcript, open_transcript
from casemate.doors.transcript import FORM as TRANSCRIPT
from casemate.privacy import Pure
from casemate.privacy.book import MemoryBook
from casemate.privacy.ledger import Ledger, Terms, open_ledger
from casemate.privacy.ledger.ledger import Receipt
from casemate.privacy.ledger.store import LedgerInMemory

FACTS: dict[str, Any] = {
    "dataset": "hospital",
    "policy": "a1b2",
    "neighbours": "add-remove",
    "protects": "person",
    "epsilon": Fraction(1),
    "delta": Fraction(0),
}
TENTH = Pure(Fraction(1, 10))
OPTIONS = ("quotas", "allow_unbounded")
ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@dataclass
class Place:
    """A file or a database; tables are written {entries}, {head}, {transcript}, {book_versions}."""

    where: str | Path

    @property
    def path(self) -> Path:
        assert isinstance(self.where, Path)
        return self.where

    def open(self, **changes: Any) -> Ledger:
        return open_ledger(self.where, **(FACTS | changes))

    def fill(self, charges: int = 3) -> list[Receipt]:
        """A ledger of so many charges and one output, and a transcript of as many entries."""
        with self.open() as ledger, open_transcript(self.where) as transcript:
            for number in range(charges):
                transcript.append(Closed(f"r{number}", "tired"))
            receipts = [ledger.charge(TENTH, key=f"q{n}", purpose="count") for n in range(charges)]
            ledger.record_output("q0", b"17")
        return receipts

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """The raw database."""
        if isinstance(self.where, Path):
            with closing(sqlite3.connect(self.where)) as opened, opened:
                yield opened
        else:
            with psycopg.connect(self.where) as server:
                yield server

    def change(self, *statements: str, disarmed: bool = True) -> None:
        """Change rows by hand: with the triggers dropped, as an intruder would, or with them."""
        with self.connection() as connection:
            if disarmed:
                self._disarm(connection)
            for statement in statements:
                connection.execute(self.with_table_names(statement))

    def with_table_names(self, statement: str) -> str:
        prefix = "" if isinstance(self.where, Path) else "casemate_ledger_"
        tables = ("entries", "head", "transcript", "book_versions")
        return statement.format(**{table: prefix + table for table in tables})

    def _disarm(self, connection: Any) -> None:
        if isinstance(self.where, Path):
            sql = "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'"
        else:
            sql = (
                "SELECT DISTINCT format('DROP TRIGGER %I ON %I', trigger_name, event_object_table) "
                "FROM information_schema.triggers"
            )
        for (drop,) in connection.execute(sql).fetchall():
            connection.execute(drop)


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place on a disk where there is nothing yet."""
    if request.param == "sqlite":
        return Place(tmp_path / "hospital.ledger")
    return Place(request.getfixturevalue("postgres"))


@pytest.fixture
def file(tmp_path: Path) -> Place:
    return Place(tmp_path / "hospital.ledger")


class Books:
    """Opens the same ledger and the same transcript again and again; `where` None is in memory."""

    def __init__(self, where: str | Path | None, stack: ExitStack) -> None:
        self._where, self._stack = where, stack
        self._ledger, self._transcript = LedgerInMemory(), MemoryBook(TRANSCRIPT)

    def ledger(self, **changes: Any) -> Ledger:
        """The ledger, with other facts where they are given."""
        facts = FACTS | changes
        if self._where is not None:
            return self._stack.enter_context(open_ledger(self._where, **facts))
        options = {name: facts.pop(name) for name in OPTIONS if name in facts}
        return self._stack.enter_context(Ledger(self._ledger, Terms.of(**facts), **options))

    def transcript(self) -> Transcript:
        if self._where is None:
            return Transcript(self._transcript)
        return self._stack.enter_context(open_transcript(self._where))


@pytest.fixture(params=["memory", *ENGINES])
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Books]:
    """In memory, in SQLite, in PostgreSQL."""
    where: str | Path | None = None if request.param == "memory" else tmp_path / "hospital.ledger"
    if request.param == "postgres":
        where = request.getfixturevalue("postgres")
    with ExitStack() as stack:
        yield Books(where, stack)
