"""Small random regions of every kind, and the slow obvious ways to say what is possible in them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
from scipy.optimize import linprog

from casemate.exact import Bound, Box, Determined, RandomBytes, Region, System

INFEASIBLE = 2  # SciPy's
Form = Callable[[System, RandomBytes | None], Determined]
"""A way to decide what is determined: `determine_incrementally` or `determine_in_blocks`."""


@dataclass(frozen=True)
class Range:
    low: float | None
    high: float | None


def random_region(rng: Random) -> Region:
    """Weights or 0/1, ends absent or fractions, exact or rounded answers, some contradictory."""
    columns, rows = rng.randint(1, 7), rng.randint(1, 5)
    coefficients = rng.choice([[0, 0, 1, 1], range(-3, 4)])
    dense = [[rng.choice(coefficients) for _ in range(columns)] for _ in range(rows)]
    low = [_end(rng, [0, 0, rng.randint(-3, 1), Fraction(rng.randint(-9, 2), 3)]) for _ in dense[0]]
    high = [_end(rng, [3, rng.randint(2, 5), Fraction(rng.randint(8, 19), 4)]) for _ in dense[0]]
    right = sums(dense, [_value(rng, *ends) for ends in zip(low, high, strict=True)])
    if rng.random() < 0.15:
        right = [each + Fraction(rng.choice(["0", "0", "1/3", "2", "-7"])) for each in right]
    half = rng.choice([Fraction(0), Fraction(0), Fraction(1, 20), Fraction(1, 2)])
    box = Box(tuple(low), tuple(high), (False,) * columns)
    return _with_open_rows(rng, Region.of(System.of(dense, right), box, half))


def wide_region(rng: Random) -> Region:
    """Many columns with finite ends, few equations, some dependent, some at their extremes."""
    columns, rows = rng.randint(17, 40), rng.randint(2, 12)
    share, weights = rng.choice([0.1, 0.3, 0.5]), rng.choice([[1], [1, 1, 2, -1]])
    dense = [
        [rng.choice(weights) * (rng.random() < share) for _ in range(columns)] for _ in range(rows)
    ]
    high = [Fraction(rng.choice([1, 1, 2, rng.randint(1, 50)])) for _ in range(columns)]
    values = [end * Fraction(rng.choice([0, 0, 99, rng.randint(0, 99)]), 99) for end in high]
    for line in dense:
        if rng.random() < 0.15:
            for column, a in enumerate(line):
                values[column] = values[column] if a == 0 else high[column] * (a < 0)
    if rng.random() < 0.3:
        dense.append([a + b for a, b in zip(dense[0], dense[1], strict=True)])
    box = Box((Fraction(0),) * columns, tuple(high), (False,) * columns)
    half = rng.choice([Fraction(0), Fraction(0), Fraction(1, 20)])
    return _with_open_rows(rng, Region.of(System.of(dense, sums(dense, values)), box, half))


def yes_no_region(rng: Random) -> Region:
    """A few 0/1 columns, mostly with a solution."""
    columns, rows = rng.randint(2, 9), rng.randint(1, 5)
    coefficients = rng.choice([[0, 1], [0, 0, 1], [-1, 0, 1, 2]])
    dense = [[rng.choice(coefficients) for _ in range(columns)] for _ in range(rows)]
    right = sums(dense, [Fraction(rng.random() < 0.3) for _ in range(columns)])
    if rng.random() < 0.2:
        right[0] += 1
    half = rng.choice([Fraction(0), Fraction(0), Fraction(1, 2), Fraction(1)])
    return Region.of(System.of(dense, right), Box.of(columns, 0, 1, integer=True), half)


def exact(*ends: float | str | Fraction) -> tuple[Bound, ...]:
    """Exact ends, written as they are read."""
    return tuple(Fraction(end) for end in ends)


def sums(dense: Sequence[Sequence[int]], values: Sequence[Fraction]) -> list[Fraction]:
    return [sum((a * v for a, v in zip(line, values, strict=True)), Fraction(0)) for line in dense]


def solutions(region: Region) -> Iterator[tuple[Fraction, ...]]:
    """Every solution of a small region of whole numbers, by trying everything."""
    spans = [
        [Fraction(v) for v in range(int(low or 0), int(high or 0) + 1)]
        for low, high in zip(region.box.low, region.box.high, strict=True)
    ]
    return (values for values in product(*spans) if region.contains(values))


def plain_ranges(region: Region) -> list[Range] | None:
    """Two linear programs per column, each from scratch; None if there is no solution."""
    dense = np.array(region.system.dense(), float).reshape(
        region.system.rows, region.system.columns
    )
    lines = [(line, end) for line, end in zip(dense, region.high, strict=True) if end is not None]
    lines += [(-line, -end) for line, end in zip(dense, region.low, strict=True) if end is not None]
    table = np.array([line for line, _ in lines]).reshape(len(lines), region.system.columns)
    most = [float(end) for _, end in lines]
    box = list(zip(map(_maybe, region.box.low), map(_maybe, region.box.high), strict=True))
    found = []
    for column in range(region.system.columns):
        ends: list[float | None] = []
        for sign in (1, -1):
            costs = np.zeros(region.system.columns)
            costs[column] = sign
            result = linprog(costs, table, most, bounds=box, options={"presolve": False})
            if result.status == INFEASIBLE:
                return None
            ends.append(None if result.fun is None else sign * result.fun)
        found.append(Range(*ends))
    return found


def _with_open_rows(rng: Random, region: Region) -> Region:
    """The same region, in which some equations are inequalities or say nothing."""
    if rng.random() < 0.8:
        return region
    low = tuple(end if rng.random() < 0.5 else None for end in region.low)
    high = tuple(end if rng.random() < 0.5 else None for end in region.high)
    return Region(region.system, region.box, low, high)


def _end(rng: Random, choices: Sequence[Fraction | int]) -> Bound:
    return None if rng.random() < 0.2 else Fraction(rng.choice(choices))


def _value(rng: Random, low: Bound, high: Bound) -> Fraction:
    least = Fraction(-4) if low is None else low
    most = Fraction(6) if high is None else high
    return rng.choice([least, most, least + (most - least) * Fraction(rng.randint(0, 6), 6)])


def _maybe(end: Bound) -> float | None:
    return None if end is None else float(end)
