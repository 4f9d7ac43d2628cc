"""Questions as products, their simplest form, and through a transcript."""

import itertools
import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Marginal, MeasuredMarginal, MeasuredProduct, Product

SHAPE = (2, 3, 4)
numbers = st.floats(-8, 8, width=16)


@st.composite
def products(draw: st.DrawFn) -> Product:
    masks, weights = {}, {}
    for attribute, width in enumerate(SHAPE):
        if draw(st.booleans()):
            masks[attribute] = np.array(
                draw(st.lists(st.booleans(), min_size=width, max_size=width))
            )
        if draw(st.integers(0, 3)) == 0:
            weights[attribute] = np.array(draw(st.lists(numbers, min_size=width, max_size=width)))
    return Product(SHAPE, masks, weights)


@given(products())
def test_each_cell_counts_as_the_product_of_its_factors(product: Product) -> None:
    cells = itertools.product(*map(range, SHAPE))
    slow = [
        float(np.prod([product.factor(axis)[code] for axis, code in enumerate(cell)]))
        for cell in cells
    ]
    assert product.dense().tolist() == slow
    assert product.size == len(slow)


@given(products())
def test_only_the_scope_matters(product: Product) -> None:
    for attribute in set(range(3)) - set(product.scope):
        assert (product.factor(attribute) == 1).all()
    assert product.over(product.scope).size == np.prod([SHAPE[a] for a in product.scope])


def test_a_question_is_the_same_however_it_is_written() -> None:
    mask = np.array([True, False, True])
    plain = Product(SHAPE, {1: mask})
    others = [
        Product(SHAPE, {1: mask, 0: np.array([True, True])}),
        Product(SHAPE, {}, {1: np.array([1.0, 0.0, 1.0])}),
        Product(SHAPE, {1: mask}, {1: np.array([1.0, 5.0, 1.0]), 2: np.ones(4)}),
    ]
    assert all(other == plain and hash(other) == hash(plain) for other in others)
    assert plain.counts and plain.scope == (1,)
    weighted = Product(SHAPE, {1: mask}, {1: np.array([2.0, 3.0, 4.0])})
    assert weighted != plain and not weighted.counts
    assert weighted.factor(1).tolist() == [2, 0, 4]


@pytest.mark.parametrize(
    ("mask", "ranges"),
    [
        ([True, True, False, False], ((0, 2),)),
        ([False, False, True, False], ((2, 3),)),
        ([True, False, True, False], None),
        ([False, False, False, False], ((0, 0),)),
    ],
)
def test_ranges_are_seen_where_a_mask_is_one_run(
    mask: list[bool], ranges: tuple[tuple[int, int], ...] | None
) -> None:
    assert Product(SHAPE, {2: np.array(mask)}).ranges == ranges
    assert Product(SHAPE, {2: np.array(mask)}, {0: np.array([0.5, 1.0])}).ranges is None


@given(products())
def test_a_product_comes_back_from_a_transcript(product: Product) -> None:
    assert Product.from_dict(json.loads(json.dumps(product.to_dict()))) == product


def test_what_was_measured_cannot_be_changed_nor_by_the_callers_array() -> None:
    values, mask, weight = np.array([1.0, 2.0]), np.array([True, False]), np.array([0.5, 1.0])
    measured = MeasuredMarginal(Marginal((0,)), values, 1.0)
    product = Product((2, 2), {0: mask}, {1: weight})
    values[0], mask[0], weight[0] = 9, False, 9
    assert measured.values.tolist() == [1, 2]
    assert product.dense().tolist() == [0.5, 1, 0, 0]
    for array in (measured.values, product.masks[0], product.weights[1]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Product(SHAPE, {3: np.array([True])}), "none of the 3"),
        (lambda: Product(SHAPE, {1: np.array([True, False])}), "3 finite numbers"),
        (lambda: Product(SHAPE, {}, {0: np.array([np.nan, 1.0])}), "finite"),
        (lambda: Marginal((2, 1)), "in order"),
        (lambda: MeasuredMarginal(Marginal((0, 1)), np.ones(2), 1.0), "as many axes"),
        (lambda: MeasuredProduct(Product(SHAPE, {}), 3.0, -1.0), "variance"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
