"""Messages through NATS: core publish and subscribe, nothing kept, reconnecting by itself."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from casemate.errors import Misconfigured
from casemate.track.transport.network import Notes, Outbox, Parcel, Take

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg


BROKER_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for the broker where something must have reached it."""

_RETRY_SECONDS = 0.2  # seconds between attempts to reconnect
Called = Callable[[], Coroutine[Any, Any, None]]
_Result = TypeVar("_Result")


class NatsWire:
    """Channels that are subjects under one of NATS; its connection lives in a thread of its own."""

    def __init__(
        self,
        url: str,
        subject: str,
        place: str = "the address given",
        notes: Notes | None = None,
    ) -> None:
        self._subject, self._outbox = subject, Outbox()
        self._place, self._notes, self._open = place, notes or Notes(), False
        self._takers: dict[str, Take] = {}
        self._client = _client()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="casemate-nats", daemon=True
        )
        self._thread.start()
        try:
            self._wait_for(_connect(self._client, url, place, self._note_loss, self._note_return))
            self._open = True
        except BaseException:
            self._stop()
            raise

    def publish(self, parcel: Parcel) -> None:
        """Send, some time soon, from any thread, without waiting."""
        if self._outbox.put(parcel) and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._start_sending)

    def subscribe(self, channel: str, take: Take) -> None:
        """Take every message of a channel; from the return of this call on, none is missed."""
        name = f"{self._subject}.{channel}"
        new = name not in self._takers
        self._takers[name] = take
        if new:
            self._wait_for(self._subscribe(name))

    def recall(self, channel: str) -> Sequence[bytes]:  # noqa: ARG002 - nothing is kept anywhere
        """NATS core keeps nothing."""
        return ()

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        self._open = False
        if not self._loop.is_closed():
            try:
                self._wait_for(self._drain_and_close())
            finally:
                self._stop()

    async def _subscribe(self, subject: str) -> None:
        from nats.errors import Error

        await self._client.subscribe(subject, cb=self._deliver)
        try:
            await self._client.flush()
        except (Error, OSError):  # connected a moment ago
            raise Misconfigured(
                "the NATS server does not answer any more; start it again, or check the address"
            ) from None

    async def _note_loss(self) -> None:
        if self._open:  # not because we are closing
            self._notes.say_lost(self._place)

    async def _note_return(self) -> None:
        self._notes.say_back(self._place)

    async def _deliver(self, message: "Msg") -> None:
        self._takers[message.subject](message.data)

    def _start_sending(self) -> None:
        self._sending = self._loop.create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        from nats.errors import Error

        for parcel in self._outbox.take():
            with contextlib.suppress(Error):  # a lost message is made good by a later one
                await self._client.publish(f"{self._subject}.{parcel.channel}", parcel.data)

    async def _drain_and_close(self) -> None:
        from nats.errors import Error

        await self._send_waiting()
        if self._client.is_connected:
            with contextlib.suppress(Error, TimeoutError):
                await self._client.flush(timeout=2)
        with contextlib.suppress(OSError):  # the broker is away
            await self._client.close()

    def _wait_for(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(BROKER_TIMEOUT_SECONDS)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(_without_tasks())
        self._loop.close()


async def _without_tasks() -> None:
    """End what the client left running, or the loop would complain when it is closed."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _client() -> "Client":
    try:
        from nats.aio.client import Client
    except ImportError:
        raise Misconfigured(
            "messages through NATS need the package nats-py; pip install 'casemate[nats]'"
        ) from None
    return Client()


async def _connect(client: "Client", url: str, place: str, lost: Called, back: Called) -> None:
    """Connect at once or not at all; later breaks are mended for as long as it takes."""
    from nats.errors import Error

    heard: list[Exception] = []

    async def hear(error: Exception) -> None:
        heard.append(error)

    try:
        await client.connect(
            url,
            error_cb=hear,
            disconnected_cb=lost,
            reconnected_cb=back,
            max_reconnect_attempts=1,
            reconnect_time_wait=_RETRY_SECONDS,  # type: ignore[arg-type]  # it is only slept and compared
        )
    except (Error, OSError, ValueError, TimeoutError):
        if any("authorization" in str(error).lower() for error in heard):
            raise Misconfigured(
                f"the NATS server at {place} refuses this user or password; "
                f"put the right ones into the address: nats://USER:PASSWORD@HOST:PORT/SUBJECT"
            ) from None
        raise Misconfigured(
            f"no NATS server answers at {place}; start one there, or check the address"
        ) from None
    client.options["max_reconnect_attempts"] = -1
