"""What travels between sites and the server: cumulative, tagged with an epoch, idempotent.

A report says everything a site knows, so the newest makes all older ones superfluous: messages may
be lost, repeated and overtaken. An order that is repeated is answered again and changes nothing.
"""

import json
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, SupportsIndex, TypeVar, get_type_hints

import numpy as np

from casemate.errors import Misconfigured
from casemate.track.reporting_rule import (
    UNREACHABLE_COUNT,
    Blocks,
    Every,
    Growth,
    Rule,
    Sample,
    from_plain,
    to_plain,
)
from casemate.track.setting import MOST_COUNTED

MESSAGE_VERSION = 3
"""Of messages; another one is refused."""

Counted = Annotated[int, "up to 2^53"]
Message = TypeVar("Message")


@dataclass(frozen=True)
class SiteReport:
    """What a site has counted; answers to the server are reports, too."""

    site: str
    incarnation: int  # a site that lost its journal comes back with another one
    epoch: int  # of the order it follows
    begun: Counted  # its count when it took that order
    reports: Counted  # triggers passed since then
    count: Counted  # everything it has counted


@dataclass(frozen=True)
class Order:
    """What the server tells a site: follow this rule from now on, and answer if asked to.

    Without a rule it only collects: the site notes its count, reports nothing, and waits for the
    rule under the same epoch, which then counts from the noted count.
    """

    epoch: int
    rule: Rule | None
    answer: bool


def encode(message: object) -> bytes:
    """One line of JSON without spaces: the version, what it is, and its fields.

    >>> encode(SiteReport("a", 7, 3, 10, 2, 15))
    b'[3,"sitereport","a",7,3,10,2,15]'
    """
    kind: Any = type(message)
    values = [getattr(message, name) for name in _fields_of(kind)]
    return json.dumps(
        [MESSAGE_VERSION, _name(kind), *values], separators=(",", ":"), default=to_plain
    ).encode()


def decode(data: bytes, what: str, *kinds: type[Message], whose: str = "tracker") -> Message:
    """The message of a line, if it is of one of these kinds; all else is refused in a sentence."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    match parsed:
        case [int(version), str(), *_] if version != MESSAGE_VERSION:
            raise Misconfigured(
                f"a message on this {whose}'s subject has version {version} and is read by "
                f"version {MESSAGE_VERSION}; run one version of casemate on all machines"
            )
        case [version, str(name), *values] if version == MESSAGE_VERSION:
            for kind in kinds:
                plain: Any = kind
                readers = list(_fields_of(plain).values())
                if _name(kind) == name and len(readers) == len(values):
                    with suppress(ValueError, TypeError, KeyError):
                        return kind(*[read(v) for read, v in zip(readers, values, strict=True)])
    raise Misconfigured(
        f"a message on this {whose}'s subject is no {what} of casemate; "
        f"give the {whose} a subject of its own"
    )


def _name(kind: type) -> str:
    return kind.__name__.lower()


@cache
def _fields_of(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """The fields of a kind of message in their order, and how each is read and checked."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _READERS.get(hint, hint) for name, hint in hints.items()}


def _of(*kinds: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise ValueError(value)
        return value

    return read


def _below(limit: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if type(value) is not int or not 0 <= value < limit:
            raise ValueError(value)
        return value

    return read


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _rule(plain: dict[str, Any]) -> Rule:
    """The rule of an order, whose numbers are such as a site can follow."""
    match rule := from_plain(plain):
        case Every():
            return rule
        case Growth(int(up), int(down)) if 0 < down <= up < UNREACHABLE_COUNT:
            return rule
        case Sample(int() | float() as probability) if 0 < probability <= 1:
            return rule
        case Blocks(int() | float() as size) if 0 < size < UNREACHABLE_COUNT:
            return rule
    raise ValueError(plain)


_whole = _below(1 << 64)
_READERS: dict[Any, Callable[[Any], Any]] = {
    int: _whole,
    int | None: _or_none(_whole),
    Counted: _below(MOST_COUNTED + 1),
    bool: _of(bool),
    float: _of(int, float),
    str: _of(str),
    Rule | None: _or_none(_rule),
    tuple[str, ...]: tuple,
}  # enumerations are made of their values


# Names of sites, and numbers of things -----------------------------------------------------------


def site_names(sites: int | Sequence[str]) -> list[str]:
    """The names of a list, or numbers from 0 for so many sites.

    >>> site_names(3), site_names(["paris", "lima"])
    (['0', '1', '2'], ['paris', 'lima'])
    """
    if isinstance(sites, int | np.integer) and not isinstance(sites, bool):
        return [str(number) for number in range(sites)]
    if not isinstance(sites, Sequence) or isinstance(sites, str) or not all(map(_is_name, sites)):
        raise Misconfigured("sites are a number of them, or a list of their names")
    return list(sites)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def whole(n: SupportsIndex) -> int:
    """The same number as an int, which knows no overflow; what is no whole number is refused.

    >>> import numpy as np
    >>> type(whole(np.uint8(200)))
    <class 'int'>
    """
    try:
        return operator.index(n)
    except TypeError:
        raise ValueError(f"things are counted in whole numbers, got n = {n!r}") from None
