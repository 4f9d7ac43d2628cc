"""Addresses of transports: nats://HOST:PORT/SUBJECT and redis://HOST:PORT/DATABASE?prefix=NAME.

An address may carry USER:PASSWORD@; nothing of that is ever in a message.
"""

import re
from urllib.parse import SplitResult, parse_qs, urlsplit

from casemate.errors import Misconfigured
from casemate.track.transport.nats import NatsWire
from casemate.track.transport.network import Network, Notes, Wire
from casemate.track.transport.redis import RedisWire

SUBJECT = "casemate"
"""Where nobody named a subject or a prefix."""

_NATS, _REDIS = ("nats", "tls"), ("redis", "rediss")
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_KNOWN = "nats://HOST:PORT/SUBJECT or redis://HOST:PORT/0?prefix=NAME"


def open_transport(address: str, notes: Notes | None = None) -> Network:
    """Connect to the broker of an address, for the messages of a tracker."""
    notes = notes or Notes()
    return Network(open_wire(address, notes), notes)


def open_wire(address: str, notes: Notes | None = None) -> Wire:
    """Connect to the broker of an address."""
    parts, notes = _split(address), notes or Notes()
    if parts.scheme in _NATS:
        return _nats(parts, notes)
    if parts.scheme in _REDIS:
        return _redis(parts, notes)
    raise Misconfigured(f"an address begins with nats:// or redis://; give {_KNOWN}")


def without_secrets(address: str) -> str:
    """The address as it may be shown: no user and no password, but the subject or prefix in use.

    >>> without_secrets("nats://me:secret@broker:4222")
    'nats://broker:4222/casemate'
    """
    parts = _split(address)
    place = f"{parts.scheme}://{_host(parts)}"
    if parts.scheme in _NATS:
        return f"{place}/{_nats_subject(parts)}"
    if parts.scheme in _REDIS:
        return f"{place}/{parts.path.strip('/') or 0}?prefix={_redis_prefix(parts)}"
    return f"{place}{parts.path}"


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        named = False
    if not named:
        raise Misconfigured(f"this is no address of a message broker; give {_KNOWN}")
    return parts


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{parts.port}" if parts.port else shown


def _nats(parts: SplitResult, notes: Notes) -> NatsWire:
    url = parts._replace(path="", query="", fragment="").geturl()
    return NatsWire(url, _nats_subject(parts), f"{parts.scheme}://{_host(parts)}", notes)


def _nats_subject(parts: SplitResult) -> str:
    if parts.query:
        raise Misconfigured("a NATS address has nothing after a ?; give nats://HOST:PORT/SUBJECT")
    return _subject(parts.path.strip("/"))


def _redis(parts: SplitResult, notes: Notes) -> RedisWire:
    prefix = _redis_prefix(parts)
    url = parts._replace(query="", fragment="").geturl()
    return RedisWire(url, prefix, f"{parts.scheme}://{_host(parts)}", notes)


def _redis_prefix(parts: SplitResult) -> str:
    if not re.fullmatch(r"/?\d*", parts.path):
        raise Misconfigured(
            f"the path of a Redis address is the number of a database; give {_KNOWN}"
        )
    options = parse_qs(parts.query, keep_blank_values=True)
    if options.keys() - {"prefix"} or len(options.get("prefix", [""])) > 1:
        raise Misconfigured(f"the only option of a Redis address is one prefix; give {_KNOWN}")
    return _subject(options.get("prefix", [""])[0])


def _subject(given: str) -> str:
    subject = given or SUBJECT
    if not _SUBJECT.fullmatch(subject):
        raise Misconfigured(
            "a subject is letters, digits, - and _ in words joined by dots; "
            "give for example nats://HOST:PORT/shop.hits"
        )
    return subject
