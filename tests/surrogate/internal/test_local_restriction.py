"""What measurements say about a few attributes alone."""

import numpy as np
import pytest

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product
from casemate.surrogate.local import narrowed, restricted

SHAPE = (2, 3, 4)


def table(scope: tuple[int, ...], variance: float, shift: float = 0.0) -> MeasuredMarginal:
    widths = [SHAPE[a] for a in scope]
    values: Floats = np.arange(float(np.prod(widths))).reshape(widths) + shift
    return MeasuredMarginal(Marginal(scope), values, variance)


def tables(found: list[Measurement]) -> dict[tuple[int, ...], MeasuredMarginal]:
    return {one.marginal.scope: one for one in found if isinstance(one, MeasuredMarginal)}


def test_a_table_is_summed_over_what_is_not_asked_and_its_noise_adds_up() -> None:
    (found,) = restricted([table((0, 1, 2), 5.0)], (1, 2))
    assert isinstance(found, MeasuredMarginal)
    assert found.marginal.scope == (0, 1)  # the axes of the scope
    assert np.array_equal(found.values, table((0, 1, 2), 5.0).values.sum(axis=0))
    assert found.variance == 10


def test_tables_that_become_the_same_are_their_mean_by_variance() -> None:
    (found,) = restricted([table((0, 1), 1.0), table((0, 1), 3.0, shift=8.0)], (0, 1))
    assert isinstance(found, MeasuredMarginal)
    assert found.values == pytest.approx(table((0, 1), 1.0, shift=2.0).values)
    assert found.variance == pytest.approx(0.75)
    (exact,) = restricted([table((0, 1), 0.0), table((0, 1), 3.0, shift=8.0)], (0, 1))
    assert exact == table((0, 1), 0.0)


def test_what_is_part_of_another_table_of_its_kind_is_left_out() -> None:
    found = tables(restricted([table((0,), 1.0), table((0, 1), 1.0), table((1, 2), 1.0)], (0, 1)))
    assert found.keys() == {(0, 1)}
    both = [table((0, 1, 2), 1.0), table((0, 1), 1.0)]
    assert tables(restricted(both, (0, 1, 2))).keys() == {(0, 1, 2), (0, 1)}


def test_questions_inside_the_scope_are_renumbered_and_others_left_out() -> None:
    inside = Product(SHAPE, {2: np.arange(4) < 2}, {1: np.arange(3.0)})
    outside = Product(SHAPE, {0: np.array([True, False])})
    asked: list[Measurement] = [
        MeasuredProduct(inside, 4.0, 1.0),
        MeasuredProduct(outside, 4.0, 1.0),
    ]
    (found,) = restricted(asked, (1, 2))
    assert isinstance(found, MeasuredProduct)
    assert found.product == narrowed(inside, (1, 2))
    assert found.product == Product((3, 4), {1: np.arange(4) < 2}, {0: np.arange(3.0)})
