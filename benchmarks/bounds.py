"""Claims: the range of every record in seconds, many times faster than one program per group.

A table of seven attributes, sums of a private value between 3 and 10 over range and category
predicates that each touch at least five people. The peer solves two programs per group with the
same solver, each started at the vertex of the last one; it is measured on a sample of the groups
and extrapolated to all of them. CPU seconds throughout; `python -m benchmarks bounds`.
"""

import random
import time
from fractions import Fraction

import numpy as np

from benchmarks.claims import Claim, show
from casemate.audit.region.bounds import bounds
from casemate.audit.region.collapse import TwinRegion, collapse_region
from casemate.audit.region.propagation import propagate
from casemate.exact import Box, LinearProgram, Region, Scaled, System

ATTRIBUTES = (40, 2, 10, 6, 4, 5, 4)  # how many values each has; ranges from ten on
SIZES = [(1_000, 100, "stated", "stated"), (5_000, 200, "stated", "stated")]
LARGE = [(20_000, 300, "<= 45", ">= 8"), (100_000, 500, "try to finish", "stated")]
SAMPLE = 20  # groups that the peer solves


def region(records: int, predicates: int, rng: np.random.Generator) -> Region:
    """Sums over random predicates of a value that everybody knows to lie between 3 and 10."""
    columns = [(rng.beta(1.2, 1.8, records) * size).astype(np.int64) for size in ATTRIBUTES]
    tenths = rng.integers(30, 101, records)
    members: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    while len(members) < predicates:
        chosen = np.ones(records, np.bool_)
        for place in rng.choice(len(ATTRIBUTES), rng.integers(2, 5), replace=False):
            chosen &= atom(columns[place], ATTRIBUTES[place], rng)
        if chosen.sum() >= 5:
            members.append(np.flatnonzero(chosen))
    row = np.repeat(np.arange(predicates), [len(each) for each in members])
    column = np.concatenate(members)
    right = tuple(Fraction(int(tenths[each].sum()), 10) for each in members)
    system = System(predicates, records, row, column, np.ones(len(row), np.int64), right)
    return Region.of(system, Box.of(records, 3, 10))


def atom(
    values: np.ndarray[tuple[int], np.dtype[np.int64]], size: int, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    first = rng.integers(0, size)
    return (values >= first) & (values <= first + (rng.integers(0, size // 2) if size >= 10 else 0))


def seconds_for_a_sample(collapsed: TwinRegion, chance: random.Random) -> float:
    """The peer's CPU seconds for every group, from a sample of them, first vertex included."""
    scaled = Scaled.of(collapsed.region)
    program = LinearProgram(scaled)
    start = time.process_time()
    program.minimise(np.zeros(scaled.columns))
    first = time.process_time() - start
    chosen = chance.sample(range(scaled.columns), min(SAMPLE, scaled.columns))
    start = time.process_time()
    for group in chosen:
        for sign in (1.0, -1.0):
            costs = np.zeros(scaled.columns)
            costs[group] = sign
            program.minimise(costs)
    return first + (time.process_time() - start) * scaled.columns / len(chosen)


def measure(records: int, predicates: int, asked: tuple[str, str]) -> list[Claim]:
    made = region(records, predicates, np.random.default_rng(0))
    collapsed = collapse_region(made.within(propagate(made).box))
    start = time.process_time()
    found = bounds(made)
    ours = time.process_time() - start
    theirs = seconds_for_a_sample(collapsed, random.Random(0))
    groups = len(collapsed.size)
    what = f"n = {records:,}, m = {predicates}, {groups:,} groups"
    detail = f"({found.programs} programs, {len(found.unchecked)} unchecked)"
    return [
        Claim(f"{what}: CPU seconds", asked[0], f"{ours:.2f} {detail}"),
        Claim(
            f"{what}: times one warm program per end of a group",
            asked[1],
            f"{theirs / ours:.1f} (extrapolated from {min(SAMPLE, groups)} groups)",
        ),
    ]


def main(sizes: list[tuple[int, int, str, str]] | None = None) -> None:
    claims: list[Claim] = []
    for records, predicates, *asked in SIZES + LARGE if sizes is None else sizes:
        claims += measure(records, predicates, (asked[0], asked[1]))
    show(claims)


if __name__ == "__main__":
    main()
