"""The adversaries as objects: what they do, slow and in plain sight.

Source     Source document 001, Section 1.1: the error of a tracker with independent random
           thresholds is small because errors of both signs cancel, and whether they still do when
           the items depend on the outputs is "unclear". These two make them agree; both are ours.
Guarantee  None is needed: a tracker that says it is right against everybody must be right against
           these. The compiled ones name the same sites, item by item.
"""

import itertools
import math
from collections.abc import Callable
from collections.abc import Generator as Script
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.track.simulate.adversary import (
    Adversary,
    CompiledAdversary,
    Seen,
    alias_table,
    next_site,
    zipf_weights,
)

# Plain ------------------------------------------------------------------------------------------


Play = Script[int, Seen, None]
"""A script that names sites and is told after each item what is seen."""


@dataclass(frozen=True)
class UniformSites:
    """Every item to a site chosen at random."""

    sites: int
    rng: Generator

    def next_site(self, seen: Seen) -> int:  # noqa: ARG002 - it does not look
        """Any site."""
        return int(self.rng.random() * self.sites)


class Zipf:
    """Items to sites chosen at random with probabilities 1, 2^-s, 3^-s, ..."""

    def __init__(self, sites: int, rng: Generator, exponent: float = 1.0) -> None:
        self._rng = rng
        self._kept: NDArray[np.float64]
        self._alias: NDArray[np.int64]
        self._kept, self._alias = alias_table(zipf_weights(exponent, sites))

    def next_site(self, seen: Seen) -> int:  # noqa: ARG002 - it does not look
        """A site, earlier ones more often."""
        share, column = math.modf(self._rng.random() * len(self._kept))
        return int(column if share < self._kept[int(column)] else self._alias[int(column)])


@dataclass(frozen=True)
class SingleSite:
    """Every item to one site."""

    site: int = 0

    def next_site(self, seen: Seen) -> int:  # noqa: ARG002 - it does not look
        """The one."""
        return self.site


class Scripted:
    """Plays a script, and begins it again when the public parameters change."""

    def __init__(self, script: Callable[[Seen], Play]) -> None:
        self._script = script
        self._public: tuple[int, float] | None = None
        self._play: Play

    def next_site(self, seen: Seen) -> int:
        """The site of the next item."""
        public = (seen.round_number, seen.step)
        if public == self._public:
            return self._play.send(seen)
        self._public, self._play = public, self._script(seen)
        return next(self._play)


def stop_on_change(sites: int) -> Scripted:
    """Send items to one site until the output changes, leave it there, and go on to the next.

    A tracker whose error averages out over its own randomness is then wrong in the same direction
    at every site. A site is left only if what the output gained while it received items exceeds
    what it received by half a step: always for a tracker that takes a report as a whole step more
    than was counted, in the first half of a block for one that reports once in each block.
    """

    def script(seen: Seen) -> Play:
        surplus, site = [0.0] * sites, 0
        while True:
            before = seen.output
            seen = yield site
            surplus[site] += seen.output - before - 1.0
            if seen.changed and (seen.step == 0.0 or surplus[site] >= 0.5 * seen.step):
                site = (site + 1) % sites

    return Scripted(script)


def group_hold_or_flush(sites: int) -> Scripted:
    """Find out how many reports a group of sites made, and keep the group if they were too many.

    Site 0 is the pump. Its blocks have one report each, so at a change of the output everybody's
    reports but the group's are known, if they are as many as the output says. A group in the middle
    of a block has made one report for every two members, on average. With more it is held there
    for the rest of the round; otherwise it is flushed, which costs nothing, and tries its luck in
    the middle of the next block.
    """

    def script(seen: Seen) -> Play:
        books = _Books(seen.output, seen.step)
        seen = yield from books.pump()
        books.known = books.unexplained(seen)  # what the output shows too much from the start
        for group in _groups(sites):
            yield from _try_until_held(group, books)
        while True:
            yield 0

    return Scripted(script)


@dataclass
class _Books:
    """What the second attack knows of a round."""

    base: float  # the output when it began
    step: float
    pumped: int = 0  # items that the pump received
    known: int = 0  # reports of all groups before this one, and of this one's blocks before this

    def unexplained(self, seen: Seen) -> int:
        """How many reports must have come from the group in its current block."""
        others = math.ceil(self.pumped / self.step) + self.known
        return math.floor((seen.output - self.base) / self.step - others + 0.5)

    def pump(self) -> Script[int, Seen, Seen]:
        """Send items to site 0 until the output changes; for ever where reports have no size."""
        while True:
            seen = yield 0
            self.pumped += 1
            if seen.changed and self.step >= 1.0:
                return seen


def _try_until_held(group: range, books: _Books) -> Play:
    for level in itertools.count():
        for site in group:
            for _ in range(_middle(level, books.step) - _middle(level - 1, books.step)):
                seen = yield site
        if not seen.changed:
            seen = yield from books.pump()
        bits = books.unexplained(seen)
        held = 2 * bits > len(group)
        books.known += bits if held else len(group)
        if held:
            return


def _groups(sites: int) -> list[range]:
    size = math.ceil(math.sqrt(sites))
    return [range(first, min(first + size, sites)) for first in range(1, sites, size)]


def _middle(level: int, step: float) -> int:
    """How many items a site has received in the middle of this block, from 0; none before it."""
    return math.ceil((level + 0.5) * step) if level >= 0 else 0


@dataclass(frozen=True)
class Interpreted:
    """A compiled adversary as an object; it shares that one's memory."""

    compiled: CompiledAdversary
    rng: Generator

    def next_site(self, seen: Seen) -> int:
        """The site of the next item."""
        c = self.compiled
        public = (seen.output, seen.changed, seen.round_number, seen.step)
        return int(next_site(c.kind, c.memory, c.numbers, self.rng, *public))


def as_adversary(compiled: CompiledAdversary, rng: Generator) -> Adversary:
    """The same adversary as an object."""
    return Interpreted(compiled, rng)
