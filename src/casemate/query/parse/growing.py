"""A query log that is still being written: its complete statements, each once, as they come.

A statement of an SQL script is complete with its semicolon, a record of a CSV file with the end of
its line; what comes after the last of these waits. A log is one file, or a folder of `.sql` files:
new files and files that grow both count. Nothing that was read may change afterwards; `seen` says
what was read, so that another process can go on from there.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from casemate.errors import Misconfigured
from casemate.query.parse.log import Logged, Unread, entries_of
from casemate.query.parse.sql import DIALECT, dialect_of

Run = tuple[str, int]
"""A file, and how many bytes of it were read when the next statement came from another one."""


@dataclass(frozen=True)
class Arrived:
    """A statement that is complete, and the file that it stands in."""

    entry: Logged | Unread
    file: str


@dataclass(frozen=True)
class _LogPiece:
    """The bytes from the end of one statement to the end of the next, which may be none."""

    raw: bytes
    entries: tuple[Logged | Unread, ...]


class _GrowingFile:
    """One file: what was taken of it, and what is complete and waits."""

    def __init__(self, path: Path, dialect: str) -> None:
        self.path, self.taken = path, 0
        self.waiting: deque[_LogPiece] = deque()
        self._dialect = dialect
        self._read, self._lines, self._header = 0, 0, ""
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """What was taken, as a hash."""
        return self._hash.hexdigest()

    def grow(self) -> None:
        """Read what is complete by now."""
        try:
            if self.path.stat().st_size < self._read:
                raise Misconfigured(f"{self.path} was cut or replaced, {APPEND_ONLY}")
            with self.path.open("rb") as file:
                file.seek(self._read)
                raw = file.read()
        except OSError as error:
            reason = (error.strerror or "").lower()
            raise Misconfigured(f"{self.path} cannot be read: {reason}") from None
        table = self.path.suffix.lower() == ".csv"
        cut = raw.rfind(b"\n" if table else b";") + 1  # ASCII, so no character is cut
        try:
            text = raw[:cut].decode("utf-8")
        except UnicodeDecodeError:
            raise Misconfigured(f"{self.path} is not UTF-8 text; save it again as UTF-8") from None
        for part, found in self._records(text) if table else self._statements(text):
            piece = _LogPiece(part.encode(), tuple(found))
            self._read += len(piece.raw)
            self._lines += part.count("\n")
            self.waiting.append(piece)

    def take(self) -> tuple[Logged | Unread, ...]:
        """The next piece that waits."""
        piece = self.waiting.popleft()
        self.taken += len(piece.raw)
        self._hash.update(piece.raw)
        return piece.entries

    def _statements(self, text: str) -> Iterator[tuple[str, list[Logged]]]:
        """The statements of a script: each ends at a semicolon that is not in a text or comment."""
        tokenize, start, end = dialect_of(self._dialect).tokenize, 0, text.find(";")
        while end >= 0:
            part, end = text[start : end + 1], text.find(";", end + 1)
            try:
                tokens = tokenize(part)
            except TokenError:
                continue  # a text that is not closed yet
            if not tokens or tokens.pop().token_type is not TokenType.SEMICOLON:
                continue
            found = []
            if tokens:
                line = self._lines + part.count("\n", 0, tokens[0].start) + 1
                found = [Logged(part[tokens[0].start : tokens[-1].end + 1], line)]
            yield part, found
            start += len(part)

    def _records(self, text: str) -> Iterator[tuple[str, list[Logged | Unread]]]:
        """The records of a CSV file; the first may be its header, without which none is read."""
        part = ""
        for line in text.splitlines(keepends=True):
            part += line
            if part.count('"') % 2 or not part.endswith("\n"):
                continue  # a text that is not closed yet
            blank = not part.strip()
            found = () if blank else entries_of(self._header + part, self.path, self._dialect)
            here = [replace(each, line=self._lines + 1) for each in found]
            if not (self._header or self._read or blank or here):
                self._header = part
            yield part, here
            part = ""


APPEND_ONLY = (
    "and a watch needs all that it has read: put it back, or begin again with another --state"
)


class GrowingLog:
    """The statements of a log in the order in which they were met."""

    def __init__(self, path: Path, dialect: str = DIALECT) -> None:
        self.path, self._dialect = path, dialect
        self._files: dict[str, _GrowingFile] = {}
        self._runs: list[Run] = []
        if not path.exists():
            raise Misconfigured(f"{path} does not exist; give a log, or a folder of .sql files")

    @property
    def seen(self) -> tuple[Sequence[Run], Mapping[str, str]]:
        """What was taken, in order, and a hash of each file's part of it."""
        return tuple(self._runs), {name: each.digest for name, each in self._files.items()}

    def resume(self, runs: Sequence[Run], digests: Mapping[str, str]) -> Iterator[Arrived]:
        """The statements that another process has taken, in its order; none may have changed."""
        self._grow()
        for name, upto in runs:
            file = self._files.get(name)
            while file is not None and file.waiting and file.taken < upto:
                yield from self._take(name)
            if file is None or file.taken != upto:
                gone = "is gone" if file is None else "was cut or replaced"
                raise Misconfigured(f"{self._shown(name)} {gone}, {APPEND_ONLY}")
        for name, digest in digests.items():
            if name in self._files and self._files[name].digest != digest:
                raise Misconfigured(
                    f"what was read of {self._shown(name)} has changed, {APPEND_ONLY}"
                )

    def arrived(self) -> Iterator[Arrived]:
        """The statements that have become complete since."""
        self._grow()
        for name, file in sorted(self._files.items()):
            while file.waiting:
                yield from self._take(name)

    def _shown(self, name: str) -> Path:
        return self.path / name if self.path.is_dir() else self.path

    def _take(self, name: str) -> Iterator[Arrived]:
        file = self._files[name]
        found = file.take()
        if self._runs and self._runs[-1][0] == name:
            self._runs.pop()
        self._runs.append((name, file.taken))
        return (Arrived(each, name) for each in found)

    def _grow(self) -> None:
        paths = list(self.path.glob("*.sql")) if self.path.is_dir() else [self.path]
        for name in sorted(self._files.keys() - {path.name for path in paths}):
            raise Misconfigured(f"{self._shown(name)} is gone, {APPEND_ONLY}")
        for path in paths:
            self._files.setdefault(path.name, _GrowingFile(path, self._dialect)).grow()
