"""Maxima and minima against every table there is."""

import math
from random import Random

import numpy as np
import pytest
from every_table import consistent, every_table, letters, random_log, recheck, verdicts

from casemate.audit.order.case import ExposedValue, Undecided
from casemate.audit.order.decide import audit_order
from casemate.audit.order.extremes import Contradictory, UnitPropagation, clauses_of
from casemate.audit.time_limit import SearchLimit
from casemate.exact import Domain, Kind, OrderQuestion

LOGS = 60
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


def test_more_records_can_be_free_than_can_differ_in_one_table() -> None:
    """Any two of three share a maximum: each can leave, and no two at once."""
    log = [OrderQuestion.of("max", pair, 7) for pair in ([0, 1], [1, 2], [0, 2])]
    found = audit_order(log, Domain.of(3, 0, 9), [7, 7, 7])
    assert letters(found) == "FFF"
    tables = consistent(log, every_table(3, 0, 9))
    assert (tables != 7).sum(axis=1).max() == 1
    assert len(found.witnesses) == 3


def test_values_beyond_64_bits_are_compared_exactly() -> None:
    log = [OrderQuestion.of("max", [0, 1], 2**70), OrderQuestion.of("max", [1, 2], 2**70 - 1)]
    found = audit_order(log, Domain.of(3), [2**70, 5, 2**70 - 1])
    assert letters(found) == "EFF"


# Contradictions ---------------------------------------------------------------------------------


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
        except Contradictory:
            contradictions += 1
            assert not len(tables)
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
    for _ in range(8):
        truth, log = planted(rng, 10, 4.2)
        found = audit_order(log, Domain.of(10, 0, 1), truth, 1, REPEATABLE)
        assert letters(found) == verdicts(consistent(log, every_table(10, 0, 1)), truth, 1)


def test_a_hard_log_comes_back_undecided_at_its_limit_and_the_same_every_time(rng: Random) -> None:
    truth, log = planted(rng, 250, 4.2)
    limit = SearchLimit(seconds=math.inf, work=0.05, workers=1)
    first, second = (audit_order(log, Domain.of(250, 0, 1), truth, 1, limit) for _ in range(2))
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
