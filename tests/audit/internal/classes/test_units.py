"""The parts behind classes, each against a slow obvious version."""

from dataclasses import replace
from fractions import Fraction
from random import Random
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.class_facts import gives, random_facts

from casemate.audit.classes import partition
from casemate.audit.classes.changes import ClassChange, FactCheck, safe
from casemate.audit.classes.facts import LinearFact, NumberFacts, middle_pair
from casemate.audit.classes.partition import Classes
from casemate.audit.classes.patterns import Pattern, Patterns
from casemate.audit.classes.propagation import Propagation
from casemate.published import Place, Range

# Classes ------------------------------------------------------------------------------------------


def signatures(facts: NumberFacts) -> set[frozenset[int]]:
    """The units that every fact counts in the same way, by a dictionary of what is said of each."""
    found: dict[tuple[Any, ...], set[int]] = {}
    for unit in facts.asked.tolist():
        said: list[Any] = [int(facts.prior[unit]), bool(facts.may_miss[unit])]
        for linear in facts.linear:
            at = np.flatnonzero(linear.unit == unit).tolist()
            said.append([(int(linear.alpha[i]), int(linear.beta[i])) for i in at])
        for order in facts.order:
            said.append([int(order.times[i]) for i in np.flatnonzero(order.unit == unit).tolist()])
        found.setdefault(tuple(map(str, said)), set()).add(unit)
    return set(map(frozenset, found.values()))


def wide_facts(rng: Random) -> NumberFacts:
    """Facts about many units, now and then with coefficients beyond 64 bits and other priors."""
    facts = random_facts(rng, size=rng.randint(1, 12), high=3)
    if rng.random() < 0.5:
        bigger = [
            replace(each, alpha=each.alpha.astype(object) * rng.choice([1, 2**70]))
            for each in facts.linear
        ]
        facts = replace(facts, linear=tuple(bigger))
    if rng.random() < 0.3:
        prior = np.array([rng.randrange(2) for _ in facts.present], np.int64)
        priors = (facts.priors[0], Range(Fraction(0), Fraction(7), True))
        facts = replace(facts, prior=prior, priors=priors)
    return facts


def units_by_class(classes: Classes) -> set[frozenset[int]]:
    return {frozenset(classes.members(which).tolist()) for which in range(len(classes))}


def test_classes_are_the_units_with_equal_signatures(rng: Random) -> None:
    for _ in range(200):
        facts = wide_facts(rng)
        assert units_by_class(Classes.of(facts)) == signatures(facts)


def test_classes_are_the_same_where_all_keys_collide(
    rng: Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "_keys", lambda _, start: np.zeros(len(start) - 1, np.uint64))
    for _ in range(50):
        facts = wide_facts(rng)
        assert units_by_class(Classes.of(facts)) == signatures(facts)


def test_classes_know_their_sums_numbers_and_coefficients(rng: Random) -> None:
    for _ in range(100):
        facts = wide_facts(rng)
        classes = Classes.of(facts)
        for which in range(len(classes)):
            values = [facts.value(unit) for unit in classes.members(which).tolist()]
            assert classes.there[which] == sum(value is not None for value in values)
            assert classes.total[which] == sum(value or 0 for value in values)
            assert classes.constant[which] == (len(set(values)) == 1)
        for row in classes.rows:
            for which, alpha, beta in zip(row.classes.tolist(), row.alpha, row.beta, strict=True):
                for unit in classes.members(which).tolist():
                    (at,) = np.flatnonzero(row.fact.unit == unit)
                    assert (alpha, beta) == (row.fact.alpha[at], row.fact.beta[at])


# Changes ------------------------------------------------------------------------------------------


def is_possible(facts: NumberFacts, table: list[Fraction | None]) -> bool:
    for unit, value in enumerate(table):
        prior = facts.priors[int(facts.prior[unit])]
        if value is None:
            if not facts.may_miss[unit]:
                return False
            continue
        inside = (prior.low is None or prior.low <= value) and (
            prior.high is None or value <= prior.high
        )
        if not inside or (prior.whole and value.denominator != 1):
            return False
    return True


def random_change(rng: Random, facts: NumberFacts) -> dict[int, Fraction | None]:
    units = facts.asked.tolist()
    steps = [Fraction(0), Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2), Fraction(3, 2)]
    return {u: rng.choice([*steps, None]) for u in rng.sample(units, rng.randint(0, len(units)))}


@pytest.mark.parametrize("reals", [False, True])
def test_a_change_keeps_the_facts_just_if_all_of_them_hold_in_fractions(
    reals: bool, rng: Random
) -> None:
    kept = broken = 0
    for _ in range(300):
        facts = random_facts(rng, size=3, reals=reals)
        facts = replace(facts, linear=tuple(loosened(rng, each) for each in facts.linear))
        check = FactCheck(Classes.of(facts))
        for _ in range(10):
            values = random_change(rng, facts)
            table = [facts.value(unit) for unit in range(len(facts.present))]
            for unit, value in values.items():
                table[unit] = value
            expected = is_possible(facts, table) and gives(facts, table)
            assert check.keeps(ClassChange.of(values, facts.scale)) is expected
            kept, broken = kept + expected, broken + (not expected)
    assert kept > 100 and broken > 100


def loosened(rng: Random, fact: LinearFact) -> LinearFact:
    """The same with other ends, each there or not, possible itself or not."""
    assert fact.low is not None and fact.high is not None
    low = rng.choice([fact.low, fact.low - 1, None])
    high = rng.choice([fact.high, fact.high + 1, None])
    ends = (low != fact.low and rng.random() < 0.5, high != fact.high and rng.random() < 0.5)
    return replace(fact, low=low, high=high, open_ends=ends)


def one_sum(alpha: int) -> FactCheck:
    """Two units without bounds, both 0, of which the first times `alpha` and the second is 0."""
    unit, slope = np.arange(2), np.array([alpha, 1], np.int64)
    total = LinearFact(Place(1, "x", ()), unit, slope, 0 * slope, Fraction(0), Fraction(0))
    facts = replace(
        random_facts(Random(0), size=2),
        number=np.zeros(2, np.int64),
        present=np.ones(2, np.bool_),
        may_miss=np.zeros(2, np.bool_),
        priors=(Range(None, None, False),),
        linear=(total,),
        order=(),
    )
    return FactCheck(Classes.of(facts))


def test_changes_with_denominators_beyond_64_bits_are_judged_exactly() -> None:
    check, step = one_sum(1), Fraction(1, 3**50)
    assert check.keeps(ClassChange.of({0: step, 1: -step}, 1))
    assert not check.keeps(ClassChange.of({0: step, 1: step}, 1))


def test_a_sum_that_is_zero_only_modulo_two_to_the_64_is_not_kept() -> None:
    check, step = one_sum(2**32), Fraction(2**32)
    assert not check.keeps(ClassChange.of({0: step}, 1))
    assert check.keeps(ClassChange.of({0: step, 1: -step * 2**32}, 1))


def test_numbers_are_python_integers_where_a_factor_alone_is_beyond_64_bits() -> None:
    assert safe(np.zeros(3, np.int64), 2**70).dtype == object


# Patterns -----------------------------------------------------------------------------------------


def random_pattern(rng: Random, facts: NumberFacts) -> Pattern:
    lows = [rng.randint(-2, 2) for _ in facts.present]
    highs = [low + rng.randint(0, 3) for low in lows]
    present = [rng.random() < 0.8 for _ in facts.present]
    return Pattern(np.array(lows), np.array(highs), np.array(present))


def test_totals_are_spread_within_ranges_and_add_up(rng: Random) -> None:
    for _ in range(200):
        facts = random_facts(rng, size=6, high=3)
        classes = Classes.of(facts)
        patterns = Patterns(Propagation(classes), np.random.default_rng(0))
        pattern, common = random_pattern(rng, facts), rng.choice([1, 2, 7])
        low, high, no_low, no_high = patterns.totals(pattern)
        assert not no_low.any() and not no_high.any()
        ends = zip(low.tolist(), high.tolist(), strict=True)
        totals = [rng.randint(first * common, last * common) for first, last in ends]
        change = patterns.spread(np.array(totals), common, pattern)
        table = {unit: facts.value(unit) for unit in facts.asked.tolist()}
        table |= dict(change.items(facts.scale))
        for which, total in enumerate(totals):
            members = classes.members(which).tolist()
            assert sum(table[unit] or 0 for unit in members) == Fraction(total, common)
        for unit, value in table.items():
            assert (value is not None) == pattern.present[unit]
            assert value is None or pattern.low[unit] <= value <= pattern.high[unit]


# Medians ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 3)), min_size=1, max_size=7))
def test_the_mean_of_the_middle_pair_is_the_median(pairs: list[tuple[int, int]]) -> None:
    values, times = (np.array(each, np.int64) for each in zip(*pairs, strict=True))
    repeated = [Fraction(value) for value, count in pairs for _ in range(count)]
    assert Fraction(sum(middle_pair(values, times)), 2) == median(repeated)
