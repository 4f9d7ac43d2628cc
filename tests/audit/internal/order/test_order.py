"""Mixtures of all kinds of questions against every table there is."""

import math
from fractions import Fraction
from random import Random

import pytest
from every_table import ask, consistent, every_table, letters, random_log, recheck, verdicts

from casemate.audit.order import solver as order_mixture
from casemate.audit.order.case import ExposedValue, Undecided
from casemate.audit.order.decide import audit_order
from casemate.audit.time_limit import SearchLimit
from casemate.exact import Domain, Kind, OrderQuestion

KINDS: list[Kind] = ["sum", "avg", "max", "min", "median", "count_at_least", "count_equal"]
REPEATABLE = SearchLimit(seconds=math.inf, work=50, workers=1)


def test_every_mixture_gets_the_verdict_of_brute_force(rng: Random) -> None:
    seen = ""
    for _ in range(60):
        size, high, width = rng.randint(2, 4), rng.randint(3, 5), rng.choice([1, 1, 2, 3])
        truth, log = random_log(rng, KINDS, size, high)
        domain = Domain.of(size, 0, high)
        found = audit_order(log, domain, truth, width, REPEATABLE)
        everything = every_table(size, 0, high)
        expected = verdicts(consistent(log, everything), truth, width)
        assert letters(found) == expected
        recheck(found, log, truth, width)
        assert found.contradicted == () and found.together == 0
        seen += expected
    assert min(seen.count(letter) for letter in "EFT") > 8


def test_each_record_has_its_own_bounds_and_its_own_width() -> None:
    domain = Domain((0, 3, 0), (9, 4, 9))
    log = [OrderQuestion.of("sum", [0, 1], 8), OrderQuestion.of("max", [2], 5)]
    found = audit_order(log, domain, [4, 4, 5], [1, 1, 1])
    assert letters(found) == "FFE"
    assert letters(audit_order(log, domain, [4, 4, 5], [2, 1, 1])) == "TFE"


@pytest.mark.theorem("002: Beyond linear queries (mixtures)")
def test_a_sum_and_a_maximum_that_are_harmless_alone_expose_both_together() -> None:
    total, most = OrderQuestion.of("sum", [0, 1], 14), OrderQuestion.of("max", [0, 1], 7)
    domain = Domain.of(2, 0, 100)
    assert letters(audit_order([total], domain, [7, 7])) == "FF"
    assert letters(audit_order([most], domain, [7, 7])) == "FF"
    assert letters(audit_order([total, most], domain, [7, 7])) == "EE"


# Reals, and integers without bounds: proofs are fewer, and still proofs ---------------------------


def test_over_reals_nothing_is_claimed_that_a_finer_grid_denies(rng: Random) -> None:
    exposed = 0
    for _ in range(25):
        size, high = rng.randint(2, 3), 3
        truth, log = random_log(rng, KINDS, size, high)
        domain = Domain.of(size, 0, high, integer=False)
        found = audit_order(log, domain, truth, 1, REPEATABLE)
        finer = verdicts(consistent(log, every_table(size, 0, high, unit=6), 6), truth, 1, 6)
        for place in found.positions(ExposedValue):
            assert finer[place] == "E"
        exposed += len(found.positions(ExposedValue))
        recheck(found, log, truth, 1)
        assert found.together <= len(found.positions(Undecided))
    assert exposed > 8


def test_without_bounds_nothing_is_claimed_that_wider_bounds_deny(rng: Random) -> None:
    exposed = undecided = 0
    for _ in range(40):
        size, high = rng.randint(2, 3), 3
        truth, log = random_log(rng, KINDS, size, high)
        found = audit_order(log, Domain.of(size), truth, 1, REPEATABLE)
        wider = verdicts(consistent(log, every_table(size, -12, 15)), truth, 1)
        for place in found.positions(ExposedValue):
            assert wider[place] == "E"
        exposed += len(found.positions(ExposedValue))
        undecided += len(found.positions(Undecided))
        recheck(found, log, truth, 1)
    assert exposed > undecided


def test_one_known_bound_is_enough_for_a_sum_to_give_the_other() -> None:
    log = [OrderQuestion.of("sum", [0, 1], 0), OrderQuestion.of("sum", [2, 3], 5)]
    found = audit_order(log, Domain((0, 0, 0, None), (None, None, None, None)), [0, 0, 2, 3])
    assert letters(found) == "EEFF"


def test_numbers_too_large_for_the_solver_are_left_undecided() -> None:
    log = [
        OrderQuestion.of("sum", [0, 1], 3 * 2**62),
        OrderQuestion.of("median", [0, 1], 3 * 2**61),
    ]
    found = audit_order(log, Domain.of(2, 0, 2**63), [2**62, 2**63], 1, REPEATABLE)
    assert set(letters(found)) <= {"U", "F"}


def test_a_part_too_large_for_one_model_is_judged_record_by_record(
    rng: Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_mixture, "MAX_MODEL_ENTRIES", 0)
    for _ in range(20):
        truth, log = random_log(rng, KINDS, 3, 4)
        found = audit_order(log, Domain.of(3, 0, 4), truth, 2, REPEATABLE)
        assert letters(found) == verdicts(consistent(log, every_table(3, 0, 4)), truth, 2)


# What is not a question, or not the truth ---------------------------------------------------------


def test_contradicted_answers_are_named_and_the_rest_is_audited() -> None:
    log = [
        OrderQuestion.of("max", [0, 1], 9),
        OrderQuestion.of("max", [1], 3),
        OrderQuestion.of("min", [], 3),
        OrderQuestion.of("avg", [0], Fraction(1, 2)),
        OrderQuestion.of("sum", [], 0),
    ]
    found = audit_order(log, Domain.of(2, 0, 9), [4, 3])
    assert found.contradicted == (0, 2, 3)
    assert letters(found) == "FE"


@pytest.mark.parametrize(
    ("log", "domain", "truth", "width", "message"),
    [
        ([], Domain.of(2, 0, 9), [1], 1, "one value"),
        ([], Domain.of(1, 0, 9), [10], 1, "outside its bounds"),
        ([], Domain.of(1, 0, 9), [1], -1, "positive"),
        ([], Domain.of(1, 0, 9), [Fraction(1, 2)], 1, "integers"),
        ([OrderQuestion.of("max", [1], 1)], Domain.of(1, 0, 9), [1], 1, "outside the 1 records"),
    ],
)
def test_a_wrong_argument_is_refused_without_a_value_of_the_table(
    log: list[OrderQuestion], domain: Domain, truth: list[int], width: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        audit_order(log, domain, truth, width)


def test_a_limit_is_positive() -> None:
    with pytest.raises(ValueError, match="seconds > 0"):
        SearchLimit(seconds=0)


def test_a_limit_that_is_spent_leaves_the_rest_undecided(rng: Random) -> None:
    truth = [rng.randint(0, 100) for _ in range(60)]
    log = [
        ask(rng, rng.choice(KINDS), truth, rng.sample(range(60), rng.randint(3, 10)))
        for _ in range(60)
    ]
    limit = SearchLimit(seconds=math.inf, work=0.01, workers=1)
    found = audit_order(log, Domain.of(60, 0, 100), truth, 1, limit)
    assert found.positions(Undecided)
    assert 0 < found.together <= len(found.positions(Undecided))
    recheck(found, log, truth, 1)
