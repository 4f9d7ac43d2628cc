"""A book carries its version, and the chain of every form is the same."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from casemate.doors import Closed, open_transcript
from casemate.errors import Misconfigured
from casemate.privacy.ledger import open_ledger


def ledger(path: Path) -> None:
    open_ledger(path, dataset="d", policy="p", epsilon=Fraction(1)).close()


def transcript(path: Path) -> None:
    with open_transcript(path) as opened:
        opened.append(Closed("r", ""))


@pytest.mark.parametrize(("name", "use"), [("ledger", ledger), ("transcript", transcript)])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE book_versions SET version = 'casemate.x/9'", "the format 'casemate.x/9'"),
        ("DELETE FROM book_versions", "the format an earlier version"),
        ("DROP TABLE book_versions", "the format an earlier version"),
    ],
)
def test_a_book_of_another_version_is_refused_with_a_sentence(
    tmp_path: Path, name: str, use: Callable[[Path], None], change: str, found: str
) -> None:
    ledger(tmp_path / "l")
    transcript(tmp_path / "l")
    use(tmp_path / "l")
    with closing(sqlite3.connect(tmp_path / "l")) as connection, connection:
        connection.execute(change)
    with pytest.raises(Misconfigured, match=f"this {name} has {found} and this version"):
        use(tmp_path / "l")
