"""The literal construction: what it charges and when, what survives a crash, what it refuses."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import Clock, Crash
from papers.literal_world import PEOPLE, TERMS, constructed, scripted, seeded, setting, subset

from casemate.doors import Edition, MemorySecrets, SecretFile, open_transcript
from casemate.errors import BudgetExhausted, Misconfigured, Refused
from casemate.grid import Origin, Product
from casemate.papers.accuracy import PromiseTerms
from casemate.papers.online import LiteralAnswer, LiteralConstruction, OnlineRecords, OnlineSetting
from casemate.privacy import Pure
from casemate.privacy.ledger import Ledger, open_ledger
from casemate.privacy.noise import Noise
from casemate.privacy.noise.noise import silence

# What it charges, and when ------------------------------------------------------------------------


@contextmanager
def on_disk(folder: Path, terms: PromiseTerms, secrets: Any = None) -> Iterator[OnlineRecords]:
    path, epsilon = folder / "table.ledger", Fraction(terms.epsilon)
    facts: dict[str, Any] = {"dataset": "t", "policy": "p", "neighbours": "replace"}
    kept = MemorySecrets() if secrets is None else secrets
    with open_ledger(path, epsilon=epsilon, **facts) as ledger, open_transcript(path) as transcript:
        yield OnlineRecords(ledger, transcript, kept, Edition("p", "v1"))


def charged_elsewhere(folder: Path) -> list[str]:
    """The purposes of all charges, as another process reads them from the file."""
    reader = sqlite3.connect(f"file:{folder / 'table.ledger'}?mode=ro", uri=True)
    with closing(reader):
        rows = reader.execute("SELECT purpose FROM entries WHERE kind = 'charge'").fetchall()
    return [purpose for (purpose,) in rows]


def spied(folder: Path, made: OnlineSetting, careless: bool = False) -> list[tuple[str, int, int]]:
    """At every draw: which noise it is, and how many runs and numbers were durably paid then."""
    noise, seen = made.noise, list[tuple[str, int, int]]()
    names = {noise.run.threshold: "threshold", noise.run.query: "query", noise.answer: "number"}

    def watching(scale: Fraction, size: int) -> Any:
        paid = charged_elsewhere(folder)
        runs = sum("run" in purpose for purpose in paid)
        seen.append((names[scale], runs, len(paid) - runs))
        return silence(scale, size)

    with on_disk(folder, made.terms) as records:
        if careless:  # the mistake: the charge would be made good later
            receipt = type("Receipt", (), {"output": None})()
            records.ledger.charge = lambda *_, **__: receipt  # type: ignore[method-assign]
            records.ledger.record_output = lambda *_: b""  # type: ignore[method-assign]  # of it
        construction = constructed(made, [PEOPLE, 0, 0, 0], watching, records)
        for chosen in ({0}, {1, 2}, {1}):
            construction.ask(subset(chosen))
    return seen


def assert_paid_first(seen: list[tuple[str, int, int]]) -> None:
    thresholds = numbers = 0
    for name, runs, paid in seen:
        thresholds, numbers = thresholds + (name == "threshold"), numbers + (name == "number")
        assert runs >= thresholds and paid >= numbers, "drawn before it was durably paid"


def test_a_run_and_a_number_are_paid_durably_before_their_noise_is_drawn(tmp_path: Path) -> None:
    seen = spied(tmp_path, setting("weights", 0.125))
    assert_paid_first(seen)
    assert [name for name, _, _ in seen].count("number") == 2
    assert {("threshold", 1, 0), ("number", 1, 1), ("number", 2, 2)} <= set(seen)


def test_the_test_above_would_notice_a_charge_that_comes_later(tmp_path: Path) -> None:
    seen = spied(tmp_path, setting("weights", 0.125), careless=True)
    with pytest.raises(AssertionError, match="before it was durably paid"):
        assert_paid_first(seen)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_only_what_was_used_is_charged_and_never_more_than_the_terms(delta: float) -> None:
    made = setting("median", 0.5, PromiseTerms(questions=14, delta=delta))
    records = OnlineRecords.in_memory(made.terms)
    construction = constructed(made, [PEOPLE, 0, 0, 0], scripted([6, -6, 0], []), records)
    asked = [{0}, {1}, {2}, {0, 1}, {1, 2}, {3}, {0, 3}, {1, 3}, {2, 3}]
    for number, chosen in enumerate(asked):
        construction.ask(subset(chosen))
        run, answer = made.noise.run.epsilon, 1 / made.noise.answer
        opened = construction.updates + (0 if construction.exhausted else 1)
        prices = (run, answer) if not delta else (run**2 / 2, answer**2 / 2)
        most = opened * prices[0] + construction.updates * prices[1]
        assert records.ledger.spent().amount <= most
        assert number > 0 or records.ledger.spent().amount > 0
    assert records.ledger.remaining() >= 0


def test_it_does_not_begin_unless_all_that_the_theorem_counts_on_could_be_paid() -> None:
    """And when somebody else spends the rest it refuses and says what is left."""
    made = setting("perceptron")
    records = OnlineRecords.in_memory(made.terms)
    construction = constructed(made, [PEOPLE, 0, 0, 0], records=records)
    records.ledger.charge(made.noise.run.cost, key="another", purpose="another analyst")
    with pytest.raises(BudgetExhausted, match="is left"):
        constructed(made, [PEOPLE, 0, 0, 0], records=records)
    records.ledger.charge(Pure(records.ledger.remaining()), key="all", purpose="another analyst")
    with pytest.raises(BudgetExhausted, match="0 is left"):
        construction.ask(subset({0}))


# Crashes and restarts -----------------------------------------------------------------------------


ASKED = [{0}, {1, 2}, {3}, {0, 1}, {1}]


def lives(last: int) -> tuple[dict[int, LiteralAnswer], Fraction, bool]:
    """All answers over as many lives as there are crashes, what was spent, and whether it crashed.

    What was sent once must be sent again: a later life asks everything from the beginning.
    """
    made, clock, sent = setting("weights", 0.125), Clock(last), dict[int, LiteralAnswer]()
    records = OnlineRecords.in_memory(made.terms)
    ledger, secrets, transcript = records.ledger, records.secrets, records.transcript
    ledger.charge = clock.around(ledger.charge)  # type: ignore[method-assign]  # a step
    ledger.record_output = clock.around(ledger.record_output)  # type: ignore[method-assign]  # a step
    secrets.write = clock.around(secrets.write)  # type: ignore[method-assign]  # a step
    transcript.run = clock.around(transcript.run)  # type: ignore[method-assign]  # a step
    noise: Noise = clock.around(silence)
    for life in range(2):
        try:
            construction = constructed(made, [PEOPLE, 0, 0, 0], noise, records)
            for number, chosen in enumerate(ASKED):
                answer = replace(construction.ask(subset(chosen)), origin=Origin.CACHED)
                assert sent.setdefault(number, answer) == answer
                clock.tick()
        except Crash:
            continue
        return sent, ledger.spent().amount, life > 0
    raise AssertionError("one crash is one life")


def test_a_crash_at_any_moment_changes_no_answer_and_no_charge() -> None:
    answers, spent, _ = lives(-1)
    for last in count():
        again, paid, crashed = lives(last)
        assert (again, paid) == (answers, spent)
        if not crashed:
            break
    assert last > 30, "there are many moments"


def test_a_restart_between_all_questions_changes_nothing(tmp_path: Path) -> None:
    made, counts = setting("perceptron", 0.125), np.array([PEOPLE - 10, 10, 0, 0])
    secrets, tape, apart = MemorySecrets(), scripted([1, -2, 0, 3], []), []
    for chosen in ASKED:
        with on_disk(tmp_path, made.terms, secrets) as records:
            apart.append(constructed(made, counts, tape, records).ask(subset(chosen)))
    whole = constructed(made, counts, scripted([1, -2, 0, 3], []))
    assert [whole.ask(subset(chosen)) for chosen in ASKED] == apart
    assert whole.updates > 1


def test_with_the_operating_systems_noise_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    made, counts = setting("weights", 0.125), np.array([PEOPLE, 0, 0, 0])
    answers = []
    for _ in range(2):
        secrets = SecretFile.beside(tmp_path / "table.ledger")
        with on_disk(tmp_path, made.terms, secrets) as records:
            construction = LiteralConstruction(made, counts, records)
            answers.append([construction.ask(subset(chosen)).value for chosen in ASKED])
            assert construction.guarantee.startswith("spent epsilon")
    assert answers[0] == answers[1]


# Refusals -----------------------------------------------------------------------------------------


def test_noise_of_the_callers_choice_claims_no_privacy(tmp_path: Path) -> None:
    made = setting("weights")
    simulated = constructed(made, [PEOPLE, 0, 0, 0], seeded(1))
    assert simulated.guarantee == "not private: the noise was chosen by the caller"
    secrets = SecretFile.beside(tmp_path / "table.ledger")
    refused = pytest.raises(Refused, match="protects nobody")
    with on_disk(tmp_path, made.terms, secrets) as records, refused:
        constructed(made, [PEOPLE, 0, 0, 0], seeded(1), records)


def test_the_answers_of_other_settings_are_not_taken_for_its_own() -> None:
    records = OnlineRecords.in_memory(TERMS)
    constructed(setting("weights"), [PEOPLE, 0, 0, 0], records=records).ask(subset({0}))
    with pytest.raises(Misconfigured, match="transcript of its own"):
        constructed(setting("perceptron"), [PEOPLE, 0, 0, 0], records=records)


@pytest.mark.parametrize(
    ("counts", "product"),
    [
        ([PEOPLE, 0, 0], subset({0})),
        ([PEOPLE + 1, -1, 0, 0], subset({0})),
        ([PEOPLE, 1, 0, 0], subset({0})),
        ([PEOPLE, 0, 0, 0], Product((3,), {0: np.array([True, False, False])})),
        ([PEOPLE, 0, 0, 0], Product((4,), {}, {0: np.array([0, 0.5, 1, 2])})),
    ],
)
def test_what_is_no_table_or_no_question_is_refused(counts: list[int], product: Product) -> None:
    with pytest.raises(ValueError, match=r"count|people|rescale"):
        constructed(setting("weights"), counts).ask(product)


def test_the_people_are_not_added_up_where_their_number_is_a_secret() -> None:
    made = setting("weights", 0.125)
    memory = OnlineRecords.in_memory(made.terms)
    ledger: Ledger = open_ledger(":memory:", dataset="t", policy="", epsilon=Fraction(1))
    construction = constructed(made, [PEOPLE, 3, 0, 0], records=replace(memory, ledger=ledger))
    assert construction.ask(subset({0})).value == pytest.approx(PEOPLE, rel=0.01)
