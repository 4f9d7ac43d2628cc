"""Refusals of maxima and minima: right by brute force, and silent about the data."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from chance import assert_rate_at_most
from every_table import Tables, consistent, every_table, random_log, twice_the_answer

from casemate.audit.order.case import ExposedValue
from casemate.audit.order.decide import audit_order
from casemate.audit.order.online import Extreme, OnlineExtremes
from casemate.exact import Domain, OrderQuestion

UNIT = 4  # candidates lie halfway between answers, and values between a candidate and an answer
KINDS: list[Extreme] = ["max", "min"]


def _extreme(question: OrderQuestion) -> Extreme:
    return "max" if question.kind == "max" else "min"


def some_answer_exposes(log: list[OrderQuestion], asked: OrderQuestion, everything: Tables) -> bool:
    """Try every half from below all answers to above them, on every table that fits the past."""
    linked = set(asked.members.tolist())
    for _ in log:
        for question in log:
            linked |= set(question.members.tolist()) if linked & set(question.members) else set()
    past = consistent(log, everything, UNIT)
    given = twice_the_answer(asked, past, UNIT)[0] // 2
    for candidate in range(-UNIT // 2, 3 * UNIT, UNIT // 2):
        left = past[given == candidate]
        if len(left) and (left == left[0]).all(axis=0)[sorted(linked)].any():
            return True
    return False


def test_a_refusal_is_what_brute_force_over_every_answer_says(rng: Random) -> None:
    refused = 0
    everything = {size: every_table(size, -1, 3, UNIT) for size in (2, 3, 4)}
    for _ in range(80):
        size = rng.choice([2, 3, 3, 4])
        _, log = random_log(rng, ["max", "min"], size, 2)
        members, kind = rng.sample(range(size), rng.randint(1, size)), rng.choice(KINDS)
        auditor = OnlineExtremes(size)
        for question in log:
            auditor.record(_extreme(question), question.members.tolist(), question.low)
        expected = some_answer_exposes(log, OrderQuestion.of(kind, members, 0), everything[size])
        assert auditor.would_expose(kind, members) == expected
        refused += expected
    assert 10 < refused < 80


def test_what_was_answered_once_is_answered_again() -> None:
    auditor = OnlineExtremes(5)
    auditor.record("max", [0, 1, 2], 7)
    auditor.record("min", [2, 3, 4], Fraction(1, 2))
    assert not auditor.would_expose("max", [2, 1, 0])
    assert not auditor.would_expose("min", [3, 2, 4])


def test_a_single_record_is_never_asked_for() -> None:
    assert OnlineExtremes(3).would_expose("min", [1])


def test_nobody_can_be_asked_about() -> None:
    assert not OnlineExtremes(3).would_expose("max", [])


@pytest.mark.parametrize(("kind", "members"), [("max", [3]), ("max", [-1]), ("median", [0])])
def test_only_extremes_of_known_records_are_understood(kind: Extreme, members: list[int]) -> None:
    with pytest.raises(ValueError, match="need a max or min"):
        OnlineExtremes(3).would_expose(kind, members)


def test_parts_that_nothing_links_do_not_disturb_each_other() -> None:
    auditor = OnlineExtremes(8)
    auditor.record("max", [0, 1, 2, 3], 9)
    assert auditor.would_expose("max", [0, 1, 2])
    assert not auditor.would_expose("max", [4, 5, 6])


def test_answers_of_every_kind_are_below_at_between_and_above_the_past_ones() -> None:
    auditor = OnlineExtremes(5)
    assert auditor.answers([0, 1]) == [0]
    auditor.record("max", [0, 1], 7)
    auditor.record("min", [1, 2], 4)
    auditor.record("max", [3, 4], 9)
    assert sorted(auditor.answers([2])) == [3, 4, Fraction(11, 2), 7, 8]
    assert sorted(auditor.answers([2, 3])) == [3, 4, Fraction(11, 2), 7, 8, 9, 10]


def test_an_answer_is_possible_exactly_when_brute_force_finds_a_table(rng: Random) -> None:
    impossible = 0
    everything = {size: every_table(size, -1, 4, UNIT) for size in (2, 3, 4)}
    for _ in range(50):
        size = rng.choice([2, 3, 4])
        _, log = random_log(rng, ["max", "min"], size, 2)
        auditor = OnlineExtremes(size)
        for question in log:
            auditor.record(_extreme(question), question.members.tolist(), question.low)
        members, kind = rng.sample(range(size), rng.randint(1, size)), rng.choice(KINDS)
        for answer in auditor.answers(members):
            asked = OrderQuestion.of(kind, members, answer)
            expected = len(consistent([*log, asked], everything[size], UNIT)) > 0
            assert auditor.is_possible(kind, members, answer) == expected
            impossible += not expected
    assert impossible > 20


def test_a_copy_goes_its_own_way() -> None:
    auditor = OnlineExtremes(4)
    auditor.record("max", [0, 1, 2, 3], 9)
    twin = auditor.copy()
    twin.record("max", [0, 1], 5)
    assert twin.would_expose("max", [1, 2])
    assert not auditor.would_expose("max", [1, 2])


def test_answering_only_what_is_not_refused_never_exposes_anybody(rng: Random) -> None:
    answered = 0
    for _ in range(20):
        truth = [rng.randint(0, 30) for _ in range(8)]
        auditor, log = OnlineExtremes(8), list[OrderQuestion]()
        for _ in range(12):
            members = rng.sample(range(8), rng.randint(2, 8))
            kind: Extreme = "max" if rng.randrange(2) else "min"
            if not auditor.would_expose(kind, members):
                extreme = max if kind == "max" else min
                answer = extreme(truth[member] for member in members)
                auditor.record(kind, members, answer)
                log.append(OrderQuestion.of(kind, members, answer))
        answered += len(log)
        assert not audit_order(log, Domain.of(8, integer=False), truth).positions(ExposedValue)
    assert answered > 40


# Refusals, as the asker sees them -----------------------------------------------------------------


class NaiveAuditor:
    """Looks at the true answer, and refuses when that very answer would expose somebody."""

    def __init__(self, truth: list[int]) -> None:
        self._truth = truth

    def would_expose(self, block: list[int], members: list[int]) -> bool:
        values = [self._truth[each] for each in block]
        asked = [
            OrderQuestion.of(
                "max", [block.index(each) for each in whom], max(self._truth[each] for each in whom)
            )
            for whom in (block, members)
        ]
        return bool(audit_order(asked, Domain.of(4, integer=False), values).positions(ExposedValue))


def refusals(rng: Random, blocks: int, naive: bool) -> tuple[int, int]:
    """Ask for the maximum of four, then of three of them; guess from a refusal, and count.

    The guess is that the one left out has the maximum of the four.
    """
    truth = rng.sample(range(10**6), 4 * blocks)
    auditor, looking = OnlineExtremes(4 * blocks), NaiveAuditor(truth)
    refused = right = 0
    for first in range(0, 4 * blocks, 4):
        block = list(range(first, first + 4))
        most = max(truth[each] for each in block)
        auditor.record("max", block, most)
        left_out = rng.choice(block)
        members = [each for each in block if each != left_out]
        answer = (
            looking.would_expose(block, members) if naive else auditor.would_expose("max", members)
        )
        refused += answer
        right += answer and truth[left_out] == most
    return refused, right


@pytest.mark.theorem("002: Beyond linear queries (refusals that look leak)")
def test_every_refusal_of_an_auditor_that_looks_gives_a_value_away(rng: Random) -> None:
    refused, right = refusals(rng, 500, naive=True)
    assert refused == right > 0


@pytest.mark.theorem("002: Beyond linear queries (simulatable refusals do not)")
def test_a_refusal_that_can_be_simulated_leaves_the_asker_guessing(rng: Random) -> None:
    refused, right = refusals(rng, 500, naive=False)
    assert refused == 500
    assert_rate_at_most(right, refused, rate=1 / 4)
    assert_rate_at_most(refused - right, refused, rate=3 / 4)


def test_the_test_above_would_notice_a_refusal_that_depends_on_the_data(rng: Random) -> None:
    refused, right = refusals(rng, 500, naive=True)
    with pytest.raises(AssertionError):
        assert_rate_at_most(right, refused, rate=1 / 4)
    assert np.isclose(refused / 500, 1 / 4, atol=0.2)
