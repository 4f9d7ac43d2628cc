"""The privacy loss of each door as shipped, with ledger, crash and retry.

Two neighbouring tables hold 0 or 1 people. Every combination of random draws is pushed through the
real door, with a crash between any two steps of the first life, and everything that left in either
life is the outcome. The bounds are certified: nothing is sampled. Both doors together, under a
whole conversation, are in the tests of the construction that asks them.
"""

from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from bit_tree import walk
from crashes import Clock, Crash
from doors.doorway import asking, in_memory, magnitude_gate, real
from doors.draw_tree import Walked, at_least, excess, walk_draws
from noises import Scripted
from oracles.sparse_vector_loss import RunLaw, RunOutput

from casemate.doors import MemorySecrets
from casemate.privacy.mechanisms import Calibration
from casemate.privacy.noise import LaplaceLaw, Noise

ONE = Fraction(1)


# Two-sided bounds -------------------------------------------------------------------------------


def between(
    program: Callable[[int], Walked], epsilon: Fraction, delta: float
) -> tuple[float, float]:
    """A lower bound on epsilon, and an upper bound on delta at the epsilon that was charged."""
    tables = [program(people) for people in (0, 1)]
    pairs = [(tables[0], tables[1]), (tables[1], tables[0])]
    lower = max(at_least(*pair) for pair in pairs)
    upper = max(excess(*pair, epsilon) for pair in pairs)
    print(f"epsilon >= {lower:.4f}; delta <= {upper:.2g} at epsilon {float(epsilon):.4f} charged")
    assert upper <= delta, "more was lost than was charged"
    return lower, upper


# A measurement, a crash, a retry ----------------------------------------------------------------


def measured(people: int, noise: Noise, last: int | None, careless: bool) -> Hashable:
    """All that left of one measurement in two lives."""
    doorway, sent, clock = in_memory(epsilon=ONE), list[int](), Clock(last)
    run = doorway.transcript.run

    def told(work: Callable[[Any], Any]) -> Any:
        """The mistake: sent before it is durable."""

        def early(book: Any) -> Any:
            entry = work(book)
            sent.append(entry.content.values[0])
            clock.tick()
            return entry

        return run(early)

    doorway.transcript.run = told if careless else clock.around(run)  # type: ignore[method-assign]  # a step
    doorway.ledger.charge = clock.around(doorway.ledger.charge)  # type: ignore[method-assign]  # a step
    stepped: Noise = clock.around(noise)
    for _ in range(2):
        try:
            door = doorway.measurement(stepped)
            found = door.measure("people", lambda: [people], cells=1, law=LaplaceLaw(ONE))
        except Crash:
            continue
        sent.append(found.values[0])
    assert doorway.ledger.spent().amount == 1
    return tuple(dict.fromkeys(sent)) if not careless else tuple(sent)


def draws_of_one(people: int, last: int | None, careless: bool = False) -> Walked:
    return walk_draws(lambda noise: measured(people, noise, last, careless), reach=8)


@pytest.mark.parametrize("last", [None, *range(6)])
def test_a_measurement_with_a_crash_and_a_retry_loses_what_was_charged(last: int | None) -> None:
    """The moments: around the charge, around the transaction, and around the draw inside it."""
    lower, _ = between(lambda people: draws_of_one(people, last), ONE, delta=0.001)
    assert lower > 0.99, "the bounds are true but say nothing"


def test_the_test_above_would_notice_a_second_draw_after_the_first_was_sent() -> None:
    tables = [draws_of_one(people, 4, careless=True) for people in (0, 1)]
    assert at_least(tables[0], tables[1]) > 1.9


def test_the_whole_tree_of_bits_says_the_same() -> None:
    """With no law from anywhere else: every string of twelve bits, and what it leaves open."""

    def walked(people: int) -> Walked:
        return walk(lambda bits: measured(people, real(bits), 2, False), depth=12)

    lower, _ = between(walked, ONE, delta=0.25)
    assert lower > 0.5


# Restarts between all questions -----------------------------------------------------------------

WIDE = Calibration(Fraction(2), Fraction(5, 2))
QUESTIONS = 8
OVER = 6  # the value less its threshold, so that an easy answer is rare and tells tables apart


def drawn_over_restarts(forget: bool) -> tuple[list[Fraction], Fraction]:
    """The scales drawn when a new gate asks each question, and what the ledger was charged."""
    doorway, noise = in_memory(), Scripted()
    for number in range(QUESTIONS):
        if forget:  # the mistake: a threshold drawn again at each restart, for the same charge
            doorway.secrets, doorway.names = MemorySecrets(), count()
        magnitude_gate(doorway, noise, WIDE, top=10).ask(asking(f"q{number}", 0))
    return noise.scales, doorway.ledger.spent().amount


def loss_of_easy_answers(runs: list[int]) -> tuple[float, float]:
    """Enclose the loss when every question is easy on both of two neighbours.

    `runs` are the numbers of questions that share one threshold; their laws are independent.
    """
    low = high = 0.0
    for length in runs:
        law = RunLaw(WIDE.threshold, WIDE.query, length, OVER + 1)
        here, there = (
            law.log_probability(RunOutput((over,) * length)) for over in (OVER, OVER + 1)
        )
        low, high = low + here.lower - there.upper, high + here.upper - there.lower
    return low, high


def runs_in(drawn: list[Fraction]) -> list[int]:
    """How many comparisons follow each draw of a threshold."""
    text = "".join("t" if scale == WIDE.threshold else "q" for scale in drawn)
    return [len(run) for run in text.split("t")[1:]]


def test_with_restarts_between_all_questions_one_threshold_serves_one_charge() -> None:
    drawn, charged = drawn_over_restarts(forget=False)
    assert runs_in(drawn) == [QUESTIONS]
    low, high = loss_of_easy_answers(runs_in(drawn))
    assert 0.3 < low <= high <= charged == WIDE.epsilon


def test_the_test_above_would_notice_a_threshold_drawn_again_at_each_restart() -> None:
    drawn, charged = drawn_over_restarts(forget=True)
    assert runs_in(drawn) == [1] * QUESTIONS
    low, _ = loss_of_easy_answers(runs_in(drawn))
    assert low > charged == WIDE.epsilon
