"""Decide about one private number by classes: who is exposed, known to be missing, or free.

Source     Source document 002, "Beyond linear queries".
Guarantee  An exposed value, and that one is missing, has a proof that the verifier accepts, or
           follows by rank. Whoever is free shares a class with another value, or is moved by a
           change that keeps every fact in exact arithmetic. All others are undecided.
Cost       Sound partial verdicts come first: exchanges, ranges, linear programs, integer programs.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.classes.certificate import ClassProof
from casemate.audit.classes.changes import ClassChange, FactCheck, false_facts
from casemate.audit.classes.facts import NumberFacts, facts_of
from casemate.audit.classes.partition import Classes
from casemate.audit.classes.proofs import ProofSearch, irreducible
from casemate.audit.classes.propagation import Propagation
from casemate.audit.classes.search import (
    ClassStanding,
    Decisions,
    SecondTableSearch,
    exchange,
    move_apart,
)
from casemate.audit.interrupts import CheckBroken
from casemate.audit.time_limit import Clock
from casemate.exact import Certificate

KnownChanges = dict[str, list[ClassChange]]
"""Changes of one table, by the private number that they are of."""

TRIES_FOR_ONE_CLASS = 4
"""Patterns that are tried for a single class before an integer program says where to look."""

PROPAGATION_SHARE = 0.5
"""How much of the time that is left may go by for ranges, and then for verifying what they show."""

MAX_MULTIPLIER_SECONDS = 8.0
"""The longest that all linear programs for proofs may take."""

MAX_INTEGER_PROGRAM_SECONDS = 20.0
"""The longest that all integer programs may take."""

MAX_SHORTENING_SECONDS = 2.0
"""The longest that all proofs together are shortened."""

OPEN_REASON = (
    "extremes, medians, comparisons and missing values of {}: neither a second table nor a proof "
    "was found"
)
PARTIAL_REASON = (
    "other secrets beside extremes and medians of {}, of which it is secret who has none: no proof "
    "was found"
)
LIMIT_REASON = "the limit of time came before {} was decided"


@dataclass(frozen=True, eq=False, repr=False)
class ClassVerdicts:
    """What was decided about the units of one private number.

    `proofs` are for those exposed and those known to be missing; `by_rank` are units whose value
    follows by rank. `false` are statements whose answers the table does not give.
    """

    facts: NumberFacts
    classes: Classes
    standing: NDArray[np.int8]
    proofs: tuple[ClassProof, ...]
    changes: tuple[ClassChange, ...]
    false: tuple[int, ...] = ()
    late: bool = False

    def units(self, standing: ClassStanding) -> NDArray[np.int64]:
        """The units of this standing."""
        of_unit = np.repeat(self.standing, self.classes.size)
        return np.sort(self.classes.order[of_unit == standing])

    @property
    def reason(self) -> str:
        """Why some are undecided."""
        if not self.facts.complete:
            return PARTIAL_REASON.format(self.facts.name)
        return (LIMIT_REASON if self.late else OPEN_REASON).format(self.facts.name)


def decide_by_classes(
    case: Case,
    name: str,
    certificates: Mapping[int, Certificate],
    clock: Clock,
    known: KnownChanges | None = None,
) -> ClassVerdicts | None:
    """Decide about a private number; None where its facts are not of this kind.

    `certificates` are those of units whose value follows by rank. `known` are changes that kept
    other facts about the same table: each is tried here first, and what is found is added.
    """
    facts = facts_of(case, name)
    if facts is None or not facts.possible:
        return None
    check = FactCheck(Classes.of(facts))
    linear, order = false_facts(facts, check)
    if linear:
        return None
    false = sorted({facts.order[each].place.query for each in order})
    if false:
        kept = tuple(each for each in facts.order if each.place.query not in false)
        facts = replace(facts, order=kept)
        check = FactCheck(Classes.of(facts))
    decisions, changes = Decisions(check.classes), ({} if known is None else known)
    for change in changes.get(name, ()):
        own = change.among(check.classes.label >= 0)  # nothing is published about the others now
        if len(own) and check.keeps(own):
            decisions.free(own)
    found = replace(_decide(decisions, check, certificates, clock), false=tuple(false))
    changes[name] = list(dict.fromkeys([*changes.get(name, ()), *found.changes]))
    return found if facts.complete else _without_free(found)


def _without_free(found: ClassVerdicts) -> ClassVerdicts:
    """What follows still does where more was published; a second table need not keep that."""
    known = [
        found.facts.is_known(int(unit)) for unit in found.classes.order[found.classes.start[:-1]]
    ]
    open_ = (found.standing == ClassStanding.FREE) & ~np.array(known, np.bool_)
    return replace(found, standing=np.where(open_, ClassStanding.OPEN, found.standing), changes=())


def _decide(
    decisions: Decisions, check: FactCheck, certificates: Mapping[int, Certificate], clock: Clock
) -> ClassVerdicts:
    classes = check.classes
    if len(classes):
        first = (int(classes.members(which)[0]) for which in range(len(classes)))
        known = [which for which, unit in enumerate(first) if classes.facts.is_known(unit)]
        decisions.standing[known] = ClassStanding.FREE  # nothing was to be found out
        exchange(decisions)
        move_apart(decisions, check)
    proofs: list[ClassProof] = []
    if len(decisions.open):
        with suppress(CheckBroken):  # what is proved by then is kept, everybody else stays open
            _search(decisions, check, certificates, clock, proofs)
            shorter = clock.within(MAX_SHORTENING_SECONDS)
            for place, proof in enumerate(proofs):
                proofs[place] = irreducible(classes.facts, proof, shorter)
    return ClassVerdicts(
        classes.facts,
        classes,
        decisions.standing,
        tuple(proofs),
        tuple(decisions.changes),
        late=clock.over,
    )


def _search(
    decisions: Decisions,
    check: FactCheck,
    certificates: Mapping[int, Certificate],
    clock: Clock,
    proofs: list[ClassProof],
) -> None:
    """Look for proofs and second tables of whoever is open; both are noted as they are found."""
    share = clock.seconds_left * PROPAGATION_SHARE
    ranges = Propagation(check.classes, clock.within(share))
    search = ProofSearch(decisions, ranges, check, clock, proofs)
    search.by_propagation(clock.within(clock.seconds_left * PROPAGATION_SHARE))
    search.by_rank(certificates)
    if not len(decisions.open) or clock.over:
        return
    tables = SecondTableSearch(decisions, ranges, check, clock)
    tables.many_at_once()
    tables.in_small_groups()
    tables.one_by_one(TRIES_FOR_ONE_CLASS)
    search.by_multipliers(clock.within(MAX_MULTIPLIER_SECONDS))
    if len(decisions.open) and not clock.over:
        from casemate.audit.classes.counting import CountSearch, can_be_counted  # loads CP-SAT

        if can_be_counted(ranges):
            proofs += CountSearch(decisions, ranges, check, clock).run()
    search.by_whole_numbers(tables, clock.within(MAX_INTEGER_PROGRAM_SECONDS))
