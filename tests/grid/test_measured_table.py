"""Measured tables as the transcript names them."""

from fractions import Fraction

import numpy as np
import pytest
from grid.small_grid import NAMES, SHAPE, questions
from hypothesis import given
from hypothesis import strategies as st

from casemate.doors import Measured
from casemate.grid import (
    CellClasses,
    MeasuredMarginal,
    MeasuredProduct,
    MeasuredTable,
    Product,
    TableQuestion,
    all_codes,
    coarsest_classes,
)

classes = questions().map(coarsest_classes)


@given(classes, st.booleans(), st.text(max_size=5))
def test_a_table_is_read_back_from_its_name(found: CellClasses, start: bool, about: str) -> None:
    question = TableQuestion(found, start, about)
    assert TableQuestion.from_text(question.text(NAMES), NAMES, SHAPE) == question


def test_whole_codes_are_not_listed() -> None:
    text = TableQuestion(all_codes((0, 2), SHAPE)).text(NAMES)
    assert text == '{"about":"","classes":[null,null],"start":false,"table":["age","ill"]}'


def table(
    found: CellClasses, law: str = "gaussian", scale: Fraction = Fraction(3)
) -> MeasuredTable:
    values = tuple(range(found.cells))
    content = Measured("q", "p", "v", law, scale, values)
    return MeasuredTable.of(TableQuestion(found), content)


@given(classes)
def test_what_is_learnt_of_a_table_adds_up_to_it(found: CellClasses) -> None:
    made = table(found)
    learnt = made.learnt(SHAPE)
    if found.whole:
        (marginal,) = learnt
        assert isinstance(marginal, MeasuredMarginal)
        assert np.array_equal(marginal.values, made.values)
    else:
        assert [each.value for each in learnt if isinstance(each, MeasuredProduct)] == list(
            range(found.cells)
        )
    assert all(each.variance == 9 for each in learnt)


def test_a_product_is_read_as_the_sum_of_its_cells() -> None:
    made = table(all_codes((0, 1), SHAPE))
    product = Product(SHAPE, {0: np.array([True, False, True, False])}, {1: np.array([1.0, 2, 3])})
    reading, weights = made.read([product])
    expected = sum(
        made.values[a, b] * (b + 1) * (a in (0, 2)) for a in range(SHAPE[0]) for b in range(3)
    )
    assert reading == expected and weights.tolist() == [1, 2, 3, 1, 2, 3]


def test_a_table_does_not_answer_what_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="does not have"):
        table(all_codes((0,), SHAPE)).read([Product(SHAPE, {1: np.array([True, False, False])})])
