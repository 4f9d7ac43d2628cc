from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact.regions import random_region, solutions, yes_no_region

from casemate.audit.region.second import RegionSolution, components, part
from casemate.exact import Box, Region

THIRD = Fraction(1, 3)


def some_values(rng: Random, region: Region) -> list[Fraction]:
    low = [Fraction(-4) if end is None else end for end in region.box.low]
    high = [Fraction(6) if end is None else end for end in region.box.high]
    ends = zip(low, high, region.box.integer, strict=True)
    return [rng.choice([a, b, a if whole else a + (b - a) * THIRD]) for a, b, whole in ends]


def around(region: Region, values: list[Fraction]) -> Region:
    """The same region, moved so that the values solve it."""
    sums = [sum((a * values[j] for j, a in line), Fraction(0)) for line in region.equations]
    return Region(region.system, region.box, tuple(sums), tuple(sums))


@pytest.mark.parametrize("case", range(30))
def test_a_change_is_allowed_exactly_when_the_whole_table_is_a_solution(
    case: int, seed: int
) -> None:
    rng = Random(f"{seed} {case}")
    region = rng.choice([random_region, yes_no_region])(rng)
    values = some_values(rng, region)
    region = around(region, values)
    known = RegionSolution(region, values)
    for _ in range(20):
        other = some_values(rng, region)
        moved = rng.sample(range(len(values)), rng.randint(0, min(2, len(values))))
        table = [other[c] if c in moved else value for c, value in enumerate(values)]
        assert known.allows(known.change_to(table)) == region.contains(table)


@pytest.mark.parametrize("case", range(24))
def test_parts_have_the_solutions_of_the_whole(case: int, seed: int) -> None:
    """Every solution is one of each part; columns with one value belong to none."""
    rng = Random(f"{seed} {case}")
    region = yes_no_region(rng)
    fixed = {
        c: Fraction(rng.randint(0, 1)) for c in range(region.system.columns) if rng.random() < 0.4
    }
    low = tuple(fixed.get(c, end) for c, end in enumerate(region.box.low))
    high = tuple(fixed.get(c, end) for c, end in enumerate(region.box.high))
    region = region.within(Box(low, high, region.box.integer))
    free = np.array([c not in fixed for c in range(region.system.columns)])
    label = components(region.system, free)
    whole = set(solutions(region))
    apart: set[tuple[Fraction, ...]] = {tuple(low)} if _fits_fixed(region, free) else set()  # type: ignore[arg-type]  # bounds are finite here
    for name in set(label.tolist()) - {-1}:
        columns = np.flatnonzero(label == name)
        pieces = list(solutions(part(region, columns)))
        apart = {_put(table, columns.tolist(), piece) for table in apart for piece in pieces}
    assert apart == whole


def _fits_fixed(region: Region, free: np.ndarray) -> bool:
    """Whether the equations without any free column hold."""
    for line, low, high in zip(region.equations, region.low, region.high, strict=True):
        total = sum((a * (region.box.low[c] or 0) for c, a in line), Fraction(0))
        if not any(free[c] for c, _ in line) and not (low <= total <= high):  # type: ignore[operator]  # both ends are known
            return False
    return True


def _put(
    table: tuple[Fraction, ...], columns: list[int], piece: tuple[Fraction, ...]
) -> tuple[Fraction, ...]:
    new = dict(zip(columns, piece, strict=True))
    return tuple(new.get(c, value) for c, value in enumerate(table))
