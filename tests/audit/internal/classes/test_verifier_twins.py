"""The verifier of proofs over classes against twins of it with one thing wrong in each.

A twin is the verifier's own text with one expression changed. It must accept a proof that some
table refutes, or reject one that was found: else nothing shows that the expression is needed.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from oracles.class_facts import NOBODY, gives, possible_tables, random_facts, rough_facts
from oracles.forged_proofs import extreme, found_proofs, linear_fact

from casemate.audit.classes import certificate
from casemate.audit.classes.certificate import (
    Capped,
    ClassProof,
    CombinedFacts,
    OnlyAttainer,
    Searched,
    Secret,
    Step,
)
from casemate.audit.classes.facts import LinearFact, NumberFacts, OrderFact
from casemate.published import Range

Ends = tuple[int | None, int | None]

WRONG: list[tuple[str, str]] = [
    # claims
    ("all(map(replay.take, proof.steps)) and ", ""),
    (" and replay.shows(proof)", ""),
    ("all(each.gone for each in left)", "True"),
    ("each.there and each.low == proof.value", "each.low == proof.value"),
    ("proof.value == each.high for", "proof.value for"),
    ("each.low == proof.value == each.high", "proof.value == each.high"),
    ("isinstance(step, CombinedFacts) and ", "not isinstance(step, CombinedFacts) or "),
    # what is known beforehand
    ("not self._facts.may_miss[unit]", "True"),
    ("not self._facts.may_miss[unit]", "False"),
    ("int(self._facts.prior[unit]), not", "0, not"),
    ("prior.whole, there)", "True, there)"),
    ("prior.whole, there)", "False, there)"),
    # what is left
    ("self.high >= fact.low)", "self.high > fact.low)"),
    ("self.low <= fact.high)", "self.low < fact.high)"),
    ("self.high >= fact.low)", "self.high >= fact.high)"),
    ("self.low <= fact.high)", "self.low <= fact.low)"),
    ("not self.gone\n            and", "True\n            and"),
    ("min(self.high, end)", "end"),
    ("max(self.low, end)", "end"),
    ("Fraction(bound // 1)", "Fraction(-(-bound // 1))"),
    ("Fraction(bound // 1)", "Fraction(bound // 1 - 1)"),
    ("Fraction(-(-bound // 1))", "Fraction(bound // 1)"),
    ("Fraction(-(-bound // 1))", "Fraction(-(-bound // 1) + 1)"),
    # extremes and medians
    ('        if fact.kind == "median":\n            return False\n', ""),
    ("left.below(fact.high) if", "left.below(fact.low) if"),
    ("else left.above(fact.low)", "else left.above(fact.high)"),
    ('fact.kind == "median" and not self._is_odd(fact)', "False"),
    ("counted % 2 == 1", "counted % 2 == 0"),
    ("counted % 2 == 1", "True"),
    ("len(known) == len(fact.unit) and", ""),
    ("times for left, times in known if not left.gone", "times for left, times in known"),
    ("sum(times for left", "sum(1 for left"),
    ("!= [unit]:", "[:1] != [unit]:"),
    ("above(fact.low).below(fact.high)", "above(fact.high).below(fact.high)"),
    ("above(fact.low).below(fact.high)", "above(fact.low).below(fact.low)"),
    ("replace(having, there=True)", "having"),
    # combinations
    ("any(part is None for part in parts)", "False"),
    ("least < (-step.bound if step.above else step.bound)", "False"),
    ("-step.bound if step.above else step.bound", "step.bound"),
    ("if least < (", "if least + 1 < ("),
    ("if least < (", "if least <= ("),
    ("-1 if step.above else 1", "1"),
    ("fact.low if weight > 0 else fact.high", "fact.low"),
    ("fact.low if weight > 0 else fact.high", "fact.high"),
    ("None if end is None or fact.cuts", "Fraction(0) if end is None"),
    ("- weight * alpha", "- alpha"),
    ("- weight * beta", ""),
    ("None if weight < 0 or extreme", "None if extreme"),
    ('weight < 0 or extreme.kind == "median"', "weight < 0"),
    ("credits.append((self._facts.order[number], step.attained[number]))", "pass"),
    ("len(units) * least", "least"),
    ("(id(self.left(unit)), tuple(own))", "(0, tuple(own))"),
    ("step.above and step.bound < 1", "step.above and step.bound <= 1"),
    ("step.above and step.bound < 1", "step.bound < 1"),
    ("not step.above and step.bound > len(step.units) - 1", "step.bound > len(step.units) - 1"),
    ("step.bound > len(step.units) - 1", "step.bound >= len(step.units) - 1"),
    ("step.bound > len(step.units) - 1", "step.bound > 0"),
    ("len(units) == 1 and (bound", "(bound"),
    ("(bound < 0 if above else bound > 0)", "(bound <= 0 if above else bound >= 0)"),
    ("(bound < 0 if above else bound > 0)", "True"),
    ("not all(self.left(unit).there for unit in units)", "False"),
    ("self.left(u).low if above else", "self.left(u).high if above else"),
    ("if len(endless) > 1:", "if False:"),
    ("bound - (total - (ends[unit] or 0))", "bound"),
    ("for unit in endless or units:", "for unit in units:"),
    ("left.below(own) if above else left.above(own)", "left.above(own)"),
    # the least that a unit adds
    ("[] if left.there else [Fraction(0)]", "[]"),
    ("[] if left.there else [Fraction(0)]", "[Fraction(0)]"),
    ("    if not left.gone:\n", "    if True:\n"),
    ("(left.low if slope > 0 else left.high) is None and slope", "False"),
    ("for end in (left.low, left.high) if", "for end in (left.low,) if"),
    ("for end in (left.low, left.high) if", "for end in (left.high,) if"),
    ("for end in (fact.low, fact.high))", "for end in (fact.low,))"),
    ("for end in (fact.low, fact.high))", "for end in (fact.high,))"),
    ("points.update(end", "set().update(end"),
    ("if _is_within(x, left.low, left.high)]", "]"),
    ("            + offset\n", ""),
    ("if fact.low <= x <= fact.high)", ")"),
    ("if fact.low <= x <= fact.high)", "if fact.low < x <= fact.high)"),
    ("if fact.low <= x <= fact.high)", "if fact.low <= x < fact.high)"),
    ("min(options, default=None)", "max(options, default=None)"),
]  # fmt: skip
"""Expressions of the verifier, and what stands in their place in a twin."""


def twin(right: str, wrong: str) -> dict[str, Any]:
    """The names of the verifier's module with one expression changed."""
    text = Path(certificate.__file__).read_text()
    assert text.count(right) == 1, f"the verifier has no single {right!r}"
    names: dict[str, Any] = {"__name__": certificate.__name__}  # where dataclasses look
    exec(compile(text.replace(right, wrong), "a twin of the verifier", "exec"), names)
    for name in ("Capped", "OnlyAttainer", "CombinedFacts", "Searched"):
        names[name] = getattr(certificate, name)  # the steps are those of the proofs
    return names


@cache
def worlds() -> tuple[tuple[NumberFacts, tuple[Any, ...], tuple[ClassProof, ...]], ...]:
    """Small facts with all tables that give them, and the proofs that are found about them."""
    rng, found = Random("verifier twins"), list[tuple[NumberFacts, tuple[Any, ...], Any]]()
    while len(found) < 200:
        known = rough_facts(rng) if len(found) % 4 else random_facts(rng, size=3)
        tables = tuple(table for table in possible_tables(known) if gives(known, table))
        proofs = found_proofs(known) if len(found) % 2 else []
        found.append((known, tables, tuple(proofs)))
    return tuple(found)


# What chance hardly ever makes: proofs, and forgeries that some table refutes.


def known_facts(
    priors: list[Ends], linear: list[LinearFact], order: list[OrderFact], **more: Any
) -> NumberFacts:
    """Facts about units with a range each; those in `miss` may be missing, `reals` not whole."""
    size, miss = len(priors), more.get("miss", ())
    ends = [[None if end is None else Fraction(end) for end in each] for each in priors]
    ranges = (Range(low, high, "reals" not in more) for low, high in ends)
    return NumberFacts(
        "x",
        NOBODY,
        np.zeros(size, np.int64),
        1,
        np.ones(size, np.bool_),
        np.arange(size),
        tuple(ranges),
        np.isin(np.arange(size), miss),
        tuple(linear),
        tuple(order),
    )


def at_least(unit: int, bound: int, linear: Any = (), attained: Any = ()) -> CombinedFacts:
    weights = ({n: Fraction(w) for n, w in dict(each).items()} for each in (linear, attained))
    return CombinedFacts((unit,), "value", False, Fraction(bound), *weights)


def at_most(
    units: tuple[int, ...], bound: int, linear: Any = (), attained: Any = ()
) -> CombinedFacts:
    lower = at_least(0, bound, linear, attained)
    return replace(lower, units=units, above=True)


def nobody(unit: int, linear: Any = ()) -> Step:
    return replace(at_most((unit,), 0, linear), secret="presence")


FREE, ZERO = (0, 2), (0, 0)
ONE, TWO = Fraction(1), Fraction(2)
SINGLE: dict[str, tuple[NumberFacts, ClassProof, bool]] = {
    "a search proves nothing": (
        known_facts([(1, 1)], [], []),
        ClassProof((0,), ONE, (Searched((), ()),)),
        False,
    ),
    "a range without values": (
        known_facts([FREE, (1, 2)], [], [extreme("max", [0, 1], 0)], miss=(1,)),
        ClassProof((1,), None, (Capped(0), nobody(1))),
        True,
    ),
    "a lower minimum": (
        known_facts([FREE], [], [extreme("max", [0], 0), extreme("min", [0], -1)], reals=True),
        ClassProof((0,), Fraction(0), (Capped(0), Capped(1))),
        True,
    ),
    "a median of an unknown number": (
        known_facts([FREE, ZERO], [], [extreme("median", [0, 1], 1)], miss=(1,)),
        ClassProof((0,), ONE, (OnlyAttainer(0, 0),)),
        False,
    ),
    "a median with somebody missing": (
        known_facts(
            [FREE, ZERO, ZERO],
            [linear_fact([2], 0, 0, count=True)],
            [extreme("median", [0, 1, 2], 1)],
            miss=(2,),
        ),
        ClassProof((0,), ONE, (nobody(2, {0: -1}), OnlyAttainer(0, 0))),
        False,
    ),
    "a median in which somebody counts twice": (
        known_facts(
            [FREE, ZERO, ZERO],
            [],
            [replace(extreme("median", [0, 1, 2], 1), times=np.array([2, 1, 1]))],
        ),
        ClassProof((0,), ONE, (OnlyAttainer(0, 0),)),
        False,
    ),
    "a unit named twice": (
        known_facts([(-2, -1)], [], []),
        ClassProof((0,), -ONE, (replace(at_least(0, -2), units=(0, 0)),)),
        False,
    ),
    "an extreme that only one may have": (
        known_facts([(2, 2), (1, 2)], [], [extreme("max", [0, 1], 2)]),
        ClassProof((1,), ONE, (at_most((1,), 1, (), {0: -1}),)),
        False,
    ),
    "a sum with somebody missing": (
        known_facts([(1, 2), (1, 2)], [linear_fact([0, 1], None, 2)], [], miss=(1,)),
        ClassProof((0,), ONE, (at_most((0, 1), 2, {0: -1}),)),
        False,
    ),
    "a sum of two without ends": (
        known_facts(
            [(0, None), (0, None)], [linear_fact([0, 1], 2, 2), linear_fact([0], None, 2)], []
        ),
        ClassProof(
            (0,),
            TWO,
            (replace(at_least(0, 2, {0: 1}), units=(0, 1)), at_most((0,), 2, {1: -1})),
        ),
        False,
    ),
    "an extreme between two numbers": (
        known_facts([FREE, ZERO], [], [replace(extreme("max", [0, 1], 2), low=ONE)]),
        ClassProof((0,), TWO, (at_least(0, 2, (), {0: 2}),)),
        False,
    ),
    "nothing says that it is missing": (
        known_facts([FREE], [], [], miss=(0,)),
        ClassProof((0,), None, ()),
        False,
    ),
    "a sum of which one has no end": (
        known_facts([FREE, (0, None)], [linear_fact([0, 1], 2, 2)], []),
        ClassProof((0,), TWO, (replace(at_least(0, 2, {0: 1}), units=(0, 1)),)),
        False,
    ),
    "a sum of those who are left": (
        known_facts(
            [FREE, FREE],
            [linear_fact([0, 1], 2, 2), linear_fact([1], 0, 0, count=True)],
            [],
            miss=(1,),
        ),
        ClassProof((0,), TWO, (nobody(1, {1: -1}), at_least(0, 2, {0: 1}))),
        True,
    ),
    "an extreme of those who are left": (
        known_facts(
            [FREE, FREE],
            [linear_fact([1], 0, 0, count=True)],
            [extreme("max", [0, 1], 1)],
            miss=(1,),
        ),
        ClassProof((0,), ONE, (nobody(1, {0: -1}), OnlyAttainer(0, 0))),
        True,
    ),
    "a median that nobody has": (
        known_facts([(1, 2), ZERO], [], [extreme("median", [0, 1], 1)]),
        ClassProof((0,), ONE, (at_most((0,), 1, (), {0: 2}),)),
        False,
    ),
    "a maximum that somebody lower may have": (
        known_facts(
            [FREE, (0, 1)],
            [linear_fact([0], None, 1)],
            [replace(extreme("max", [0, 1], 2), low=ONE)],
        ),
        ClassProof((0,), ONE, (OnlyAttainer(0, 0), at_most((0,), 1, {0: -1}))),
        False,
    ),
    "a minimum that somebody higher may have": (
        known_facts(
            [FREE, (1, 2)],
            [linear_fact([0], 1, None)],
            [replace(extreme("min", [0, 1], 0), high=ONE)],
        ),
        ClassProof((0,), ONE, (OnlyAttainer(0, 0), at_least(0, 1, {0: 1}))),
        False,
    ),
    "a cap between two numbers": (
        known_facts([(1, 2)], [], [replace(extreme("max", [0], 2), low=ONE)]),
        ClassProof((0,), ONE, (Capped(0),)),
        False,
    ),
    "a floor between two numbers": (
        known_facts([(1, 2)], [], [replace(extreme("min", [0], 1), high=TWO)]),
        ClassProof((0,), TWO, (Capped(0),)),
        False,
    ),
    "a minimum between two numbers": (
        known_facts([FREE, (2, 2)], [], [replace(extreme("min", [0, 1], 0), high=ONE)]),
        ClassProof((0,), Fraction(0), (at_most((0,), 0, (), {0: 2}),)),
        False,
    ),
    "a higher maximum": (
        known_facts([FREE, FREE], [], [extreme("max", [0], 0), extreme("max", [0, 1], 2)]),
        ClassProof((0,), Fraction(0), (Capped(0), Capped(1))),
        True,
    ),
    "the rest of a sum": (
        known_facts([(1, 2), (0, 1)], [linear_fact([0, 1], None, 2)], []),
        ClassProof((0,), ONE, (at_most((0, 1), 2, {0: -1}),)),
        False,
    ),
    "a value that may be missing": (
        known_facts([(1, 1)], [], [], miss=(0,)),
        ClassProof((0,), ONE, ()),
        False,
    ),
    "an extreme out of reach of the other": (
        known_facts([FREE, (0, 1)], [], [extreme("max", [0, 1], 2)]),
        ClassProof((0,), TWO, (at_least(0, 2, (), {0: 2}),)),
        True,
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_the_verifier_is_right_about_a_proof_that_chance_hardly_ever_makes(name: str) -> None:
    known, proof, holds = SINGLE[name]
    assert certificate.verify(known, proof) is holds
    if not proof.is_searched:
        tables = (table for table in possible_tables(known) if gives(known, table))
        assert is_refuted(tables, proof) is not holds


def is_refuted(tables: Iterable[Any], proof: ClassProof) -> bool:
    return any(table[unit] != proof.value for table in tables for unit in proof.units)


def is_found_out(names: dict[str, Any], rng: Random) -> bool:
    """Whether a verifier rejects a proof that was found, or accepts what a table refutes."""
    verifier = names["verify"]
    if any(verifier(known, proof) is not holds for known, proof, holds in SINGLE.values()):
        return True
    for known, tables, proofs in worlds():
        if any(not verifier(known, each) for each in proofs):
            return True
        for _ in range(3):
            forgeries = handed_in(names["_Replay"](known), known, rng)
            if any(verifier(known, each) and is_refuted(tables, each) for each in forgeries):
                return True
    return False


def handed_in(replay: Any, known: NumberFacts, rng: Random) -> Iterator[ClassProof]:
    """Claims of somebody who tries steps until the verifier takes them, and looks what is left."""
    steps = []
    for _ in range(7):
        step = any_step(replay, known, rng)
        if replay.take(step):
            steps.append(step)
    for unit in known.asked.tolist():
        left = replay.left(unit)
        for value in {None, left.low, left.high}:
            yield ClassProof((unit,), value, tuple(steps))


def any_step(replay: Any, known: NumberFacts, rng: Random) -> Step:
    if known.order and rng.random() < 0.4:
        fact = rng.randrange(len(known.order))
        unit = rng.choice(known.order[fact].unit.tolist())
        return Capped(fact) if rng.random() < 0.5 else OnlyAttainer(fact, unit)
    asked = known.asked.tolist()
    units = tuple(rng.choices(asked, k=2) if rng.random() < 0.1 else
                  rng.sample(asked, rng.randint(1, min(2, len(asked)))))  # fmt: skip
    secret, above = rng.choice(SECRETS), rng.random() < 0.5
    linear = {n: rng.choice(WEIGHTS) for n in range(len(known.linear)) if rng.random() < 0.6}
    attained = {n: rng.choice(WEIGHTS) for n in range(len(known.order)) if rng.random() < 0.4}
    step = CombinedFacts(units, secret, above, Fraction(0), linear, attained)
    parts = [part or Fraction(0) for part in replay._parts(step)]
    proved: Fraction = sum(parts, Fraction(0)) + rng.choice([0, 0, 0, 1])
    return replace(step, bound=-proved if above else proved)


SECRETS: tuple[Secret, ...] = ("value", "value", "presence")
WEIGHTS = [Fraction(each, 2) for each in (2, -2, 1, -1, 4)]


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_twin_a_verifier_with_one_thing_wrong_is_found_out(
    right: str, wrong: str, seed: int
) -> None:
    with suppress(TypeError):  # it does not even compute
        assert is_found_out(twin(right, wrong), Random(f"twin {seed}"))


def test_the_verifier_itself_accepts_nothing_that_a_table_refutes(seed: int) -> None:
    assert not is_found_out(vars(certificate), Random(f"itself {seed}"))
