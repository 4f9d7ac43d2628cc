"""Runs of a protocol against an adversary: how many words, and the largest error at any time.

Cost       Adversaries by name run compiled, 10 to 30 ns an item; one of yours runs at the speed of
           Python, some microseconds an item.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from casemate.errors import Misconfigured
from casemate.track.adversary.compiled import Rngs, compiled
from casemate.track.adversary.protocol import Adversary
from casemate.track.modes import make_engine
from casemate.track.pace import EVERY, Pace
from casemate.track.setting import Run, Setting
from casemate.track.simulation.fast import fast_run
from casemate.track.simulation.interrupts import Held
from casemate.track.simulation.plain import run_plain

MakeAdversary = Callable[[int, Generator], Adversary]
"""Makes an adversary of yours, fresh for each run, from the number of sites and its randomness."""

Advance = Callable[[float], None]
"""Told of each part of a run that is done; the parts of a run add up to 1."""

_EVERY_PLAIN = 1 << 14  # items between two of them where a run goes at the speed of Python


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
    rngs: Rngs = (one, two, three)
    tell = _telling(setting.items, advance)
    if isinstance(adversary, str):
        return _fast(mode, setting, adversary, rngs, tell)
    engine, pace = make_engine(mode, setting, three.random), Pace(tell, _EVERY_PLAIN)
    return run_plain(setting, engine, adversary(setting.sites, one), two.random, pace)


def _fast(
    mode: str, setting: Setting, adversary: str, rngs: Rngs, tell: Callable[[int], None]
) -> Run:
    with Held() as interrupts:

        def pause(items: int) -> None:
            tell(items)
            interrupts.release()

        return fast_run(mode, setting, compiled(adversary, setting.sites), rngs, Pace(pause, EVERY))


def _telling(items: int, advance: Advance) -> Callable[[int], None]:
    """Turn how many items of a run have come into the parts that came since the last time."""
    last = 0

    def tell(now: int) -> None:
        nonlocal last
        before, last = last, now
        advance((now - before) / items)

    return tell
