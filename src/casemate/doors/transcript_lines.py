"""A transcript as text, one JSON object a line: what a custodian publishes and anybody replays."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from casemate.doors.entry import COLUMNS, Entry, damaged, require_follows


def to_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Each entry as one line, its hash in hexadecimal digits."""
    for entry in entries:
        plain = {name: getattr(entry, name) for name in COLUMNS} | {"hash": entry.hash.hex()}
        yield json.dumps(plain, separators=(",", ":"), ensure_ascii=True) + "\n"


def from_lines(lines: Iterable[str]) -> Iterator[Entry]:
    """Read the lines back and check their chain.

    A last line that was cut off, and so does not end in a newline, is left out: it was never whole.
    """
    before: Entry | None = None
    for line in lines:
        if not line.endswith("\n"):
            return
        entry = _entry(line, 0 if before is None else before.number + 1)
        require_follows(before, entry)
        before = entry
        yield entry


def _entry(line: str, number: int) -> Entry:
    try:
        plain: dict[str, Any] = json.loads(line)
        return Entry(**(plain | {"hash": bytes.fromhex(plain["hash"])}))
    except (ValueError, LookupError, TypeError) as reason:
        raise damaged(number, "its line cannot be read") from reason
