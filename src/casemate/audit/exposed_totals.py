"""Whose totals the published numbers give away, by rank, within bounds, and among whole numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.audit.determined import Determined, in_terms_of
from casemate.audit.exposed import in_numbers
from casemate.audit.integers import Decided as WholeNumbers
from casemate.audit.integers import tightened
from casemate.audit.result import Certificate, Exposed, Proof
from casemate.audit.totals import Total, totals
from casemate.audit.whole_totals import whole_totals
from casemate.query.expression import Scalar
from casemate.query.linear import Category
from casemate.solve.bounds import Bounds
from casemate.solve.certificate import certify_targets
from casemate.solve.combinations import Combinations, single_values, spanned
from casemate.solve.order_limit import Clock


@dataclass(frozen=True)
class Fact:
    """A total that follows, and how."""

    total: Total
    value: Fraction
    certificate: Certificate | None
    by: int | None
    proof: Proof


Found = tuple[tuple[Exposed, ...], tuple[Scalar, ...]]
"""Whose totals follow, and for whom that was not decided, named by the person's first row."""


def exposed_totals(case: Case, known: Determined, whole: WholeNumbers, clock: Clock) -> Found:
    """Whose totals follow, where not every row by itself does."""
    singles = {*known.by, *whole.ranges.fixed}
    wanted = [each for each in totals(case) if not singles.issuperset(each.target)]
    if not wanted:
        return (), ()
    facts, unproved = _by_rank(case, known, wanted)
    if _bounds_say_more(case, known, whole.ranges):
        rest = [each for each in wanted if each not in facts]
        more, undecided = _by_bounds(case, whole, rest, clock)
        facts, unproved = facts | more, unproved - more.keys() | undecided
    people = case.equations.people
    unsure = sorted({total.first for total in unproved})
    entries = _entries(case, [facts[total] for total in wanted if total in facts])
    return tuple(entries), tuple(people.record(first) for first in unsure)


# Which of them follow -------------------------------------------------------------------------


Decided = tuple[dict[Total, Fact], set[Total]]
"""The totals that follow, and those of which that is not proved."""


def _by_rank(case: Case, known: Determined, wanted: Sequence[Total]) -> Decided:
    """Totals with a checked certificate, and those that follow without a readable one."""
    combinations = Combinations.of([each.target for each in wanted])
    inside, determined = spanned(combinations, known.collapsed, known.found)
    chosen = np.flatnonzero(determined).tolist()
    targets = [inside.target(i) for i in chosen]
    place = {id(target): wanted[i] for target, i in zip(targets, chosen, strict=True)}
    facts: dict[Total, Fact] = {}
    for found in certify_targets(known.collapsed.system, known.found.block, targets):
        total = place[id(found.target)]
        combination = in_terms_of(case.exact.rows, found)
        value = total.value(combination.value(case.equations.low))
        by = case.equations.places[max(combination.coefficients)].query
        facts[total] = Fact(total, value, in_numbers(case, combination), by, Proof.RANK)
    return facts, {wanted[i] for i in chosen} - facts.keys()


def _bounds_say_more(case: Case, known: Determined, left: Bounds) -> bool:
    """Whether bounds leave less than the equations do: they fix columns, or there are ranges."""
    region, box = case.region, case.box
    ranges = any(low != high for low, high in zip(region.low, region.high, strict=True))
    bounded = any(end is not None for end in (*box.low, *box.high))
    return bounded and not left.contradiction and (ranges or not known.by.keys() >= {*left.fixed})


def _by_bounds(case: Case, whole: WholeNumbers, wanted: Sequence[Total], clock: Clock) -> Decided:
    """Totals that have one value within what is left of every range, and among whole numbers."""
    region = case.region.within(tightened(case.box, whole.ranges))
    found = single_values(region, Combinations.of([each.target for each in wanted]))
    proofs = {wanted[i]: (amount, Proof.BOUNDS) for i, amount in found.values.items()}
    rest = [each for i, each in enumerate(wanted) if i not in found.values]
    second = whole_totals(case, region, rest, whole.changes, clock)
    proofs |= {total: (amount, Proof.INTEGER) for total, amount in second.values.items()}
    facts = {
        total: Fact(total, total.value(amount), None, None, proof)
        for total, (amount, proof) in proofs.items()
    }
    unproved = {wanted[i] for i in found.undecided} - second.free - facts.keys()
    return facts, unproved | second.undecided


# What is shown of them ------------------------------------------------------------------------


def _entries(case: Case, facts: Sequence[Fact]) -> list[Exposed]:
    """One entry for each person and column, by the first fact about them that shows something."""
    grouped: dict[tuple[int, str], list[Fact]] = {}
    for fact in facts:
        grouped.setdefault((fact.total.first, fact.total.column), []).append(fact)
    entries = []
    for (first, name), about in grouped.items():
        value = _shown(case, about)
        if value is not None:
            entries.append(_entry(case.equations.people.person(first), name, value, about[0]))
    return entries


def _entry(person: Scalar, name: str, value: Fraction | tuple[Scalar, ...], fact: Fact) -> Exposed:
    return Exposed(None, person, name, value, fact.certificate, fact.by, fact.proof, total=True)


def _shown(case: Case, about: Sequence[Fact]) -> Fraction | tuple[Scalar, ...] | None:
    """The values that occur as often as is known, else the sum; None if only absences follow."""
    total = about[0].total
    counts = {f.total.counted: int(f.value) for f in about if f.total.counted is not None}
    declared = case.declared(total.column)
    if len(declared) == 2 and counts:
        rows = int(case.equations.people.sizes[total.first])
        counts[Category(declared[1])] = rows - counts[Category(declared[0])]
    values = tuple(v for v in declared for _ in range(counts.get(Category(v), 0)))
    sums = [fact.value for fact in about if fact.total.counted is None]
    return values or (sums[0] if sums else None)
