"""Thresholds as marks that sums may count, against every table there is."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
from every_table import letters

from casemate.audit.order.decide import audit_order
from casemate.audit.order.solver import only_compared
from casemate.audit.time_limit import SearchLimit
from casemate.exact import Domain, Exact, Kind, OrderQuestion

REPEATABLE = SearchLimit(seconds=math.inf, work=50, workers=1)
Table = tuple[Fraction, ...]


def test_a_step_holds_where_its_mark_says_what_is_true() -> None:
    at_least, more = OrderQuestion.step(0, 1, 5), OrderQuestion.step(0, 1, 5, strict=True)
    tables = [np.array(pair) for pair in ((4, 0), (5, 1), (5, 0), (6, 1), (6, 2))]
    assert [at_least.holds(table) for table in tables] == [True, True, False, True, False]
    assert [more.holds(table) for table in tables] == [True, False, True, True, False]


def test_what_is_whole_stays_whole_when_everything_is_scaled() -> None:
    whole = OrderQuestion.whole([0, 1]).rescale(4)
    assert [whole.holds(np.array(pair)) for pair in ((8, -4), (8, 2))] == [True, False]


class Log:
    """A random log about some values, with marks for thresholds behind them."""

    def __init__(self, rng: Random, size: int, high: int, kinds: Sequence[Kind], unit: int) -> None:
        self.size, self.high = size, high
        self.truth = [Fraction(rng.randrange(high * unit + 1), unit) for _ in range(size)]
        cuts = [
            (record, Fraction(rng.randint(0, 2 * high), 2), rng.random() < 0.5)
            for record in range(size)
            for _ in range(rng.randint(0, 2))
        ]
        self.cuts = list(dict.fromkeys(cuts))
        whole = self.whole(tuple(self.truth))
        self.questions = [
            OrderQuestion.step(record, size + mark, value, strict)
            for mark, (record, value, strict) in enumerate(self.cuts)
        ]
        for _ in range(rng.randint(1, 4)):
            kind = rng.choice(kinds)
            counted = kind == "sum" and self.cuts and rng.random() < 0.7
            places = range(size, len(whole)) if counted else range(size)
            members = rng.sample(places, rng.randint(1, len(places)))
            asked = OrderQuestion.of(kind, members, 0)
            answer = asked.answer(np.array(whole, object))
            self.questions.append(OrderQuestion.of(kind, members, answer or Fraction(0)))

    def whole(self, values: Table) -> list[Fraction]:
        """Some values, and the marks that go with them."""
        return [
            *values,
            *(
                Fraction(values[record] > value if strict else values[record] >= value)
                for record, value, strict in self.cuts
            ),
        ]

    def domain(self, low: int | None, high: int | None, integer: bool) -> Domain:
        marks = len(self.cuts)
        return Domain(
            (low,) * self.size + (0,) * marks, (high,) * self.size + (1,) * marks, integer
        )

    def fixed(self, tables: Sequence[Table]) -> list[bool]:
        """Which values and marks are the same in all tables that give the answers."""
        seen = [
            whole
            for whole in map(self.whole, tables)
            if all(question.holds(np.array(whole, object)) for question in self.questions)
        ]
        return [len(set(values)) == 1 for values in zip(*seen, strict=True)]


def tables(size: int, low: int, high: int, unit: int = 1) -> list[Table]:
    values = [Fraction(each, unit) for each in range(low * unit, high * unit + 1)]
    return list(product(values, repeat=size))


def exposed(log: Log, domain: Domain) -> list[bool]:
    truth: list[Exact] = list(log.whole(tuple(log.truth)))
    found = letters(audit_order(log.questions, domain, truth, 0, REPEATABLE))
    assert "U" not in found
    return [letter == "E" for letter in found]


ALL: list[Kind] = ["sum", "sum", "avg", "max", "min", "median"]


def test_thresholds_beside_everything_else_get_the_verdict_of_brute_force(rng: Random) -> None:
    for _ in range(25):
        log = Log(rng, rng.randint(2, 3), rng.randint(2, 3), ALL, unit=1)
        expected = log.fixed(tables(log.size, 0, log.high))
        assert exposed(log, log.domain(0, log.high, integer=True)) == expected


def test_numbers_without_bounds_that_are_only_compared_are_decided(rng: Random) -> None:
    """A grid finer than the thresholds, and wider than all of them, stands for the reals."""
    for _ in range(15):
        size, unit = rng.randint(2, 3), rng.choice([1, 2])
        log = Log(rng, size, 3, ["sum", "max", "min"], unit)
        if not only_compared(log.questions, np.ones(size + len(log.cuts), bool)):
            continue
        whole = unit == 1
        expected = log.fixed(tables(size, -1, 4, 1 if whole else 4))
        assert exposed(log, log.domain(None, None, integer=whole)) == expected


def test_a_whole_number_among_reals_is_not_moved_by_a_fraction() -> None:
    total = OrderQuestion.of("sum", [0, 1], Fraction(7, 2))
    domain = Domain((3, Fraction(0)), (4, Fraction(1, 4)), integer=False)
    truth = [Fraction(27, 8), Fraction(1, 8)]
    assert letters(audit_order([total], domain, truth, 0)) == "FF"
    whole = OrderQuestion.whole([0])
    found = audit_order([total, whole], domain, [Fraction(7, 2), 0], 0)
    assert found.contradicted == (1,)
