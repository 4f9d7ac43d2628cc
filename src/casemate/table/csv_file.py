"""CSV files seen without an engine: their header, and how many records they hold.

The engine's own reader has been seen to drop records silently (after a quote that is never closed,
or when it mistakes the kind of line ends), so what it loads is counted here by other means.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from casemate.errors import Misconfigured

DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 1 << 20
LONGEST_CELL = 1 << 24
"""More characters than the engine takes for a line: Python's own limit is far lower."""
RESERVED = "casemate_"
"""How the names begin that casemate gives to columns of its own, RECORD among them."""


@dataclass(frozen=True)
class Header:
    """What separates the cells and the lines of a file, and what its columns are called."""

    delimiter: str
    line_end: str
    names: tuple[str, ...]


def read_header(path: Path) -> Header:
    """The header of a CSV file; a column without a name is called after its place, `column0`."""
    try:
        with _opened(path) as stream:
            line = _first_record(stream)
        line.encode()  # fails on what was not UTF-8; the rest is the engine's to read
        delimiter = _delimiter(line)
        cells = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except UnicodeError:
        raise Misconfigured(f"{path} is not UTF-8 text; save it again as UTF-8") from None
    except (csv.Error, zlib.error, EOFError):
        raise Misconfigured(f"the header of {path} cannot be read as CSV") from None
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise Misconfigured(f"cannot read {path}: {reason}") from None
    names = tuple(cell or f"column{place}" for place, cell in enumerate(cells))
    check_names(path, names)
    return Header(delimiter, line[len(line.rstrip("\r\n")) :] or "\n", names)


def count_records(path: Path, header: Header, expected: int) -> int:
    """How many records follow the header; quick when there are as many as `expected`."""
    try:
        quick = _line_ends(path, ord(header.line_end[-1])) - 1
        return quick if quick == expected else _parsed_records(path, header)
    except (csv.Error, zlib.error, EOFError, OSError):
        return -1  # no number of records: the file is damaged, or changed under our hands


def _line_ends(path: Path, mark: int) -> int:
    """The ends of lines outside quotes; a last line that does not end counts too."""
    count, inside, last = 0, 0, mark
    with (gzip.open if _zipped(path) else open)(path, "rb") as stream:
        while chunk := stream.read(1 << 22):
            if inside or b'"' in chunk:
                cells = np.frombuffer(chunk, np.uint8)
                quoted = (np.cumsum(cells == ord('"'), dtype=np.int64) + inside) % 2
                count += int(np.count_nonzero((cells == mark) & (quoted == 0)))
                inside = int(quoted[-1])
            else:
                count += chunk.count(mark)
            last = chunk[-1]
    return count + (last != mark)


def _parsed_records(path: Path, header: Header) -> int:
    """The records as Python's own reader finds them; an empty line is one in a single column."""
    csv.field_size_limit(LONGEST_CELL)
    with _opened(path) as stream:
        rows = csv.reader(stream, delimiter=header.delimiter, strict=True)
        next(rows, None)
        return sum(1 for row in rows if row or len(header.names) == 1)


def check_names(path: Path | str, names: Sequence[str]) -> None:
    """Refuse names that SQL cannot tell apart, or that casemate needs for itself."""
    if not names:
        raise Misconfigured(f"{path} is empty; expected a first line with the columns' names")
    seen: set[str] = set()
    for name in names:
        folded = _folded(name)
        if folded in seen:
            raise Misconfigured(
                f"{path} has two columns called {name!r}, upper and lower case being alike; "
                f"rename one of them"
            )
        if folded.startswith(RESERVED) or "\0" in name:
            raise Misconfigured(f"{path} has a column called {name!r}; rename it")
        seen.add(folded)


def _folded(name: str) -> str:
    """How DuckDB compares names: upper and lower case are alike in ASCII only."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _opened(path: Path) -> TextIO:
    opener = gzip.open if _zipped(path) else open
    return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")


def _zipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _delimiter(line: str) -> str:
    """The mark that a header has most of, outside quotes."""
    bare = re.sub('"[^"]*"', "", line)
    return max(DELIMITERS, key=bare.count)


def _first_record(stream: TextIO) -> str:
    """The first line, and the lines after it while a quote is open."""
    record = stream.readline(LONGEST_HEADER)
    while record.count('"') % 2 and len(record) < LONGEST_HEADER:
        line = stream.readline(LONGEST_HEADER)
        if not line:
            break
        record += line
    return record
