"""Messages through Redis: publish and subscribe, with the newest report of each site kept.

Two threads hold a connection each: one sends, one listens. Both come back by themselves after the
server was away; what was sent meanwhile is lost, except for what has a key.
"""

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from casemate.errors import Misconfigured
from casemate.track.transport.network import Notes, Outbox, Parcel, Take

if TYPE_CHECKING:
    from redis import Redis
    from redis.client import PubSub


BROKER_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for the broker where something must have reached it."""

_RETRY_SECONDS = 0.2  # seconds between attempts to reconnect
_LISTEN_POLL_SECONDS = 0.05  # seconds after which a listener looks for something new to listen to


class RedisWire:
    """Channels under a prefix, and a hash of the newest message for each key of a channel."""

    def __init__(
        self,
        url: str,
        prefix: str,
        place: str = "the address given",
        notes: Notes | None = None,
    ) -> None:
        self._prefix, self._outbox = prefix, Outbox()
        self._place, self._notes = place, notes or Notes()
        self._redis = _connect(url, place)
        self._over = threading.Event()
        self._waiting = threading.Event()  # something is in the outbox
        self._takers: dict[str, Take] = {}
        self._heard: dict[str, threading.Event] = {}  # set when the server has subscribed us
        self._threads = [
            threading.Thread(target=work, name=f"casemate-redis-{name}", daemon=True)
            for name, work in (("send", self._send), ("listen", self._listen))
        ]
        for thread in self._threads:
            thread.start()

    def publish(self, parcel: Parcel) -> None:
        """Send, some time soon, from any thread, without waiting."""
        if self._outbox.put(parcel):
            self._waiting.set()

    def subscribe(self, channel: str, take: Take) -> None:
        """Take every message of a channel; from the return of this call on, none is missed."""
        name = f"{self._prefix}.{channel}"
        self._heard.setdefault(name, threading.Event())
        self._takers[name] = take
        if not self._heard[name].wait(BROKER_TIMEOUT_SECONDS):
            raise Misconfigured(
                "the Redis server does not answer any more; start it again, or check the address"
            )

    def recall(self, channel: str) -> Sequence[bytes]:
        """The newest message of every key."""
        kept: Any = self._redis.hvals(self._newest(channel))
        return list(kept)

    def close(self) -> None:
        """Send what is waiting and let go of the connections."""
        self._over.set()
        self._waiting.set()
        for thread in self._threads:
            thread.join()
        self._redis.close()

    def _newest(self, channel: str) -> str:
        return f"{self._prefix}.{channel}.newest"

    def _send(self) -> None:
        while not self._over.is_set():
            self._waiting.wait()
            self._waiting.clear()
            self._send_waiting()
        self._send_waiting()

    def _send_waiting(self) -> None:
        from redis.exceptions import RedisError

        parcels = self._outbox.take()
        if not parcels:
            return
        pipeline = self._redis.pipeline(transaction=False)
        for parcel in parcels:
            pipeline.publish(f"{self._prefix}.{parcel.channel}", parcel.data)
            if parcel.key:
                pipeline.hset(self._newest(parcel.channel), parcel.key, parcel.data)
        try:
            pipeline.execute()
        except RedisError:
            self._outbox.put_back(parcels)
            self._over.wait(_RETRY_SECONDS)
            self._waiting.set()

    def _listen(self) -> None:
        from redis.exceptions import RedisError

        pubsub: PubSub = self._redis.pubsub()  # type: ignore[no-untyped-call]  # redis has no type
        with contextlib.closing(pubsub):
            there = True
            while not self._over.is_set():
                try:
                    self._listen_once(pubsub)
                    if not there:
                        self._notes.say_back(self._place)
                    there = True
                except RedisError:
                    if there:
                        self._notes.say_lost(self._place)
                    there = False
                    self._over.wait(_RETRY_SECONDS)

    def _listen_once(self, pubsub: "PubSub") -> None:
        """Subscribe to what is new, then deal with one message; a break subscribes again."""
        if len(pubsub.channels) < len(self._takers):
            pubsub.subscribe(*(self._takers.keys() - {_text(name) for name in pubsub.channels}))
        if not pubsub.subscribed:
            time.sleep(_LISTEN_POLL_SECONDS)
            return
        message = pubsub.get_message(timeout=_LISTEN_POLL_SECONDS)
        if message is None:
            return
        name = _text(message["channel"])
        if message["type"] == "subscribe":
            self._heard[name].set()
        elif message["type"] == "message":
            self._takers[name](message["data"])


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _connect(url: str, place: str) -> "Redis":
    try:
        from redis import Redis
        from redis.exceptions import AuthenticationError, RedisError
    except ImportError:
        raise Misconfigured(
            "messages through Redis need the package redis; pip install 'casemate[redis]'"
        ) from None
    client = Redis.from_url(url, socket_connect_timeout=BROKER_TIMEOUT_SECONDS)
    try:
        client.ping()
    except AuthenticationError:
        raise Misconfigured(
            f"the Redis server at {place} refuses this user or password; "
            f"put the right ones into the address: redis://USER:PASSWORD@HOST:PORT/0"
        ) from None
    except RedisError:
        raise Misconfigured(
            f"no Redis server answers at {place}; start one there, or check the address"
        ) from None
    return client
