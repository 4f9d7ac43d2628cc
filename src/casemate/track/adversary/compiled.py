"""Adversaries by name, in the form that compiled simulations take."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.track.adversary import kernel
from casemate.track.adversary.alias import alias_table, zipf_weights
from casemate.track.adversary.protocol import Adversary, Seen

NAMES = ("uniform", "zipf", "zipf:EXPONENT", "single-site", "stop-on-change", "group-hold-or-flush")
Rngs = tuple[Generator, Generator, Generator]
"""The randomness of a simulated run: the adversary's, the sites' and the server's."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """An adversary for one run of a kernel, which changes its memory."""

    kind: int
    memory: NDArray[np.int64]
    numbers: NDArray[np.float64]

    def as_adversary(self, rng: Generator) -> Adversary:
        """The same adversary as an object; it shares this one's memory."""
        return _Interpreted(self, rng)


@dataclass(frozen=True)
class _Interpreted:
    compiled: Compiled
    rng: Generator

    def next_site(self, seen: Seen) -> int:
        c = self.compiled
        public = (seen.output, seen.changed, seen.round_number, seen.step)
        return int(kernel.next_site(c.kind, c.memory, c.numbers, self.rng, *public))


def compiled(name: str, sites: int) -> Compiled:
    """A fresh adversary of this name against so many sites."""
    if sites < 1:
        raise Misconfigured(f"an adversary needs at least one site to send items to, got {sites}")
    if name.partition(":")[0] == "zipf":
        return _zipf(_exponent(name), sites)
    if name not in _MAKERS:
        choices = ", ".join(NAMES)
        raise Misconfigured(f"there is no adversary {name!r}; choose one of {choices}")
    return _MAKERS[name](sites)


def _exponent(name: str) -> float:
    _, colon, text = name.partition(":")
    try:
        exponent = float(text) if colon else 1.0
    except ValueError:
        exponent = math.nan
    if not 0 <= exponent < math.inf:
        raise Misconfigured(
            f"the exponent of a Zipf load is a number of at least 0, as in zipf:1.5, got {text!r}"
        )
    return exponent


def _zipf(exponent: float, sites: int) -> Compiled:
    kept, alias = alias_table(zipf_weights(exponent, sites))
    return Compiled(kernel.ZIPF, np.concatenate([_row(sites), alias]), kept)


def _without_memory(kind: int) -> Callable[[int], Compiled]:
    return lambda sites: Compiled(kind, _row(sites), np.zeros(0))


def _row(*numbers: Any) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def _stop_on_change(sites: int) -> Compiled:
    memory = _row(sites, *[-1] * (kernel.STOP_ON_CHANGE_MEMORY - 1))
    return Compiled(kernel.STOP_ON_CHANGE, memory, np.zeros(2 + sites))


def _group_hold_or_flush(sites: int) -> Compiled:
    memory = _row(sites, *[-1] * (kernel.GROUP_HOLD_OR_FLUSH_MEMORY - 1))
    return Compiled(kernel.GROUP_HOLD_OR_FLUSH, memory, np.zeros(2))


_MAKERS: dict[str, Callable[[int], Compiled]] = {
    "uniform": _without_memory(kernel.UNIFORM),
    "single-site": _without_memory(kernel.SINGLE_SITE),
    "stop-on-change": _stop_on_change,
    "group-hold-or-flush": _group_hold_or_flush,
}
