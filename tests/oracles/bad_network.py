"""A tracker in one process over a network that loses, repeats, delays and reorders, by a seed.

Time is counted in steps of whoever runs it, for example one for each item. With no faults every
message arrives before the call that sent the first of them returns.
"""

import heapq
from dataclasses import dataclass
from itertools import count
from random import Random

from casemate.track.engine import Engine
from casemate.track.journal import MemoryJournal
from casemate.track.messages import Order, SiteReport
from casemate.track.reporting_rule import Every, Rule
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Beats, Timing
from casemate.track.site import Site
from casemate.track.transport.network import Notes, Obey, Receive


@dataclass(frozen=True)
class Faults:
    """What may happen to a message on its way."""

    drop: float = 0.0  # the probability that a copy of it is lost
    duplicate: float = 0.0  # the probability that there are two copies
    delay: int = 0  # in steps
    reorder: bool = False  # each copy takes from 0 to `delay` steps, instead of `delay`

    def __post_init__(self) -> None:
        if not (0 <= self.drop <= 1 and 0 <= self.duplicate <= 1 and self.delay >= 0):
            raise ValueError(f"need probabilities and a delay of at least 0, got {self}")


class Faulty:
    """A transport within one process that does to messages what a bad network does."""

    def __init__(self, faults: Faults, random: Random) -> None:
        self.faults = faults
        self._random = random
        self._receive: Receive | None = None
        self._sites: dict[str, Obey] = {}
        self._now, self._number, self._busy = 0, count(), False
        self._travelling: list[tuple[int, int, str, SiteReport | Order]] = []
        self.dropped = self.duplicated = 0

    def serve(self, receive: Receive) -> None:
        """Deliver reports to this server from now on."""
        self._receive = receive

    def join(self, site: str, obey: Obey) -> None:
        """Deliver orders for this site from now on."""
        self._sites[site] = obey

    def leave(self, site: str) -> None:
        """Deliver nothing to this site any more: it is gone."""
        self._sites.pop(site, None)

    def report(self, report: SiteReport) -> None:
        """Carry a report to the server, perhaps."""
        self._send("", report)

    def order(self, site: str, order: Order) -> None:
        """Carry an order to a site, perhaps."""
        self._send(site, order)

    def order_all(self, order: Order) -> None:
        """Carry an order to every site, to each of them perhaps."""
        for site in list(self._sites):
            self._send(site, order)

    def step(self, steps: int = 1) -> None:
        """Let time pass, and deliver what has arrived by then."""
        self._now += steps
        self._deliver()

    def close(self) -> None:
        """What travels is lost."""
        self._travelling.clear()

    def _send(self, to: str, message: SiteReport | Order) -> None:
        copies = 2 if self._random.random() < self.faults.duplicate else 1
        self.duplicated += copies - 1
        for _ in range(copies):
            if self._random.random() < self.faults.drop:
                self.dropped += 1
                continue
            due = self._now + self._travel_time()
            heapq.heappush(self._travelling, (due, next(self._number), to, message))
        self._deliver()

    def _travel_time(self) -> int:
        most = self.faults.delay
        return self._random.randint(0, most) if self.faults.reorder else most

    def _deliver(self) -> None:
        """One after another, never one within another: what is sent meanwhile queues up."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._travelling and self._travelling[0][0] <= self._now:
                _, _, to, message = heapq.heappop(self._travelling)
                self._hand_over(to, message)
        finally:
            self._busy = False

    def _hand_over(self, to: str, message: SiteReport | Order) -> None:
        if isinstance(message, Order):
            obey = self._sites.get(to)
            if obey is not None:
                obey(message)
        elif self._receive is not None:
            self._receive(message)


class BadNetwork:
    """Sites, a server and its attendant; one item a step.

    Each site repeats itself every `heartbeat` steps, or as a site on a network does in the silence
    of so many beats of `beat` steps; 0 is never.
    """

    def __init__(
        self,
        sites: int,
        engine: Engine,
        faults: Faults,
        seed: int,
        *,
        heartbeat: int = 0,
        beat: int = 0,
        timing: Timing = Timing(repeat=20, patience=200, interval=1),  # noqa: B008 - immutable
    ) -> None:
        self.random, self.now = Random(seed), 0
        self.heartbeat, self.beat = heartbeat, beat
        self.beats: dict[str, Beats] = {}
        self.transport = Faulty(faults, Random(self.random.getrandbits(64)))
        self.names = [str(i) for i in range(sites)]
        self.said: list[str] = []
        self.timing = timing
        self.serve(engine)
        rules = self.attendant.server.rules
        self.sites = [self.make(i, rules[i]) for i in range(sites)]

    def serve(self, engine: Engine) -> None:
        """Put a new server in the place of whatever was there; it knows nothing."""
        transport, clock = self.transport, lambda: float(self.now)
        server = Server(
            self.names, engine, transport.order, lambda: 1.0 + self.now * 1e-3, transport.order_all
        )
        notes = Notes(self.said.append, clock)
        self.attendant = Attendant(server, self.names, self.timing, clock, notes)
        transport.serve(self.attendant.receive)

    def make(self, i: int, rule: Rule = Every(), incarnation: int = 1) -> Site:  # noqa: B008 - immutable
        """A site in the place of whatever was there."""
        draw = Random(self.random.getrandbits(64)).random
        beats = self.beats[self.names[i]] = Beats()

        def send(report: SiteReport) -> None:
            beats.note_sent(report)
            self.transport.report(report)

        site = Site(self.names[i], send, rule, MemoryJournal(incarnation), draw)
        self.transport.join(site.name, site.obey)
        return site

    @property
    def truth(self) -> int:
        """What the sites have counted."""
        return sum(site.count for site in self.sites)

    @property
    def value(self) -> float:
        """What the server publishes."""
        return self.attendant.server.read().value

    def step(self, site: int | None = None) -> None:
        """An item at a site, or nothing at any; then the time goes on."""
        if site is not None:
            self.sites[site].add()
        self.pass_time()

    def pass_time(self, steps: int = 1) -> None:
        """Deliver what is due, repeat what is to be repeated, and let the server look around."""
        for _ in range(steps):
            self.now += 1
            if self.heartbeat and self.now % self.heartbeat == 0:
                for each in self.sites:
                    each.report()
            if self.beat and self.now % self.beat == 0:
                for each in self.sites:
                    if self.beats[each.name].is_due():
                        each.report()
            self.transport.step()
            self.attendant.tick()

    def worst_error(self, items: int, alpha: float) -> float:
        """The largest error over alpha at any time, while items come to sites at random."""
        worst = 0.0
        for _ in range(items):
            self.step(self.random.randrange(len(self.sites)))
            worst = max(worst, abs(self.value - self.truth) / (alpha * self.truth))
        return worst
