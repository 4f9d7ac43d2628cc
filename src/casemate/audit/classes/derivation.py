"""A proof in words: the cells it uses in the order of its steps, and what follows from each.

No private value is written; the people whom a proof is about are "this one" or "these".
"""

from casemate.audit.classes.certificate import (
    Capped,
    ClassProof,
    CombinedFacts,
    OnlyAttainer,
    Searched,
    Step,
)
from casemate.audit.classes.facts import LinearFact, NumberFacts, OrderFact
from casemate.audit.result import DerivationStep

SEARCHED = "a search over whole numbers found no other table that gives it: the only proof"
EXTREMES = {"max": ("MAX", "above"), "min": ("MIN", "below"), "median": ("MEDIAN", "beside")}


def derivation(facts: NumberFacts, proof: ClassProof) -> tuple[DerivationStep, ...]:
    """The steps of a proof in words, one for each cell that a step uses."""
    steps = (each for step in proof.steps for each in _in_words(facts, proof, step))
    return tuple(dict.fromkeys(steps))


def tipping_query(facts: NumberFacts, proof: ClassProof) -> int:
    """The last of the statements that a proof uses; the first where it needs none."""
    linear, order = proof.cells
    queries = [facts.equations[each].place.query for each in linear]
    queries += [facts.order[each].place.query for each in order]
    return max(queries, default=1)


def _in_words(facts: NumberFacts, proof: ClassProof, step: Step) -> list[DerivationStep]:
    if isinstance(step, Searched):
        cells = [facts.equations[n] for n in step.linear] + [facts.order[n] for n in step.order]
        return [_said(each, SEARCHED) for each in cells]
    if isinstance(step, Capped):
        name, side = EXTREMES[facts.order[step.fact].kind]
        return [_said(facts.order[step.fact], f"nobody in it is {side} its {name}")]
    if isinstance(step, OnlyAttainer):
        return [_only(facts, step, proof)]
    return _combined(facts, step, proof)


def _said(fact: LinearFact | OrderFact, text: str) -> DerivationStep:
    return DerivationStep(fact.place.query, fact.place.key, text, fact.place.column)


def _only(facts: NumberFacts, step: OnlyAttainer, proof: ClassProof) -> DerivationStep:
    fact = facts.order[step.fact]
    name, _ = EXTREMES[fact.kind]
    whose = "this one" if step.unit in proof.units else "one other"
    if len(fact.unit) == 1:
        return _said(fact, f"its {name} is over a single value: that of {whose}")
    return _said(fact, f"somebody in it has its {name}, and only {whose} can")


def _combined(facts: NumberFacts, step: CombinedFacts, proof: ClassProof) -> list[DerivationStep]:
    own = set(step.units) <= set(proof.units)
    people = _count(len(step.units), "this one" if own else "one other", own)
    linear = [facts.linear[each] for each in step.linear]
    found = []
    if step.secret == "presence" and step.above:
        found += [_missing(fact, people, len(linear) > 1) for fact in linear]
    elif step.secret == "presence":
        found += [
            _said(fact, f"so many values are there that {people} must have one") for fact in linear
        ]
    else:
        found += [_summed(facts, fact, step, people, len(linear) > 1) for fact in linear]
    for each in step.attained:
        fact = facts.order[each]
        found.append(_said(fact, f"somebody in it has its {EXTREMES[fact.kind][0]}"))
    return found


def _count(number: int, one: str, own: bool) -> str:
    return one if number == 1 else f"{'these' if own else 'other'} {number:,}"


def _missing(fact: LinearFact, people: str, several: bool) -> DerivationStep:
    if fact.high == 0 and not any(fact.alpha.tolist()):
        count = len(fact.unit)
        if count == 1:
            return _said(fact, "nobody else is in it, and it has no value: it is missing")
        return _said(fact, f"there are 0 values among {count:,} people in it: all are missing")
    together = "with the other cells, " if several else ""
    return _said(fact, f"{together}no value is left over for {people}")


def _summed(
    facts: NumberFacts, fact: LinearFact, step: CombinedFacts, people: str, several: bool
) -> DerivationStep:
    if several:
        times = step.linear[next(n for n in step.linear if facts.linear[n] is fact)]
        return _said(fact, f"its sum is taken {times} times")
    way = "more" if step.above else "less"
    if len(fact.unit) == 1:
        return _said(fact, f"it is the value of {people}")
    if len(step.units) == len(fact.unit):
        name = "MIN" if step.above else "MAX"
        return _said(
            fact, f"its average over {len(fact.unit):,} people is their {name}, so all are equal"
        )
    return _said(fact, f"whatever the others in it are, {people} cannot have {way}")
