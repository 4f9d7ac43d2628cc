from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact.regions import plain_ranges, random_region, solutions, wide_region, yes_no_region

from casemate.audit.checks.whole import backbone, whole_solution
from casemate.audit.region.second import witness
from casemate.exact import Box, LinearProgram, Region, Scaled, System


def some_solution(region: Region) -> list[Fraction] | None:
    scaled = Scaled.of(region)
    point = LinearProgram(scaled).minimise(np.ones(scaled.columns))[1].exact_point()
    values = None if point is None else [scaled.restored(value) for value in point]
    return values if values is not None and region.contains(values) else None


@pytest.mark.parametrize("case", range(150))
def test_a_column_has_a_witness_exactly_when_its_range_allows_one(case: int, seed: int) -> None:
    rng = Random(f"{seed} {case}")
    region = rng.choice([random_region, wide_region])(rng)
    ranges = plain_ranges(region)
    true = None if ranges is None else some_solution(region)
    if true is None:
        return
    width = rng.choice([Fraction(1, 2), Fraction(1), Fraction(3)])
    found = witness(region, true, range(len(true)), width)
    assert all(region.contains(table) for table in found.tables)
    for column, table in found.shown_by.items():
        assert abs(found.tables[table][column] - true[column]) >= width
    assert ranges is not None
    for column in found.open:
        low, high = ranges[column].low, ranges[column].high
        assert low is not None and float(true[column]) - low < float(width) + 1e-6
        assert high is not None and high - float(true[column]) < float(width) + 1e-6


@pytest.mark.parametrize("case", range(80))
def test_whole_numbers_have_a_second_table_exactly_when_there_is_one(case: int, seed: int) -> None:
    region = yes_no_region(Random(f"{seed} {case}"))
    known = whole_solution(region)
    if known is None:
        return
    found = backbone(region, known, range(len(known)))
    possible = list(solutions(region))
    free = {c for c in range(len(known)) if any(each[c] != known[c] for each in possible)}
    assert found.free == free
    assert found.fixed == set(range(len(known))) - free
    for change in found.changes:
        assert region.contains([change.get(c, Fraction(v)) for c, v in enumerate(known)])


def test_fractions_are_no_witness_for_whole_numbers() -> None:
    """Of two halves that add up to one, each vertex is whole; of three in pairs, none is."""
    triangle = System.of([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]], [2, 2, 2])
    region = Region.of(triangle, Box.of(4, 0, 1, integer=True))
    true = [Fraction(1), Fraction(1), Fraction(1), Fraction(0)]
    found = witness(region, true, range(4), Fraction(1, 4))
    assert found.open == {0, 1, 2, 3}
    assert backbone(region, [1, 1, 1, 0], range(4)).fixed == {0, 1, 2, 3}


def test_no_time_leaves_everything_open() -> None:
    region = Region.of(System.of([[1, 1]], [1]), Box.of(2, 0, 1, integer=True))
    assert witness(region, [Fraction(1), Fraction(0)], range(2), Fraction(1), seconds=0).open == {
        0,
        1,
    }
    assert backbone(region, [1, 0], range(2), seconds=0).undecided == {0, 1}


def test_what_is_no_solution_is_refused() -> None:
    region = Region.of(System.of([[1, 1]], [1]), Box.of(2, 0, 1, integer=True))
    with pytest.raises(ValueError, match="true solution"):
        witness(region, [Fraction(1), Fraction(1)], range(2), Fraction(1))
    with pytest.raises(ValueError, match="known solution"):
        backbone(region, [1, 1], range(2))


def test_whole_numbers_need_finite_bounds() -> None:
    region = Region.of(System.of([[1, 1]], [1]), Box.of(2, 0, None, integer=True))
    with pytest.raises(ValueError, match="finite bounds"):
        whole_solution(region)
