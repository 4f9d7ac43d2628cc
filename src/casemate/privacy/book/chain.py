"""The chain of a book: what its entries have in common, and the hash over each and all before it.

Hash       SHA-256 over the previous hash and a JSON list of the other fields (no spaces, ASCII,
           bytes as ["bytes", hexadecimal digits]), so that anybody can check a copy.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from casemate.errors import CasemateError, Misconfigured

START = bytes(32)


@dataclass(frozen=True)
class Head:
    """A row's number and hash: kept elsewhere, it proves later that nothing before it changed."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"


class Chained(Protocol):
    """An entry: a frozen dataclass whose fields are the columns, the hash last."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def number(self) -> int:
        """Counted from 0."""
        ...

    @property
    def kind(self) -> str:
        """What it records."""
        ...

    @property
    def hash(self) -> bytes:
        """The digest of this entry after the one before it."""
        ...


Entry = TypeVar("Entry", bound=Chained)


@dataclass(frozen=True)
class Form(Generic[Entry]):
    """What all books of one kind have in common."""

    name: str
    version: str
    table: str
    row: type[Entry]
    columns: str  # in SQL, with {integer} and {bytes} for the types that differ
    identity: tuple[str, ...]  # at most one entry has these fields
    group: tuple[str, ...]  # whose newest entry is looked up
    damaged: type[CasemateError]
    entry: str  # how sentences call one
    stopped: str  # what can no longer be done with a damaged book
    again: str  # what to do when the book could not be used
    alone: bool = False  # a file that holds something else already is not its own

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(each.name for each in fields(self.row))

    @cached_property
    def values(self) -> Callable[[Entry], tuple[Any, ...]]:
        """The fields of an entry, in the order of the columns."""
        return attrgetter(*self.names)

    def digest(self, entry: Entry, previous: bytes) -> bytes:
        """SHA-256 over the previous hash and every other field."""
        written = canonical_json(self.values(entry)[:-1]).encode()
        return hashlib.sha256(previous + written).digest()

    def require_chained(self, number: int, previous: bytes, entry: Entry) -> None:
        """Refuse an entry that does not have this number, or not the hash of its fields."""
        if entry.number != number:
            raise self.damage(number, "it is missing")
        if self.digest(entry, previous) != entry.hash:
            raise self.damage(number, "its contents do not have its hash")

    def require_version(self, written: object) -> None:
        """Refuse what another version of casemate wrote, or one that does not say which."""
        if written != self.version:
            said = f"has the format {written!r}" if isinstance(written, str) else "names no format"
            raise Misconfigured(
                f"this {self.name} {said} and this version of casemate reads {self.version!r}; "
                f"open it with the version that wrote it"
            )

    def damage(self, number: int, what: str) -> CasemateError:
        """The error that names an entry."""
        return self.damaged(
            f"{self.entry} {number} of the {self.name} is damaged: {what}; {self.stopped}: "
            f"find out who changed it and restore it from a copy that verifies"
        )


def _as_list(value: object) -> list[str]:
    return ["bytes", value.hex()] if isinstance(value, bytes) else [type(value).__name__]


canonical_json = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_as_list
).encode
"""Sorted names, no spaces, ASCII: the same text for the same value, in any language."""
