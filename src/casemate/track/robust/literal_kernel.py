"""The items of a simulated round, compiled: what happens while the published count stands still."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.track.adversary.kernel import next_site


class Attack(NamedTuple):
    """An adversary and its randomness."""

    kind: int
    memory: NDArray[np.int64]
    numbers: NDArray[np.float64]
    rng: Generator


class Sites(NamedTuple):
    """The sites in a round of blocks, and their randomness."""

    counts: NDArray[np.int64]
    begun: NDArray[np.int64]
    reports: NDArray[np.int64]
    triggers: NDArray[np.int64]
    rng: Generator


class Shown(NamedTuple):
    """What is public before the next item."""

    output: float
    changed: bool
    round_number: int
    size: float  # of a block


class Limits(NamedTuple):
    """What a kernel must not pass."""

    room: int  # bits that fit into the phase
    last_block: int  # of a site
    items: int  # until it shall pause


class News(NamedTuple):
    """Why a kernel stopped."""

    items: int  # that were counted
    words: int
    bits: int
    signalled: bool  # a site has passed its last block


@njit(cache=True)
def count_exactly(attack: Any, counts: Any, items: Any, last: Any) -> None:
    """Report each of the items after so many until the last."""
    for now in range(items, last):
        site = next_site(
            attack.kind, attack.memory, attack.numbers, attack.rng, float(now), now > 0, 0, 0.0
        )
        counts[site] += 1


@njit(cache=True)
def begin_blocks(sites: Any, size: Any) -> None:
    """Every site takes the rule of a round, in turn."""
    for site in range(len(sites.counts)):
        sites.begun[site] = sites.counts[site]
        sites.reports[site] = 0
        _next_trigger(sites, site, size)


@njit(cache=True)
def _next_trigger(sites: Any, site: Any, size: Any) -> None:
    """Draw as `Blocks.after` does."""
    offset = (sites.reports[site] + 1 - sites.rng.random()) * size
    sites.triggers[site] = sites.begun[site] + math.ceil(offset)


@njit(cache=True)
def count_until_news(attack: Any, sites: Any, shown: Any, limits: Any) -> Any:
    """Count items until a phase has more bits than room, or a site has passed its last block.

    Where neither happens before it shall pause, that is no news: the same phase goes on. It returns
    what a `News` is made of: to make one would be Python code, where an interrupt may be raised.
    """
    changed, words, bits = shown.changed, 0, 0
    for item in range(1, limits.items + 1):
        site = next_site(
            attack.kind,
            attack.memory,
            attack.numbers,
            attack.rng,
            shown.output,
            changed,
            shown.round_number,
            shown.size,
        )
        changed = False
        sites.counts[site] += 1
        if sites.counts[site] < sites.triggers[site]:
            continue
        words += 1
        while sites.counts[site] >= sites.triggers[site]:
            bits += 1
            sites.reports[site] += 1
            _next_trigger(sites, site, shown.size)
        signalled = sites.reports[site] > limits.last_block
        if bits > limits.room or signalled:
            return item, words, bits, signalled
    return limits.items, words, bits, False
