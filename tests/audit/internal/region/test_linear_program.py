from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact.regions import plain_ranges, random_region

from casemate.audit.region.bounds import bound_below, contradiction, proved_minimum
from casemate.exact import LinearProgram, Scaled, Status


def costs(
    columns: int, column: int, sign: int = 1
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    made = np.zeros(columns)
    made[column] = sign
    return made


@pytest.mark.parametrize("case", range(20))
def test_a_vertex_is_solved_exactly_and_its_multipliers_prove_its_value(
    case: int, seed: int
) -> None:
    region = random_region(Random(f"{seed} {case}"))
    scaled = Scaled.of(region)
    program = LinearProgram(scaled)
    for column in range(scaled.columns):
        status, vertex = program.minimise(costs(scaled.columns, column))
        if status is Status.OPTIMAL:
            point = vertex.exact_point()
            assert point is not None
            values = [scaled.to_region_unit(value) for value in point]
            assert region.contains(values)
            proved = proved_minimum(vertex, {column: 1}, exact=True)
            assert proved is not None
            assert scaled.to_region_unit(proved) == values[column]


@pytest.mark.parametrize("case", range(20))
def test_any_multipliers_prove_a_true_bound(case: int, seed: int) -> None:
    rng = Random(f"{seed} {case}")
    region = random_region(rng)
    ranges = plain_ranges(region)
    scaled = Scaled.of(region)
    for column in range(scaled.columns if ranges else 0):
        weights = [Fraction(rng.randint(-6, 6), rng.randint(1, 5)) for _ in range(scaled.rows)]
        bound = bound_below(scaled, weights, {column: 1})
        assert ranges is not None
        low = ranges[column].low
        assert bound is None or (
            low is not None and float(scaled.to_region_unit(bound)) <= low + 1e-9
        )


@pytest.mark.parametrize("case", range(30))
def test_a_contradiction_is_proved_whenever_there_is_one(case: int, seed: int) -> None:
    region = random_region(Random(f"{seed} {case}"))
    rows = contradiction(Scaled.of(region))
    assert (rows is not None) == (plain_ranges(region) is None)
