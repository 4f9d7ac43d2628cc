"""Tables of classes: the coarsest that answers a question, read as exactly as the whole."""

import numpy as np
import pytest
from grid.small_grid import SHAPE, cells_of, counting, people
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import (
    Classes,
    GridQuestion,
    LinearCells,
    Product,
    all_codes,
    coarsest_classes,
    contract,
)
from casemate.grid.question import merge_codes

CODES = people(200)


@st.composite
def questions(draw: st.DrawFn) -> GridQuestion:
    def product() -> Product:
        scope = draw(st.sets(st.integers(0, 2)))
        masks = {
            a: np.array(draw(st.lists(st.booleans(), min_size=SHAPE[a], max_size=SHAPE[a])))
            for a in scope
        }
        weighed = draw(st.sampled_from([None, 0, 1, 2]))
        weights = {}
        if weighed is not None:
            size = SHAPE[weighed]
            weights = {
                weighed: np.array(
                    draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size)), np.float64
                )
            }
        return Product(SHAPE, masks, weights)

    cells = tuple((product(),) for _ in range(draw(st.integers(1, 3))))
    return GridQuestion((LinearCells(cells),))


@given(questions())
def test_the_coarsest_table_answers_the_question_exactly(asked: GridQuestion) -> None:
    cells, classes = cells_of(CODES), coarsest_classes(asked)
    table = np.array(cells.class_counts(classes)).reshape(classes.sizes)
    read = [
        sum(float(contract(table, classes.factors(product))) for product in cell)
        for cell in asked.parts[0].cells
    ]
    assert read == cells.exact(asked)[0]
    assert classes.answers(asked)
    assert all_codes(asked.scope, SHAPE).answers(asked)


@given(questions(), questions())
def test_a_table_that_says_it_answers_a_question_does(
    asked: GridQuestion, other: GridQuestion
) -> None:
    classes = coarsest_classes(other)
    able = True
    try:
        for product in asked.parts[0].products:
            classes.factors(product)
    except ValueError:
        able = False
    assert able or not classes.answers(asked)


@given(questions())
def test_the_cells_of_a_table_are_products_apart_that_make_up_everything(
    asked: GridQuestion,
) -> None:
    classes = coarsest_classes(asked)
    dense = [product.dense() for product in classes.products(SHAPE)]
    assert np.array_equal(np.sum(dense, axis=0), np.ones(24)) and len(dense) == classes.cells


def test_a_product_that_cuts_a_class_cannot_be_read() -> None:
    classes = coarsest_classes(counting({0: [0, 1]}))
    assert classes.labels == ((0, 0, 1, 1),)
    with pytest.raises(ValueError, match="cuts a class"):
        classes.factors(counting({0: [0]}).parts[0].products[0])
    with pytest.raises(ValueError, match="does not have"):
        classes.factors(counting({1: [0]}).parts[0].products[0])


def test_codes_of_a_class_are_added_up() -> None:
    table = np.arange(12).reshape(4, 3)
    classes = Classes((0, 1), ((0, 1, 0, 1), (0, 0, 1)))
    assert merge_codes(table, classes).tolist() == [
        [0 + 1 + 6 + 7, 2 + 8],
        [3 + 4 + 9 + 10, 5 + 11],
    ]
