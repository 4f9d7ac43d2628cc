"""Proofs over classes: those found are accepted, and what is accepted is true of every table.

Proofs need not be irreducible (classes with the same reasons share one), so that without a fact
some still hold; then every table shows it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from oracles.class_facts import NOBODY, entailed, gives, possible_tables, random_facts
from oracles.class_tables import random_log, random_world

from casemate.audit import Audit
from casemate.audit.checks import order
from casemate.audit.classes import certificate
from casemate.audit.classes.certificate import (
    Capped,
    Cases,
    Combined,
    OnlyAttainer,
    Proof,
    Step,
    verify,
)
from casemate.audit.classes.changes import FactCheck
from casemate.audit.classes.decide import ClassVerdicts, decide_by_classes
from casemate.audit.classes.facts import Facts, LinearFact, OrderFact
from casemate.audit.classes.partition import Classes
from casemate.audit.classes.proofs import ProofSearch
from casemate.audit.classes.propagation import Propagation
from casemate.audit.classes.search import Decisions, Standing
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.published import Place, Range

Found = tuple[Facts, Proof]


def found_proofs(facts: Facts) -> list[Proof]:
    """What propagation and multipliers prove of all classes, those of free people included."""
    classes = Classes.of(facts)
    decisions, clock = Decisions(classes), Clock(SearchLimit())
    search = ProofSearch(decisions, Propagation(classes), FactCheck(classes), clock)
    search.by_propagation()
    decisions.standing[~classes.constant] = Standing.FREE
    search.by_multipliers(clock)
    return search.proofs


def random_proofs(rng: Random, count: int) -> Iterator[Found]:
    for _ in range(count):
        facts = random_facts(rng)
        yield from ((facts, proof) for proof in found_proofs(facts))


# What was found through the door ------------------------------------------------------------------


def test_every_proof_of_an_audit_is_accepted_and_none_of_another_value(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ClassVerdicts] = []

    def recording(*arguments: Any) -> ClassVerdicts | None:
        found = decide_by_classes(*arguments)
        seen.extend([] if found is None else [found])
        return found

    monkeypatch.setattr(order, "decide_by_classes", recording)
    rng = Random(f"certificate {seed}")
    for _ in range(25):
        world = random_world(rng, "plain", whole=rng.random() < 0.5)
        Audit.of([each.sql for each in random_log(rng, "plain")], world.policy(tmp_path))
    proofs = [(v.facts, p) for v in seen for p in v.proofs if not p.is_searched]
    assert len(proofs) > 10
    for facts, proof in proofs:
        assert verify(facts, proof)
        others = {None, Fraction(0), Fraction(1), Fraction(1, 2)} - {proof.value}
        assert not any(verify(facts, replace(proof, value=each)) for each in others)


# What was changed ---------------------------------------------------------------------------------


def without_statement(facts: Facts, query: int) -> tuple[Facts, Callable[[Proof], Proof]]:
    """The facts without those of a statement, and proofs with the steps that can still be made."""
    linears = [n for n, each in enumerate(facts.linear) if each.place.query != query]
    orders = [n for n, each in enumerate(facts.order) if each.place.query != query]
    linear = {number: place for place, number in enumerate(linears)}
    order_ = {number: place for place, number in enumerate(orders)}

    def mapped(step: Step) -> Iterator[Step]:
        if isinstance(step, Combined):
            yield replace(
                step,
                linear={linear[n]: w for n, w in step.linear.items() if n in linear},
                attained={order_[n]: w for n, w in step.attained.items() if n in order_},
            )
        elif isinstance(step, Capped | OnlyAttainer) and step.fact in order_:
            yield replace(step, fact=order_[step.fact])

    fewer = replace(
        facts,
        linear=tuple(facts.linear[n] for n in linear),
        order=tuple(facts.order[n] for n in order_),
    )
    return fewer, lambda proof: replace(
        proof, steps=tuple(each for step in proof.steps for each in mapped(step))
    )


def queries_of(facts: Facts, proof: Proof) -> set[int]:
    linear, order_ = proof.cells
    return {facts.linear[n].place.query for n in linear} | {
        facts.order[n].place.query for n in order_
    }


def with_answers_raised(facts: Facts, query: int) -> Facts:
    def raised(fact: Any) -> Any:
        if fact.place.query != query or fact.low is None:
            return fact
        return replace(fact, low=fact.low + 1, high=fact.high + 1)

    return replace(
        facts, linear=tuple(map(raised, facts.linear)), order=tuple(map(raised, facts.order))
    )


def test_a_proof_is_rejected_without_a_statement_it_uses_unless_it_holds_all_the_same(
    seed: int,
) -> None:
    rejected = kept = 0
    for facts, proof in random_proofs(Random(f"without {seed}"), 150):
        for query in queries_of(facts, proof):
            fewer, mapped = without_statement(facts, query)
            if verify(fewer, mapped(proof)):
                kept += 1
                assert entailed(fewer, proof)
            else:
                rejected += 1
    assert rejected > 20 * kept and rejected > 50


def test_a_proof_is_rejected_where_an_answer_it_uses_was_another(seed: int) -> None:
    rejected = kept = 0
    for facts, proof in random_proofs(Random(f"raised {seed}"), 150):
        for query in queries_of(facts, proof):
            other = with_answers_raised(facts, query)
            if verify(other, proof):
                kept += 1
                assert entailed(other, proof)
            else:
                rejected += 1
    assert rejected > kept and rejected > 50  # kept are proofs from answers that no table gives


def test_a_proof_of_another_value_is_rejected(seed: int) -> None:
    for facts, proof in random_proofs(Random(f"other {seed}"), 100):
        assert verify(facts, proof)
        assert entailed(facts, proof)
        for value in (None, Fraction(0), Fraction(1), Fraction(2), Fraction(1, 3)):
            if value != proof.value:
                assert not verify(facts, replace(proof, value=value))


# What an attacker would hand in -------------------------------------------------------------------


def forged(rng: Random, facts: Facts, proof: Proof) -> Proof:
    """A proof with something in it changed at random."""
    steps = list(proof.steps)
    if facts.order and rng.random() < 0.2:
        fact = rng.randrange(len(facts.order))
        unit = rng.choice(facts.order[fact].unit.tolist())
        return Proof((unit,), facts.order[fact].low, (*steps, OnlyAttainer(fact, unit)))
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
    return Proof(units, value, tuple(steps), impossible=rng.random() < 0.1)


def forged_step(rng: Random, facts: Facts, step: Step) -> Step:
    if not isinstance(step, Combined) or rng.random() < 0.3:
        return step
    linear = {n: w * Fraction(rng.choice([2, 2, -2, 1]), 2) for n, w in step.linear.items()}
    for number in range(len(facts.linear)):
        if rng.random() < 0.2:
            linear[number] = Fraction(rng.randint(-1, 1))
    orders = range(len(facts.order))
    attained = {n: Fraction(rng.randint(-1, 2)) for n in orders if rng.random() < 0.4}
    return Combined(
        step.units if rng.random() < 0.8 else step.units + step.units[:1],
        rng.choice([step.secret, step.secret, "value", "presence"]),
        rng.choice([step.above, step.above, not step.above]),
        step.bound + Fraction(rng.choice([0, 0, 2, -2, 1]), 2),
        linear,
        attained or step.attained,
    )


def accepted_forgeries(rng: Random, count: int) -> Iterator[Found]:
    for facts, proof in random_proofs(rng, count):
        for _ in range(25):
            other = forged(rng, facts, proof)
            if certificate.verify(facts, other):
                yield facts, other


def test_what_is_accepted_is_true_of_every_table(seed: int) -> None:
    found = list(accepted_forgeries(Random(f"forged {seed}"), 80))
    assert len(found) > 50
    for facts, proof in found:
        assert entailed(facts, proof), proof.steps


def without_caps_checked(self: Any, fact: OrderFact) -> bool:
    for unit in fact.unit.tolist():  # as if everybody in an extreme had it
        self._below(unit, fact.high)
        self._above(unit, fact.low)
    return True


def without_signs(self: Any, step: Combined, slope: Any, offset: Any) -> Fraction:
    total = Fraction(0)
    for number, weight in step.linear.items():
        fact = self._facts.linear[number]
        total += abs(weight) * (fact.low or 0)
        for unit, alpha in zip(fact.unit.tolist(), fact.alpha.tolist(), strict=True):
            slope[unit] = slope.get(unit, Fraction(0)) - weight * alpha
    return total


def as_if_there(self: Any, unit: int) -> bool:
    return True


def without_looking_at_others(self: Any, step: OnlyAttainer) -> bool:
    self._have(step.unit, self._facts.order[step.fact])
    return True


@pytest.mark.parametrize(
    ("method", "broken"),
    [
        ("_cap", without_caps_checked),
        ("_add_linear", without_signs),
        ("_is_there", as_if_there),
        ("_only", without_looking_at_others),
    ],
)
def test_twin_a_broken_verifier_accepts_what_some_table_refutes(
    method: str, broken: Callable[..., Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate._Replay, method, broken)
    found = accepted_forgeries(Random(f"twin {seed}"), 1_000)
    assert any(not entailed(facts, proof) for facts, proof in found)


# Single forgeries that were accepted once ---------------------------------------------------------


def facts(linear: list[LinearFact], order_: list[OrderFact], *, miss: bool = False) -> Facts:
    """Facts about three units between 0 and 2 of which the first is 1 and the others are 0."""
    number, present = np.array([1, 0, 0], np.int64), np.array([True, True, not miss])
    may_miss = np.array([False, False, miss])
    prior = (Range(Fraction(0), Fraction(2), True),)
    zero = np.zeros(3, np.int64)
    return Facts(
        "x", NOBODY, number, 1, present, zero, prior, may_miss, tuple(linear), tuple(order_)
    )


def extreme(kind: Any, units: list[int], value: int, query: int = 1) -> OrderFact:
    unit = np.array(units, np.int64)
    shown = Fraction(value)
    return OrderFact(Place(query, "x", ()), kind, unit, np.ones(len(units), np.int64), shown, shown)


def test_cases_that_prove_something_else_prove_nothing() -> None:
    known, empty = facts([], [extreme("max", [0, 1], 1)]), Proof((), None, ())
    split = Cases(0, 0, empty, empty)
    assert not verify(known, Proof((2,), Fraction(1), (split,)))
    assert not verify(known, Proof((), None, (split,), impossible=True))
    mine = Proof((0,), Fraction(1), ())
    assert not verify(known, Proof((0,), Fraction(1), (Cases(0, 0, empty, mine),)))


def test_cases_that_both_lead_to_the_claim_prove_it() -> None:
    known = facts([], [extreme("max", [0, 1], 1), extreme("max", [0], 1, 2)])
    mine = Proof((0,), Fraction(1), (OnlyAttainer(1, 0),))
    assert verify(known, Proof((0,), Fraction(1), (Cases(0, 1, mine, mine),)))


def test_whoever_is_below_one_minimum_and_above_another_maximum_is_missing_and_nothing_else() -> (
    None
):
    orders = [extreme("max", [1, 2], 0), extreme("min", [0, 2], 1, 2)]
    known = facts([], orders, miss=True)
    caps = (Capped(0), Capped(1))
    gone = Combined((2,), "presence", True, Fraction(0), {})
    assert any(gives(known, table) for table in possible_tables(known))
    assert verify(known, Proof((2,), None, (*caps, gone)))
    assert not verify(known, Proof((0,), Fraction(2), (*caps, gone)))


def test_a_unit_named_twice_in_a_sum_proves_nothing() -> None:
    known = replace(facts([], []), priors=(Range(Fraction(-2), Fraction(-1), True),))
    twice = Combined((0, 0), "value", False, Fraction(-2), {})
    assert not verify(known, Proof((0,), Fraction(-1), (twice,)))
