"""Exhaustive search, and the programs that are used where it takes too long."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from attack.every_plan import shortest

from casemate.attack.plan.sides import Effort, Unfinished
from casemate.attack.plan.target import Fewest, signed_plan

PLENTY = Effort(10**9)
RANDOM = np.random.default_rng(0)


def some_sets(rng: Random) -> tuple[list[frozenset[int]], int]:
    """Random sets, now and then of the kind that halves or thirds are needed for."""
    count = rng.randint(2, 6)
    records = range(count)
    if rng.random() < 0.4:
        sets = {frozenset(rng.sample(records, count - 1)) for _ in range(count + 1)}
    else:
        sets = {frozenset(i for i in records if rng.random() < 0.5) for _ in range(8)}
    return sorted((each for each in sets if each), key=sorted), count


def as_matrix(
    sets: list[frozenset[int]], count: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    return np.array([[i in each for i in range(count)] for each in sets], np.bool_)


def adds_up(
    chosen: dict[int, Fraction],
    matrix: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    target: int,
) -> bool:
    rows = matrix.astype(int).tolist()
    total = [sum(w * rows[i][j] for i, w in chosen.items()) for j in range(matrix.shape[1])]
    return total == [int(j == target) for j in range(matrix.shape[1])]


def test_the_shortest_plan_is_the_shortest(rng: Random) -> None:
    lengths, coefficients = set(), set()
    for number in range(150):
        sets, count = some_sets(rng)
        matrix = as_matrix(sets, count)
        search = Fewest(matrix, np.random.default_rng(number))
        for target in range(count):
            best = shortest(sets, count, target)
            tried = (search.of(m, target, PLENTY) for m in range(1, len(sets) + 1))
            found = next((each for each in tried if each is not None), None)
            assert (found is None) == (best is None)
            if found is not None:
                assert len(found) == best and adds_up(found, matrix, target)
                lengths.add(len(found))
                coefficients |= {abs(weight) for weight in found.values()}
    assert {1, 2, 3, 4, 5} <= lengths
    assert {Fraction(1), Fraction(1, 2), Fraction(1, 3)} <= coefficients


def test_which_plan_is_found_does_not_depend_on_chance(rng: Random) -> None:
    sets, count = some_sets(rng)
    searches = [Fewest(as_matrix(sets, count), np.random.default_rng(i)) for i in range(5)]
    for length in (2, 3):
        plans = [search.of(length, 0, PLENTY) for search in searches]
        assert all(plan == plans[0] for plan in plans)


def test_records_that_are_never_told_apart_have_no_plan() -> None:
    matrix = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], np.bool_)
    search = Fewest(matrix, np.random.default_rng(0))
    assert all(search.of(length, 0, PLENTY) is None for length in (1, 2, 3))
    assert search.of(1, 2, PLENTY) == {2: Fraction(1)}


def test_a_long_search_gives_up() -> None:
    matrix = np.eye(9, dtype=np.bool_) | np.eye(9, k=1, dtype=np.bool_)
    search = Fewest(matrix, np.random.default_rng(0))
    assert search.steps(5) > search.steps(4) > search.steps(3) > search.steps(2)
    with pytest.raises(Unfinished):
        search.of(6, 0, Effort(3))


def test_added_and_subtracted_rows_make_the_shortest_plan_of_that_kind(rng: Random) -> None:
    some = 0
    for _ in range(25):
        sets, count = some_sets(rng)
        matrix = as_matrix(sets, count)
        best = shortest(sets, count, 0)
        found = signed_plan(matrix, 0, 5.0, RANDOM)
        if found is not None:
            assert adds_up({i: Fraction(sign) for i, sign in found.items()}, matrix, 0)
            assert best is not None and len(found) >= best
            assert signed_plan(matrix, 0, 5.0, RANDOM, most=len(found) - 1) is None
            some += 1
    assert some > 5
    assert signed_plan(matrix, 0, 0.0, RANDOM) is None
