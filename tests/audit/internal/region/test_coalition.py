from fractions import Fraction
from itertools import combinations
from random import Random

import exact_rank
import numpy as np
from exact.regions import Form
from exact_rank import Matrix, generated
from hypothesis import assume, given
from hypothesis import strategies as st

from casemate.audit.region.coalition import BUDGET, CoalitionFinding, coalitions, vectors_for
from casemate.exact import System, more_null_vectors
from casemate.exact.unknowns import blocked, incremental

seeds = st.integers(0, 2**32).map(Random)
WIDTH = 3


def unit(size: int, column: int) -> list[int]:
    return [int(j == column) for j in range(size)]


def learned_by(matrix: Matrix, owner: list[int], knows: tuple[int, ...]) -> set[int]:
    """The columns that somebody knows who knows everything that these own."""
    size = len(matrix[0])
    own = [unit(size, j) for j in range(size) if owner[j] in knows]
    return set(exact_rank.determined([*matrix, *own])) - {
        j for j in range(size) if owner[j] in knows
    }


def slow_coalitions(
    matrix: Matrix, owner: list[int], size: int
) -> set[tuple[tuple[int, ...], int]]:
    """Every coalition of a size, with what it learns and no part of it does."""
    everybody = sorted(set(owner))
    found = set()
    for knows in combinations(everybody, size):
        smaller = [learned_by(matrix, owner, some) for some in combinations(knows, size - 1)]
        mine = [j for j in range(len(owner)) if owner[j] in knows]
        for column in learned_by(matrix, owner, knows) - set().union(*smaller):
            found.add((knows, column))
        assert not set(mine) & {column for who, column in found if who == knows}
    return found


def fast(
    matrix: Matrix, owner: list[int], size: int, rng: Random, form: Form
) -> tuple[CoalitionFinding, ...]:
    system = System.of(matrix)
    exposed = form(system, rng.randbytes)
    null = more_null_vectors(system, exposed, vectors_for(size, WIDTH), rng.randbytes)
    found = coalitions(null, np.array(owner, np.int64), size)
    assert not found.undecided
    return found.found


@given(seeds, st.integers(1, 3))
def test_coalitions_learn_exactly_what_the_search_says(rng: Random, size: int) -> None:
    matrix = generated(rng)
    owner = [rng.randint(0, len(matrix[0])) for _ in matrix[0]]
    found = fast(matrix, owner, size, rng, rng.choice([incremental, blocked]))
    shown = {(each.knows, each.point) for each in found}
    assert shown == slow_coalitions(matrix, owner, size)
    assert len(shown) == len(found)


@given(seeds, st.integers(1, 3))
def test_the_shares_are_what_the_value_is_made_of(rng: Random, size: int) -> None:
    """The value less the shares of what they know is a combination of the equations."""
    matrix = generated(rng)
    width = len(matrix[0])
    assume(all(abs(value) < 100 for row in matrix for value in row))  # else they cannot be read
    for each in fast(matrix, list(range(width)), size, rng, incremental):
        if each.shares is not None:
            common = int(np.lcm.reduce([share.denominator for share in each.shares.values()]))
            target = unit(width, each.point)
            target = [value * common for value in target]
            for point, share in each.shares.items():
                target[point] = -int(share * common)
            assert exact_rank.follows(matrix, target)


def test_an_owner_of_two_values_learns_a_third_by_both() -> None:
    (found,) = fast([[1, 1, 1]], [7, 7, 8], 1, Random(1), incremental)
    assert (found.knows, found.point) == ((7,), 2)
    assert found.shares == {0: Fraction(-1), 1: Fraction(-1)}


def test_what_is_too_much_to_search_is_undecided() -> None:
    system = System.of([[1] * 40])
    null = more_null_vectors(system, incremental(system), vectors_for(3, 1))
    everybody = np.arange(40)
    assert coalitions(null, everybody, 3, budget=100).undecided == (3,)
    assert coalitions(null, everybody, 3, budget=BUDGET).found == ()
