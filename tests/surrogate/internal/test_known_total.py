"""The number of records: what sharpens it, and what is about another grid."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product
from casemate.surrogate.protocol import KnownTotal, check_grid, checked_shape
from casemate.surrogate.replay import DenseSurrogate

SHAPE = (2, 3)
HALF = Product(SHAPE, {0: np.array([True, False])})


def measurement(kind: str, value: float, variance: float) -> Measurement:
    """A total, a part of it, or a table."""
    if kind == "m":
        return MeasuredMarginal(Marginal((0, 1)), np.full(SHAPE, value / 6), variance)
    return MeasuredProduct(HALF if kind == "p" else Product(SHAPE, {}), value, variance)


@given(
    st.floats(0, 1e6),
    st.sampled_from([0.0, 1.0, 50.0, math.inf]),
    st.lists(
        st.tuples(st.sampled_from("tpm"), st.floats(-100, 1e6), st.floats(1, 1e4)), max_size=4
    ),
)
def test_it_is_the_total_of_the_dense_stand_in(
    value: float, variance: float, steps: list[tuple[str, float, float]]
) -> None:
    total, dense = KnownTotal(value, variance), DenseSurrogate(SHAPE, value, variance)
    for kind, measured, noise in steps:
        total.count(measurement(kind, measured, noise))
        dense.update(measurement(kind, measured, noise))
    assert total.records == dense.total


def test_another_grid_is_refused() -> None:
    check_grid(SHAPE, MeasuredProduct(HALF, 1.0, 1.0))
    check_grid(SHAPE, MeasuredMarginal(Marginal((1,)), np.ones(3), 1.0))
    with pytest.raises(ValueError, match="not about the grid"):
        check_grid((2, 4), MeasuredProduct(HALF, 1.0, 1.0))
    with pytest.raises(ValueError, match="not about the grid"):
        check_grid(SHAPE, MeasuredMarginal(Marginal((0,)), np.ones(3), 1.0))


def test_a_grid_has_attributes_and_each_has_codes() -> None:
    assert checked_shape((3, 4)) == (3, 4)
    for empty in [(), (3, 0)]:
        with pytest.raises(ValueError, match="at least one code"):
            checked_shape(empty)
