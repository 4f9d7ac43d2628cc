"""The gate and its questions: what leaves, what it costs, and what becomes of its secret."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors.doorway import (
    FACTS,
    TENTH,
    Doorway,
    asking,
    in_file,
    in_memory,
    real,
    unreadable_question,
)
from hypothesis import given
from hypothesis import strategies as st
from noises import Scripted
from numpy.typing import NDArray

from casemate.doors import (
    Easy,
    GatePart,
    GateQuestion,
    Hard,
    MemorySecrets,
    SecretFile,
    on_grid,
    open_transcript,
)
from casemate.doors.transcript import IN_MEMORY
from casemate.errors import (
    BudgetExhausted,
    PositivesSpent,
    Refused,
    ScanFailed,
    TranscriptDamaged,
)
from casemate.privacy.ledger import open_ledger
from casemate.privacy.mechanisms import Calibration, GapSparseVector, Positive, Side
from casemate.privacy.noise import seeded_bits

cells = st.integers(-(10**12), 10**12)
sensitivities = st.fractions(min_value=Fraction(1, 50), max_value=10**6)
pairs = st.lists(st.tuples(cells, cells), min_size=1, max_size=5)
statements = st.lists(st.tuples(pairs, sensitivities), min_size=1, max_size=3)
units = st.integers(1, 16)


def question(statement: list[tuple[list[tuple[int, int]], Fraction]]) -> GateQuestion:
    parts = tuple(GatePart(tuple(h for _, h in pair), scale) for pair, scale in statement)
    return GateQuestion("q", parts, lambda: [[f for f, _ in pair] for pair, _ in statement])


@given(statements, units)
def test_the_deviation_is_the_largest_scaled_one_rounded_down(
    statement: list[tuple[list[tuple[int, int]], Fraction]], to_one: int
) -> None:
    found = question(statement).deviation(to_one)
    scaled = [(f - h) / scale * to_one for pair, scale in statement for f, h in pair]
    assert found.short == math.floor(max(scaled))
    assert found.over == math.floor(max(-s for s in scaled))
    assert found.magnitude == math.floor(max(map(abs, scaled)))


@given(statements, units, st.data())
def test_between_neighbours_a_deviation_moves_by_at_most_its_units(
    statement: list[tuple[list[tuple[int, int]], Fraction]], to_one: int, data: st.DataObject
) -> None:
    """Every cell may move, each by at most its sensitivity, in either direction."""
    neighbour = [
        (
            [
                (f + data.draw(st.integers(-math.floor(scale), math.floor(scale))), h)
                for f, h in pair
            ],
            scale,
        )
        for pair, scale in statement
    ]
    one, other = question(statement).deviation(to_one), question(neighbour).deviation(to_one)
    assert abs(one.short - other.short) <= to_one
    assert abs(one.over - other.over) <= to_one
    assert abs(one.magnitude - other.magnitude) <= to_one


def test_rounding_a_difference_half_to_even_moves_by_two() -> None:
    """The twin: what the test above would notice if a deviation were rounded that way."""
    assert round(Fraction(3, 2)) - round(Fraction(1, 2)) == 2
    assert math.floor(Fraction(3, 2)) - math.floor(Fraction(1, 2)) == 1


@given(st.lists(st.floats(-1e9, 1e9), max_size=5), st.sampled_from([Fraction(1), Fraction(1, 8)]))
def test_answers_on_the_grid_are_within_half_a_step(answers: list[float], step: Fraction) -> None:
    for answer, whole in zip(answers, on_grid(answers, step), strict=True):
        assert abs(Fraction(answer) - whole * step) <= step / 2


def test_no_repr_shows_a_deviation_or_a_scan() -> None:
    asked = GateQuestion("q", (GatePart((4711,)),), lambda: [[815]])
    assert "3896" not in repr(asked.deviation()) and "815" not in repr(asked)
    assert repr(asked.deviation()) == "Deviation()"


def test_a_question_without_cells_or_with_a_useless_sensitivity_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        GatePart(())
    with pytest.raises(ValueError, match="at least one part"):
        GateQuestion("q", (), list)
    for bad in (0, Fraction(-1), 0.5):
        with pytest.raises(ValueError, match="positive rational"):
            GatePart((1,), bad)  # type: ignore[arg-type]  # the mistake itself
    with pytest.raises(TypeError):
        GatePart((0.5,))  # type: ignore[arg-type]  # a stand-in that is not on the grid


streams = st.lists(st.integers(-30, 30), max_size=12)


@pytest.fixture
def doorway() -> Doorway:
    return in_memory()


# Answers ----------------------------------------------------------------------------------------


def test_a_good_stand_in_is_easy_and_a_bad_one_is_hard_with_its_sign_and_reading(
    doorway: Doorway,
) -> None:
    gate = doorway.gate()
    assert gate.ask(asking("q1", 100, 91)) == Easy("q1", "a1b2", "v1", "r0", 1, 10, -1)
    over = gate.ask(asking("q2", 100, 117))
    assert over == Hard("q2", "a1b2", "v1", "r0", 2, 10, -1, sign=-1, gap=7)
    assert isinstance(over, Hard) and over.reading == 17
    assert doorway.secrets.read() is None, "the noise of a run that ended is wiped"
    assert gate.ask(asking("q3", 100, 90)) == Hard("q3", "a1b2", "v1", "r1", 3, 10, -1, 1, 0)
    assert doorway.kinds == ["opened", "easy", "hard", "opened", "hard"]


def test_a_statement_is_one_question_about_its_largest_scaled_deviation(doorway: Doorway) -> None:
    count, total = GatePart((5, 5, 5)), GatePart((1000,), Fraction(200, 3))
    gate = doorway.gate(side=Side.MAGNITUDE)
    assert not isinstance(
        gate.ask(GateQuestion("q1", (count, total), lambda: [[14, 0, 5], [1666]])), Hard
    )
    hard = gate.ask(GateQuestion("q2", (count, total), lambda: [[5, 5, 5], [1000 - 734]]))
    assert isinstance(hard, Hard) and (hard.sign, hard.reading) == (0, 11)


def test_the_threshold_is_the_schedule_at_the_question_s_number_over_all_runs_and_restarts(
    doorway: Doorway,
) -> None:
    for at, value in enumerate([0, 99, 0, 0, 99], start=1):
        answer = doorway.gate(schedule=lambda i: 7 * i).ask(asking(f"q{at}", value))
        assert (answer.at, answer.threshold) == (at, 7 * at)


@given(streams, st.integers(0, 2**32), st.booleans())
def test_with_restarts_between_all_questions_it_is_the_sparse_vector(
    values: list[int], seed: int, restart: bool
) -> None:
    """The same bits through GapSparseVector, which never restarts, give the same answers."""
    doorway, noise = in_memory(), real(seeded_bits(seed))
    gate = doorway.gate(noise, runs=3)
    slow = GapSparseVector(TENTH, 3, real(seeded_bits(seed)))
    for number, value in enumerate(values):
        if slow.closed:
            with pytest.raises(PositivesSpent):
                gate.ask(asking(f"q{number}", value))
            break
        answer = gate.ask(asking(f"q{number}", value))
        expected = slow.ask(value, 10, Side.EITHER)
        got = Positive(answer.sign, answer.gap) if isinstance(answer, Hard) else None
        assert got == expected
        gate = doorway.gate(noise, runs=3) if restart else gate
    assert len(doorway.charges) == slow.opened == gate.opened


def test_the_same_question_again_is_free_identical_and_reads_nothing(doorway: Doorway) -> None:
    gate = doorway.gate(Scripted(3, 1, 4, 1, 5))
    first = [gate.ask(asking("q1", 0)), gate.ask(asking("q2", 50))]
    before = doorway.charges
    again = doorway.gate(Scripted(9, 9, 9))
    assert [again.ask(unreadable_question(t)) for t in ("q1", "q2")] == first
    assert [again.find_answer(t) for t in ("q1", "q2", "q3")] == [*first, None]
    assert doorway.charges == before


# Paying -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "price"), [(0, TENTH.epsilon), (Fraction(1, 10**6), TENTH.epsilon**2 / 2)]
)
def test_a_run_is_charged_before_its_first_comparison_and_once(
    delta: Fraction, price: Fraction
) -> None:
    """In zCDP it costs half its square."""
    doorway = in_memory(delta=Fraction(delta))

    def watched(scale: Fraction, size: int) -> NDArray[Any]:
        assert doorway.charges == ["gate run r0"], "a draw before its charge"
        return np.zeros(size, int)

    for number in range(5):
        doorway.gate(watched).ask(asking(f"q{number}", 0), principal="ann")
    assert doorway.ledger.spent("ann").amount == price == doorway.ledger.spent().amount


def test_the_runs_are_limited_and_old_answers_stay(doorway: Doorway) -> None:
    gate = doorway.gate(runs=2)
    answers = [gate.ask(asking(f"q{n}", 50)) for n in range(2)]
    with pytest.raises(PositivesSpent, match="2 positive answers"):
        gate.ask(unreadable_question("q2"))
    assert [gate.ask(asking(f"q{n}", 50)) for n in range(2)] == answers
    assert len(doorway.charges) == 2


def test_an_empty_budget_opens_no_run_and_draws_nothing() -> None:
    doorway = in_memory(epsilon=Fraction(1, 20))
    noise = Scripted()
    for _ in range(2):
        with pytest.raises(BudgetExhausted):
            doorway.gate(noise).ask(unreadable_question("q"))
    assert noise.scales == doorway.kinds == []


def test_a_run_is_not_opened_when_its_surprise_could_not_be_measured() -> None:
    doorway = in_memory(epsilon=Fraction(1, 4))
    with pytest.raises(BudgetExhausted, match=r"needs 0\.3 of epsilon and 0\.25 is left"):
        doorway.gate(reserve=Fraction(1, 5)).ask(asking("q", 0))
    doorway.gate(reserve=Fraction(3, 20)).ask(asking("q", 0))
    assert doorway.ledger.remaining() == Fraction(3, 20)


def test_a_failure_of_the_scan_is_never_free_and_a_retry_charges_nothing_more(
    doorway: Doorway,
) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("row 4711")

    with pytest.raises(ScanFailed):
        doorway.gate().ask(GateQuestion("q", (GatePart((0,)),), broken))
    assert doorway.charges == ["gate run r0"]
    assert doorway.gate().ask(asking("q", 0)).run == "r0"
    assert len(doorway.charges) == 1


# The secret -------------------------------------------------------------------------------------


def test_a_restart_goes_on_with_the_same_threshold(tmp_path: Path) -> None:
    for number in range(4):
        doorway = in_file(tmp_path)
        noise = Scripted(-4711) if number == 0 else Scripted(-4700)
        doorway.names = iter([number])
        answer = doorway.gate(noise, schedule=lambda _: 10**4).ask(asking(f"q{number}", 0))
        assert answer.run == "r0"
        assert noise.scales == [TENTH.threshold] * (number == 0) + [TENTH.query] * 2
        doorway.close()
    told = {file.name for file in tmp_path.iterdir() if b"4711" in file.read_bytes()}
    assert told == {"hospital.ledger-gate"}, "the noise is in the secret file and nowhere else"


def test_a_lost_secret_costs_a_new_run(doorway: Doorway) -> None:
    doorway.gate().ask(asking("q1", 0))
    doorway.secrets = MemorySecrets()
    assert doorway.gate().ask(asking("q2", 0)).run == "r1"
    assert doorway.charges == ["gate run r0", "gate run r1"]


def test_a_secret_put_back_after_its_run_has_fired_is_not_used_again(doorway: Doorway) -> None:
    gate = doorway.gate()
    gate.ask(asking("q1", 0))
    old = doorway.secrets.read()
    gate.ask(asking("q2", 50))
    doorway.secrets.write(old)
    assert doorway.gate().ask(asking("q3", 0)).run == "r1"
    assert len(doorway.charges) == 2


def test_a_secret_put_back_from_before_its_draw_gives_the_run_up(doorway: Doorway) -> None:
    doorway.gate().ask(asking("q1", 0))
    old = doorway.secrets.read()
    assert old is not None and old.drawn
    doorway.secrets.write(replace(old, state=replace(old.state, noise=None)))
    assert doorway.gate().ask(asking("q2", 0)).run == "r1"
    assert doorway.kinds == ["opened", "easy", "closed", "opened", "easy"]
    assert len(doorway.charges) == 2


def test_a_transcript_that_was_cut_behind_the_ledger_s_back_lets_nothing_out(
    doorway: Doorway,
) -> None:
    gate = doorway.gate()
    gate.ask(asking("q1", 0))
    old = doorway.secrets.read()
    gate.ask(asking("q2", 50))
    doorway.secrets.write(old)
    doorway.transcript = open_transcript(IN_MEMORY)
    with pytest.raises(TranscriptDamaged, match="the ledger vouches for entry 2"):
        doorway.gate().ask(unreadable_question("q3"))


def test_two_runs_of_one_name_are_never_paid_as_one(doorway: Doorway) -> None:
    gate = doorway.gate(name=lambda: "same")
    gate.ask(asking("q1", 50))
    with pytest.raises(Refused):
        gate.ask(asking("q2", 50))
    assert doorway.kinds == ["opened", "hard"]


def test_a_ledger_begun_anew_is_charged_for_the_open_run(doorway: Doorway) -> None:
    doorway.gate().ask(asking("q1", 0))
    doorway.ledger = in_memory().ledger
    assert doorway.gate().ask(asking("q2", 0)).run == "r0"
    assert doorway.charges == ["gate run r0"]


def test_another_calibration_ends_the_run_and_charges_its_own(doorway: Doorway) -> None:
    doorway.gate().ask(asking("q1", 0))
    fifth = Calibration.of(Fraction(1, 5))
    assert doorway.gate(calibration=fifth).ask(asking("q2", 0)).run == "r1"
    assert doorway.kinds == ["opened", "easy", "closed", "opened", "easy"]
    assert doorway.ledger.spent().amount == Fraction(3, 10)


def test_a_run_named_for_another_calibration_and_never_used_is_given_up() -> None:
    doorway = in_memory(epsilon=Fraction(1, 4))
    with pytest.raises(BudgetExhausted):
        doorway.gate(calibration=Calibration.of(Fraction(1, 2))).ask(asking("q", 0))
    assert doorway.gate().ask(asking("q", 0)).run == "r1"
    assert doorway.kinds == ["opened", "easy"]


@pytest.mark.parametrize(
    "options",
    [
        {"calibration": Calibration.of(Fraction(1), positives=2)},
        {"calibration": Calibration.of(Fraction(1), monotone=True)},
        {"side": Side.ABOVE},
        {"runs": 0},
        {"reserve": Fraction(-1)},
    ],
)
def test_a_gate_that_would_not_halt_or_look_both_ways_is_refused(
    doorway: Doorway, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"halts at its first positive|need runs >= 1"):
        doorway.gate(**options)


@pytest.mark.postgres
def test_two_hosts_with_one_database_own_and_pay_for_their_own_runs(
    postgres: str, tmp_path: Path
) -> None:
    with open_ledger(postgres, **FACTS) as ledger, open_transcript(postgres) as transcript:
        one = Doorway(ledger, transcript, SecretFile.beside(tmp_path / "l"))
        here = one.gate()
        there = Doorway(ledger, transcript, MemorySecrets(), iter(range(10, 20))).gate()
        runs = [gate.ask(asking(f"q{n}", 0)).run for n, gate in enumerate((here, there, here))]
        assert runs == ["r0", "r10", "r0"]
        assert there.ask(unreadable_question("q0")).run == "r0"
        assert len(one.charges) == 2
