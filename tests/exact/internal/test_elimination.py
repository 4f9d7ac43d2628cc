from random import Random

import exact_rank
import numpy as np
import pytest
from exact_rank import Matrix, generated, seeds
from hypothesis import given

from casemate.exact import System, elimination, random_prime
from casemate.exact.elimination import PANEL_ROWS, eliminate
from casemate.exact.modular import NARROW_PRIME_BITS


def times(matrix: Matrix, vectors: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[int]:
    products: list[int] = (np.array(matrix, object) @ vectors.T.astype(object)).ravel().tolist()
    return products


@given(seeds)
def test_greedy_rows_null_vectors_and_solutions_agree_with_fractions(rng: Random) -> None:
    matrix = generated(rng)
    found = eliminate(System.of(matrix), random_prime(NARROW_PRIME_BITS, rng.randbytes))
    ranks = [0] + [exact_rank.rank(matrix[: i + 1]) for i in range(len(matrix))]
    assert found.rank == ranks[-1]
    assert found.rows.tolist() == [i for i in range(len(matrix)) if ranks[i + 1] > ranks[i]]
    null = found.null_vectors(3, rng.randbytes)
    assert not any(value % found.prime for value in times(matrix, null))
    assert np.flatnonzero(~null.any(axis=0)).tolist() == exact_rank.determined(matrix)
    targets = np.array([[rng.randrange(found.prime) for _ in found.rows] for _ in range(3)], int)
    solved = found.solve(targets.reshape(3, found.rank))
    block = np.array(matrix, object)[found.rows][:, found.pivots]
    assert not ((solved.astype(object) @ block - targets) % found.prime).any()


@pytest.mark.parametrize(("rows", "columns", "rank"), [(260, 240, 230), (320, 300, 140)])
def test_many_panels_with_vanishing_rows_agree_with_products(
    rows: int, columns: int, rank: int, rng: Random
) -> None:
    """A known rank, past two blocks; rows that depend on others are left out on the way."""
    draw = np.random.default_rng(rng.getrandbits(32))
    combinations = draw.integers(-2, 3, (rows, rank)) @ draw.integers(0, 2, (rank, columns))
    prime = random_prime(NARROW_PRIME_BITS, rng.randbytes)
    found = eliminate(System.of(combinations.tolist()), prime)
    assert found.rank == rank > PANEL_ROWS
    null = found.null_vectors(2, rng.randbytes)
    assert not (combinations @ null.T % prime).any()
    assert np.linalg.matrix_rank(combinations[found.rows].astype(float)) == rank
    targets = draw.integers(0, prime, (5, rank))
    block = combinations[np.ix_(found.rows, found.pivots)].astype(object)
    assert not ((found.solve(targets).astype(object) @ block - targets) % prime).any()


def test_a_subset_of_rows_keeps_the_names_of_the_system() -> None:
    system = System.of([[1, 0, 0], [2, 0, 0], [0, 1, 1], [0, 2, 2]])
    found = eliminate(system, 101, np.array([1, 3]))
    assert found.rows.tolist() == [1, 3]


def test_long_products_are_cut_into_exact_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(0)
    matrix = [[rng.randrange(2) for _ in range(30)] for _ in range(9)]
    found = eliminate(System.of(matrix), 2**23 - 15)
    monkeypatch.setattr(elimination, "_EXACT_TERMS", 7)
    assert not any(value % found.prime for value in times(matrix, found.null_vectors(2)))


def test_the_block_is_exact_in_double_precision_and_a_wider_prime_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 23 bits"):
        eliminate(System.of([[1]]), random_prime(24))
    assert PANEL_ROWS * (2**NARROW_PRIME_BITS) ** 2 + 2**NARROW_PRIME_BITS < 2**53
