"""A file is switched to the write-ahead log by many at once, and each of them gets there."""

import sqlite3
import threading
from pathlib import Path

import pytest

from casemate.privacy.book.files import write_ahead


def test_many_who_open_a_new_file_at_once_all_get_there(tmp_path: Path) -> None:
    for attempt in range(10):
        path, modes = tmp_path / f"{attempt}.db", list[str]()

        def open_it(path: Path = path, modes: list[str] = modes) -> None:
            connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            write_ahead(connection, 30)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
            connection.execute("COMMIT")
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            modes.append(mode)
            connection.close()

        threads = [threading.Thread(target=open_it) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert modes == ["wal"] * 6


def test_patience_ends(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "held.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(tmp_path / "held.db", timeout=0, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write_ahead(other, 0.05)
    holder.close()
    other.close()
