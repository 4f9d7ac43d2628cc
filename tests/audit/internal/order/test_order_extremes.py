"""Maxima and minima against every table there is."""

import math
from random import Random

import numpy as np
import pytest
from every_table import consistent, every_table, letters, random_log, recheck, verdicts

from casemate.audit.order.case import ExposedValue, Undecided
from casemate.audit.order.clauses import UnitPropagation, clauses_of
from casemate.audit.order.decide import audit_order
from casemate.audit.time_limit import SearchLimit
from casemate.exact import Contradictory, Domain, Kind, OrderQuestion

LOGS = 150
REPEATABLE = SearchLimit(seconds=math.inf, work=50, workers=1)


@pytest.mark.parametrize("kinds", [["max"], ["min"], ["max", "min"]])
def test_integers_in_bounds_get_the_verdict_of_brute_force(kinds: list[Kind], rng: Random) -> None:
    for _ in range(LOGS):
        size, high, width = rng.randint(2, 5), rng.randint(1, 4), rng.choice([1, 1, 2, 3])
        truth, log = random_log(rng, kinds, size, high)
        found = audit_order(log, Domain.of(size, 0, high), truth, width, REPEATABLE)
        tables = consistent(log, every_table(size, 0, high))
        assert letters(found) == verdicts(tables, truth, width)
        recheck(found, log, truth, width)


@pytest.mark.parametrize("kinds", [["max"], ["min"], ["max", "min"]])
def test_reals_get_the_verdict_of_brute_force(kinds: list[Kind], rng: Random) -> None:
    """Halves stand for the reals: between two published numbers there is another value."""
    for _ in range(LOGS):
        size, high, width = rng.randint(2, 4), rng.randint(1, 3), rng.choice([1, 2])
        truth, log = random_log(rng, kinds, size, high)
        domain = Domain.of(size, 0, high, integer=False)
        found = audit_order(log, domain, truth, width, REPEATABLE)
        tables = consistent(log, every_table(size, 0, high, unit=2), unit=2)
        assert letters(found) == verdicts(tables, truth, width, unit=2)
        recheck(found, log, truth, width)


@pytest.mark.theorem("002: Beyond linear queries (maxima)")
def test_with_maxima_alone_exposed_is_whoever_alone_can_attain_an_answer(rng: Random) -> None:
    for _ in range(LOGS):
        size = rng.randint(2, 8)
        truth, log = random_log(rng, ["max"], size, 9)
        found = audit_order(log, Domain.of(size), truth)
        upper = [min([q.low for q in log if i in q.members], default=math.inf) for i in range(size)]
        able = [[i for i in q.members.tolist() if upper[i] == q.low] for q in log]
        assert found.positions(ExposedValue) == sorted({each[0] for each in able if len(each) == 1})
        assert not found.positions(Undecided)


def test_a_maximum_and_a_minimum_that_meet_expose_everybody_they_share() -> None:
    log = [OrderQuestion.of("max", [0, 1, 2], 5), OrderQuestion.of("min", [1, 2, 3], 5)]
    found = audit_order(log, Domain.of(4), [4, 5, 5, 6])
    assert letters(found) == "FEEF"
    assert found.records[1] == ExposedValue(5, "order")


def test_more_records_can_be_free_than_can_differ_in_one_table() -> None:
    """Any two of three share a maximum: each can leave, and no two at once."""
    log = [OrderQuestion.of("max", pair, 7) for pair in ([0, 1], [1, 2], [0, 2])]
    found = audit_order(log, Domain.of(3, 0, 9), [7, 7, 7])
    assert letters(found) == "FFF"
    tables = consistent(log, every_table(3, 0, 9))
    assert (tables != 7).sum(axis=1).max() == 1
    assert len(found.witnesses) == 3


def test_chains_of_records_that_step_in_for_one_another_are_found(rng: Random) -> None:
    """Everybody but the last two depends on the next one in line."""
    size = 12
    log = [OrderQuestion.of("max", [i, i + 1], 1) for i in range(0, size - 1, 2)]
    log += [OrderQuestion.of("min", [i, i + 1], 0) for i in range(1, size - 1, 2)]
    truth = [1 - i % 2 for i in range(size)]
    found = audit_order(log, Domain.of(size, 0, 1), truth, 1, REPEATABLE)
    tables = consistent(log, every_table(size, 0, 1))
    assert letters(found) == verdicts(tables, truth, 1)


def test_a_record_that_nobody_asked_about_is_free() -> None:
    found = audit_order([OrderQuestion.of("max", [0], 3)], Domain.of(2, 0, 9), [3, 4])
    assert letters(found) == "EF"


def test_a_record_with_a_single_possible_value_is_exposed_without_any_question() -> None:
    found = audit_order([], Domain((2, 0), (2, 9)), [2, 4])
    assert letters(found) == "EF"


def test_values_beyond_64_bits_are_compared_exactly() -> None:
    log = [OrderQuestion.of("max", [0, 1], 2**70), OrderQuestion.of("max", [1, 2], 2**70 - 1)]
    found = audit_order(log, Domain.of(3), [2**70, 5, 2**70 - 1])
    assert letters(found) == "EFF"


# Contradictions ---------------------------------------------------------------------------------


def bounds(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(size, -100), np.full(size, 100)


@pytest.mark.parametrize(
    ("log", "named"),
    [
        ([("max", [0, 1], 3), ("max", [0, 1, 2], 9), ("min", [1], 5)], (1, 3)),
        ([("max", [0, 1], 3), ("max", [1, 2], 4), ("max", [0, 1, 2], 5)], (1, 2, 3)),
        ([("max", [], 3)], (1,)),
    ],
)
def test_answers_that_no_table_gives_are_named(
    log: list[tuple[Kind, list[int], int]], named: tuple[int, ...]
) -> None:
    questions = [OrderQuestion.of(*each) for each in log]
    with pytest.raises(Contradictory, match="together") as caught:
        clauses_of(questions, *bounds(3))
    assert caught.value.questions == named


def test_a_contradiction_found_by_propagation_names_the_chain() -> None:
    log = [
        ("max", [0], 7),
        ("min", [0, 1], 2),
        ("max", [1, 2], 8),
        ("min", [2], 1),
        ("max", [3], 1),
    ]
    questions = [OrderQuestion.of(kind, members, answer) for kind, members, answer in log]  # type: ignore[arg-type]  # literal kinds
    with pytest.raises(Contradictory) as caught:
        UnitPropagation(clauses_of(questions, *bounds(4)))
    assert caught.value.questions == (1, 2, 3, 4)


def test_a_random_wrong_answer_is_contradicted_or_some_table_gives_it(rng: Random) -> None:
    contradictions = 0
    for _ in range(LOGS):
        size, high = rng.randint(2, 4), 3
        _, log = random_log(rng, ["max", "min"], size, high)
        wrong = rng.randrange(len(log))
        kind, members = log[wrong].kind, log[wrong].members.tolist()
        log[wrong] = OrderQuestion.of(kind, members, rng.randint(0, high))
        tables = consistent(log, every_table(size, 0, high))
        try:
            low, high_ends = np.zeros(size, np.int64), np.full(size, high)
            UnitPropagation(clauses_of(log, low, high_ends))
        except Contradictory as error:
            contradictions += 1
            named = [log[place - 1] for place in error.questions]
            assert not len(tables)
            assert not len(consistent(named, every_table(size, 0, high)))
    assert contradictions > LOGS / 10


# Hard logs --------------------------------------------------------------------------------------


def planted(rng: Random, size: int, ratio: float) -> tuple[list[int], list[OrderQuestion]]:
    """Random clauses of three as maxima of 1 and minima of 0, all true of a hidden assignment."""
    truth, log = [rng.randrange(2) for _ in range(size)], list[OrderQuestion]()
    while len(log) < ratio * size:
        members, side = rng.sample(range(size), 3), rng.randrange(2)
        if any(truth[each] == side for each in members):
            log.append(OrderQuestion.of("max" if side else "min", members, side))
    return truth, log


@pytest.mark.theorem("002: Beyond linear queries (maxima and minima are hard)")
def test_clauses_of_satisfiability_are_maxima_and_minima(rng: Random) -> None:
    for _ in range(20):
        truth, log = planted(rng, 10, 4.2)
        found = audit_order(log, Domain.of(10, 0, 1), truth, 1, REPEATABLE)
        assert letters(found) == verdicts(consistent(log, every_table(10, 0, 1)), truth, 1)


def test_a_hard_log_comes_back_undecided_at_its_limit_and_the_same_every_time(rng: Random) -> None:
    truth, log = planted(rng, 400, 4.2)
    limit = SearchLimit(seconds=math.inf, work=0.05, workers=1)
    first, second = (audit_order(log, Domain.of(400, 0, 1), truth, 1, limit) for _ in range(2))
    assert first.positions(Undecided)
    assert letters(first) == letters(second)
    assert 0 < first.together <= len(first.positions(Undecided))
    recheck(first, log, truth, 1)


@pytest.mark.slow
def test_a_large_log_is_decided_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, truth = 20_000, rng.integers(0, 10**6, 20_000)
    log = []
    for place in range(8_000):
        members = rng.choice(size, 20, replace=False)
        if place % 2:
            log.append(OrderQuestion.of("max", members, int(truth[members].max())))
        else:
            log.append(OrderQuestion.of("min", members, int(truth[members].min())))
    found = audit_order(log, Domain.of(size), truth.tolist())
    assert not found.positions(Undecided)
    recheck(found, log[:50], truth.tolist(), 1)
