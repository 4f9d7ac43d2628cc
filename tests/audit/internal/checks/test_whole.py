"""Whole numbers decided in stages, against trying everything."""

from fractions import Fraction
from random import Random

import pytest
from exact.regions import solutions, sums, yes_no_region

from casemate.audit.checks.ranges import decide
from casemate.audit.region.second import RegionSolution
from casemate.exact import Box, Region, System

ONE = Fraction(1)


def small_numbers(rng: Random) -> Region:
    """A few whole numbers of different ranges, with sums, weights and rounded answers."""
    columns, rows = rng.randint(2, 6), rng.randint(1, 4)
    coefficients = rng.choice([[0, 1], [0, 1, 1, 2], [-2, 0, 1, 3]])
    dense = [[rng.choice(coefficients) for _ in range(columns)] for _ in range(rows)]
    low = tuple(Fraction(rng.randint(-1, 1)) for _ in range(columns))
    high = tuple(end + rng.randint(0, 3) for end in low)
    values = [rng.choice([a, b]) for a, b in zip(low, high, strict=True)]
    half = rng.choice([Fraction(0), Fraction(0), Fraction(1, 2), Fraction(3, 2)])
    box = Box(low, high, (True,) * columns)
    return Region.of(System.of(dense, sums(dense, values)), box, half)


@pytest.mark.parametrize("case", range(50))
def test_everybody_is_free_or_fixed_as_trying_everything_says(case: int, seed: int) -> None:
    rng = Random(f"{seed} {case}")
    region = rng.choice([small_numbers, yes_no_region])(rng)
    possible = list(solutions(region))
    if not possible:
        return
    known = RegionSolution(region, rng.choice(possible))
    width = [Fraction(rng.choice([1, 1, 2])) for _ in known.values]
    found = decide(known, range(len(width)), width)
    far = {
        c
        for c in range(len(width))
        if any(abs(each[c] - known.values[c]) >= width[c] for each in possible)
    }
    assert found.fixed == set(range(len(width))) - far
    assert not found.undecided
    assert set().union(*(known.far(change, width) for change in found.changes)) == far
    assert all(known.allows(change) for change in found.changes)


def test_without_ends_a_search_shows_freedom_and_proves_nothing() -> None:
    """3 x - 3 y = 0 leaves both free; x = y and x + y = 2 fixes them, which only the rank shows."""
    free = Region.of(System.of([[3, -3]], [0]), Box.of(2, 0, None, integer=True))
    found = decide(RegionSolution(free, [ONE, ONE]), range(2), [ONE] * 2)
    assert not found.undecided and not found.fixed
    fixed = Region.of(System.of([[1, -1], [1, 1]], [0, 2]), Box.of(2, 0, None, integer=True))
    found = decide(RegionSolution(fixed, [ONE, ONE]), range(2), [ONE] * 2)
    assert found.undecided == {0, 1} and not found.fixed


def test_a_vertex_that_is_not_whole_is_taken_so_many_times_as_far() -> None:
    """2 x = 3 y in whole numbers: the nearest other solution is three and two away."""
    region = Region.of(System.of([[2, -3]], [0]), Box.of(2, None, None, integer=True))
    found = decide(RegionSolution(region, [Fraction(0)] * 2), range(2), [ONE] * 2)
    assert not found.undecided
    assert all(
        region.contains([each.get(0, Fraction(0)), each.get(1, Fraction(0))])
        for each in found.changes
    )


def test_numbers_that_are_not_whole_are_decided_by_vertices_alone() -> None:
    box = Box((Fraction(0),) * 3, (Fraction(9),) * 3, (True, False, False))
    region = Region.of(System.of([[1, 1, 0], [0, 0, 1]], [4, 2]), box)
    found = decide(RegionSolution(region, [ONE, Fraction(3), Fraction(2)]), range(3), [ONE] * 3)
    assert found.undecided == {2} and not found.fixed


def test_no_time_leaves_everything_undecided() -> None:
    region = Region.of(System.of([[1, 1]], [1]), Box.of(2, 0, 1, integer=True))
    found = decide(RegionSolution(region, [ONE, Fraction(0)]), range(2), [ONE] * 2, seconds=0)
    assert found.undecided == {0, 1}
