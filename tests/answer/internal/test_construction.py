"""The online construction: what is charged, what is answered, what a restart finds again."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from answer.small_dataset import means, world
from chance import assert_rate_at_most
from grid.small_grid import SHAPE, counting, people
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.answer.budget_plan import plan_of
from casemate.answer.construction import gate_of
from casemate.grid import Estimate, GridQuestion, LinearCells, Origin, Outcome, Product, Relation
from casemate.table import Answering

CODES = people(20_000)
QUESTIONS = [
    counting({}),
    counting({0: [0]}),
    counting({0: [1, 2], 1: [0]}),
    counting({0: [3], 1: [1, 2], 2: [1]}),
    GridQuestion((LinearCells(((Product(SHAPE, {}, {0: np.arange(4.0)}),),)),)),
]


def parity(number: int) -> np.ndarray:
    """Every two attributes look independent, and all three are not."""
    random = np.random.default_rng(5)
    one, other = random.integers(0, 2, (2, number))
    return np.stack([one, other, one ^ other], axis=1).astype(np.int64)


TWO = (2, 2, 2)
ODD = [counting({0: [a], 1: [b], 2: [c]}, TWO) for a in (0, 1) for b in (0, 1) for c in (0, 1)]


def cell(outcome: Outcome) -> Estimate:
    return outcome.parts[0][0]


# Easy answers ------------------------------------------------------------------------------------


def test_a_good_stand_in_answers_and_only_the_start_and_one_run_are_paid() -> None:
    room = world(CODES, epsilon=20)
    construction = room.construction()
    for asked in QUESTIONS:
        outcome = construction.ask(asked)
        assert outcome.origin is Origin.SURROGATE
        (truth,) = room.cells.exact(asked)[0]
        found = cell(outcome)
        assert found.lo is not None and found.hi is not None
        assert found.lo <= found.value <= found.hi and found.lo <= truth <= found.hi
    spent = room.ledger.spent().amount
    assert spent == room.plan.start_price + room.plan.run_price


# Surprises ---------------------------------------------------------------------------------------


def test_a_surprise_is_measured_and_learnt_and_then_nothing_about_it_is_one() -> None:
    room = world(parity(50_000), shape=TWO, names=("a", "b", "c"))
    construction = room.construction()
    first = construction.ask(ODD[0])
    assert first.origin is Origin.MEASURED
    for asked in ODD[1:]:
        outcome = construction.ask(asked)
        (truth,) = room.cells.exact(asked)[0]
        assert outcome.origin is Origin.SURROGATE
        assert abs(cell(outcome).value - truth) < 1000
    assert construction.stand_in.surprises == {"": 1}
    surprise = room.plan.run_price + room.plan.price_of(room.plan.surprise_law)
    assert room.ledger.spent().amount == room.plan.start_price + surprise + room.plan.run_price


@cache
def errors_and_widths() -> dict[Origin, list[tuple[float, float]]]:
    """How far the truth is from the middle of an interval, and half its width, for each answer."""
    found: dict[Origin, list[tuple[float, float]]] = {Origin.SURROGATE: [], Origin.MEASURED: []}
    for seed in range(80):
        room = world(parity(3000), shape=TWO, names=("a", "b", "c"), seed=seed, epsilon=4)
        construction = room.construction()
        for asked in ODD[:4]:
            outcome = construction.ask(asked)
            number, (truth,) = cell(outcome), room.cells.exact(asked)[0]
            assert number.lo is not None and number.hi is not None
            middle, half = (number.lo + number.hi) / 2, (number.hi - number.lo) / 2
            found[outcome.origin].append((abs(truth - middle), half))
    return found


def misses(share: float, origin: Origin) -> tuple[int, int]:
    """How often the truth is outside so much of the interval, of how many answers of a kind."""
    answers = errors_and_widths()[origin]
    return sum(error > share * half for error, half in answers), len(answers)


def test_intervals_hold_for_easy_and_measured_answers_alike() -> None:
    """False alarm below 1e-9: at most 5 % of each kind may miss."""
    for origin in errors_and_widths():
        missed, trials = misses(1.0, origin)
        assert trials >= 80
        assert_rate_at_most(missed, trials, 0.05)


def test_half_of_a_measured_interval_would_not_hold() -> None:
    """The twin of the test above."""
    with pytest.raises(AssertionError):
        assert_rate_at_most(*misses(0.5, Origin.MEASURED), 0.05)


# The same question -------------------------------------------------------------------------------


def test_an_answer_that_passed_and_was_not_kept_is_made_again_from_the_same_stand_in() -> None:
    room = world(parity(50_000), shape=TWO, names=("a", "b", "c"))
    construction = room.construction()
    construction.start()
    lost = counting({0: [0]}, TWO)
    gate = gate_of(room.plan, room.doors)
    assert gate is not None
    gate.ask(construction._question(lost))  # and then the process died
    expected = construction._outcome_of_verdict(lost, gate.find_answer(lost.text), "")  # type: ignore[arg-type]
    construction.ask(ODD[0])  # a surprise, so that the stand-in moves
    assert room.construction().ask(lost).parts == expected.parts


def test_after_a_change_of_the_budget_a_verdict_proves_what_its_own_noise_proves() -> None:
    room = world(CODES)
    construction = room.construction()
    construction.start()
    asked = counting({0: [0]})
    gate = gate_of(room.plan, room.doors)
    assert gate is not None
    gate.ask(construction._question(asked))  # and then the process died
    expected = construction._outcome_of_verdict(asked, gate.find_answer(asked.text), "")  # type: ignore[arg-type]
    room.plan = plan_of(means(epsilon=50), SHAPE, Answering())
    assert room.construction().ask(asked).parts == expected.parts


# Many questions ----------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(range(len(ODD))), max_size=12))
@settings(max_examples=8)
def test_asking_many_at_once_is_asking_one_after_the_other(order: list[int]) -> None:
    facts: dict[str, Any] = {"shape": TWO, "names": ("a", "b", "c"), "seed": None}
    together, alone = (world(parity(20_000), **facts) for _ in range(2))
    several = [ODD[i] for i in order]
    one = alone.construction()
    expected = [one.ask(asked).parts for asked in several]
    found = together.construction().ask_all(several)
    assert [outcome.parts for outcome in found] == expected
    assert together.ledger.spent() == alone.ledger.spent()


# Other relations and strategies ------------------------------------------------------------------


def test_where_only_private_values_are_protected_public_questions_are_exact_and_free() -> None:
    room = world(CODES, relation=Relation(True, 1, counted=True), public=(0, 1))
    construction = room.construction()
    asked = counting({0: [1, 2], 1: [0]})
    found = cell(construction.ask(asked))
    (truth,) = room.cells.exact(asked)[0]
    assert found.lo == found.hi == found.value == truth
    assert room.ledger.spent().amount == 0
    assert cell(construction.ask(counting({2: [1]}))).lo != found.hi
    table = construction.stand_in.surrogate.marginal((0, 1))
    assert np.allclose(table, room.cells.marginal((0, 1)), atol=0.5)
