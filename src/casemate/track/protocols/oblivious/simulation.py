"""Runs of the oblivious trackers, compiled: the same words and errors as over the real objects."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.adversary.compiled import CompiledAdversary, Rngs, next_site
from casemate.track.instruction import gap
from casemate.track.pace import Pace
from casemate.track.protocols.oblivious.doubling import start, step_at
from casemate.track.setting import Run, Setting

_gap: Any = compiled(gap)
_step_at: Any = compiled(step_at)

# The state of a run: whole numbers, what is public, and for each site a row of its own
_BASE, _BITS, _COUNTED, _REPORTERS, _REPORTS, _RULES, _ROUNDS, _EXACT = range(8)
_OUTPUT, _CHANGED, _RULE, _WORST = range(4)
_COUNT, _NEXT, _BEGUN, _PASSED, _HEARD = range(5)


def run_doubling(
    setting: Setting,
    strength: float,
    blocks: bool,
    adversary: CompiledAdversary,
    rngs: Rngs,
    *,
    pace: Pace,
) -> Run:
    """A run of the scheme with blocks, or of the one with last counts."""
    how = (setting.sites, setting.alpha, strength, blocks, start(setting.alpha, strength))
    against = (adversary.kind, adversary.memory, adversary.numbers, rngs[0])
    state, shown = np.zeros(8, np.int64), np.zeros(4)
    rows = np.zeros((setting.sites, 5), np.int64)
    state[_EXACT], items = 1, 0
    while items < setting.items:
        pause = pace.pause(items, setting.items)
        _go_on(how, items, pause, state, shown, rows, against, rngs[1])
        items = pause
        pace.note(items, setting.items)
    return _result(setting.sites, state, float(shown[_WORST]))


def _result(sites: int, state: NDArray[np.int64], worst: float) -> Run:
    rounds = int(state[_ROUNDS])
    calls = rounds * sites
    reports, rules = int(state[_REPORTS]), int(state[_RULES])
    words = {"report": reports, "call": calls, "answer": calls, "rule": rules}
    return Run(words, worst, rounds)


@compiled
def _go_on(  # noqa: PLR0917 - compiled code takes no keyword arguments
    how: Any,
    items: Any,
    pause: Any,
    state: Any,
    shown: Any,
    rows: Any,
    adversary: Any,
    rng: Any,
) -> None:
    """Take the items after so many until it shall pause."""
    alpha, blocks = how[1], how[3]
    kind, memory, numbers, adversary_rng = adversary
    output, changed = shown[_OUTPUT], shown[_CHANGED] != 0.0
    rule, worst = shown[_RULE], shown[_WORST]
    step = _step(blocks, rule)
    for item in range(items + 1, pause + 1):
        rounds = state[_ROUNDS]
        site = next_site(kind, memory, numbers, adversary_rng, output, changed, rounds, step)
        rows[site, _COUNT] += 1
        before = output
        if rows[site, _COUNT] >= rows[site, _NEXT]:
            output, rule = _report(how, state, rows, site, rule, rng)
            step = _step(blocks, rule)
        changed = output != before
        worst = max(worst, abs(output - item) / (alpha * item))
    shown[_OUTPUT], shown[_CHANGED] = output, changed
    shown[_RULE], shown[_WORST] = rule, worst


@compiled
def _step(blocks: Any, rule: Any) -> Any:
    """The items a report stands for; `rule` is a probability, or the size of a block."""
    if blocks or rule == 0.0:
        return rule
    return 1.0 / rule


@compiled
def _report(  # noqa: PLR0917 - compiled code takes no keyword arguments
    how: Any, state: Any, rows: Any, site: Any, rule: Any, rng: Any
) -> Any:
    """A report, and everything that follows from it: what is shown then, and the rule."""
    sites, _, _, blocks, exact_until = how
    state[_REPORTS] += 1
    if state[_EXACT]:
        state[_BASE] += 1
        if state[_BASE] >= exact_until:
            state[_EXACT] = 0
            state[_RULES] += sites
            rule = _begin(how, state, rows, float(state[_BASE]), rng)
        return float(state[_BASE]), rule
    _pass_triggers(blocks, rows[site], rule, rng)
    shown = state[_BASE] + _gained(blocks, state, rows[site], _step(blocks, rule))
    if shown >= 2 * state[_BASE]:
        state[_ROUNDS] += 1
        state[_BASE] = rows[:, _COUNT].sum()
        return float(state[_BASE]), _begin(how, state, rows, shown, rng)
    return shown, rule


@compiled
def _begin(how: Any, state: Any, rows: Any, total: Any, rng: Any) -> Any:
    """A new rule for all sites, for what the count is thought to be."""
    _, alpha, strength, blocks, _ = how
    step = _step_at(total, alpha, strength)
    rule = step if blocks else min(1.0, 1.0 / step)
    state[_BITS] = state[_COUNTED] = state[_REPORTERS] = 0
    for site in range(rows.shape[0]):
        row = rows[site]
        row[_BEGUN] = row[_NEXT] = row[_COUNT]
        row[_PASSED] = row[_HEARD] = 0
        row[_NEXT] = _next_trigger(blocks, row, rule, rng)
    return rule


@compiled
def _next_trigger(blocks: Any, row: Any, rule: Any, rng: Any) -> Any:
    if blocks:
        return row[_BEGUN] + math.ceil((row[_PASSED] + 1 - rng.random()) * rule)
    return row[_NEXT] + _gap(rng.random(), rule)


@compiled
def _pass_triggers(blocks: Any, row: Any, rule: Any, rng: Any) -> None:
    while row[_COUNT] >= row[_NEXT]:
        row[_PASSED] += 1
        row[_NEXT] = _next_trigger(blocks, row, rule, rng)


@compiled
def _gained(blocks: Any, state: Any, row: Any, step: Any) -> Any:
    """The estimate of what came in this round, after the report of a site."""
    if blocks:
        state[_BITS] += row[_PASSED] - row[_HEARD]
        row[_HEARD] = row[_PASSED]
        return state[_BITS] * step
    if row[_HEARD] == 0:
        state[_REPORTERS] += 1
    else:
        state[_COUNTED] -= row[_HEARD] - 1
    row[_HEARD] = row[_COUNT] - row[_BEGUN]
    state[_COUNTED] += row[_HEARD] - 1
    return state[_COUNTED] + state[_REPORTERS] * step
