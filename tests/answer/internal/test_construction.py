"""The online construction: intervals that hold, and what a restart finds again."""

from functools import cache

import numpy as np
import pytest
from answer.small_dataset import means, world
from chance import assert_rate_at_most
from grid.small_grid import counting

from casemate.answer.budget_plan import plan_of
from casemate.answer.construction import gate_of
from casemate.grid import Estimate, GridQuestion, LinearCells, Origin, Outcome
from casemate.table import Answering


def parity(number: int) -> np.ndarray:
    """Every two attributes look independent, and all three are not."""
    random = np.random.default_rng(5)
    one, other = random.integers(0, 2, (2, number))
    return np.stack([one, other, one ^ other], axis=1).astype(np.int64)


TWO = (2, 2, 2)
ODD = [counting({0: [a], 1: [b], 2: [c]}, TWO) for a in (0, 1) for b in (0, 1) for c in (0, 1)]


@cache
def errors_and_widths() -> dict[Origin, list[tuple[float, float]]]:
    """How far the truth is from the middle of an interval, and half its width, for each answer."""
    found: dict[Origin, list[tuple[float, float]]] = {Origin.SURROGATE: [], Origin.MEASURED: []}
    for seed in range(80):
        room = world(parity(3000), shape=TWO, names=("a", "b", "c"), seed=seed, epsilon=4)
        construction = room.construction()
        for asked in ODD[:4]:
            outcome = construction.ask(asked)
            number, (truth,) = outcome.parts[0][0], room.cells.exact(asked)[0]
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


def test_two_fifths_of_a_measured_interval_would_not_hold() -> None:
    """The twin of the test above."""
    with pytest.raises(AssertionError):
        assert_rate_at_most(*misses(0.4, Origin.MEASURED), 0.05)


# Lost and made again -----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, 50.0])
def test_an_answer_that_passed_and_was_not_kept_is_made_again_as_it_was(epsilon: float) -> None:
    """From the stand-in and with the noise that it passed by, whatever came since."""
    room = world(parity(50_000), shape=TWO, names=("a", "b", "c"))
    both = tuple(each.parts[0].cells[0][0] for each in ODD[:2])
    lost = GridQuestion((LinearCells((both,)),))  # of three attributes, and no surprise
    construction, gate = room.construction(), gate_of(room.plan, room.doors)
    construction.start()
    assert gate is not None
    gate.ask(construction._question(lost))  # and then the process died
    expected = construction._outcome_of_verdict(lost, gate.find_answer(lost.text), "")  # type: ignore[arg-type]
    construction.ask(ODD[0])  # a surprise, so that the stand-in moves
    room.plan = plan_of(means(epsilon), TWO, Answering())
    assert room.construction().ask(lost).parts == expected.parts


def test_of_two_answers_to_one_question_the_first_is_kept() -> None:
    construction = world(parity(100), shape=TWO, names=("a", "b", "c")).construction()
    one, other = (Outcome(((Estimate(value),),), Origin.SURROGATE) for value in (1.0, 2.0))
    assert construction.keep("asked", one).parts == one.parts
    assert construction.keep("asked", other).parts == one.parts, "another process was first"
