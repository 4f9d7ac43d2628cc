"""Claims: what it costs to decide, exactly, whose values a set of sums gives away.

All published tables of up to three attributes of a generated population
of 6,100 with cells under a threshold withheld, sized like a real release (about 9,000 equations),
modulo three primes, then proved in integers; beside the float SVD of a corner of it, extrapolated
by the cube of the size because the whole takes minutes.
CPU seconds; kernels are compiled before the clock starts.
"""

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims import Claim, show
from casemate.audit.region.collapse import collapse
from casemate.exact import System, prove, random_prime
from casemate.exact.determination import determine_in_blocks
from casemate.exact.elimination import eliminate
from casemate.exact.modular import NARROW_PRIME_BITS
from casemate.exact.proofs import JointProof

SIZES = (5, 18, 2, 6, 9, 13, 3, 3, 18)  # categories of each attribute of the release
SKEW = (0.3, 0.0, 0.0, 1.2, 2.0, 0.6, 2.5, 1.0, 0.8)
PEOPLE = 6_100
THRESHOLD = 13
SAMPLE = 1_000  # side of the corner given to the float SVD


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def population(rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Nine categorical attributes, some skewed, three of them fixed for the young."""
    columns = []
    for size, skew in zip(SIZES, SKEW, strict=True):
        weights = np.arange(1, size + 1) ** -skew
        columns.append(rng.choice(size, PEOPLE, p=weights / weights.sum()))
    young = columns[1] < 4
    for place in (3, 5, 8):
        columns[place][young] = 0
    return columns


def release(columns: list[NDArray[np.int64]], ways: int) -> System:
    """The sums of every table of up to that many attributes, cells under the threshold withheld."""
    rows, members, count = [], [], 0
    for size in range(ways + 1):
        for chosen in combinations(columns, size):
            code = np.zeros(PEOPLE, np.int64)
            for column in chosen:
                code = code * max(SIZES) + column
            _, cell, people = np.unique(code, return_inverse=True, return_counts=True)
            number = np.cumsum(people >= THRESHOLD) - 1 + count
            shown = people[cell] >= THRESHOLD
            rows.append(number[cell[shown]])
            members.append(np.flatnonzero(shown))
            count += int((people >= THRESHOLD).sum())
    row, column = np.concatenate(rows), np.concatenate(members)
    return System(count, PEOPLE, row, column, np.ones(len(row), np.int64))


def offline(rng: np.random.Generator) -> list[Claim]:
    system = collapse(release(population(rng), 3)).system
    eliminate(System.of([[1, 0], [1, 1]]), random_prime(NARROW_PRIME_BITS))  # compiles the kernels
    one = cpu(lambda: eliminate(system, random_prime(NARROW_PRIME_BITS)))
    start = time.process_time()
    found = determine_in_blocks(system)
    seconds = time.process_time() - start
    proofs: list[JointProof | None] = []
    rows, who = found.block.rows, found.determined
    proving = cpu(lambda: proofs.append(prove(system, rows, who)))
    if proofs[0] is None:
        raise RuntimeError("the joint proof does not hold")
    corner = np.zeros((system.rows, system.columns))
    corner[system.row, system.column] = 1.0
    decomposition = cpu(lambda: np.linalg.svd(corner[:SAMPLE, :SAMPLE]))
    scale = system.rows * system.columns * min(system.rows, system.columns) / SAMPLE**3
    size = f"{system.rows:,} x {system.columns:,}, rank {found.rank:,}"
    return [
        Claim(f"CPU seconds, {size}, one prime", "<= 12", f"{one:.1f}"),
        Claim("the same modulo three primes", "stated", f"{seconds:.1f}"),
        Claim(
            "float SVD, extrapolated from 1,000 x 1,000",
            "stated",
            f"{decomposition * scale:.0f} ({decomposition * scale / one:.0f} times one prime)",
        ),
        Claim(f"{int(who.sum()):,} determined, proved in integers", "all", f"all, {proving:.1f} s"),
    ]


def main() -> None:
    show(offline(np.random.default_rng(0)))
