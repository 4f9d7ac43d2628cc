from fractions import Fraction
from random import Random

import numpy as np
import pytest
from exact.regions import exact, random_region, solutions, wide_region, yes_no_region

from casemate.audit.region.propagation import grid_unit, propagate
from casemate.exact import Box, Region, System

ONE = Fraction(1)


def slowly(region: Region) -> Box | None:
    """The fixed point for 0/1 columns, by trying the two ends of every other column."""
    low, high = [0] * region.system.columns, [1] * region.system.columns
    changed = True
    while changed:
        changed = False
        for row, line in enumerate(region.system.dense()):
            for column, a in enumerate(line):
                others = [(b, j) for j, b in enumerate(line) if j != column]
                least = sum(min(b * low[j], b * high[j]) for b, j in others)
                most = sum(max(b * low[j], b * high[j]) for b, j in others)
                first, last = region.low[row], region.high[row]
                assert first is not None and last is not None
                kept = [
                    value
                    for value in range(low[column], high[column] + 1)
                    if a * value + least <= last and a * value + most >= first
                ]
                if not kept:
                    return None
                if a and (kept[0], kept[-1]) != (low[column], high[column]):
                    low[column], high[column], changed = kept[0], kept[-1], True
    return Box(exact(*low), exact(*high), region.box.integer)


# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(50))
def test_yes_no_columns_end_where_the_slow_version_ends(case: int, seed: int) -> None:
    region = yes_no_region(Random(f"{seed} {case}"))
    expected = slowly(region)
    for found in (propagate(region), propagate(region, on_grid=False)):
        assert (found.contradiction is None) == (expected is not None)
        assert found.complete
        assert expected is None or found.box == expected


@pytest.mark.parametrize("case", range(40))
def test_no_possible_value_is_ever_excluded(case: int, seed: int) -> None:
    region = yes_no_region(Random(f"{seed} {case}"))
    tightened = propagate(region)
    possible = list(solutions(region))
    assert tightened.contradiction is None or not possible
    assert all(tightened.box.contains(values) for values in possible)


@pytest.mark.parametrize("case", range(50))
def test_the_grid_and_the_rationals_agree_on_everything(case: int, seed: int) -> None:
    rng = Random(f"{seed} {case}")
    region = rng.choice([random_region, wide_region, yes_no_region])(rng)
    fast, slow = propagate(region), propagate(region, on_grid=False)
    assert (fast.contradiction is None) == (slow.contradiction is None)
    assert (fast.box, fast.complete) == (slow.box, slow.complete)


def test_a_chain_is_followed_to_its_end() -> None:
    links = 300
    dense = [[int(j in (i, i + 1)) for j in range(links + 1)] for i in range(links)]
    dense.append([1] + [0] * links)
    region = Region.of(System.of(dense, [1] * links + [0]), Box.of(links + 1, 0, 1, integer=True))
    found = propagate(region)
    assert found.complete
    assert found.box.low == found.box.high == tuple(Fraction(j % 2) for j in range(links + 1))


def test_whole_numbers_round_inwards() -> None:
    box = Box.of(1, 0, 9, integer=True)
    found = propagate(Region.of(System.of([[2]], [5]), box, ONE)).box
    assert (found.low, found.high) == (exact(2), exact(3))
    assert propagate(Region.of(System.of([[2]], [5]), box)).contradiction == 0


def test_a_contradiction_names_its_equation() -> None:
    three = System.of([[1, 1, 0], [0, 0, 1], [1, 1, 1]], [1, 1, 5])
    assert propagate(Region.of(three, Box.of(3, 0, 1))).contradiction == 2
    empty = System.of([[0, 0], [1, 1]], [1, 1])
    assert propagate(Region.of(empty, Box.of(2, 0, 1))).contradiction == 0


def test_an_endless_cascade_is_stopped_and_says_so() -> None:
    halves = System.of([[2, -1], [1, -1]], [0, 0])
    for box in (Box.of(2, 0, 1), Box.of(2, -1, 1)):
        found = propagate(Region.of(halves, box))
        assert not found.complete
        assert found.box.contains([Fraction(0), Fraction(0)])
    march = System.of([[1, -1, 0], [1, -1, 1]], [1, 0])
    far = Box((Fraction(0),) * 3, (Fraction(10**9),) * 2 + (Fraction(5),), (True,) * 3)
    assert not propagate(Region.of(march, far)).complete  # it would take 10^9 passes


def test_numbers_too_large_for_the_grid_are_still_exact() -> None:
    huge = 10**30
    system = System.of([[1, huge], [0, 1]], [huge + 1, 1])
    found = propagate(Region.of(system, Box.of(2, 0, huge)))
    assert grid_unit(Region.of(system, Box.of(2, 0, huge))) is None
    assert found.box.low == found.box.high == exact(1, 1)


def test_sums_that_outgrow_the_grid_on_the_way_are_still_exact() -> None:
    growth, links = 1000, 8
    dense = [[0] * i + [growth, -1] + [0] * (links - i - 1) for i in range(links)]
    first = Box((ONE,) + (None,) * links, (ONE,) + (None,) * links, (True,) * (links + 1))
    region = Region.of(System.of(dense, [0] * links), first)
    assert grid_unit(region) is not None
    found = propagate(region)
    assert found.box.low == found.box.high == tuple(growth**i for i in range(links + 1))


@pytest.mark.theorem("002: types and bounds are knowledge")
def test_a_column_that_rank_leaves_free_can_be_fixed_by_its_type() -> None:
    """Nobody is determined as a real number; as yes or no everybody is."""
    region = Region.of(System.of([[1, 1, 1]], [0]), Box.of(3, 0, 1, integer=True))
    assert propagate(region).box.high == exact(0, 0, 0)


def test_a_table_of_many_people_and_cells_stays_on_the_grid() -> None:
    rng = np.random.default_rng(0)
    people, parts = 2_000, 40
    row = np.concatenate([rng.integers(0, 30, people) + 30 * part for part in range(parts)])
    column = np.tile(np.arange(people), parts)
    secret = rng.random(people) < 0.02
    right = np.bincount(row, secret[column], 30 * parts)
    system = System(
        30 * parts,
        people,
        row,
        column,
        np.ones(len(row), np.int64),
        tuple(map(Fraction, right.astype(int).tolist())),
    )
    region = Region.of(system, Box.of(people, 0, 1, integer=True))
    assert grid_unit(region) is not None
    found = propagate(region)
    assert found.complete and found.contradiction is None
    assert found.box.contains([Fraction(int(value)) for value in secret])
