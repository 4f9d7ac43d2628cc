"""Where a watch stands, in a file: what of the log was read, who is exposed, what is still to say.

The file is replaced at once, so that a process that is killed leaves the old state or the new one.
An event is in it before anybody hears of it, and until everybody has.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from casemate.audit.watch.exposure import Finding
from casemate.errors import Misconfigured
from casemate.published import Knowledge
from casemate.report.terminal import write_atomically
from casemate.table import Policy

FORMAT = "casemate.watch-state/1"


@dataclass(frozen=True)
class Event:
    """One statement about which there is something to say; records are places, from 0."""

    query: int
    file: str
    line: int
    verdict: str
    newly_exposed: tuple[Finding, ...]
    exposed: int
    undecided: tuple[int, ...]
    doubts: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Pending:
    """An event, and who has not heard of it."""

    event: Event
    unprinted: bool = True
    unposted: bool = False


@dataclass(frozen=True)
class WatchState:
    """What is needed to go on with a watch."""

    table: str  # a fingerprint of what the audits are about
    runs: tuple[tuple[str, int], ...] = ()
    digests: dict[str, str] = field(default_factory=dict)
    queries: int = 0
    verdict: str = "none-exposed"
    exposed: tuple[Finding, ...] = ()
    undecided: tuple[int, ...] = ()
    doubts: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()

    def heard(self, heard: Pending) -> "WatchState":
        """The state once an event was heard by one more."""
        changed = (heard if each.event == heard.event else each for each in self.pending)
        left = tuple(each for each in changed if each.unprinted or each.unposted)
        return replace(self, pending=left)

    def write(self, path: Path) -> None:
        """Replace the file."""
        try:
            write_atomically(path, json.dumps({"format": FORMAT, **asdict(self)}) + "\n")
        except OSError as error:
            raise Misconfigured(f"cannot write --state {path}: {error.strerror}") from error


def fingerprint(policy: Policy, knowledge: Knowledge, records: int, *options: object) -> str:
    """A hash of everything but the log that decides who is exposed."""
    described = (policy.columns, policy.key, policy.person, policy.version, policy.public_tables)
    text = repr((described, sorted(map(repr, vars(knowledge).items())), records, options))
    return hashlib.sha256(text.encode()).hexdigest()


def read_state(path: Path, table: str) -> WatchState:
    """The state in a file, or a new one where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return WatchState(table)
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"--state {path} cannot be read; {ANOTHER}") from None
    try:
        found = json.loads(text)
        version = found["format"]
    except (ValueError, TypeError, KeyError):
        raise Misconfigured(f"--state {path} is not the state of a watch; {ANOTHER}") from None
    if version != FORMAT:
        raise Misconfigured(f"--state {path} is {version!r} and not {FORMAT!r}; {ANOTHER}")
    try:
        state = _state(found)
    except (TypeError, KeyError, ValueError):
        raise Misconfigured(f"--state {path} is not the state of a watch; {ANOTHER}") from None
    if state.table != table:
        raise Misconfigured(
            f"--state {path} is about another table, policy or set of options; {ANOTHER}"
        )
    return state


ANOTHER = "give another --state, or remove the file to begin again"


def _state(found: dict[str, Any]) -> WatchState:
    del found["format"]
    runs = tuple((str(name), int(end)) for name, end in found.pop("runs"))
    exposed = _findings(found.pop("exposed"))
    pending = tuple(
        Pending(_event(each["event"]), each["unprinted"], each["unposted"])
        for each in found.pop("pending")
    )
    listed: dict[str, Any] = {name: tuple(found.pop(name)) for name in ("undecided", "doubts")}
    return WatchState(**found, runs=runs, exposed=exposed, pending=pending, **listed)


def _event(found: dict[str, Any]) -> Event:
    newly = _findings(found.pop("newly_exposed"))
    lists = ("undecided", "doubts", "refused")
    listed: dict[str, Any] = {name: tuple(found.pop(name)) for name in lists}
    return Event(**found, newly_exposed=newly, **listed)


def _findings(found: list[dict[str, Any]]) -> tuple[Finding, ...]:
    return tuple(Finding(**each) for each in found)
