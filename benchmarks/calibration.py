"""Claim: 90 % intervals hold the true values of 88 to 92 % of all records, whatever was asked.

Each design is drawn anew for every seed, answered, and noised; what is shown is the share of the
identified unknowns that lie in their intervals, over all seeds, and how wide these are on average.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims import Claim, show
from casemate.attack.reconstruct.confidence import confidence
from casemate.attack.reconstruct.problem import NoiseLaw, Prior, Problem
from casemate.exact import Floats, Rows

PEOPLE, MANY_PEOPLE = 150, 20_000
SEEDS, LARGE_SEEDS = 20, 3
LEVEL, MOST = 0.9, 10.0
LAWS = ["gaussian:4", "laplace:4"]
ASKED = "88 to 92 %"

Random = np.random.Generator
Design = Callable[[Random], Rows]


def rows_of(sets: Sequence[NDArray[np.integer]] | NDArray[np.integer], width: int) -> Rows:
    starts = np.concatenate([[0], np.cumsum([len(each) for each in sets])]).astype(np.int64)
    return Rows(starts, np.concatenate(sets).astype(np.uint32), None, width)


def halves(random: Random) -> Rows:
    chosen = random.random((4 * PEOPLE, PEOPLE)) < 0.5
    return rows_of([np.flatnonzero(each) for each in chosen], PEOPLE)


def sparse(random: Random) -> Rows:
    return sparse_among(PEOPLE, random)


def large(random: Random) -> Rows:
    return sparse_among(MANY_PEOPLE, random)


def sparse_among(people: int, random: Random) -> Rows:
    chosen = [random.choice(people, 20, replace=False) for _ in range(2 * people)]
    return rows_of(chosen, people)


def ranges(random: Random) -> Rows:
    """Neighbours in the order of a public column, as a dashboard with two sliders asks."""
    ends = np.sort(random.integers(0, PEOPLE + 1, (3 * PEOPLE, 2)), axis=1)
    return rows_of([np.arange(first, last) for first, last in ends if first < last], PEOPLE)


def once(random: Random) -> Rows:
    return rows_of(random.permutation(PEOPLE)[:, None], PEOPLE)


def twice(random: Random) -> Rows:
    order = np.concatenate([random.permutation(PEOPLE), random.permutation(PEOPLE)])
    return rows_of(order[:, None], PEOPLE)


@dataclass(frozen=True)
class Case:
    what: str
    design: Design
    stated: bool = True
    box: bool = False  # a range is known, and many values are at its ends
    averages: bool = False  # answers are averages: the noise of a sum grows with its count
    seeds: int = SEEDS


CASES = [
    Case("random halves, 4 n", halves),
    Case("20 records each, 2 n", sparse),
    Case("ranges of a sorted column, 3 n", ranges),
    Case("each record by one answer", once),
    Case("each record by two answers", twice),
    Case("averages of random halves", halves, averages=True),
    Case("averages of ranges", ranges, averages=True),
    Case("random halves, values in [0, 10], many at the ends", halves, box=True),
    Case("one answer, values in [0, 10], many at the ends", once, box=True),
    Case("random halves, no law stated", halves, stated=False),
    Case("two answers, no law stated", twice, stated=False),
    Case("20,000 records, 20 each, 2 n: drawn deviations", large, seeds=LARGE_SEEDS),
]


def problem_of(case: Case, law: NoiseLaw, random: Random) -> tuple[Problem, Floats]:
    rows = case.design(random)
    truth = random.uniform(0, MOST, rows.width)
    if case.box:
        truth = np.clip(2 * truth - MOST / 2, 0, MOST)
    counts = np.diff(rows.starts).astype(np.float64)
    spread = counts / counts.mean() if case.averages else np.ones(rows.height)
    noise = law.laid_over(np.zeros(rows.height), random)
    answers = rows.times(truth) * rows.lengths + spread * noise
    prior = Prior(low=0.0, high=MOST) if case.box else None
    stated = law if case.stated else None
    return replace(Problem.of(rows, answers, prior, stated), spread=spread), truth


def measured(case: Case, law: NoiseLaw) -> str:
    """The share of records in their intervals, how wide these are, and of how many."""
    held, widths = [], []
    for seed in range(case.seeds):
        random = np.random.default_rng(seed)
        problem, truth = problem_of(case, law, random)
        found = confidence(problem, level=LEVEL, random=random)
        inside = (found.low <= truth) & (truth <= found.high)
        held.append(inside[found.identified])
        widths.append((found.high - found.low)[found.identified])
    share, width = np.concatenate(held).mean(), np.concatenate(widths).mean()
    records = sum(map(len, held))
    return f"{share:.1%}, width {width:.2f} ({records:,} records, {case.seeds} seeds)"


def main() -> None:
    show(
        [
            Claim(f"{case.what}; {law}", ASKED, measured(case, NoiseLaw.read(law)))
            for case in CASES
            for law in LAWS
        ]
    )


if __name__ == "__main__":
    main()
