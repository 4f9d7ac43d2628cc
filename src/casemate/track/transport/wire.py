"""What a network transport needs of a message broker: channels that carry bytes, and no more."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Take = Callable[[bytes], None]
"""Deals with one message; called in a thread of the wire, one message at a time."""


@dataclass(frozen=True)
class Parcel:
    """A message on its way out."""

    channel: str
    data: bytes
    key: str = ""  # a later message of the same channel and key makes this one superfluous


class Wire(Protocol):
    """A connection to a broker; what is published while it is broken may be lost."""

    def publish(self, parcel: Parcel) -> None:
        """Send, some time soon, from any thread, without waiting."""
        ...

    def subscribe(self, channel: str, take: Take) -> None:
        """Take every message of a channel, instead of who took them before.

        From the return of this call on, none is missed.
        """
        ...

    def recall(self, channel: str) -> Sequence[bytes]:
        """The newest message of every key, where the broker keeps them; nothing where not."""
        ...

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        ...


class Outbox:
    """Messages that wait to be sent; of those that replace each other only the newest stays.

    So a broker that is slow or away costs a place for each site and not for each report.

    >>> box = Outbox()
    >>> box.put(Parcel("report", b"1", "a")), box.put(Parcel("report", b"2", "a"))
    (True, False)
    >>> [parcel.data for parcel in box.take()], box.take()
    ([b'2'], [])
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parcels: dict[object, Parcel] = {}

    def put(self, parcel: Parcel) -> bool:
        """Keep the parcel; whether it is the first, so that somebody must be woken."""
        with self._lock:
            first = not self._parcels
            self._parcels[(parcel.channel, parcel.key) if parcel.key else object()] = parcel
        return first

    def take(self) -> list[Parcel]:
        """Everything that waits."""
        with self._lock:
            parcels, self._parcels = self._parcels, {}
        return list(parcels.values())

    def put_back(self, parcels: Sequence[Parcel]) -> None:
        """Keep what could not be sent, where it has a key and nothing newer came meanwhile."""
        with self._lock:
            old: dict[object, Parcel] = {
                (each.channel, each.key): each for each in parcels if each.key
            }
            self._parcels = {**old, **self._parcels}
