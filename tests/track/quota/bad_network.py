"""A network, disks and clocks that do what the test says: lose, repeat, reorder, kill."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from casemate.track.journal import MemoryJournal
from casemate.track.quota.journals import Holding, OrderStanding
from casemate.track.quota.messages import Claim, Order, Receive, Take


class Killed(BaseException):
    """The process ends here."""


class Fuse:
    """Kills whoever writes next, before or after the write."""

    def __init__(self) -> None:
        self.lit: str | None = None

    def write(self, write: Callable[[], None]) -> None:
        when, self.lit = self.lit, None
        if when == "before":
            raise Killed
        write()
        if when == "after":
            raise Killed


class SiteDisk(MemoryJournal[OrderStanding]):
    """A site's journal that outlives the site."""

    def __init__(self, incarnation: int, fuse: Fuse) -> None:
        super().__init__(incarnation)
        self.fuse = fuse

    def save(self, record: OrderStanding) -> None:
        keep = super().save
        self.fuse.write(lambda: keep(record))


class ServerDisk:
    """A server's journal that outlives the server."""

    def __init__(self, window: int = 1) -> None:
        self.window, self.fuse = window, Fuse()
        self.limit: int | None = None
        self.rows: dict[tuple[str, int], Holding] = {}

    def load(self, limit: int) -> tuple[int, Sequence[Holding]]:
        kept = limit if self.limit is None else self.limit
        return kept, [replace(row, told_ceiling=0) for row in self.rows.values()]

    def keep(self, limit: int, changed: Iterable[Holding]) -> None:
        rows = {
            (r.site, r.incarnation): Holding(r.site, r.incarnation, r.sequence, r.bound, r.used)
            for r in changed
        }

        def write() -> None:
            self.limit = limit
            self.rows |= rows

        self.fuse.write(write)

    @property
    def granted(self) -> int:
        return sum(row.bound for row in self.rows.values())

    def close(self) -> None:
        pass


class Net:
    """Messages travel until the test delivers them; in a good network they are delivered at once.

    Nothing is delivered within the delivery of something else.
    """

    def __init__(self, good: bool = False) -> None:
        self.travelling: list[tuple[str, Claim | Order]] = []
        self.good, self._busy = good, False
        self._receive: Receive | None = None
        self._sites: dict[str, Take] = {}

    def serve(self, receive: Receive) -> None:
        self._receive = receive

    def join(self, site: str, take: Take) -> None:
        self._sites[site] = take

    def report(self, report: Claim) -> None:
        self._send("", report)

    def order(self, site: str, order: Order) -> None:
        self._send(site, order)

    def close(self) -> None:
        pass

    def hand_over(self, to: str, message: Claim | Order) -> None:
        if isinstance(message, Claim):
            assert self._receive is not None
            self._receive(message)
        else:
            self._sites[to](message)

    def _send(self, to: str, message: Claim | Order) -> None:
        self.travelling.append((to, message))
        while self.good and not self._busy and self.travelling:
            self._busy = True
            try:
                self.hand_over(*self.travelling.pop(0))
            finally:
                self._busy = False
