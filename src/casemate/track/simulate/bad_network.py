"""A tracker in one process over a network that loses, repeats and delays, one item a step."""

from random import Random

from casemate.track.engine import Engine
from casemate.track.instruction import Every, Rule
from casemate.track.journal import MemoryJournal
from casemate.track.messages import Report
from casemate.track.server import Server
from casemate.track.service.attendant import Attendant, Beats, Timing
from casemate.track.site import Site
from casemate.track.transport.in_process import Faults, Faulty
from casemate.track.transport.network import Notes


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

        def send(report: Report) -> None:
            beats.sent(report)
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
