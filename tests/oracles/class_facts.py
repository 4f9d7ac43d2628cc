"""Small random facts about one private number, and every table of whole numbers that gives them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from statistics import median
from typing import Any, cast

import numpy as np

from casemate.audit.classes.certificate import ClassProof
from casemate.audit.classes.facts import LinearFact, NumberFacts, OrderFact
from casemate.published import People, Place, Range

NOBODY = cast("People", None)  # facts without names


def random_facts(rng: Random, size: int = 4, high: int = 2, *, reals: bool = False) -> NumberFacts:
    """Facts that a random table gives: sums, averages, counts, extremes and medians of groups."""
    hidden = rng.random() < 0.5
    table = [None if hidden and rng.random() < 0.3 else rng.randint(0, high) for _ in range(size)]
    linear: list[LinearFact] = []
    order: list[OrderFact] = []
    for query in range(1, rng.randint(2, 5)):
        units = sorted(rng.sample(range(size), rng.randint(1, size)))
        times = [rng.choice([1, 1, 2]) for _ in units]
        fact = _fact(rng, query, units, times, table)
        if isinstance(fact, LinearFact):
            linear.append(fact)
        else:
            order.append(fact)
    return NumberFacts(
        "x",
        NOBODY,
        np.array([each or 0 for each in table], np.int64),
        1,
        np.array([each is not None for each in table]),
        np.zeros(size, np.int64),
        (Range(Fraction(0), Fraction(high), not reals),),
        np.full(size, hidden),
        tuple(linear),
        tuple(order),
    )


def rough_facts(rng: Random) -> NumberFacts:
    """Facts with ranges, open ends and no ends, about units of which different things are known."""
    facts = random_facts(rng, size=rng.randint(2, 4))
    size, zero, two = len(facts.present), Fraction(0), Fraction(2)
    whole = rng.random() < 0.7
    ends = [(zero, two), (zero, None), (None, two), (None, None), (zero, Fraction(3, 2))]
    ends += [(Fraction(-1), Fraction(1))]
    fitting = [
        [
            which
            for which, (low, high) in enumerate(ends)
            if not there or ((low is None or low <= value) and (high is None or value <= high))
        ]
        for value, there in zip(facts.number.tolist(), facts.present.tolist(), strict=True)
    ]
    plain = rng.random() < 0.4
    chosen = [0 if plain else rng.choice(each) for each in fitting]
    return replace(
        facts,
        prior=np.array(chosen, np.int64),
        priors=tuple(Range(low, high, whole) for low, high in ends),
        may_miss=~facts.present | np.array([rng.random() < 0.3 for _ in range(size)]),
        linear=tuple(_rough_sum(rng, fact) for fact in facts.linear),
        order=tuple(_rough_extreme(rng, fact) for fact in facts.order),
    )


def _rough_sum(rng: Random, fact: LinearFact) -> LinearFact:
    if rng.random() < 0.6 or fact.low is None or fact.high is None:
        return fact
    below, above = (rng.choice([Fraction(0), Fraction(1, 2), Fraction(1)]) for _ in range(2))
    open_ends = (bool(below) and rng.random() < 0.5, bool(above) and rng.random() < 0.5)
    low = None if rng.random() < 0.2 else fact.low - below
    high = None if rng.random() < 0.2 else fact.high + above
    return replace(fact, low=low, high=high, open_ends=open_ends)


def _rough_extreme(rng: Random, fact: OrderFact) -> OrderFact:
    if rng.random() < 0.7:
        return fact
    return replace(
        fact,
        low=fact.low - rng.choice([Fraction(0), Fraction(1, 2)]),
        high=fact.high + rng.choice([Fraction(0), Fraction(1, 2)]),
    )


def _fact(
    rng: Random, query: int, units: list[int], times: list[int], table: Sequence[int | None]
) -> LinearFact | OrderFact:
    where = Place(query, "x", ())
    pairs = ((table[u], t) for u, t in zip(units, times, strict=True))
    values = [(value, t) for value, t in pairs if value is not None]
    unit, ones = np.array(units, np.int64), np.ones(len(units), np.int64)
    kind = rng.choice(["sum", "average", "count", "max", "min", "median"])
    if kind == "count" or not values:
        there = Fraction(len(values))
        return LinearFact(where, unit, 0 * ones, ones, there, there)
    if kind == "sum":
        slope = np.array(times, np.int64)
        total = Fraction(sum(v * t for v, t in values))
        return LinearFact(where, unit, slope, 0 * ones, total, total)
    if kind == "average":  # of those who are there: count * sum - added * number = 0
        added, count = sum(v for v, _ in values), len(values)
        zero = Fraction(0)
        return LinearFact(where, unit, count * ones, -added * ones, zero, zero)
    repeated = [Fraction(v) for v, t in values for _ in range(t)]
    shown = {"max": max, "min": min, "median": median}[kind](repeated)  # type: ignore[operator]  # three functions
    return OrderFact(where, cast("Any", kind), unit, np.array(times, np.int64), shown, shown)


def possible_tables(facts: NumberFacts) -> Iterator[tuple[Any, ...]]:
    """Every table of whole numbers that was possible beforehand; of reals, those of halves.

    Where there are no ends, those that are not far away.
    """
    options = []
    for unit in range(len(facts.present)):
        prior = facts.priors[int(facts.prior[unit])]
        parts = 1 if prior.whole else 2
        ends = (-1 if prior.low is None else prior.low), (3 if prior.high is None else prior.high)
        first, last = math.ceil(ends[0] * parts), math.floor(ends[1] * parts)
        values: list[Any] = [Fraction(each, parts) for each in range(first, last + 1)]
        options.append(values + [None] * bool(facts.may_miss[unit]))
    return product(*options)


def gives(facts: NumberFacts, table: Sequence[Any]) -> bool:
    """Whether a table gives every fact, in fractions."""
    return all(_gives_sum(fact, table) for fact in facts.linear) and all(
        _gives_order(fact, table) for fact in facts.order
    )


def _gives_sum(fact: LinearFact, table: Sequence[Any]) -> bool:
    total = Fraction(0)
    for unit, alpha, beta in zip(fact.unit, fact.alpha, fact.beta, strict=True):
        value = table[int(unit)]
        total += 0 if value is None else int(alpha) * Fraction(value) + int(beta)
    above = fact.low is None or fact.low < total or (fact.low == total and not fact.open_ends[0])
    below = fact.high is None or total < fact.high or (total == fact.high and not fact.open_ends[1])
    return above and below


def _gives_order(fact: OrderFact, table: Sequence[Any]) -> bool:
    values = [
        Fraction(table[int(unit)])
        for unit, times in zip(fact.unit, fact.times, strict=True)
        for _ in range(int(times))
        if table[int(unit)] is not None
    ]
    if not values:
        return False
    answer = {"max": max, "min": min, "median": median}[fact.kind](values)  # type: ignore[operator]  # three functions
    return bool(fact.low <= answer <= fact.high)


def entailed(facts: NumberFacts, proof: ClassProof) -> bool:
    """Whether every table that gives the facts has what a proof claims."""
    tables = (table for table in possible_tables(facts) if gives(facts, table))
    return all(table[unit] == proof.value for table in tables for unit in proof.units)
