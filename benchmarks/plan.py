"""Claims: plans are verified and short for random targets; bits take about 2 n / log2 n queries.

Seconds are CPU seconds of one plan, its SQL texts parsed and checked included; the public columns
are read once for each table and are reported apart. Brute force stands in the tests, which compare
it with every plan for small tables.
"""

import math
import time
from collections import Counter
from random import Random

import numpy as np

from benchmarks.claims import Claim, show
from casemate.attack.plan.adaptive import costs
from casemate.attack.plan.detecting_matrix import DetectingMatrix, sums_necessary, sums_needed
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import Planned
from casemate.table import Table

COUNTS = (1, 2, 5, 20, 100)
LARGE_COUNTS = (500, 1_000, 2_000)


def planned(table: Table, private: str, least: int, targets: int) -> tuple[list[Planned], float]:
    """Plans for random records, and the seconds to read the public columns."""
    start = time.process_time()
    planner = Planner(table, private, min_count=least, random=np.random.default_rng(0))
    indexed, chance = time.process_time() - start, Random(least)
    names = [planner.setting.name(i) for i in range(planner.setting.language.count)]
    return [planner.plan(chance.choice(names)) for _ in range(targets)], indexed


def shown(plans: list[Planned]) -> str:
    """How many were verified, how long they are, and what they took."""
    told_apart = [plan for plan in plans if not plan.inseparable]
    lengths = Counter(len(plan.queries) for plan in told_apart)
    verified = sum(plan.verified for plan in told_apart)
    optimal = sum(plan.optimal for plan in told_apart)
    seconds = [plan.seconds for plan in plans]
    said = ", ".join(
        f"{number} of {length or 'none'}" for length, number in sorted(lengths.items())
    )
    return (
        f"{verified} of {len(told_apart)} verified, {optimal} proved shortest; queries: {said}; "
        f"{sum(seconds) / len(seconds):.3f} s, at most {max(seconds):.2f}"
    )


def random_targets() -> list[Claim]:
    """A thousand targets in all: the hospital, and two large tables at several minimum counts."""
    claims = []
    for name, private, targets in (
        ("hospital", "Blood sugar", 6),
        ("population", "income", 100),
        ("rand_hie", "outpdol", 100),
    ):
        with Table.open(name) as table:
            for least in COUNTS if targets > 6 else (1, 2, 3):
                plans, indexed = planned(table, private, least, targets)
                what = f"{name}, {targets} random records, at least {least} in a query"
                asked = "all verified; < 1 s"
                claims.append(Claim(what, asked, f"{shown(plans)}; columns read in {indexed:.2f}"))
    return claims


def trackers() -> list[Claim]:
    """Minimum counts so large that two queries do not always suffice."""
    with Table.open("population") as table:
        return [
            Claim(
                f"population, 30 random records, at least {least} in a query",
                "",
                shown(planned(table, "income", least, 30)[0]),
            )
            for least in LARGE_COUNTS
        ]


def everybody() -> list[Claim]:
    """All records of a table, one query for each."""
    claims = []
    with Table.open("population:1000") as table:
        for least in (1, 5, 20):
            plan = Planner(table, "income", min_count=least).plan("all", seconds=300)
            claims.append(
                Claim(
                    f"all of population:1000, at least {least} in a query",
                    f"{1000 - len(plan.inseparable)} queries",
                    f"{len(plan.queries)} for {len(plan.determined)} records, "
                    f"verified {plan.verified}; {plan.seconds:.1f} s",
                )
            )
    return claims


def bits() -> list[Claim]:
    """Detecting matrices: how many sums, decoded from random bits."""
    claims = []
    for size in (64, 256, 1_024, 4_096):
        matrix, random = DetectingMatrix(size), np.random.default_rng(size)
        truth = random.integers(0, 2, size)
        start = time.process_time()
        right = bool((matrix.decode((matrix.rows @ truth).tolist()) == truth).all())
        spent = time.process_time() - start
        claims.append(
            Claim(
                f"{size} bits, fixed queries",
                f"{sums_necessary(size)} by counting; 2.6 n / log2 n = "
                f"{math.floor(2.6 * size / math.log2(size))}",
                f"{sums_needed(size)}, decoded {right} in {spent:.2f} s",
            )
        )
    rare = ", ".join(f"{int(costs(1_024)[ones]) + 1} for {ones}" for ones in (1, 4, 16, 64, 512))
    return [*claims, Claim("1,024 bits, adaptive queries at most, by ones", "", rare)]


def main() -> None:
    show([*random_targets(), *trackers(), *everybody(), *bits()])
