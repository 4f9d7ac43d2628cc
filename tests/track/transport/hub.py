"""Wires to one broker within one process: a message reaches whoever takes it, one at a time."""

from collections import deque

from casemate.track.transport.network import Parcel, Take


class Hub:
    """What several wires share; while it is `deaf`, nothing that is published arrives."""

    def __init__(self) -> None:
        self.wires: list[HubWire] = []
        self.deaf, self._queue, self._busy = False, deque[Parcel](), False

    def wire(self, kept: tuple[bytes, ...] = ()) -> "HubWire":
        """One more wire, to a broker that has kept these reports."""
        made = HubWire(self, kept)
        self.wires.append(made)
        return made

    def carry(self, parcel: Parcel) -> None:
        if not self.deaf:
            self._queue.append(parcel)
        if self._busy:
            return
        self._busy = True
        try:
            while self._queue:
                self._deliver(self._queue.popleft())
        finally:
            self._busy = False

    def _deliver(self, parcel: Parcel) -> None:
        for wire in list(self.wires):
            if parcel.channel in wire.takers:
                wire.takers[parcel.channel](parcel.data)


class HubWire:
    """One of the wires."""

    def __init__(self, hub: Hub, kept: tuple[bytes, ...]) -> None:
        self._hub, self._kept = hub, kept
        self.takers: dict[str, Take] = {}
        self.sent: list[Parcel] = []

    def publish(self, parcel: Parcel) -> None:
        self.sent.append(parcel)
        self._hub.carry(parcel)

    def subscribe(self, channel: str, take: Take) -> None:
        self.takers[channel] = take

    def recall(self, channel: str) -> tuple[bytes, ...]:
        return self._kept if channel == "report" else ()

    def close(self) -> None:
        self.takers = {}
