"""How long a search may take, in seconds or in CP-SAT's own repeatable units of work.

`Clock.solver` is the one place where CP-SAT is set up. A `Stop` ends all searches under a limit
before it is reached.
"""

import math
import os
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpSolver


CP_SAT_LARGEST_VALUE = 2**40
"""No value, coefficient or right side may be larger; sums must stay well within 63 bits."""


class Stop:
    """Ends what searches under it before its limit: what is proved by then stands.

    `now` may be called by another thread, or by whoever handles an interrupt.

    >>> stop = Stop()
    >>> stop.now()
    >>> Clock(SearchLimit(stop=stop)).over
    True
    """

    def __init__(self) -> None:
        self._came = threading.Event()
        self._solver: CpSolver | None = None

    @property
    def came(self) -> bool:
        """Whether searches are to end."""
        return self._came.is_set()

    def now(self) -> None:
        """End all searches, and the one that is running."""
        self._came.set()
        if self._solver is not None:
            self._solver.stop_search()

    def watch(self, solver: "CpSolver") -> None:
        """Take the solver that runs next."""
        self._solver = solver


@dataclass(frozen=True)
class SearchLimit:
    """The most a search may spend: wall-clock seconds, and deterministic work units.

    With `workers=1` and only `work` limited, the same input stops at the same place every time.
    """

    seconds: float = 60.0
    work: float = math.inf
    workers: int = 0  # 0: one for each core
    stop: Stop = field(default_factory=Stop, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.work > 0 and self.workers >= 0):
            raise ValueError("a limit needs seconds > 0, work > 0 and workers >= 0")


class Clock:
    """What is left of a limit; started once, consulted by every search under it."""

    def __init__(self, limit: SearchLimit, parent: "Clock | None" = None) -> None:
        self.limit, self._parent = limit, parent
        self._work = limit.work
        self._end = time.monotonic() + limit.seconds

    @property
    def seconds_left(self) -> float:
        """Wall-clock seconds before the end; none once it was stopped."""
        return 0.0 if self.limit.stop.came else self._end - time.monotonic()

    @property
    def left(self) -> SearchLimit:
        """What is left as a limit of its own; next to nothing where nothing is."""
        return replace(self.limit, seconds=max(self.seconds_left, 1e-3), work=max(self._work, 1e-6))

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.seconds_left <= 0 or self._work <= 0

    def within(self, max_units: float) -> "Clock":
        """A clock for at most so many units of what is left; what it spends is spent here too."""
        repeatable = math.isfinite(self._work)
        seconds = min(self.seconds_left, math.inf if repeatable else max_units)
        work = min(self._work, max_units) if repeatable else math.inf
        limit = replace(self.limit, seconds=max(seconds, 1e-6), work=max(work, 1e-6))
        return Clock(limit, self)

    def solver(self, max_units: float) -> "CpSolver":
        """A solver that stops after `most` units, or when nothing is left.

        The units are those of the solver's own work where that is limited, and seconds otherwise.
        """
        from ortools.sat.python.cp_model import CpSolver

        solver = CpSolver()
        self.limit.stop.watch(solver)
        # its own handler would end one search only, and leave the process without any handler
        solver.parameters.catch_sigint_signal = False
        solver.parameters.num_workers = self.limit.workers or min(8, os.cpu_count() or 1)
        solver.parameters.random_seed = 0
        repeatable = math.isfinite(self._work)
        seconds = max(0.001, min(self.seconds_left, math.inf if repeatable else max_units))
        if math.isfinite(seconds):
            solver.parameters.max_time_in_seconds = seconds
        if repeatable:
            solver.parameters.max_deterministic_time = max(1e-6, min(self._work, max_units))
        return solver

    def spent(self, solver: "CpSolver") -> None:
        """Take off what a solver has used."""
        self._work -= solver.deterministic_time
        if self._parent is not None:
            self._parent.spent(solver)
