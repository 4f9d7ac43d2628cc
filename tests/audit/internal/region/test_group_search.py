from itertools import combinations
from random import Random

import exact_rank
from exact_rank import generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit.region.groups import totals
from casemate.exact import System
from casemate.exact.unknowns import blocked, incremental

seeds = st.integers(0, 2**32).map(Random)


def unit(size: int, *columns: int) -> list[int]:
    return [int(j in columns) for j in range(size)]


def slow_totals(matrix: exact_rank.Matrix, weights: list[int], largest: int) -> list[list[int]]:
    """The minimal groups, one rank for each subset."""
    size = len(matrix[0])
    secret = [j for j in range(size) if j not in exact_rank.determined(matrix)]
    every: list[tuple[int, ...]] = []
    for count in range(2, size + 1):
        for group in combinations(secret, count):
            light = sum(weights[j] for j in group) <= largest
            smaller = any(set(each) < set(group) for each in every)
            if light and not smaller and exact_rank.follows(matrix, unit(size, *group)):
                every.append(group)
    return sorted(map(list, every))


@given(seeds, st.integers(2, 5))
def test_groups_with_a_determined_total_are_found_and_minimal(rng: Random, largest: int) -> None:
    matrix = generated(rng)
    form = rng.choice([incremental, blocked])
    found = totals(form(System.of(matrix), rng.randbytes), largest)
    assert sorted(map(list, found.found)) == slow_totals(matrix, [1] * len(matrix[0]), largest)
    assert not found.undecided


@given(seeds, st.integers(2, 7))
def test_weights_limit_what_a_group_adds_up_to(rng: Random, largest: int) -> None:
    matrix = generated(rng)
    weights = [rng.randint(1, 3) for _ in matrix[0]]
    found = totals(incremental(System.of(matrix), rng.randbytes), largest, weights)
    assert sorted(map(list, found.found)) == slow_totals(matrix, weights, largest)


def test_what_is_too_much_to_search_is_undecided_and_pairs_never_are() -> None:
    exposed = incremental(System.of([[1] * 2 + [0] * 40, [0] * 2 + [1] * 40]))
    found = totals(exposed, 4, budget=10)
    assert found.undecided == (3, 4)
    assert found.found == ((0, 1),)
    assert totals(exposed, 4, budget=1000).undecided == ()
