"""Items, one after another, against sites with windows and sampled sites: the compiled loop.

It keeps the columns and sums of a `Tally` as the plain engines do, measures the error after every
item, and comes back to Python where a mark is reached or it shall pause.
"""

from typing import Any

from numba import njit

from casemate.track.adversary.kernel import next_site
from casemate.track.instruction import gap

LOW, HIGH, BASE, DRAWS, HEARD, ITEMS = range(6)  # places of `sums`
ROOM, DRAWS_MARK, HEARD_MARK, PAUSE = range(4)  # of `marks`
UP, DOWN = range(2)  # of `bounds`
WEIGHT, PROBABILITY, ALPHA, VALUE_MARK, STEP, ROUND = range(6)  # of `numbers`
SHOWN, WORST, CHANGED = range(3)  # of `seen`

_gap = njit(cache=True)(gap)


@njit(cache=True)
def _published(sums: Any, numbers: Any) -> Any:
    windows = sums[LOW] + (sums[HIGH] - sums[LOW]) * numbers[WEIGHT]
    return windows + (sums[BASE] + sums[DRAWS] / numbers[PROBABILITY])


@njit(cache=True)
def _report(  # noqa: PLR0917 - compiled code takes no keyword arguments
    site: Any, sites: Any, sampled: Any, sums: Any, probability: Any, rng: Any
) -> None:
    """Take the report of a site whose count reached its trigger, and set its next one."""
    counts, triggers, known, top, drawn, numerator, denominator = sites
    sums[HEARD] += 1
    count = counts[site]
    if sampled[site]:
        drawn[site] += 1
        sums[DRAWS] += 1
        triggers[site] += _gap(rng.random(), probability)
        return
    above = count * numerator[site] // denominator[site]
    sums[LOW] += count - known[site]
    sums[HIGH] += above - top[site]
    known[site] = count
    top[site] = above
    triggers[site] = above + 1


@njit(cache=True)
def _due(sums: Any, marks: Any, bounds: Any) -> Any:
    if sums[DRAWS] >= marks[DRAWS_MARK] or sums[HEARD] >= marks[HEARD_MARK]:
        return True
    return bounds[DOWN] * sums[HIGH] - bounds[UP] * sums[LOW] > marks[ROOM]


@njit(cache=True)
def go_on(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any,
    sites: Any,
    sampled: Any,
    sums: Any,
    marks: Any,
    bounds: Any,
    numbers: Any,
    seen: Any,
    rng: Any,
) -> Any:
    """Publish, then take items until a mark is reached (True) or it shall pause (False)."""
    kind, memory, fractions, adversary_rng = adversary
    counts, triggers = sites[0], sites[1]
    output, worst, items = seen[SHOWN], seen[WORST], sums[ITEMS]
    pause, alpha = marks[PAUSE], numbers[ALPHA]
    shown = _published(sums, numbers)
    changed = shown != output or seen[CHANGED] != 0.0
    output = shown
    due = False
    while not due:
        if items > 0:
            error = abs(output - items) / (alpha * items)
            worst = max(worst, error)
        if items == pause:
            break
        site = next_site(
            kind,
            memory,
            fractions,
            adversary_rng,
            output,
            changed,
            int(numbers[ROUND]),
            numbers[STEP],
        )
        items += 1
        counts[site] += 1
        changed = False
        if counts[site] >= triggers[site]:
            _report(site, sites, sampled, sums, numbers[PROBABILITY], rng)
            shown = _published(sums, numbers)
            due = shown >= numbers[VALUE_MARK] or _due(sums, marks, bounds)
            if not due:
                changed = shown != output
                output = shown
    sums[ITEMS] = items
    seen[SHOWN], seen[WORST], seen[CHANGED] = output, worst, changed
    return due
