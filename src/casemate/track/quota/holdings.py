"""What a quota's server knows of what each incarnation of each site holds."""

import heapq
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from casemate.track.quota.messages import Numbered


@dataclass(eq=False)
class Holding:
    """One incarnation of a site, as the server knows it."""

    site: str
    incarnation: int
    sequence: int = 0  # of the newest order to it
    bound: int = 0  # the most it may ever use, whatever arrives
    used: int = 0  # what it has said to have used; it may be more by now
    told: int | None = None  # the ceiling in the newest order
    silent: bool = False  # gone, as far as anybody knows
    wanted: int = 0  # what it waits for
    order: Numbered | None = None  # the newest, to be sent again
    sent: float = 0.0  # when
    times: int = 0  # how often

    @property
    def left(self) -> int:
        """The most it can have left."""
        return max(0, self.bound - self.used)


class Holdings:
    """All of them, with their sums, and the largest at hand."""

    def __init__(self, kept: Iterable[Holding]) -> None:
        self._rows: dict[tuple[str, int], Holding] = {}
        self._of_site: dict[str, list[Holding]] = {}
        self._heap: list[tuple[int, int, Holding]] = []  # larger first; some entries are outdated
        self._number = count()
        self.granted = 0  # every bound, of the silent ones too
        self.bound = self.used = 0  # of those who answer
        for row in kept:
            self._insert(row)

    def __iter__(self) -> Iterator[Holding]:
        return iter(self._rows.values())

    def find(self, site: str, incarnation: int) -> Holding | None:
        """The holding of an incarnation, if it was ever heard of."""
        return self._rows.get((site, incarnation))

    def add(self, site: str, incarnation: int) -> Holding:
        """The holding of a new incarnation: nothing."""
        row = Holding(site, incarnation)
        self._insert(row)
        return row

    def others(self, row: Holding) -> list[Holding]:
        """Other incarnations of the same site."""
        return [each for each in self._of_site[row.site] if each is not row]

    def change(
        self,
        row: Holding,
        bound: int | None = None,
        used: int | None = None,
        silent: bool | None = None,
    ) -> None:
        """Change what is known of one, and the sums with it."""
        self._count(row, -1)
        row.bound = row.bound if bound is None else bound
        row.used = row.used if used is None else used
        row.silent = row.silent if silent is None else silent
        self._count(row, 1)
        self._push(row)

    def donors(self, need: int, many: int, but: Container[int]) -> list[Holding]:
        """The largest of those who answer: as many as asked for, and enough that halves may do."""
        chosen: list[Holding] = []
        seen: dict[int, Holding] = {}
        while self._heap and (need > 0 or len(chosen) < many):
            left, _, row = heapq.heappop(self._heap)
            if -left != row.left or row.silent or id(row) in seen:
                continue
            seen[id(row)] = row
            if id(row) not in but:
                chosen.append(row)
                need -= (row.left + 1) // 2
        for row in seen.values():
            self._push(row)
        return chosen

    def _insert(self, row: Holding) -> None:
        self._rows[row.site, row.incarnation] = row
        self._of_site.setdefault(row.site, []).append(row)
        self._count(row, 1)
        self._push(row)

    def _count(self, row: Holding, sign: int) -> None:
        self.granted += sign * row.bound
        if not row.silent:
            self.bound += sign * row.bound
            self.used += sign * min(row.used, row.bound)

    def _push(self, row: Holding) -> None:
        if row.left == 0 or row.silent:
            return
        heapq.heappush(self._heap, (-row.left, next(self._number), row))
        if len(self._heap) > 4 * len(self._rows) + 64:
            self._heap = [(-each.left, next(self._number), each) for each in self]
            heapq.heapify(self._heap)
