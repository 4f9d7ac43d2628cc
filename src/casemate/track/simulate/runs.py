"""Runs of a protocol against an adversary: how many words, and the largest error at any time.

`run_plain` is the slow and obvious simulation, over the real sites, server and engine, one item at
a time: nothing in it knows a protocol. Compiled runs are tested against it word for word, and an
adversary written in Python runs on it.

Cost       Adversaries by name run compiled, 10 to 30 ns an item; one of yours runs at the speed of
           Python, some microseconds an item.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from casemate.errors import Misconfigured
from casemate.track.engine import Engine, TalliedEngine
from casemate.track.messages import Order
from casemate.track.modes import make_engine
from casemate.track.reporting_rule import Draw, step_of
from casemate.track.server import Server
from casemate.track.setting import Run, Setting
from casemate.track.simulate.adversary import Adversary, Rngs, Seen, named_adversary
from casemate.track.simulate.compiled_run import (
    PAUSE_ITEMS,
    UNWATCHED,
    HeldInterrupts,
    Pace,
    run_compiled,
)
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

    def public_view(self) -> Seen:
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
        run.add(adversary.next_site(run.public_view()))
        worst = max(worst, abs(run.output - items) / (setting.alpha * items))
        pace.note(items, setting.items)
    return Run(dict(run.server.words_by_kind), worst, run.server.rounds)


# Many runs ---------------------------------------------------------------------------------------


MakeAdversary = Callable[[int, Generator], Adversary]
"""Makes an adversary of yours, fresh for each run, from the number of sites and its randomness."""

Advance = Callable[[float], None]
"""Told of each part of a run that is done; the parts of a run add up to 1."""

_PLAIN_PAUSE_ITEMS = 1 << 14  # items between two of them where a run goes at the speed of Python


@dataclass(frozen=True)
class Simulation:
    """What came of some runs of one protocol against one adversary.

    `finished` is False where somebody interrupted it: these are the runs that were done by then.
    """

    setting: Setting
    mode: str
    adversary: str
    runs: tuple[Run, ...]
    seconds: float
    finished: bool = True

    @property
    def words(self) -> float:
        """Messages of a run in both directions, on average."""
        return sum(run.words for run in self.runs) / len(self.runs)

    @property
    def words_by_kind(self) -> dict[str, float]:
        """The same by kind: reports, calls for the exact counts, answers to them, new rules."""
        kinds = self.runs[0].words_by_kind
        return {k: sum(r.words_by_kind[k] for r in self.runs) / len(self.runs) for k in kinds}

    @property
    def max_error_over_alpha(self) -> float:
        """The largest error at any time of any run, as a multiple of what is promised."""
        return max(run.max_error_over_alpha for run in self.runs)

    @property
    def violations(self) -> int:
        """How many runs were ever off by more than was promised."""
        return sum(run.violated for run in self.runs)

    @property
    def rounds(self) -> float:
        """How often all sites were called in a run, on average."""
        return sum(run.rounds for run in self.runs) / len(self.runs)


def simulate(
    setting: Setting,
    mode: str = "auto",
    adversary: str | MakeAdversary = "uniform",
    *,
    runs: int = 1,
    seed: int | None = None,
    advance: Advance = lambda _part: None,
) -> Simulation:
    """Run a protocol against an adversary, which sees every published count and nothing else.

    An interrupt ends it within a moment, with the runs that are done; before the first of them,
    with nothing.
    """
    if runs < 1:
        raise Misconfigured(f"at least one run is needed, got {runs}")
    begun = time.perf_counter()
    done: list[Run] = []
    random = np.random.default_rng(seed)
    try:
        while len(done) < runs:
            (rng,) = random.spawn(1)
            done.append(_run(setting, mode, adversary, rng, advance))
    except KeyboardInterrupt:
        if not done:
            raise
    name = adversary if isinstance(adversary, str) else getattr(adversary, "__name__", "your own")
    seconds, finished = time.perf_counter() - begun, len(done) == runs
    return Simulation(setting, mode, name, tuple(done), seconds, finished)


def _run(
    setting: Setting, mode: str, adversary: str | MakeAdversary, rng: Generator, advance: Advance
) -> Run:
    one, two, three = rng.spawn(3)
    tell = _telling(setting.items, advance)
    engine = make_engine(mode, setting, three.random)
    if isinstance(adversary, str):
        return _run_held(setting, engine, adversary, (one, two), tell)
    pace = Pace(tell, _PLAIN_PAUSE_ITEMS)
    return run_plain(setting, engine, adversary(setting.sites, one), two.random, pace)


def _run_held(
    setting: Setting, engine: TalliedEngine, adversary: str, rngs: Rngs, tell: Callable[[int], None]
) -> Run:
    """A compiled run, which is interrupted only where it pauses."""
    with HeldInterrupts() as interrupts:

        def pause(items: int) -> None:
            tell(items)
            interrupts.release()

        against = named_adversary(adversary, setting.sites)
        return run_compiled(setting, engine, against, rngs, Pace(pause, PAUSE_ITEMS))


def _telling(items: int, advance: Advance) -> Callable[[int], None]:
    """Turn how many items of a run have come into the parts that came since the last time."""
    last = 0

    def tell(now: int) -> None:
        nonlocal last
        before, last = last, now
        advance((now - before) / items)

    return tell
