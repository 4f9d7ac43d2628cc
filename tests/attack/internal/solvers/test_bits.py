import numpy as np
import pytest
from exact.test_rows import random_rows

from casemate.exact import Floats, Rows, System
from casemate.published.predicates import BitRows, RangeRows


@pytest.mark.parametrize("case", range(6))
def test_passes_over_bits_are_those_over_stored_rows(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    rows, dense = random_rows(rng, plain=True)
    bits = BitRows.of(rows)
    assert (bits.height, bits.width) == dense.shape
    np.testing.assert_allclose(bits.lengths, rows.lengths)
    point, weights = rng.normal(size=rows.width), rng.normal(size=rows.height)
    np.testing.assert_allclose(bits.times(point), dense @ point, atol=1e-11)
    np.testing.assert_allclose(bits.transpose_times(weights), dense.T @ weights, atol=1e-11)


def test_equations_may_be_some_of_the_bits_in_any_order_and_twice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense, slots = rng.integers(0, 2, (130, 50)), np.array([129, 5, 64, 5])
    bits = BitRows(BitRows.of(Rows.of(System.of(dense.tolist()))).words, slots)
    rows = Rows.of(System.of(dense[slots].tolist()))
    point, weights = rng.normal(size=50), rng.normal(size=4)
    np.testing.assert_allclose(bits.times(point), rows.times(point))
    np.testing.assert_allclose(bits.transpose_times(weights), rows.transpose_times(weights))


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


@pytest.mark.parametrize("case", range(6))
def test_passes_are_products_with_the_scaled_matrix(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    ranges, dense = random_ranges(rng)
    assert (ranges.height, ranges.width) == dense.shape
    point, weights = rng.normal(size=ranges.width), rng.normal(size=ranges.height)
    np.testing.assert_allclose(ranges.times(point), dense @ point, atol=1e-12)
    np.testing.assert_allclose(ranges.transpose_times(weights), dense.T @ weights, atol=1e-12)
