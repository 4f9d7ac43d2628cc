"""Golden files: SQL statements in plain text, each followed by what it becomes.

A statement ends with a semicolon; the lines after it that begin with `-->` are its expectation.
`--!` before a statement says that PostgreSQL itself raises on it, or spells it differently.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
ARROW = "--> "
ALONE = "--! "


@dataclass(frozen=True)
class Golden:
    """One statement with its expectation."""

    sql: str
    becomes: tuple[str, ...]
    everywhere: bool = True

    def __str__(self) -> str:
        return " ".join(self.sql.split())[:70]


def read(name: str) -> list[Golden]:
    """The statements of a golden file."""
    found: list[Golden] = []
    statement: list[str] = []
    for line in (FOLDER / name).read_text().splitlines():
        if line.startswith(ARROW) and found:
            last = found.pop()
            found.append(Golden(last.sql, (*last.becomes, line[len(ARROW) :]), last.everywhere))
        elif line.startswith(ALONE) or (line.strip() and not line.startswith("--")):
            statement.append(line)
            if line.endswith(";"):
                found.append(_statement("\n".join(statement)))
                statement = []
    return found


def _statement(text: str) -> Golden:
    return Golden(text.removeprefix(ALONE).removesuffix(";"), (), not text.startswith(ALONE))
