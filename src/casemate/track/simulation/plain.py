"""A run over the real sites, server and engine, one item at a time.

This is the slow and obvious simulation: nothing in it knows a protocol. The compiled ones are
tested against it word for word, and an adversary written in Python runs on it.
"""

from casemate.errors import Misconfigured
from casemate.track.adversary.protocol import Adversary, Seen
from casemate.track.engine import Engine
from casemate.track.instruction import Draw, step_of
from casemate.track.messages import Order
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.server import Server
from casemate.track.setting import Run, Setting
from casemate.track.site import Site


class PlainRun:
    """Sites and a server that hand each other their messages at once."""

    def __init__(self, sites: int, engine: Engine, draw: Draw) -> None:
        self._engine = engine
        self.server = Server([str(i) for i in range(sites)], engine, self._order, clock=lambda: 0.0)
        receive = self.server.receive
        self.sites = [
            Site(str(i), receive, rule, draw=draw) for i, rule in enumerate(self.server.rules)
        ]
        self._step_of_epoch = (-1, 0.0)
        self.output, self.changed = engine.estimate().value, False

    def _order(self, site: str, order: Order) -> None:
        self.sites[int(site)].obey(order)

    def seen(self) -> Seen:
        """What everybody may see before the next item."""
        return Seen(self.output, self.changed, self.server.rounds, self._step())

    def _step(self) -> float:
        if self._step_of_epoch[0] != self.server.epoch:
            largest = max(map(step_of, self.server.rules))
            self._step_of_epoch = (self.server.epoch, largest)
        return self._step_of_epoch[1]

    def add(self, site: int) -> None:
        """One item arrives at a site, and everything that follows from it happens."""
        if not 0 <= site < len(self.sites):
            raise Misconfigured(
                f"the adversary chose site {site} of {len(self.sites)}; "
                f"it must name one from 0 to {len(self.sites) - 1}"
            )
        self.sites[site].add()
        output = self._engine.estimate().value
        self.changed, self.output = output != self.output, output


def run_plain(
    setting: Setting, engine: Engine, adversary: Adversary, draw: Draw, pace: Pace = UNWATCHED
) -> Run:
    """Track all items of a setting, and keep the largest error there was at any time."""
    run, worst = PlainRun(setting.sites, engine, draw), 0.0
    for items in range(1, setting.items + 1):
        run.add(adversary.next_site(run.seen()))
        worst = max(worst, abs(run.output - items) / (setting.alpha * items))
        pace.note(items, setting.items)
    return Run(dict(run.server.words_by_kind), worst, run.server.rounds)
