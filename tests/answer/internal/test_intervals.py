"""What is proven of each number of an answer."""

from fractions import Fraction

import numpy as np
import pytest
from answer.small_dataset import means
from grid.small_grid import SHAPE, counting
from hypothesis import given
from hypothesis import strategies as st

from casemate.answer.budget_plan import plan_of
from casemate.answer.intervals import (
    FailureChances,
    easy_estimates,
    measured_estimates,
    noised_estimate,
)
from casemate.answer.schedule import easy_interval
from casemate.grid import (
    GridQuestion,
    LinearCells,
    MeasuredTable,
    Product,
    Relation,
    TableQuestion,
    all_codes,
)
from casemate.privacy.noise import GaussianLaw, half_width
from casemate.table import Answering

GATE = plan_of(means(), SHAPE, Answering()).gate
LAW = GaussianLaw(Fraction(10))
LEVEL = FailureChances(0.05, 0.001)
COUNT = counting({0: [1]})
SUM = GridQuestion((LinearCells(((Product(SHAPE, {}, {0: np.array([-1.0, 0, 2, 5])}),),)),))


def easy(asked: GridQuestion, value: float, relation: Relation = Relation()) -> tuple[float, ...]:  # noqa: B008 - frozen
    assert GATE is not None
    (((found,),)) = easy_estimates(
        asked,
        [np.array([value])],
        [np.array([3.0])],
        gate=GATE,
        at=7,
        relation=relation,
        confidence=0.95,
    )
    ends = (found.lo, found.hi, found.session_lo, found.session_hi)
    assert found.value == value and found.error == 3.0
    return tuple(float(end) for end in ends if end is not None)


def reaches(people: int) -> tuple[int, int]:
    assert GATE is not None
    alone = easy_interval(GATE, 7, 0.95)
    session = easy_interval(GATE, 7, 1 - 0.05 / 4)
    return (alone + 1) * people - 1, (session + 1) * people - 1


@pytest.mark.parametrize(
    ("asked", "relation", "moves"),
    [
        (COUNT, Relation(), 1),
        (SUM, Relation(), 5),
        (SUM, Relation(True, 2), 12),  # two rows, each from -1 to 5
    ],
)
def test_an_easy_answer_is_within_what_the_gate_lets_pass_times_what_a_person_moves(
    asked: GridQuestion, relation: Relation, moves: int
) -> None:
    alone, session = reaches(moves)
    expected = (1e6 - alone, 1e6 + alone, 1e6 - session, 1e6 + session)
    assert easy(asked, 1e6 + 0.4, relation) == expected


def test_counts_are_not_below_nobody_and_sums_may_be() -> None:
    assert easy(COUNT, 0.0)[0] == 0 == easy(COUNT, 0.0)[2]
    assert easy(SUM, 0.0)[0] < 0


def table(values: list[float]) -> MeasuredTable:
    return MeasuredTable(TableQuestion(all_codes((0,), SHAPE)), np.array(values), LAW)


def measured(guess: float, error: float, reading: float = 100.0) -> tuple[float, float]:
    (((found,),)) = measured_estimates(
        COUNT, table([0, reading, 0, 0]), [np.array([guess])], [np.array([error])], LEVEL
    )
    width = half_width(LAW, [1], 0.95)
    assert (found.lo, found.hi) == (reading - width, reading + width)
    assert found.error is not None
    return found.value, found.error


@pytest.mark.parametrize(
    ("guess", "error", "believed"), [(104.0, 4.0, True), (104.0, 11.0, False), (500.0, 4.0, False)]
)
def test_a_measured_answer_is_the_stand_ins_where_that_is_surer_and_not_contradicted(
    guess: float, error: float, believed: bool
) -> None:
    assert measured(guess, error) == ((guess, error) if believed else (100.0, 10.0))


@given(st.floats(-1e6, 1e6), st.lists(st.integers(-3, 3), min_size=1, max_size=6))
def test_what_was_read_with_noise_is_within_the_quantile_of_all_of_it(
    reading: float, weights: list[int]
) -> None:
    found = noised_estimate(reading, LAW, np.array(weights, np.float64), LEVEL)
    used = [each for each in weights if each]
    width = half_width(LAW, used, 0.95) if used else 0
    assert (found.lo, found.hi) == (reading - width, reading + width)
    assert found.error == pytest.approx(10 * sum(each**2 for each in weights) ** 0.5)


def test_what_everybody_knows_has_no_width() -> None:
    found = noised_estimate(5.0, None, np.ones(4), LEVEL)
    assert (found.lo, found.hi, found.error, found.session_hi) == (5, 5, 0, 5)


def test_later_measurements_and_more_cells_have_a_smaller_chance_to_fail_in_a_session() -> None:
    first, second = (FailureChances.of(COUNT, 0.95, ordinal) for ordinal in (1, 2))
    assert first.alone == second.alone == pytest.approx(0.05)
    assert first.session == pytest.approx(0.05 / 8) and second.session == first.session / 4
    assert sum(FailureChances.of(COUNT, 0.95, j).session for j in range(1, 10_000)) < 0.05 / 4
    pair = GridQuestion((*COUNT.parts, *SUM.parts), together=2)
    assert FailureChances.of(pair, 0.95, 1).alone == pytest.approx(0.025)
    assert FailureChances.of(pair, 0.95, 1).session == first.session / 2
