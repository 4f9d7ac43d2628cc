"""Claims: what it costs to decide a question before it is answered.

The algebra: sums over conjunctions of ranges and categories of 20,000 groups of people, modulo two
primes, from rank 1,000 on: asking whether the question would expose anybody, and taking it. A
question that is a combination of earlier ones is decided by its total alone and costs next to
nothing, so those that are new stand on a line of their own. The matrix is worked on once in 32
new questions, which is shared out among them.

The scan: questions about a generated population of a million in DuckDB, alone, and with the sum
of a keyed hash of the record beside them, which is all that the algebra needs of the records; by
the engine's own hash, and by the one that every engine computes alike (`query.sketch`). Both
in turn, the least of several runs each.

The whole: the same questions, one over everybody and one more in cells, as plain SQL in DuckDB and
through `OnlineAuditor.ask`, which decides, takes note and answers; a new auditor each time, so that
no scan is remembered. SQL is parsed before the clock starts, that is, the time of parsing alone
is taken off; DuckDB's own planning counts on both sides.

CPU seconds of all threads; kernels are compiled and columns loaded before the clock starts.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.claims import Claim, show
from casemate.audit.online import OnlineAuditor
from casemate.exact import Equation, RowSpace
from casemate.query import Aggregate
from casemate.query.engines import group_by, rows
from casemate.query.parse import parse
from casemate.query.sketch import HashKeys, hash_lanes
from casemate.query.sketch.record_hash import SECOND_LANE_BITS
from casemate.table import Table
from casemate.table.sources import Source

GROUPS = 20_000
RANK = 1_000
ASKED = 320
POPULATION = "population:1000000"
RUNS = 7
QUESTIONS = (
    "SELECT SUM(income) FROM p WHERE age BETWEEN 30 AND 50",
    "SELECT SUM(income) FROM p WHERE sex = 'female' AND education = 'master'",
    "SELECT region, SUM(income) FROM p WHERE hours > 20 GROUP BY region",
    "SELECT SUM(income) FROM p WHERE age > 40 AND sex = 'male' AND marital = 'married'",
    "SELECT AVG(income) FROM p WHERE area / 1000 IN (12, 13, 14) AND age >= 18",
)

FURTHER = (
    "SELECT SUM(income) FROM p",
    "SELECT region, AVG(income), COUNT(*) FROM p GROUP BY region",
)


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# The algebra --------------------------------------------------------------------------------------


def queries(rng: np.random.Generator) -> Iterator[Equation]:
    """Sums over conjunctions of one to three conditions on seven attributes."""
    widths = (100, 2, 7, 20, 9, 40, 12)
    people = [rng.integers(0, width, GROUPS) for width in widths]
    while True:
        chosen = np.ones(GROUPS, np.bool_)
        for place in rng.choice(len(widths), rng.integers(1, 4), replace=False):
            low = rng.integers(widths[place])
            high = low + rng.integers(1, widths[place]) if widths[place] > 10 else low
            chosen &= (people[place] >= low) & (people[place] <= high)
        columns = np.flatnonzero(chosen)
        if len(columns) >= 5:
            yield Equation(columns, np.ones(len(columns), np.int64))


def algebra(rng: np.random.Generator) -> list[Claim]:
    space, asked = RowSpace(GROUPS), queries(rng)
    while space.rank < RANK:
        space.add(next(asked))
    would, taken, new = [], [], []
    for question in (next(asked) for _ in range(ASKED)):
        before = space.rank
        would.append(cpu(partial(space.would_determine, question)))
        taken.append(cpu(partial(space.add, question)))
        new.append(space.rank > before)
    first, second, fresh = 1000 * np.array(would), 1000 * np.array(taken), np.array(new)
    both = first + second
    return [
        Claim("ms a query from rank 1,000, would it expose anyone", "-", f"{first.mean():.2f}"),
        Claim("the same, and record it", "<= 1", f"{both.mean():.2f}"),
        Claim(
            f"the same, of the {fresh.mean():.0%} that are new", "-", f"{both[fresh].mean():.2f}"
        ),
    ]


# The scan -----------------------------------------------------------------------------------------


def scans(aggregate: Aggregate, source: Source, keys: HashKeys) -> list[str]:
    """A question alone, and with the sum of hashes beside it in two ways."""
    by = {f"k{i}": key for i, key in enumerate(aggregate.keys)}
    argument = {} if aggregate.argument is None else {"a": aggregate.argument}
    inner = rows(source, aggregate.joins, aggregate.predicate, by | argument)
    own = f"sum(hash(xor(r, {keys.lanes[0, 0]})) >> 12)"
    lanes = hash_lanes(inner, keys, source.dialect, True, [*by, *argument])
    portable = f"sum((y << {SECOND_LANE_BITS}) + (w & {2**SECOND_LANE_BITS - 1}) + 1)"
    answer = {"s": "sum(a)", "n": "count(a)"}
    return [
        group_by(inner, list(by), answer),
        group_by(inner, list(by), answer | {"h": own}),
        group_by(lanes, list(by), answer | {"h": portable}),
    ]


def least(statements: list[str], source: Source) -> list[float]:
    """The least CPU time of each, run in turn."""
    runs = [[cpu(partial(source.read, sql)) for sql in statements] for _ in range(RUNS)]
    return [min(each) for each in zip(*runs, strict=True)]


def overhead() -> list[Claim]:
    with Table.open(POPULATION) as table:
        keys = HashKeys.draw()
        asked = [aggregate for sql in QUESTIONS for aggregate in parse(sql, table.policy)]
        times = np.array([least(scans(each, table.source, keys), table.source) for each in asked])
    alone, own, portable = times.sum(axis=0)
    ratios = sorted(times[:, 1] / times[:, 0])
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    return [
        Claim("ms of five questions alone, a million rows", "-", f"{1000 * alone:.0f}"),
        Claim("times that with the engine's own hash added up", "-", f"{own / alone:.2f}"),
        Claim("the same, one question and another", "-", spread),
        Claim("times that with the portable hash added up", "-", f"{portable / alone:.2f}"),
    ]


# The whole ----------------------------------------------------------------------------------------


def without_bounds(table: Table) -> Table:
    """The table as its auditor takes it: nothing is known about incomes."""
    free = [
        replace(each, low=None, high=None) if each.name == "income" else each
        for each in table.policy.columns
    ]
    return Table(replace(table.policy, columns=tuple(free)), table.source)


def asked(sql: str, auditor: OnlineAuditor, table: Table) -> tuple[float, float]:
    """CPU seconds of a question as plain SQL, and through the auditor."""
    plain = sql.replace(" FROM p", f" FROM {table.source.relation()} AS p")
    alone = cpu(partial(table.source.read, plain))
    parsing = min(cpu(partial(parse, sql, table.policy)) for _ in range(3))
    return alone, cpu(partial(auditor.ask, sql)) - parsing


def whole() -> list[Claim]:
    questions, runs = (*QUESTIONS, *FURTHER), []
    with Table.open(POPULATION) as opened:
        table = without_bounds(opened)
        for _ in range(RUNS):
            auditor = OnlineAuditor(table, private="income")
            runs.append([asked(sql, auditor, table) for sql in questions])
    times = np.array(runs).min(axis=0)
    shown = [
        Claim(f"  {sql}", "-", f"{audited / alone:.2f} x {1000 * alone:.1f} ms")
        for sql, (alone, audited) in zip(questions, times.tolist(), strict=True)
    ]
    five, every = times[: len(QUESTIONS)].sum(axis=0), times.sum(axis=0)
    return [
        Claim("times plain SQL, five questions through ask", "<= 1.3", f"{five[1] / five[0]:.2f}"),
        Claim("the same with two more", "<= 1.3", f"{every[1] / every[0]:.2f}"),
        *shown,
    ]


def main() -> None:
    show([*algebra(np.random.default_rng(0)), *overhead(), *whole()])
