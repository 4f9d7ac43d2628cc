from random import Random

import exact_rank
import pytest
from exact_rank import generated

from casemate.exact import Pivot, PivotBasis, Vector, random_prime
from casemate.exact import rank as pivot_basis


def test_threading_equations_through_a_caller_gives_the_same_as_a_system() -> None:
    """What a database does: totals as sums, single coefficients, and one column when asked."""
    rng = Random(3)
    for _ in range(50):
        matrix = generated(rng)
        prime, columns = random_prime(61, rng.randbytes), range(len(matrix[0]))
        prints = [rng.getrandbits(64) for _ in columns]
        basis, kept = PivotBasis(prime), []  # type: PivotBasis, list[list[int]]
        for row in matrix:
            find = finder(row, kept, prints, prime)
            total = sum(a * v for a, v in zip(row, prints, strict=True))
            step = basis.consider(total, [row[j] for j in basis.pivots], find)
            basis.commit(step)
            kept += [row] if step.new else []
        assert sorted(basis.determined) == exact_rank.determined(matrix)


def finder(
    row: list[int], kept: list[list[int]], prints: list[int], prime: int
) -> pivot_basis.FindPivot:
    def find(combination: Vector) -> Pivot:
        weights = [int(y) for y in combination]
        for j, coefficient in enumerate(row):
            made = sum(y * other[j] for y, other in zip(weights, kept, strict=True))
            if (coefficient - made) % prime:
                return Pivot(j, prints[j], coefficient, [other[j] for other in kept])
        raise AssertionError("the caller was asked for a column that does not exist")

    return find


def test_a_wrong_column_from_the_caller_is_refused() -> None:
    basis = PivotBasis(random_prime(61))
    with pytest.raises(ValueError, match="not one in which"):
        basis.consider(5, [], lambda _: Pivot(column=0, fingerprint=5, coefficient=0, kept=[]))


def test_a_stale_step_is_refused() -> None:
    def find(_: Vector) -> Pivot:
        return Pivot(column=0, fingerprint=5, coefficient=1, kept=[])

    basis = PivotBasis(random_prime(61))
    first, second = basis.consider(5, [], find), basis.consider(10, [], find)
    basis.commit(first)
    with pytest.raises(ValueError, match="before another equation"):
        basis.commit(second)
