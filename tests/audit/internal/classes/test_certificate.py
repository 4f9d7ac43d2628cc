"""Proofs over classes: those found are accepted, and what is accepted is true of every table.

Proofs are irreducible: none holds without one of the statements that it uses.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from oracles.class_facts import entailed, gives, possible_tables, random_facts
from oracles.class_tables import random_log, random_world
from oracles.forged_proofs import extreme, facts, forged, found_proofs, linear_fact

from casemate.audit import Audit
from casemate.audit.checks import order
from casemate.audit.classes import certificate
from casemate.audit.classes.certificate import (
    Capped,
    ClassProof,
    CombinedFacts,
    OnlyAttainer,
    Step,
    verify,
)
from casemate.audit.classes.decide import ClassVerdicts, decide_by_classes
from casemate.audit.classes.facts import NumberFacts
from casemate.audit.classes.proofs import irreducible
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.published import Range
from casemate.query.records import Cut

Found = tuple[NumberFacts, ClassProof]


def random_proofs(rng: Random, count: int) -> Iterator[Found]:
    for _ in range(count):
        known = random_facts(rng)
        for proof in found_proofs(known):
            yield known, irreducible(known, proof, Clock(SearchLimit()))


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
    for known, proof in proofs:
        assert verify(known, proof)
        others = {None, Fraction(0), Fraction(1), Fraction(1, 2)} - {proof.value}
        assert not any(verify(known, replace(proof, value=each)) for each in others)


# What was changed ---------------------------------------------------------------------------------


def without_statement(
    facts: NumberFacts, query: int
) -> tuple[NumberFacts, Callable[[ClassProof], ClassProof]]:
    """The facts without those of a statement, and proofs with the steps that can still be made."""
    linears = [n for n, each in enumerate(facts.linear) if each.place.query != query]
    orders = [n for n, each in enumerate(facts.order) if each.place.query != query]
    linear = {number: place for place, number in enumerate(linears)}
    order_ = {number: place for place, number in enumerate(orders)}

    def mapped(step: Step) -> Iterator[Step]:
        if isinstance(step, CombinedFacts):
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


def queries_of(facts: NumberFacts, proof: ClassProof) -> set[int]:
    linear, order_ = proof.cells
    return {facts.linear[n].place.query for n in linear} | {
        facts.order[n].place.query for n in order_
    }


def with_answers_raised(facts: NumberFacts, query: int) -> NumberFacts:
    def raised(fact: Any) -> Any:
        if fact.place.query != query or fact.low is None:
            return fact
        return replace(fact, low=fact.low + 1, high=fact.high + 1)

    return replace(
        facts, linear=tuple(map(raised, facts.linear)), order=tuple(map(raised, facts.order))
    )


def test_a_proof_is_rejected_without_a_statement_that_it_uses(seed: int) -> None:
    rejected = 0
    for known, proof in random_proofs(Random(f"without {seed}"), 150):
        assert verify(known, proof)
        for query in queries_of(known, proof):
            fewer, mapped = without_statement(known, query)
            assert not verify(fewer, mapped(proof))
            rejected += 1
    assert rejected > 50


def test_no_step_of_a_proof_can_be_left_out(seed: int) -> None:
    for known, proof in random_proofs(Random(f"steps {seed}"), 80):
        for place in range(len(proof.steps)):
            steps = (*proof.steps[:place], *proof.steps[place + 1 :])
            assert not verify(known, replace(proof, steps=steps))


def test_a_proof_is_rejected_where_an_answer_it_uses_was_another(seed: int) -> None:
    rejected = kept = 0
    for known, proof in random_proofs(Random(f"raised {seed}"), 150):
        for query in queries_of(known, proof):
            other = with_answers_raised(known, query)
            if verify(other, proof):
                kept += 1
                assert entailed(other, proof)
            else:
                rejected += 1
    assert rejected > kept and rejected > 50  # kept are proofs from answers that no table gives


def test_a_proof_of_another_value_is_rejected(seed: int) -> None:
    for known, proof in random_proofs(Random(f"other {seed}"), 100):
        assert verify(known, proof)
        assert entailed(known, proof)
        for value in (None, Fraction(0), Fraction(1), Fraction(2), Fraction(1, 3)):
            if value != proof.value:
                assert not verify(known, replace(proof, value=value))


# What an attacker would hand in -------------------------------------------------------------------


def accepted_forgeries(rng: Random, count: int) -> Iterator[Found]:
    for known, proof in random_proofs(rng, count):
        for _ in range(25):
            other = forged(rng, known, proof)
            if certificate.verify(known, other):
                yield known, other


def test_what_is_accepted_is_true_of_every_table(seed: int) -> None:
    found = list(accepted_forgeries(Random(f"forged {seed}"), 80))
    assert len(found) > 50
    for known, proof in found:
        assert entailed(known, proof), proof.steps


# Single forgeries that were accepted once ---------------------------------------------------------


def test_whoever_is_below_one_minimum_and_above_another_maximum_is_missing_and_nothing_else() -> (
    None
):
    orders = [extreme("max", [1, 2], 0), extreme("min", [0, 2], 1, 2)]
    known = facts([], orders, miss=True)
    caps = (Capped(0), Capped(1))
    gone = CombinedFacts((2,), "presence", True, Fraction(0), {})
    assert any(gives(known, table) for table in possible_tables(known))
    assert verify(known, ClassProof((2,), None, (*caps, gone)))
    assert not verify(known, ClassProof((0,), Fraction(2), (*caps, gone)))


def test_a_unit_named_twice_in_a_sum_proves_nothing() -> None:
    known = replace(facts([], []), priors=(Range(Fraction(-2), Fraction(-1), True),))
    twice = CombinedFacts((0, 0), "value", False, Fraction(-2), {})
    assert not verify(known, ClassProof((0,), Fraction(-1), (twice,)))


def test_a_comparison_is_no_sum_that_could_be_combined() -> None:
    """x + (x > 0) = 1 does not say that x is 1: with cuts a fact is not linear."""
    fact = linear_fact([0], 1, 1)
    steps = tuple(
        CombinedFacts((0,), "value", above, Fraction(1), {0: Fraction(-1 if above else 1)})
        for above in (False, True)
    )
    proof = ClassProof((0,), Fraction(1), steps)
    compared = replace(fact, cuts=((Cut(Fraction(0), strict=True), np.ones(1, np.int64)),))
    assert verify(facts([fact], []), proof)
    assert not verify(facts([compared], []), proof)
