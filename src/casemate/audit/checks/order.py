"""What extremes, medians, comparisons and missing values give away: by classes, else by engines.

A private number is decided by classes wherever nothing else shares its equations, no comparison was
published and the answers are the table's own; the engines of `order` decide the rest, and what
classes leave open of a short log.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case, name_of
from casemate.audit.checks.rank import DeterminedByRank
from casemate.audit.classes.certificate import ClassProof
from casemate.audit.classes.changes import ClassChange
from casemate.audit.classes.decide import ClassVerdicts, KnownChanges, decide_by_classes
from casemate.audit.classes.derivation import derivation, tipping_query
from casemate.audit.classes.facts import NumberFacts, cuts_of, is_hidden
from casemate.audit.classes.search import ClassStanding
from casemate.audit.order.audit import Copies, Derived, Nodes, Ordered, OrderLog, by_order
from casemate.audit.order.case import Witness
from casemate.audit.region.second import components
from casemate.audit.result import Proof
from casemate.audit.time_limit import Clock
from casemate.exact import Certificate, Domain, Exact, OrderQuestion
from casemate.query.records import Cut, Unknown


def values_by_order_and_absence(
    case: Case, by_rank: DeterminedByRank, clock: Clock, known: KnownChanges | None = None
) -> list[Ordered]:
    """What is decided about each private number that an extreme, a median or a gap is about.

    `known` are changes found under other logs about the same table, which are tried first.
    """
    found: list[Ordered] = []
    for name in _names(case):
        certificates = _certificates(case, by_rank, name)
        verdicts = decide_by_classes(case, name, certificates, clock, known)
        if verdicts is not None:
            found.append(_ordered(case, verdicts))
    decided = {each.column for each in found if not _is_left_to_engines(case, each)}
    by_engines = {each.column: each for each in by_order(case, clock, decided)}
    joined = [_joined(case, each, by_engines.pop(each.column, None)) for each in found]
    return [*joined, *by_engines.values()]


MAX_ENGINE_UNITS = 1_000
"""The engines look at people one by one: of longer logs they would decide nothing more in time."""


def _is_left_to_engines(case: Case, found: Ordered) -> bool:
    """Whether something is open that engines read more of, or in a log that is short enough."""
    if not found.undecided or cuts_of(case, found.column):
        return bool(found.undecided)
    short = len(found.log.asked_positions()) < MAX_ENGINE_UNITS
    return short and not (is_hidden(case, found.column) and found.complete)


def _joined(case: Case, found: Ordered, other: Ordered | None) -> Ordered:
    """What classes decided, and of what they left open what the engines say."""
    if other is None:
        return found
    left = {place for place, name in found.undecided if name == found.column}
    more = {place: each for place, each in other.exposed.items() if place in left}
    if is_hidden(case, found.column):  # the engines do not read these extremes: they free nobody
        still = (each for each in found.undecided if each not in {(p, found.column) for p in more})
        return replace(
            found,
            exposed={**found.exposed, **more},
            undecided=tuple(still),
            others=other.others,
            covered=found.covered | other.covered,
            behind=other.behind,
        )
    return replace(
        found,
        exposed={**found.exposed, **more},
        undecided=tuple(each for each in found.undecided if each in set(other.undecided)),
        others=other.others,
        covered=_covered(case, found, other),
        totals=other.totals,
        witnesses=(*found.witnesses, *other.witnesses),
        behind=other.behind,
    )


def _covered(case: Case, found: Ordered, other: Ordered) -> frozenset[int]:
    """The columns that classes or engines decided; of those in sums alone other checks say it."""
    left = {place for place, _ in found.undecided}
    mine = (c for c in found.covered if int(case.equations.record[c]) not in left)
    return frozenset(mine) | other.covered


def _names(case: Case) -> list[str]:
    """The numbers that only order or absence decides; others are decided as whole numbers."""
    ordered = set(map(name_of, case.publication.ordered))
    absent = (each.column for each in case.equations.unknowns if each.category == Cut(None))
    compared = {case.secret(column) for column in Nodes(case).cuts}
    names = dict.fromkeys([*map(name_of, case.publication.ordered), *absent, *sorted(compared)])
    return [each for each in names if each in ordered | compared or not cuts_of(case, each)]


def _certificates(case: Case, by_rank: DeterminedByRank, name: str) -> dict[int, Certificate]:
    number = Unknown(name)
    return {
        int(case.equations.record[column]): certificate
        for column, certificate in by_rank.singles.items()
        if case.unknown(column) == number
    }


def _ordered(case: Case, verdicts: ClassVerdicts) -> Ordered:
    facts, name = verdicts.facts, verdicts.facts.name
    exposed, missing = dict[int, tuple[Fraction, str]](), dict[int, Derived]()
    derived: dict[int, Derived] = {}
    for proof in verdicts.proofs:
        reason = Derived(tipping_query(facts, proof), derivation(facts, proof))
        for unit in proof.units:
            if proof.value is None:
                missing[unit] = reason
            else:
                exposed[unit], derived[unit] = (proof.value, _kind(proof, facts, unit)), reason
    mine = [
        column for column in range(case.equations.system.columns) if case.secret(column) == name
    ]
    open_ = _open_totals(verdicts)
    undecided = {(unit, name) for unit in verdicts.units(ClassStanding.OPEN).tolist()}
    if not facts.complete:
        decided = {(unit, name) for unit in (*exposed, *missing)}
        undecided |= _linked(case, name) - decided
    log, tied = _log(facts)
    return Ordered(
        name,
        exposed,
        tuple(sorted({*undecided, *((first, name) for first in open_)})),
        {},
        log,
        tied,
        tuple(_witness(change, facts) for change in verdicts.changes),
        verdicts.false,
        {},
        frozenset(mine) if facts.complete else frozenset(),
        frozenset(fact.place.query for fact in facts.order),
        missing,
        derived,
        verdicts.reason,
        complete=facts.complete,
    )


def _linked(case: Case, name: str) -> set[tuple[int, str]]:
    """The secrets that equations tie to a number, directly or through others."""
    system, record = case.region.system, case.equations.record.tolist()
    label = components(system, np.ones(system.columns, np.bool_))
    own = [column for column in range(len(record)) if case.secret(column) == name]
    reached = np.flatnonzero(np.isin(label, label[own]))
    return {(record[column], case.secret(column)) for column in reached.tolist()}


def _kind(proof: ClassProof, facts: NumberFacts, unit: int) -> str:
    """How a value is known: with extremes, or with bounds and types alone."""
    _, order = proof.cells
    if order and not proof.is_searched:
        return Proof.ORDER
    whole = facts.priors[int(facts.prior[unit])].whole
    return Proof.INTEGER if whole else Proof.BOUNDS


def _witness(change: ClassChange, facts: NumberFacts) -> Witness:
    pairs = list(change.items(facts.scale))
    units = np.array([unit for unit, _ in pairs], np.int64)
    return Witness(units, tuple(value for _, value in pairs))


# The same facts as questions, which judge second tables -------------------------------------------


def _log(facts: NumberFacts) -> tuple[OrderLog, frozenset[int]]:
    """The extremes and medians as questions; somebody who counts twice is there twice."""
    copies, questions = Copies(facts.name, facts.people), list[OrderQuestion]()
    for fact in facts.order:
        times = fact.times if fact.kind == "median" else np.ones_like(fact.times)
        members = copies.repeated(fact.unit, times)
        questions.append(OrderQuestion(fact.kind, members, fact.low, fact.high))
    truth: list[Exact | None] = [facts.value(unit) for unit in range(len(facts.present))]
    for copy, owner in copies.tied.items():
        truth[copy] = truth[owner]
    priors = [facts.priors[which] for which in facts.prior.tolist()]
    whole = all(facts.priors[which].whole for which in np.unique(facts.prior[facts.asked]).tolist())
    domain = Domain(tuple(each.low for each in priors), tuple(each.high for each in priors), whole)
    return OrderLog(questions, domain, truth), frozenset(copies.tied)


# What all rows of a person come to ----------------------------------------------------------------


def _open_totals(verdicts: ClassVerdicts) -> set[int]:
    """Whose total was not decided, by the person's first row; by classes none follows.

    A change in which a total differs shows it to be free, and so does an exchange of one row with a
    row of somebody else.
    """
    facts = verdicts.facts
    people = facts.people
    if facts.name in people.constant or people.alone:
        return set()
    free = set(_moved_totals(verdicts))
    asked = set(facts.asked.tolist())
    exposed = {
        *verdicts.units(ClassStanding.EXPOSED).tolist(),
        *verdicts.units(ClassStanding.MISSING).tolist(),
    }
    open_ = set[int]()
    for first in np.flatnonzero(people.sizes > 1).tolist():
        everything = people.rows(first)
        rows = set(everything[facts.present[everything] | facts.may_miss[everything]].tolist())
        unsettled = first not in free and rows <= asked and not rows <= exposed
        if unsettled and not any(_can_be_exchanged(verdicts, row, rows) for row in rows):
            open_.add(first)
    return open_


def _moved_totals(verdicts: ClassVerdicts) -> Iterator[int]:
    facts = verdicts.facts
    for change in verdicts.changes:
        moved: dict[int, Fraction] = {}
        for unit, value in change.items(facts.scale):
            first = int(facts.people.first[unit])
            own = facts.value(unit) or Fraction(0)
            moved[first] = moved.get(first, Fraction(0)) + (value or Fraction(0)) - own
        yield from (first for first, amount in moved.items() if amount)


def _can_be_exchanged(verdicts: ClassVerdicts, row: int, rows: set[int]) -> bool:
    """Whether somebody else's row of the same class has another value."""
    classes, facts = verdicts.classes, verdicts.facts
    own = facts.value(row) or Fraction(0)
    others = classes.members(int(classes.label[row])).tolist()
    return any((facts.value(o) or Fraction(0)) != own for o in others if o not in rows)
