import numpy as np
import pytest

from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Floats
from casemate.published.predicates import RangeRows


def random_ranges(rng: np.random.Generator) -> tuple[RangeRows, Floats]:
    """Ranges of up to 40 unknowns in some order, some of them empty, and as a scaled matrix."""
    width, height = int(rng.integers(1, 40)), int(rng.integers(1, 60))
    first, last = np.sort(rng.integers(0, width + 1, (2, height)), axis=0)
    order = rng.permutation(width)
    dense = np.zeros((height, width))
    for i in range(height):
        dense[i, order[first[i] : last[i]]] = 1
    lengths = np.sqrt(np.maximum(dense.sum(axis=1), 1))
    return RangeRows(order, first, last), dense / lengths[:, None]


@pytest.mark.parametrize("case", range(40))
def test_passes_are_products_with_the_scaled_matrix(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    ranges, dense = random_ranges(rng)
    assert (ranges.height, ranges.width) == dense.shape
    point, weights = rng.normal(size=ranges.width), rng.normal(size=ranges.height)
    np.testing.assert_allclose(ranges.times(point), dense @ point, atol=1e-12)
    np.testing.assert_allclose(ranges.transposed(weights), dense.T @ weights, atol=1e-12)


def test_twenty_thousand_ranges_of_as_many_values_are_solved(seed: int) -> None:
    """Stored, these would be 130 million entries."""
    rng, size = np.random.default_rng(seed), 20_000
    first, last = np.sort(rng.integers(0, size + 1, (2, size)), axis=0)
    ranges = RangeRows(np.arange(size), first, last)
    truth = rng.integers(0, 200, size).astype(np.float64)
    right = ranges.times(truth) * ranges.lengths
    assert least_squares(ranges, right, tolerance=1e-3, most=200).converged
