"""Unions of products: the same cells as the slow way has, and none of them twice."""

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.query.snapping import Bits, Product
from casemate.query.snapping.snapping import apart, meet, trimmed, without

SHAPE = (3, 2, 4)


def masks(place: int) -> st.SearchStrategy[Bits]:
    cells = st.lists(st.booleans(), min_size=SHAPE[place], max_size=SHAPE[place])
    return cells.map(lambda chosen: np.array(chosen, np.bool_))


products: st.SearchStrategy[Product] = st.sets(st.sampled_from(range(3))).flatmap(
    lambda places: st.fixed_dictionaries({place: masks(place) for place in places})
)
some = products.map(trimmed).filter(lambda each: each is not None)


def dense(product: Mapping[int, Bits] | None) -> np.ndarray:
    """Every cell of the grid, in or out."""
    inside = np.full(SHAPE, product is not None)
    for place, mask in (product or {}).items():
        shape = [-1 if axis == place else 1 for axis in range(3)]
        inside = inside & mask.reshape(shape)
    return inside


@given(products)
def test_trimming_changes_no_cell(product: Product) -> None:
    assert (dense(trimmed(product)) == dense(product)).all()
    assert (trimmed(product) is None) == (not dense(product).any())


@given(some, some)
def test_meet_and_without_are_those_of_sets(left: Product, right: Product) -> None:
    assert (dense(meet(left, right)) == dense(left) & dense(right)).all()
    rest = sum((dense(each).astype(int) for each in without(left, right)), np.zeros(SHAPE, int))
    assert (rest == (dense(left) & ~dense(right))).all()


@given(st.lists(some, max_size=4))
def test_products_made_apart_are_the_same_union_once(union: list[Product]) -> None:
    found = apart(union, most=1000)
    assert found is not None
    times = sum((dense(each).astype(int) for each in found), np.zeros(SHAPE, int))
    once = sum((dense(each) for each in union), np.zeros(SHAPE, np.bool_))
    assert (times == once).all()


def test_too_many_products_are_not_made() -> None:
    first = {place: np.arange(SHAPE[place]) == 0 for place in range(3)}
    last = {place: np.arange(SHAPE[place]) == SHAPE[place] - 1 for place in range(3)}
    assert apart([first, last], most=2) is not None
    assert apart([first, last], most=1) is None
