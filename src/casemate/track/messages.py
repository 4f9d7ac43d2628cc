"""What travels between sites and the server: cumulative, tagged with an epoch, idempotent.

A report says everything a site knows, so the newest makes all older ones superfluous: messages may
be lost, repeated and overtaken. An order that is repeated is answered again and changes nothing.

The names of sites, which are listed or counted.

How many things happened, whatever kind of whole number says it.
"""

import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from casemate.errors import Misconfigured
from casemate.track.instruction import (
    NEVER,
    Blocks,
    Every,
    Growth,
    Rule,
    Sample,
    from_plain,
    to_plain,
)
from casemate.track.setting import MOST_COUNTED

_WORD = 1 << 64  # incarnations and epochs are below


@dataclass(frozen=True)
class Report:
    """What a site has counted; answers to the server are reports, too."""

    site: str
    incarnation: int  # a site that lost its journal comes back with another one
    epoch: int  # of the order it follows
    begun: int  # its count when it took that order
    reports: int  # triggers passed since then
    count: int  # everything it has counted


@dataclass(frozen=True)
class Order:
    """What the server tells a site: follow this rule from now on, and answer if asked to.

    Without a rule it only collects: the site notes its count, reports nothing, and waits for the
    rule under the same epoch, which then counts from the noted count.
    """

    epoch: int
    rule: Rule | None
    answer: bool


def encode(message: Report | Order) -> bytes:
    """One line of JSON without spaces.

    >>> encode(Report("a", 7, 3, 10, 2, 15))
    b'["a",7,3,10,2,15]'
    """
    if isinstance(message, Report):
        m = message
        fields: Any = [m.site, m.incarnation, m.epoch, m.begun, m.reports, m.count]
    else:
        rule = message.rule and to_plain(message.rule)
        fields = {"epoch": message.epoch, "rule": rule, "answer": message.answer}
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_report(data: bytes) -> Report:
    """The report of a line; a line that is none is refused in a sentence."""
    fields = _parsed(data)
    match fields:
        case [str(site), int(), int(), int(), int(), int()]:
            numbers = fields[1:]
            if min(numbers) >= 0 and max(numbers[:2]) < _WORD and max(numbers[2:]) <= MOST_COUNTED:
                return Report(site, *numbers)
    raise _not_one("report")


def decode_order(data: bytes) -> Order:
    """The order of a line; a line that is none is refused in a sentence."""
    match _parsed(data):
        case {"epoch": int(epoch), "rule": None, "answer": bool(answer)} if epoch >= 0:
            return Order(epoch, None, answer)
        case {"epoch": int(epoch), "rule": dict(plain), "answer": bool(answer)} if epoch >= 0:
            return Order(epoch, _rule(plain), answer)
    raise _not_one("order")


def _rule(plain: dict[str, Any]) -> Rule:
    """The rule of an order, whose numbers are such as a site can follow."""
    try:
        rule = from_plain(plain)
    except (KeyError, TypeError):
        raise _not_one("order") from None
    match rule:
        case Every():
            return rule
        case Growth(int(up), int(down)) if 0 < down <= up < NEVER:
            return rule
        case Sample(int() | float() as probability) if 0 < probability <= 1:
            return rule
        case Blocks(int() | float() as size) if 0 < size < NEVER:
            return rule
    raise _not_one("order")


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise _not_one("message") from None


def _not_one(kind: str) -> Misconfigured:
    return Misconfigured(
        f"a message on this tracker's subject is no {kind} of casemate; "
        f"give the tracker a subject of its own"
    )


# Names ------------------------------------------------------------------------------------------


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


# Whole ------------------------------------------------------------------------------------------


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
