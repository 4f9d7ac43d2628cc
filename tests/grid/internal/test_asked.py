"""Questions on the grid: equal ones have equal names, and move as far as their cells say."""

from fractions import Fraction

import numpy as np
import pytest
from grid.small_grid import SHAPE, counting
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import GridQuestion, LinearCells, Product, Relation
from casemate.grid.question import MAX_TEXT_CHARACTERS


def mask(*codes: int, size: int) -> np.ndarray:
    return np.isin(np.arange(size), codes)


def union(*products: Product) -> GridQuestion:
    return GridQuestion((LinearCells((products,)),))


def test_a_set_of_cells_has_one_name_however_it_was_cut_into_products() -> None:
    left, right, other, rest = (
        Product(SHAPE, {0: mask(*codes, size=4)}) for codes in ((0, 1), (2,), (0,), (1, 2))
    )
    assert union(left, right).text == union(other, rest).text == union(rest, other).text
    halves = (Product(SHAPE, {0: mask(2, size=4), 2: mask(code, size=2)}) for code in (0, 1))
    assert union(left, *halves).text == union(left, right).text


def test_different_questions_have_different_names() -> None:
    one = counting({0: [0]})
    questions = [
        one,
        counting({0: [1]}),
        counting({1: [0]}),
        counting({}),
        GridQuestion((LinearCells(one.parts[0].cells, Fraction(1, 2)),)),
        GridQuestion(one.parts, together=2),  # proven one by one they do not prove their sum
    ]
    assert len({asked.text for asked in questions}) == 6


def test_a_long_question_is_named_by_a_digest() -> None:
    cell = (Product(SHAPE, {0: mask(0, size=4)}),)
    asked = GridQuestion((LinearCells((cell,) * 200),))
    assert asked.text.startswith("sha256:") and len(asked.text) < MAX_TEXT_CHARACTERS


@given(st.lists(st.integers(-5, 5), min_size=4, max_size=4))
def test_the_span_is_what_one_row_can_add(weights: list[int]) -> None:
    product = Product(SHAPE, {1: mask(0, size=3)}, {0: np.array(weights, np.float64)})
    dense = product.dense()
    assert LinearCells(((product,),)).span == (min(0, dense.min()), max(0, dense.max()))


def test_a_question_nobody_moves_still_has_a_sensitivity() -> None:
    nothing = LinearCells(((Product(SHAPE, {0: mask(size=4)}),),))
    assert nothing.sensitivity(Relation()) == 1
    assert LinearCells(((),)).sensitivity(Relation()) == 1


def test_cells_of_several_products_are_added_up() -> None:
    one, other = (Product(SHAPE, {0: mask(code, size=4)}) for code in (0, 1))
    part = LinearCells(((one, other), (), (one,)))
    assert part.sum_by_cell([1.0, 2.0, 4.0]).tolist() == [3.0, 0.0, 4.0]


@pytest.mark.parametrize("parts", [(), (LinearCells(()),)])
def test_a_question_has_parts_with_cells(parts: tuple[LinearCells, ...]) -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        GridQuestion(parts)
