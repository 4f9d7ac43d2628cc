"""Distinct reals against every table on a grid fine enough to keep all apart."""

from fractions import Fraction
from random import Random

import pytest
from every_table import consistent, every_table, letters, random_log, recheck, verdicts

from casemate.audit.order.case import ExposedValue
from casemate.audit.order.decide import audit_order
from casemate.exact import Domain, Kind, OrderQuestion

LOGS = 150


@pytest.mark.parametrize("kinds", [["max"], ["max", "min"]])
def test_distinct_reals_get_the_verdict_of_brute_force(kinds: list[Kind], rng: Random) -> None:
    for _ in range(LOGS):
        size, high, width = rng.randint(2, 4), 3, rng.choice([1, 2])
        truth, log = random_log(rng, kinds, size, high, distinct=True)
        domain = Domain.of(size, 0, high, integer=False, distinct=True)
        found = audit_order(log, domain, truth, width)
        tables = consistent(log, every_table(size, 0, high, unit=4, distinct=True), unit=4)
        assert letters(found) == verdicts(tables, truth, width, unit=4)
        recheck(found, log, truth, width)
        everybody = [witness.applied_to(list(truth)) for witness in found.witnesses]
        assert all(len(set(other)) == size for other in everybody)


def test_one_value_as_maximum_of_one_set_and_minimum_of_another_is_of_whom_they_share() -> None:
    log = [OrderQuestion.of("max", [0, 1], 5), OrderQuestion.of("min", [1, 2], 5)]
    distinct = audit_order(log, Domain.of(3, integer=False, distinct=True), [4, 5, 6])
    assert distinct.positions(ExposedValue) == [1]


def test_two_equal_maxima_are_of_the_record_they_share() -> None:
    log = [OrderQuestion.of("max", [0, 1], 5), OrderQuestion.of("max", [1, 2], 5)]
    truth = [Fraction(4), Fraction(5), Fraction(9, 2)]
    distinct = audit_order(log, Domain.of(3, integer=False, distinct=True), truth)
    equal = audit_order(log, Domain.of(3, integer=False), truth)
    assert distinct.positions(ExposedValue) == [1]
    assert equal.positions(ExposedValue) == []


def test_equal_values_that_were_declared_distinct_are_refused() -> None:
    with pytest.raises(ValueError, match="declared distinct"):
        audit_order([], Domain.of(2, integer=False, distinct=True), [1, 1])
