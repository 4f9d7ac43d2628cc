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
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.errors import Misconfigured

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]


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
_ROUND_SLOT, _CURRENT_SITE_SLOT = 1, 2
_OUTPUT_SLOT, _STEP_SLOT, _FIRST_SURPLUS_SLOT = 0, 1, 2
# Group hold or flush: memory after the round; `numbers` goes on with the base of the round
(
    _STAGE_SLOT,
    _GROUP_SLOT,
    _MEMBER_SLOT,
    _SENT_SLOT,
    _LEVEL_SLOT,
    _PUMPED_SLOT,
    _KNOWN_BITS_SLOT,
    _OFFSET_SLOT,
) = range(2, 10)
_BASE_SLOT = 0
_CALIBRATING, _PUMPING, _MOVING, _DONE = range(4)

MEMORY_SLOTS = 10
"""Whole numbers that an adversary may remember, if its loads are not from a table."""


@compiled
def next_site(  # noqa: PLR0917 - compiled code takes no keyword arguments
    kind: int,
    memory: Whole,
    numbers: Floats,
    rng: Generator,
    output: float,
    changed: bool,
    round_number: int,
    step: float,
) -> int:
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
def _by_alias(memory: Whole, numbers: Floats, rng: Generator) -> int:
    """One draw of one number: a column of the alias table, and which of its two sites."""
    place = rng.random() * memory[0]
    column = int(place)
    if place - column < numbers[column]:
        return column
    alias: int = memory[1 + column]
    return alias


@compiled
def _is_new_round(memory: Whole, numbers: Floats, round_number: int, step: float) -> bool:
    """Whether the public parameters are not those of the last item; notes the new ones."""
    if round_number == memory[_ROUND_SLOT] and step == numbers[_STEP_SLOT]:
        return False
    memory[_ROUND_SLOT], numbers[_STEP_SLOT] = round_number, step
    return True


@compiled
def _stop_on_change(  # noqa: PLR0917 - compiled code takes no keyword arguments
    memory: Whole, numbers: Floats, output: float, changed: bool, round_number: int, step: float
) -> int:
    """Send items to one site until the output changes, leave it there, and go on to the next.

    A tracker whose error averages out over its own randomness is then wrong in the same direction
    at every site. A site is left only if what the output gained while it received items exceeds
    what it received by half a step: always for a tracker that takes a report as a whole step more
    than was counted, in the first half of a block for one that reports once in each block.
    """
    if _is_new_round(memory, numbers, round_number, step):
        memory[_CURRENT_SITE_SLOT], numbers[_OUTPUT_SLOT] = 0, output
        numbers[_FIRST_SURPLUS_SLOT:] = 0.0
        return 0
    current: int = memory[_CURRENT_SITE_SLOT]
    numbers[_FIRST_SURPLUS_SLOT + current] += output - numbers[_OUTPUT_SLOT] - 1.0
    numbers[_OUTPUT_SLOT] = output
    if changed and (step == 0.0 or numbers[_FIRST_SURPLUS_SLOT + current] >= 0.5 * step):
        current = (current + 1) % memory[0]
        memory[_CURRENT_SITE_SLOT] = current
    return current


@compiled
def _group_hold_or_flush(  # noqa: PLR0917 - compiled code takes no keyword arguments
    memory: Whole, numbers: Floats, output: float, changed: bool, round_number: int, step: float
) -> int:
    """Find out how many reports a group of sites made, and keep the group if they were too many.

    Site 0 is the pump. Its blocks have one report each, so at a change of the output everybody's
    reports but the group's are known, if they are as many as the output says. A group in the middle
    of a block has made one report for every two members, on average. With more it is held there
    for the rest of the round; otherwise it is flushed, which costs nothing, and tries its luck in
    the middle of the next block.
    """
    if _is_new_round(memory, numbers, round_number, step):
        memory[_STAGE_SLOT:], numbers[_BASE_SLOT] = 0, output
    elif changed and memory[_STAGE_SLOT] <= _PUMPING and step >= 1.0:
        _judge(memory, (output - numbers[_BASE_SLOT]) / step, step)
    if memory[_STAGE_SLOT] == _MOVING:
        return _move(memory, step)
    memory[_PUMPED_SLOT] += 1
    return 0


@compiled
def _group_size(sites: int) -> int:
    return math.ceil(math.sqrt(sites))


@compiled
def _members(memory: Whole) -> int:
    """How many sites the current group has; site 0 is the pump and in none."""
    size = _group_size(memory[0])
    rest: int = memory[0] - 1 - memory[_GROUP_SLOT] * size
    return min(size, rest)


@compiled
def _judge(memory: Whole, shown: float, step: float) -> None:
    """Decide, at a change of the output, what becomes of the group; `shown` is in reports."""
    pumped = math.ceil(memory[_PUMPED_SLOT] / step)
    others = pumped + memory[_KNOWN_BITS_SLOT] + memory[_OFFSET_SLOT]
    bits = math.floor(shown - others + 0.5)
    members = _members(memory)
    if memory[_STAGE_SLOT] == _CALIBRATING:
        memory[_OFFSET_SLOT] = bits
    elif 2 * bits > members:
        memory[_KNOWN_BITS_SLOT] += bits
        memory[_GROUP_SLOT] += 1
        memory[_LEVEL_SLOT] = 0
    else:
        memory[_KNOWN_BITS_SLOT] += members
        memory[_LEVEL_SLOT] += 1
    memory[_STAGE_SLOT] = _MOVING if _members(memory) > 0 else _DONE


@compiled
def _move(memory: Whole, step: float) -> int:
    """Send the members of the group, one after another, to the middle of their block."""
    size = _group_size(memory[0])
    site: int = 1 + memory[_GROUP_SLOT] * size + memory[_MEMBER_SLOT]
    before = math.ceil((memory[_LEVEL_SLOT] - 0.5) * step) if memory[_LEVEL_SLOT] > 0 else 0
    memory[_SENT_SLOT] += 1
    if memory[_SENT_SLOT] >= math.ceil((memory[_LEVEL_SLOT] + 0.5) * step) - before:
        memory[_SENT_SLOT] = 0
        memory[_MEMBER_SLOT] += 1
    if memory[_MEMBER_SLOT] >= _members(memory):
        memory[_MEMBER_SLOT], memory[_STAGE_SLOT] = 0, _PUMPING
    return site


# Adversaries by name -----------------------------------------------------------------------------


NAMES = ("uniform", "zipf", "zipf:EXPONENT", "single-site", "stop-on-change", "group-hold-or-flush")
_KINDS = {
    "uniform": UNIFORM,
    "single-site": SINGLE_SITE,
    "stop-on-change": STOP_ON_CHANGE,
    "group-hold-or-flush": GROUP_HOLD_OR_FLUSH,
}
Rngs = tuple[Generator, Generator]
"""The randomness of a simulated run: the adversary's and the sites'; the server has its own."""


class CompiledAdversary(NamedTuple):
    """An adversary for one run of a kernel, which changes its memory."""

    kind: int
    memory: Whole
    numbers: Floats


def named_adversary(name: str, sites: int) -> CompiledAdversary:
    """A fresh adversary of this name against so many sites."""
    if sites < 1:
        raise Misconfigured(f"an adversary needs at least one site to send items to, got {sites}")
    if name.partition(":")[0] == "zipf":
        return _zipf(_exponent(name), sites)
    if name not in _KINDS:
        choices = ", ".join(NAMES)
        raise Misconfigured(f"there is no adversary {name!r}; choose one of {choices}")
    memory = np.full(MEMORY_SLOTS, -1)
    memory[0] = sites
    return CompiledAdversary(_KINDS[name], memory, np.zeros(2 + sites))


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


def zipf_weights(exponent: float, sites: int) -> Floats:
    """Weights 1, 2^-s, 3^-s, ... of the sites in order."""
    return np.arange(1.0, sites + 1.0) ** -exponent


def alias_table(weights: Floats) -> tuple[Floats, Whole]:
    """For each of n equal columns the share its own number keeps, and who has the rest."""
    own_shares = weights * (len(weights) / weights.sum())
    alias = np.arange(len(weights))
    small = [i for i, share in enumerate(own_shares) if share < 1.0]
    large = [i for i, share in enumerate(own_shares) if share >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        own_shares[rich] -= 1.0 - own_shares[poor]
        if own_shares[rich] < 1.0:
            small.append(large.pop())
    own_shares[small + large] = 1.0  # what rounding left over
    return own_shares, alias


def _zipf(exponent: float, sites: int) -> CompiledAdversary:
    own_shares, alias = alias_table(zipf_weights(exponent, sites))
    return CompiledAdversary(ZIPF, np.concatenate([[sites], alias]), own_shares)
