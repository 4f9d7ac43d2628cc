"""Claims: maxima, minima, medians and mixtures are audited exactly, or in time said to be open.

Seconds are CPU seconds of the audit itself, of all its threads together.
"""

import time
from collections import Counter
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np

from benchmarks.claims import Claim, show
from casemate.audit.order.case import ExposedValue, Free, Undecided, Verdicts
from casemate.audit.order.decide import audit_order
from casemate.audit.small_block.model import Block, PeopleCell, Statistic, solve_block
from casemate.audit.time_limit import SearchLimit
from casemate.exact import Domain, Kind, OrderQuestion

Log = tuple[list[int], list[OrderQuestion]]
SALARIES = (20, 200)
DRAW = 4  # of the small salary dashboard


def published(kind: Kind, members: list[int], truth: list[int], value: int | None) -> OrderQuestion:
    """A question with its true answer; averages are printed to one decimal."""
    answer = OrderQuestion.of(kind, members, 0, value=value).answer(np.array(truth))
    if answer is None:
        raise ValueError("a question needs members")
    if kind == "avg":
        return OrderQuestion.of(
            kind, members, Fraction(round(answer * 10), 10), within=Fraction(1, 20)
        )
    return OrderQuestion.of(kind, members, answer, value=value)


def mixture(size: int, questions: int, seed: int) -> Log:
    """Questions of six kinds about random sets of three to ten values from 0 to 100."""
    rng = Random(seed)
    kinds: list[Kind] = ["sum", "avg", "max", "min", "median", "count_at_least"]
    truth, log = [rng.randint(0, 100) for _ in range(size)], []
    for _ in range(questions):
        kind, members = rng.choice(kinds), rng.sample(range(size), rng.randint(3, 10))
        value = rng.randint(0, 100) if kind == "count_at_least" else None
        log.append(published(kind, members, truth, value))
    return truth, log


def dashboard(size: int, kinds: list[Kind], seed: int) -> Log:
    """Salaries by every two of four attributes, in groups of at least five people."""
    rng = Random(seed)
    truth = [rng.randint(*SALARIES) for _ in range(size)]
    attributes = [[rng.randrange(many) for many in (12, 2, 5, 4)] for _ in range(size)]
    log = []
    for columns in (each for ways in range(3) for each in combinations(range(4), ways)):
        cells: dict[tuple[int, ...], list[int]] = {}
        for person, values in enumerate(attributes):
            cells.setdefault(tuple(values[column] for column in columns), []).append(person)
        groups = [members for members in cells.values() if len(members) >= 5]
        log += [published(kind, members, truth, None) for members in groups for kind in kinds]
    return truth, log


def maxima(size: int, questions: int, members: int, seed: int) -> Log:
    """Maxima of random sets."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 10**6, size)
    log = []
    for _ in range(questions):
        chosen = np.unique(rng.integers(0, size, members))
        log.append(OrderQuestion.of("max", chosen.tolist(), int(truth[chosen].max())))
    return truth.tolist(), log


def satisfiability(size: int, ratio: float, seed: int) -> Log:
    """Monotone clauses of three, all true of a hidden assignment, as maxima and minima."""
    rng = Random(seed)
    truth, log = [rng.randrange(2) for _ in range(size)], list[OrderQuestion]()
    while len(log) < ratio * size:
        members, side = rng.sample(range(size), 3), rng.randrange(2)
        if any(truth[each] == side for each in members):
            log.append(OrderQuestion.of("max" if side else "min", members, side))
    return truth, log


def timed(log: Log, domain: Domain, seconds: float = 60.0) -> tuple[Verdicts, str]:
    """The verdicts, and in words how many of each there are and what they cost."""
    truth, questions = log
    start, wall = time.process_time(), time.perf_counter()
    found = audit_order(questions, domain, truth, 1, SearchLimit(seconds))
    spent, waited = time.process_time() - start, time.perf_counter() - wall
    counts = Counter(type(verdict).__name__.lower() for verdict in found.records)
    shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
    return found, f"{shown}; {spent:.1f} s CPU, {waited:.1f} s"


def blocks() -> list[Claim]:
    """The seven people of Garfinkel, Abowd and Martindale; means are printed to one decimal."""
    published_cells = {
        "1A": (PeopleCell(), 7, 30, "38"),
        "2A": (PeopleCell({"sex": ("F",)}), 4, 30, "33.5"),
        "2B": (PeopleCell({"sex": ("M",)}), 3, 30, "44"),
        "2C": (PeopleCell({"race": ("B",)}), 4, 51, "48.5"),
        "2D": (PeopleCell({"race": ("W",)}), 3, 24, "24"),
        "3B": (PeopleCell({"married": ("M",)}, at_least=18), 4, 51, "54"),
        "4A": (PeopleCell({"sex": ("F",), "race": ("B",)}), 3, 36, "36.7"),
    }
    attributes = {"sex": ("F", "M"), "race": ("B", "W"), "married": ("M", "S")}
    rule = Statistic(PeopleCell({"married": ("M",)}, at_most=14), 0)
    claims = []
    for dropped, asked in (((), 1), (("2A", "2B"), 8), (("4A",), 2), (("3B",), 64)):
        cells = [cell for name, cell in published_cells.items() if name not in dropped]
        statistics = [Statistic(c, n, m, Fraction(x), Fraction(1, 20)) for c, n, m, x in cells]
        start = time.process_time()
        found = solve_block(Block(7, 0, 125, attributes, (*statistics, rule)))
        spent = time.process_time() - start
        what = f"census block without {' and '.join(dropped) or 'nothing'}"
        shown = f"{len(found.tables)}, {spent:.2f} s CPU" + (
            "" if found.complete else ", cut short"
        )
        claims.append(Claim(what, f"{asked} solutions, < 2 s", shown))
    return claims


def salaries() -> list[Claim]:
    """Sixty people, every group of at least five: averages alone, and with extremes."""
    domain, claims = Domain.of(60, *SALARIES), []
    alone: list[Kind] = ["avg"]
    for kinds, asked in ((alone, "0 exposed"), ([*alone, "min", "max"], "most exposed")):
        _, shown = timed(dashboard(60, kinds, DRAW), domain)
        claims.append(Claim(f"60 salaries, {'/'.join(kinds)}", asked, shown))
    draws = [timed(dashboard(60, [*alone, "min", "max"], seed), domain)[0] for seed in range(12)]
    exposed = sorted(len(found.positions(ExposedValue)) for found in draws)
    shown = f"{exposed[0]} to {exposed[-1]} exposed, half of the draws at least {exposed[6]}"
    return [*claims, Claim("the same in 12 draws", "", shown)]


def main() -> None:
    domain = Domain.of(1_000, *SALARIES)
    large = dashboard(1_000, ["avg", "min", "max"], 0)
    hard, said = timed(satisfiability(400, 4.2, 0), Domain.of(400, 0, 1), seconds=20)
    open_ones, free = len(hard.positions(Undecided)), len(hard.positions(Free))
    show(
        [
            *blocks(),
            *salaries(),
            Claim(
                "mixture, n = 500, m = 250",
                "none undecided, < 30 s",
                timed(mixture(500, 250, 0), Domain.of(500, 0, 100))[1],
            ),
            Claim(
                f"dashboard of {len(large[1])} cells on 1,000 people",
                "none undecided, < 60 s",
                timed(large, domain)[1],
            ),
            Claim(
                "maxima only, n = 1e5, 1e4 questions of 50",
                "< 5 s",
                timed(maxima(100_000, 10_000, 50, 0), Domain.of(100_000))[1],
            ),
            Claim("monotone 3-SAT log, n = 400, 20 s", "undecided at its limit", said),
            Claim("of those undecided, at most together", "", f"{hard.together} of {open_ones}"),
            Claim("free, each with a checked second table", "", f"{free:,}"),
        ]
    )
