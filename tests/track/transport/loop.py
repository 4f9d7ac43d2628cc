"""A wire within one process."""

from casemate.track.transport.network import Parcel, Take


class Loop:
    """A wire that delivers at once."""

    def __init__(self, kept: tuple[bytes, ...] = ()) -> None:
        self.takers: dict[str, Take] = {}
        self.sent: list[Parcel] = []
        self.kept, self.closed = kept, False

    def publish(self, parcel: Parcel) -> None:
        self.sent.append(parcel)
        if parcel.channel in self.takers:
            self.takers[parcel.channel](parcel.data)

    def subscribe(self, channel: str, take: Take) -> None:
        self.takers[channel] = take

    def recall(self, channel: str) -> tuple[bytes, ...]:
        return self.kept if channel == "report" else ()

    def close(self) -> None:
        self.closed = True
