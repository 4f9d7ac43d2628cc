import numpy as np
import pytest
from exact.test_rows import random_rows

from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Rows, System
from casemate.published.predicates import BitRows


@pytest.mark.parametrize("case", range(30))
def test_passes_over_bits_are_those_over_stored_rows(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    rows, dense = random_rows(rng, plain=True)
    bits = BitRows.of(rows)
    assert (bits.height, bits.width) == dense.shape
    np.testing.assert_allclose(bits.lengths, rows.lengths)
    point, weights = rng.normal(size=rows.width), rng.normal(size=rows.height)
    np.testing.assert_allclose(bits.times(point), dense @ point, atol=1e-11)
    np.testing.assert_allclose(bits.transposed(weights), dense.T @ weights, atol=1e-11)


def test_equations_may_be_some_of_the_bits_in_any_order_and_twice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense, slots = rng.integers(0, 2, (130, 50)), np.array([129, 5, 64, 5])
    bits = BitRows(BitRows.of(Rows.of(System.of(dense.tolist()))).words, slots)
    rows = Rows.of(System.of(dense[slots].tolist()))
    point, weights = rng.normal(size=50), rng.normal(size=4)
    np.testing.assert_allclose(bits.times(point), rows.times(point))
    np.testing.assert_allclose(bits.transposed(weights), rows.transposed(weights))


def test_least_squares_does_not_care_how_equations_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (300, 100))
    rows, right = Rows.of(System.of(dense.tolist())), dense @ rng.normal(size=100)
    stored, bits = (least_squares(each, right, tolerance=1e-9) for each in (rows, BitRows.of(rows)))
    np.testing.assert_allclose(stored.values, bits.values, atol=1e-7)


def test_other_coefficients_than_one_are_refused() -> None:
    with pytest.raises(ValueError, match="all 1"):
        BitRows.of(Rows.of(System.of([[2]])))
