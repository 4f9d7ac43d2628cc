from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact.regions import plain_ranges, random_region, wide_region

from casemate.audit.checks.ranges import backbone, whole_solution
from casemate.audit.region.second import RegionSolution, witness
from casemate.exact import Box, LinearProgram, Region, Scaled, System


def some_solution(region: Region) -> list[Fraction] | None:
    scaled = Scaled.of(region)
    point = LinearProgram(scaled).minimise(np.ones(scaled.columns))[1].exact_point()
    values = None if point is None else [scaled.to_region_unit(value) for value in point]
    return values if values is not None and region.contains(values) else None


@pytest.mark.parametrize("case", range(50))
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
    for column in set(range(len(true))) - found.open:
        assert any(abs(table[column] - true[column]) >= width for table in found.tables)
    assert ranges is not None
    for column in found.open:
        low, high = ranges[column].low, ranges[column].high
        assert low is not None and float(true[column]) - low < float(width) + 1e-6
        assert high is not None and high - float(true[column]) < float(width) + 1e-6


def test_fractions_are_no_witness_for_whole_numbers() -> None:
    """Of two halves that add up to one, each vertex is whole; of three in pairs, none is."""
    triangle = System.of([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]], [2, 2, 2])
    region = Region.of(triangle, Box.of(4, 0, 1, integer=True))
    true = [Fraction(1), Fraction(1), Fraction(1), Fraction(0)]
    found = witness(region, true, range(4), Fraction(1, 4))
    assert found.open == {0, 1, 2, 3}
    assert backbone(RegionSolution(region, true), range(4), [1] * 4).fixed == {0, 1, 2, 3}


def test_what_is_no_solution_is_refused() -> None:
    region = Region.of(System.of([[1, 1]], [1]), Box.of(2, 0, 1, integer=True))
    with pytest.raises(ValueError, match="true solution"):
        witness(region, [Fraction(1), Fraction(1)], range(2), Fraction(1))


def test_whole_numbers_need_finite_bounds() -> None:
    region = Region.of(System.of([[1, 1]], [1]), Box.of(2, 0, None, integer=True))
    with pytest.raises(ValueError, match="finite bounds"):
        whole_solution(region)
