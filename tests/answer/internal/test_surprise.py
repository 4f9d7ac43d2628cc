"""What is measured when the gate fires."""

from fractions import Fraction

import numpy as np
import pytest
from grid.small_grid import SHAPE, counting

from casemate.answer.schedule import predicted_error, table_for
from casemate.answer.work_limits import require_answerable
from casemate.errors import Unsupported
from casemate.grid import GridQuestion, LinearCells, Product, Relation, all_codes, coarsest_classes
from casemate.privacy.noise import GaussianLaw

LAW = GaussianLaw(Fraction(10))
ASKED = counting({0: [1, 2], 1: [0]})


def test_the_error_that_is_predicted_is_that_of_the_noise_of_the_cells_read() -> None:
    assert predicted_error(ASKED, all_codes((0, 1), SHAPE), LAW, Relation()) == pytest.approx(
        200**0.5
    )
    assert predicted_error(ASKED, coarsest_classes(ASKED), LAW, Relation()) == pytest.approx(10)


def test_the_error_is_counted_in_what_a_person_moves() -> None:
    added = GridQuestion((LinearCells(((Product(SHAPE, {}, {0: np.array([0.0, 0, 0, 7])}),),)),))
    assert predicted_error(added, all_codes((0,), SHAPE), LAW, Relation()) == pytest.approx(10)
    assert predicted_error(added, all_codes((0,), SHAPE), LAW, Relation(rows=2)) == pytest.approx(5)


def test_the_whole_table_is_taken_where_it_is_good_enough() -> None:
    assert table_for(ASKED, SHAPE, LAW, Relation(), 29) == all_codes((0, 1), SHAPE)
    assert table_for(ASKED, SHAPE, LAW, Relation(), 28) == coarsest_classes(ASKED)


def test_a_table_that_is_too_large_is_not_taken() -> None:
    shape = (2000, 2000)
    asked = counting({0: [1], 1: [1]}, shape)
    assert table_for(asked, shape, LAW, Relation(), 10**9) == coarsest_classes(asked)
    require_answerable(asked)


def test_a_question_that_tells_too_many_apart_is_refused() -> None:
    shape = (2000, 2000)
    weights = {0: np.arange(2000.0), 1: np.arange(2000.0)}
    with pytest.raises(Unsupported, match="ask for fewer groups"):
        require_answerable(GridQuestion((LinearCells(((Product(shape, {}, weights),),)),)))
