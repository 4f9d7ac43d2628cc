import subprocess
import sys
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact.regions import plain_ranges, random_region

from casemate.audit.region.certify import bound_below, contradiction, proved_minimum
from casemate.exact import Box, LinearProgram, Region, Scaled, Status, System, centre


def costs(
    columns: int, column: int, sign: int = 1
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    made = np.zeros(columns)
    made[column] = sign
    return made


@pytest.mark.parametrize("first", ["highspy", "ortools.sat.python.cp_model"])
def test_both_solvers_load_in_one_process_in_either_order(first: str) -> None:
    second = {"highspy": "ortools.sat.python.cp_model"}.get(first, "highspy")
    script = f"import {first}, {second}; highspy.Highs().version()"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("case", range(50))
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
            values = [scaled.restored(value) for value in point]
            assert region.contains(values)
            proved = proved_minimum(vertex, {column: 1}, exact=True)
            assert proved is not None
            assert scaled.restored(proved) == values[column]


@pytest.mark.parametrize("case", range(50))
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
        assert bound is None or (low is not None and float(scaled.restored(bound)) <= low + 1e-9)


@pytest.mark.parametrize("case", range(75))
def test_a_contradiction_is_proved_whenever_there_is_one(case: int, seed: int) -> None:
    region = random_region(Random(f"{seed} {case}"))
    rows = contradiction(Scaled.of(region))
    assert (rows is not None) == (plain_ranges(region) is None)


def test_a_run_says_when_there_is_no_least_value_no_solution_or_no_time() -> None:
    difference = Scaled.of(Region.of(System.of([[1, -1]], [1]), Box.of(2, None, None)))
    assert LinearProgram(difference).minimise(costs(2, 0))[0] is Status.UNBOUNDED
    negative = Scaled.of(Region.of(System.of([[1, 1]], [-1]), Box.of(2, 0, None)))
    assert LinearProgram(negative).minimise(np.zeros(2))[0] is Status.INFEASIBLE
    assert LinearProgram(difference).minimise(np.zeros(2), deadline=0.0)[0] in {
        Status.STOPPED,
        Status.OPTIMAL,
    }


def test_the_centre_is_well_inside() -> None:
    scaled = Scaled.of(Region.of(System.of([[1, 1, 1]], [9]), Box.of(3, 0, 10)))
    point = centre(scaled)
    assert point is not None
    assert np.allclose(point / float(scaled.shrink), 3, atol=1)
    impossible = Scaled.of(Region.of(System.of([[1, 1, 1]], [99]), Box.of(3, 0, 10)))
    assert centre(impossible) is None


def test_doubles_are_the_integers_times_a_power_of_two() -> None:
    box = Box((Fraction("0.1"), None), (Fraction(10**6), Fraction(1, 3)), (False, False))
    scaled = Scaled.of(Region.of(System.of([[1, 1]], [5]), box))
    assert scaled.unit == 30
    assert [Fraction(each) for each in scaled.doubles(scaled.high, np.inf)] == [
        end * 30 * scaled.shrink for end in box.high if end is not None
    ]
    assert scaled.doubles(scaled.low, -np.inf)[1] == -np.inf
