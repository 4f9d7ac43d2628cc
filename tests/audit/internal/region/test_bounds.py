from fractions import Fraction
from random import Random

import pytest
from exact.regions import (
    Range,
    exact,
    plain_ranges,
    random_region,
    solutions,
    wide_region,
    yes_no_region,
)

from casemate.audit.checks.ranges import backbone, whole_solution
from casemate.audit.region import bounds as module
from casemate.audit.region.bounds import Bounds, bounds
from casemate.audit.region.second import RegionSolution
from casemate.exact import Bound, Box, Region, System

HOSPITAL = [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]
ANSWERS = [Fraction("32.1"), Fraction("15.5"), Fraction("11.4")]


def agrees(mine: Bound, theirs: float | None) -> bool:
    if mine is None or theirs is None:
        return mine is None and theirs is None
    return abs(float(mine) - theirs) <= 1e-6 * max(1, abs(theirs))


def is_single(each: Range) -> bool:
    return each.low is not None and each.high is not None and each.high - each.low < 1e-7


def assert_equal(found: Bounds, expected: list[Range] | None) -> None:
    assert bool(found.contradiction) == (expected is None)
    if expected is None:
        return
    assert not found.unchecked
    for low, high, each in zip(found.low, found.high, expected, strict=True):
        assert agrees(low, each.low)
        assert agrees(high, each.high)
    assert found.fixed == [column for column, each in enumerate(expected) if is_single(each)]


def assert_all_equal(regions: list[Region]) -> None:
    for region in regions:
        assert_equal(bounds(region), plain_ranges(region))


# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(50))
def test_ranges_are_those_of_one_plain_program_per_column(case: int, seed: int) -> None:
    region = random_region(Random(f"{seed} {case}"))
    assert_equal(bounds(region), plain_ranges(region))


@pytest.mark.parametrize("case", range(24))
def test_ranges_of_wide_regions_are_too(case: int, seed: int) -> None:
    region = wide_region(Random(f"{seed} {case}"))
    assert_equal(bounds(region), plain_ranges(region))


def many_distinct() -> Region:
    """Two sums of sixty columns with different ends, neither near an extreme."""
    dense = [[1] * 60, [1, 0, 0] * 20]
    high = tuple(Fraction(100 + column, 10) for column in range(60))
    box = Box((Fraction(0),) * 60, high, (False,) * 60)
    return Region.of(System.of(dense, [350, 120]), box)


def test_the_middle_settles_every_end_of_a_region_with_few_equations() -> None:
    found = bounds(many_distinct())
    assert found.programs == 0
    assert_equal(found, plain_ranges(many_distinct()))


def test_a_middle_that_claims_too_much_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(1)
    everything = [wide_region(rng) for _ in range(10)]
    monkeypatch.setattr(
        module, "reachable_ends", lambda _, low, high, point: (point <= high, point >= low)
    )
    with pytest.raises(AssertionError):
        assert_all_equal(everything)


@pytest.mark.theorem("002: interval of each record given bounds")
def test_the_hospital_with_bounds_has_these_exact_ranges() -> None:
    """x2 = 32.1 - 15.5 - 11.4; x5 = 11.4 - x1; three women share 15.5 and each has 3 or more."""
    box = Box((Fraction(3),) * 6, (Fraction(5),) + (None,) * 5, (False,) * 6)
    found = bounds(Region.of(System.of(HOSPITAL, ANSWERS), box))
    assert found.low == exact(3, "5.2", 3, 3, "6.4", 3)
    assert found.high == exact(5, "5.2", "9.5", "9.5", "8.4", "9.5")
    assert found.fixed == [1]


def test_contradicting_equations_are_named_and_nothing_is_claimed() -> None:
    system = System.of([[1, 1, 0, 0], [0, 1, 1, 0], [1, 2, 1, 0], [0, 0, 0, 1]], [3, 4, 9, 1])
    found = bounds(Region.of(system, Box.of(4, None, None)))
    assert found.contradiction == (0, 1, 2)
    assert found.unchecked == [0, 1, 2, 3]
    assert set(found.low) == set(found.high) == {None}


def test_no_time_means_unchecked() -> None:
    found = bounds(Region.of(System.of(HOSPITAL, ANSWERS), Box.of(6, 3, None)), seconds=0)
    assert found.unchecked
    assert all(found.low[column] is None is found.high[column] for column in found.unchecked)


# Whole numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(50))
def test_programs_and_cp_sat_fix_what_trying_everything_fixes(case: int, seed: int) -> None:
    region = yes_no_region(Random(f"{seed} {case}"))
    possible = list(solutions(region))
    found = bounds(region)
    known = None if found.contradiction else whole_solution(region)
    assert (known is None) == (not possible)
    if known is not None:
        values = [{each[column] for each in possible} for column in range(len(known))]
        fixed = {column for column, seen in enumerate(values) if len(seen) == 1}
        assert set(found.fixed) <= fixed
        rest = set(range(len(known))) - set(found.fixed)
        decided = backbone(RegionSolution(region, known), rest, [1] * len(known))
        assert set(found.fixed) | decided.fixed == fixed
        assert not decided.undecided
