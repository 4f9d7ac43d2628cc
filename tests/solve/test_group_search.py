from itertools import combinations
from random import Random

import exact_rank
from exact_rank import Matrix, generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.solve.exposure import incremental
from casemate.solve.group_search import insiders, totals
from casemate.solve.system import System

seeds = st.integers(0, 2**32).map(Random)


def unit(size: int, *columns: int) -> list[int]:
    return [int(j in columns) for j in range(size)]


def learns(matrix: Matrix, known: tuple[int, ...], column: int) -> bool:
    """Whether somebody who knows these values knows the column's too."""
    size = len(matrix[0])
    return column in exact_rank.determined([*matrix, *(unit(size, j) for j in known)])


@given(seeds, st.integers(2, 5))
def test_groups_with_a_determined_total_are_found_and_minimal(rng: Random, largest: int) -> None:
    matrix = generated(rng)
    size = len(matrix[0])
    found = totals(incremental(System.of(matrix), rng.randbytes), largest)
    secret = [j for j in range(size) if j not in exact_rank.determined(matrix)]
    every: list[tuple[int, ...]] = []
    for count in range(2, largest + 1):
        for group in combinations(secret, count):
            smaller = any(set(each) < set(group) for each in every)
            if not smaller and exact_rank.follows(matrix, unit(size, *group)):
                every.append(group)
    assert sorted(found.found) == sorted(every) and not found.undecided


@given(seeds)
def test_two_insiders_learn_exactly_what_the_search_says(rng: Random) -> None:
    matrix = generated(rng)
    exposed = incremental(System.of(matrix), rng.randbytes)
    found = insiders(exposed, most=2)
    secret = [j for j in range(len(matrix[0])) if not exposed.determined[j]]
    expected = {
        group
        for group in combinations(secret, 3)
        if learns(matrix, group[:2], group[2])
        and not any(learns(matrix, (i,), j) for i, j in combinations(group, 2))
    }
    assert set(found.found) == expected and not found.undecided


def test_what_is_too_much_to_search_is_undecided() -> None:
    exposed = incremental(System.of([[1] * 40]))
    assert totals(exposed, 4, budget=100).undecided == (3, 4)
    assert insiders(exposed, most=3, budget=100).undecided == (3, 4)
