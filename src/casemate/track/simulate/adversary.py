"""Adversaries: who decides which site receives the next item.

Source     Source document 001, Section 1.1: the error of a tracker with independent random
           thresholds is small because errors of both signs cancel, and whether they still do when
           the items depend on the outputs is "unclear". Two attacks of ours make them agree.
Guarantee  None is needed: a tracker that says it is right against everybody must be right against
           these.

Compiled, an adversary is its kind, a row of whole numbers that it may change (`memory`, which
begins with the number of sites) and a row of fractions that it may change.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that is public before an item comes."""

    output: float  # what the server shows now
    changed: bool  # whether it showed something else before the last item
    round_number: int  # how many rounds have begun
    step: float  # the public size of a report: a block, one over a probability; 0 if none


class Adversary(Protocol):
    """Whoever sends the items; one made by you runs at the speed of Python."""

    def next_site(self, seen: Seen) -> int:
        """The number of the site, from 0, that receives the next item."""
        ...


UNIFORM, ZIPF, SINGLE_SITE, STOP_ON_CHANGE, GROUP_HOLD_OR_FLUSH = range(5)

# Stop on change: memory after the number of sites; `numbers` goes on with a surplus for each site
_ROUND, _CURRENT = 1, 2
_OUTPUT, _STEP, _SURPLUS = 0, 1, 2
# Group hold or flush: memory after the round; `numbers` goes on with the base of the round
_DOING, _GROUP, _MEMBER, _SENT, _LEVEL, _PUMPED, _KNOWN, _OFFSET = 2, 3, 4, 5, 6, 7, 8, 9
_BASE = 0
_CALIBRATING, _PUMPING, _MOVING, _DONE = range(4)

STOP_ON_CHANGE_MEMORY = 3
GROUP_HOLD_OR_FLUSH_MEMORY = 10


@compiled
def next_site(  # noqa: PLR0917 - compiled code takes no keyword arguments
    kind: Any,
    memory: Any,
    numbers: Any,
    rng: Any,
    output: Any,
    changed: Any,
    round_number: Any,
    step: Any,
) -> Any:
    """The site of the next item, from what is public before it comes (see `Seen`)."""
    if kind == UNIFORM:
        return int(rng.random() * memory[0])
    if kind == ZIPF:
        return _by_alias(memory, numbers, rng)
    if kind == STOP_ON_CHANGE:
        return _stop_on_change(memory, numbers, output, changed, round_number, step)
    if kind == GROUP_HOLD_OR_FLUSH:
        return _group_hold_or_flush(memory, numbers, output, changed, round_number, step)
    return 0


@compiled
def _by_alias(memory: Any, numbers: Any, rng: Any) -> Any:
    """One draw of one number: a column of the alias table, and which of its two sites."""
    place = rng.random() * memory[0]
    column = int(place)
    if place - column < numbers[column]:
        return column
    return memory[1 + column]


@compiled
def _is_new_round(memory: Any, numbers: Any, round_number: Any, step: Any) -> Any:
    """Whether the public parameters are not those of the last item; notes the new ones."""
    if round_number == memory[_ROUND] and step == numbers[_STEP]:
        return False
    memory[_ROUND], numbers[_STEP] = round_number, step
    return True


@compiled
def _stop_on_change(  # noqa: PLR0917 - compiled code takes no keyword arguments
    memory: Any, numbers: Any, output: Any, changed: Any, round_number: Any, step: Any
) -> Any:
    """Send items to one site until the output changes, leave it there, and go on to the next.

    A tracker whose error averages out over its own randomness is then wrong in the same direction
    at every site. A site is left only if what the output gained while it received items exceeds
    what it received by half a step: always for a tracker that takes a report as a whole step more
    than was counted, in the first half of a block for one that reports once in each block.
    """
    if _is_new_round(memory, numbers, round_number, step):
        memory[_CURRENT], numbers[_OUTPUT], numbers[_SURPLUS:] = 0, output, 0.0
        return 0
    current = memory[_CURRENT]
    numbers[_SURPLUS + current] += output - numbers[_OUTPUT] - 1.0
    numbers[_OUTPUT] = output
    if changed and (step == 0.0 or numbers[_SURPLUS + current] >= 0.5 * step):
        current = (current + 1) % memory[0]
        memory[_CURRENT] = current
    return current


@compiled
def _group_hold_or_flush(  # noqa: PLR0917 - compiled code takes no keyword arguments
    memory: Any, numbers: Any, output: Any, changed: Any, round_number: Any, step: Any
) -> Any:
    """Find out how many reports a group of sites made, and keep the group if they were too many.

    Site 0 is the pump. Its blocks have one report each, so at a change of the output everybody's
    reports but the group's are known, if they are as many as the output says. A group in the middle
    of a block has made one report for every two members, on average. With more it is held there
    for the rest of the round; otherwise it is flushed, which costs nothing, and tries its luck in
    the middle of the next block.
    """
    if _is_new_round(memory, numbers, round_number, step):
        memory[_DOING:], numbers[_BASE] = 0, output
    elif changed and memory[_DOING] <= _PUMPING and step >= 1.0:
        _judge(memory, (output - numbers[_BASE]) / step, step)
    if memory[_DOING] == _MOVING:
        return _move(memory, step)
    memory[_PUMPED] += 1
    return 0


@compiled
def _group_size(sites: Any) -> Any:
    return math.ceil(math.sqrt(sites))


@compiled
def _members(memory: Any) -> Any:
    """How many sites the current group has; site 0 is the pump and in none."""
    size = _group_size(memory[0])
    return min(size, memory[0] - 1 - memory[_GROUP] * size)


@compiled
def _judge(memory: Any, shown: Any, step: Any) -> None:
    """Decide, at a change of the output, what becomes of the group; `shown` is in reports."""
    others = math.ceil(memory[_PUMPED] / step) + memory[_KNOWN] + memory[_OFFSET]
    bits = math.floor(shown - others + 0.5)
    members = _members(memory)
    if memory[_DOING] == _CALIBRATING:
        memory[_OFFSET] = bits
    elif 2 * bits > members:
        memory[_KNOWN] += bits
        memory[_GROUP] += 1
        memory[_LEVEL] = 0
    else:
        memory[_KNOWN] += members
        memory[_LEVEL] += 1
    memory[_DOING] = _MOVING if _members(memory) > 0 else _DONE


@compiled
def _move(memory: Any, step: Any) -> Any:
    """Send the members of the group, one after another, to the middle of their block."""
    size = _group_size(memory[0])
    site = 1 + memory[_GROUP] * size + memory[_MEMBER]
    before = math.ceil((memory[_LEVEL] - 0.5) * step) if memory[_LEVEL] > 0 else 0
    memory[_SENT] += 1
    if memory[_SENT] >= math.ceil((memory[_LEVEL] + 0.5) * step) - before:
        memory[_SENT] = 0
        memory[_MEMBER] += 1
    if memory[_MEMBER] >= _members(memory):
        memory[_MEMBER], memory[_DOING] = 0, _PUMPING
    return site


# Compiled ---------------------------------------------------------------------------------------


NAMES = ("uniform", "zipf", "zipf:EXPONENT", "single-site", "stop-on-change", "group-hold-or-flush")
Rngs = tuple[Generator, Generator]
"""The randomness of a simulated run: the adversary's and the sites'; the server has its own."""


@dataclass(frozen=True, eq=False)
class CompiledAdversary:
    """An adversary for one run of a kernel, which changes its memory."""

    kind: int
    memory: NDArray[np.int64]
    numbers: NDArray[np.float64]


def named_adversary(name: str, sites: int) -> CompiledAdversary:
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


def zipf_weights(exponent: float, sites: int) -> NDArray[np.float64]:
    """Weights 1, 2^-s, 3^-s, ... of the sites in order."""
    return np.arange(1.0, sites + 1.0) ** -exponent


def alias_table(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each of n equal columns the share its own number keeps, and who has the rest."""
    kept = weights * (len(weights) / weights.sum())
    alias = np.arange(len(weights))
    small = [i for i, share in enumerate(kept) if share < 1.0]
    large = [i for i, share in enumerate(kept) if share >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        kept[rich] -= 1.0 - kept[poor]
        if kept[rich] < 1.0:
            small.append(large.pop())
    kept[small + large] = 1.0  # what rounding left over
    return kept, alias


def _zipf(exponent: float, sites: int) -> CompiledAdversary:
    kept, alias = alias_table(zipf_weights(exponent, sites))
    return CompiledAdversary(ZIPF, np.concatenate([_row(sites), alias]), kept)


def _without_memory(kind: int) -> Callable[[int], CompiledAdversary]:
    return lambda sites: CompiledAdversary(kind, _row(sites), np.zeros(0))


def _row(*numbers: Any) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def _compiled_stop_on_change(sites: int) -> CompiledAdversary:
    memory = _row(sites, *[-1] * (STOP_ON_CHANGE_MEMORY - 1))
    return CompiledAdversary(STOP_ON_CHANGE, memory, np.zeros(2 + sites))


def _compiled_group_hold_or_flush(sites: int) -> CompiledAdversary:
    memory = _row(sites, *[-1] * (GROUP_HOLD_OR_FLUSH_MEMORY - 1))
    return CompiledAdversary(GROUP_HOLD_OR_FLUSH, memory, np.zeros(2))


_MAKERS: dict[str, Callable[[int], CompiledAdversary]] = {
    "uniform": _without_memory(UNIFORM),
    "single-site": _without_memory(SINGLE_SITE),
    "stop-on-change": _compiled_stop_on_change,
    "group-hold-or-flush": _compiled_group_hold_or_flush,
}
