"""Refusals of maxima and minima: right by brute force, and silent about the data."""

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
    for _ in range(40):
        size = rng.choice([2, 3, 3, 4])
        _, log = random_log(rng, ["max", "min"], size, 2)
        members, kind = rng.sample(range(size), rng.randint(1, size)), rng.choice(KINDS)
        auditor = OnlineExtremes(size)
        for question in log:
            auditor.record(_extreme(question), question.members.tolist(), question.low)
        expected = some_answer_exposes(log, OrderQuestion.of(kind, members, 0), everything[size])
        assert auditor.would_expose(kind, members) == expected
        refused += expected
    assert 5 < refused < 40


def test_an_answer_is_possible_exactly_when_brute_force_finds_a_table(rng: Random) -> None:
    impossible = 0
    everything = {size: every_table(size, -1, 4, UNIT) for size in (2, 3, 4)}
    for _ in range(25):
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
    assert impossible > 8


def test_answering_only_what_is_not_refused_never_exposes_anybody(rng: Random) -> None:
    answered = 0
    for _ in range(8):
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
    assert answered > 15


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
    refused, right = refusals(rng, 200, naive=True)
    assert refused == right > 0


@pytest.mark.theorem("002: Beyond linear queries (simulatable refusals do not)")
def test_a_refusal_that_can_be_simulated_leaves_the_asker_guessing(rng: Random) -> None:
    refused, right = refusals(rng, 200, naive=False)
    assert refused == 200
    assert_rate_at_most(right, refused, rate=1 / 4)
    assert_rate_at_most(refused - right, refused, rate=3 / 4)


def test_the_test_above_would_notice_a_refusal_that_depends_on_the_data(rng: Random) -> None:
    refused, right = refusals(rng, 200, naive=True)
    with pytest.raises(AssertionError):
        assert_rate_at_most(right, refused, rate=1 / 4)
    assert np.isclose(refused / 200, 1 / 4, atol=0.2)
