"""Items, one after another, in a sampled round: the compiled loop."""

from typing import Any

from numba import njit

from casemate.track.adversary.kernel import next_site
from casemate.track.instruction import gap

BASE, HEARD, ITEMS, REPORTS, ROUNDS = range(5)  # places of `sums`
SHOWN, WORST, CHANGED = range(3)  # of `seen`

_gap: Any = njit(cache=True)(gap)


@njit(cache=True)
def begin(counts: Any, triggers: Any, probability: Any, rng: Any) -> None:
    """Every site finds the first item that it reports."""
    for site in range(len(counts)):
        draw = 0.0 if probability == 1.0 else rng.random()
        triggers[site] = counts[site] + _gap(draw, probability)


@njit(cache=True)
def go_on(  # noqa: PLR0917 - compiled code takes no keyword arguments
    adversary: Any, sites: Any, sums: Any, seen: Any, limits: Any, rng: Any
) -> None:
    """Publish, then take items until the round has its reports or it shall pause."""
    kind, memory, fractions, adversary_rng = adversary
    counts, triggers = sites
    probability, alpha, last_report, pause = limits
    step = 0.0 if probability == 1.0 else 1.0 / probability
    base, heard, items, rounds = sums[BASE], sums[HEARD], sums[ITEMS], sums[ROUNDS]
    output, worst = base + heard / probability, seen[WORST]
    changed = output != seen[SHOWN] or seen[CHANGED] != 0.0
    while True:
        if items > 0:
            worst = max(worst, abs(output - items) / (alpha * items))
        if items == pause:
            break
        site = next_site(kind, memory, fractions, adversary_rng, output, changed, rounds, step)
        items += 1
        counts[site] += 1
        changed = counts[site] >= triggers[site]
        if changed:
            draw = 0.0 if probability == 1.0 else rng.random()
            triggers[site] += _gap(draw, probability)
            heard += 1
            if heard >= last_report:
                break
            output = base + heard / probability
    sums[REPORTS] += heard - sums[HEARD]
    sums[HEARD], sums[ITEMS] = heard, items
    seen[SHOWN], seen[WORST] = output, worst
    seen[CHANGED] = changed and heard < last_report  # the end of a round is yet to be published
