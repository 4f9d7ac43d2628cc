"""Small random facts about one private number, and every table of whole numbers that gives them."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from statistics import median
from typing import Any, cast

import numpy as np

from casemate.audit.classes.certificate import Proof
from casemate.audit.classes.facts import Facts, LinearFact, OrderFact
from casemate.published import People, Place, Range

Table = tuple[int | None, ...]
NOBODY = cast("People", None)  # facts without names


def random_facts(rng: Random, size: int = 4, high: int = 2, *, reals: bool = False) -> Facts:
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
    return Facts(
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


def possible_tables(facts: Facts) -> Iterator[Table]:
    """Every table of whole numbers that was possible beforehand."""
    options = []
    for unit in range(len(facts.present)):
        prior = facts.priors[int(facts.prior[unit])]
        assert prior.low is not None and prior.high is not None
        values: list[int | None] = list(range(int(prior.low), int(prior.high) + 1))
        options.append(values + [None] * bool(facts.may_miss[unit]))
    return product(*options)


def gives(facts: Facts, table: Sequence[Any]) -> bool:
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


def entailed(facts: Facts, proof: Proof) -> bool:
    """Whether every table that gives the facts has what a proof claims."""
    tables = (table for table in possible_tables(facts) if gives(facts, table))
    if proof.impossible:
        return not any(True for _ in tables)
    return all(table[unit] == proof.value for table in tables for unit in proof.units)
