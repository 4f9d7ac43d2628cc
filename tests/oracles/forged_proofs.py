"""Proofs about small facts: those that are found, and what somebody might hand in instead."""

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from oracles.class_facts import NOBODY

from casemate.audit.classes.certificate import (
    Capped,
    ClassProof,
    CombinedFacts,
    OnlyAttainer,
    Step,
)
from casemate.audit.classes.changes import FactCheck
from casemate.audit.classes.facts import LinearFact, NumberFacts, OrderFact
from casemate.audit.classes.partition import Classes
from casemate.audit.classes.proofs import ProofSearch
from casemate.audit.classes.propagation import Propagation
from casemate.audit.classes.search import ClassStanding, Decisions
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.published import Place, Range


def found_proofs(facts: NumberFacts) -> list[ClassProof]:
    """What propagation and multipliers prove of all classes, those of free people included."""
    classes = Classes.of(facts)
    decisions, clock = Decisions(classes), Clock(SearchLimit())
    search = ProofSearch(decisions, Propagation(classes), FactCheck(classes), clock, [])
    search.by_propagation(clock)
    decisions.standing[~classes.constant] = ClassStanding.FREE
    search.by_multipliers(clock)
    return search.proofs


def forged(rng: Random, facts: NumberFacts, proof: ClassProof) -> ClassProof:
    """A proof with something in it changed at random."""
    steps = list(proof.steps)
    if facts.order and rng.random() < 0.2:
        fact = rng.randrange(len(facts.order))
        unit = rng.choice(facts.order[fact].unit.tolist())
        return ClassProof((unit,), facts.order[fact].low, (*steps, OnlyAttainer(fact, unit)))
    if steps and rng.random() < 0.4:
        steps.pop(rng.randrange(len(steps)))
    if facts.order and rng.random() < 0.3:
        fact = rng.randrange(len(facts.order))
        unit = rng.choice(facts.order[fact].unit.tolist())
        steps.insert(0, Capped(fact) if rng.random() < 0.5 else OnlyAttainer(fact, unit))
    steps = [forged_step(rng, facts, each) for each in steps]
    asked = facts.asked.tolist()
    units = rng.choice([proof.units, proof.units, tuple(asked), (rng.choice(asked),)])
    value = rng.choice([proof.value, None, Fraction(rng.randint(0, 2))])
    return ClassProof(units, value, tuple(steps))


def forged_step(rng: Random, facts: NumberFacts, step: Step) -> Step:
    if not isinstance(step, CombinedFacts) or rng.random() < 0.3:
        return step
    linear = {n: w * Fraction(rng.choice([2, 2, -2, 1]), 2) for n, w in step.linear.items()}
    for number in range(len(facts.linear)):
        if rng.random() < 0.2:
            linear[number] = Fraction(rng.randint(-1, 1))
    orders = range(len(facts.order))
    attained = {n: Fraction(rng.randint(-1, 2)) for n in orders if rng.random() < 0.4}
    return CombinedFacts(
        step.units if rng.random() < 0.8 else step.units + step.units[:1],
        rng.choice([step.secret, step.secret, "value", "presence"]),
        rng.choice([step.above, step.above, not step.above]),
        step.bound + Fraction(rng.choice([0, 0, 2, -2, 1]), 2),
        linear,
        attained or step.attained,
    )


def facts(linear: list[LinearFact], order_: list[OrderFact], *, miss: bool = False) -> NumberFacts:
    """Facts about three units between 0 and 2 of which the first is 1 and the others are 0."""
    number, present = np.array([1, 0, 0], np.int64), np.array([True, True, not miss])
    may_miss = np.array([False, False, miss])
    prior = (Range(Fraction(0), Fraction(2), True),)
    zero = np.zeros(3, np.int64)
    return NumberFacts(
        "x", NOBODY, number, 1, present, zero, prior, may_miss, tuple(linear), tuple(order_)
    )


def extreme(kind: Any, units: list[int], value: int, query: int = 1) -> OrderFact:
    unit = np.array(units, np.int64)
    shown = Fraction(value)
    return OrderFact(Place(query, "x", ()), kind, unit, np.ones(len(units), np.int64), shown, shown)


def linear_fact(
    units: list[int], low: int | None, high: int | None, *, count: bool = False
) -> LinearFact:
    """Between what some units add up to, or how many of them have a value."""
    unit, ones = np.array(units, np.int64), np.ones(len(units), np.int64)
    least, most = (None if end is None else Fraction(end) for end in (low, high))
    slope, offset = (0 * ones, ones) if count else (ones, 0 * ones)
    return LinearFact(Place(1, "x", ()), unit, slope, offset, least, most)
