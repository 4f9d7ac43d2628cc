"""Insiders: whose values follow for somebody who knows everything private about a few records.

Guarantee  What a single person learns from values one by one is decided for everybody, by the
           exact numbers alone; every claim is proved in integers. What follows only from several
           values together, and larger coalitions, are searched within a budget, and what was not
           is said. Bounds and types are left to `approximate`.

From parts that insiders learn to whole values: a number, or a category out of its 0/1 parts.

What a few records give away together: totals of small groups, and values that insiders learn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.groups import (
    Proofs,
    SecretParts,
    Weights,
    claimed_groups,
    parts,
    proofs,
    proved_groups,
    splits,
    whole,
)
from casemate.audit.checks.rank import DeterminedByRank
from casemate.audit.region.bounds import Bounds
from casemate.audit.region.coalition import BUDGET, Kin, coalitions, kin, vectors_for
from casemate.audit.result import Exposed, Group, InsiderExposed
from casemate.exact import Exposure, NullVectors, more_null_vectors
from casemate.published import column_values
from casemate.query.language import Scalar

LISTED = 20
"""At most so many insiders are listed for one value."""

MOST_VECTORS = 32


@dataclass(frozen=True)
class LearnedPart:
    """People who learn a part from parts of theirs."""

    knows: frozenset[int]
    part: int
    shares: Mapping[int, Fraction] = field(hash=False, compare=False)

    @property
    def claim(self) -> Weights:
        """What has to be proved."""
        return whole(self.shares, self.part)


@dataclass(frozen=True)
class ProportionalParts:
    """Parts in proportion to each other; the first has the ratio 1."""

    ratios: Mapping[int, Fraction]

    def claims(self) -> dict[int, Weights]:
        """What has to be proved of each member but the first."""
        first, *others = self.ratios
        return {part: whole({first: self.ratios[part]}, part) for part in others}


@dataclass(frozen=True, eq=False)
class ClaimedInsiders:
    """Families of parts of which each gives away the others, and what else is learned."""

    families: tuple[ProportionalParts, ...]
    facts: tuple[LearnedPart, ...]
    notes: tuple[str, ...]
    unread: int

    def claims(self) -> list[Weights]:
        """What has to be proved: each member of a family in terms of its first, and the facts."""
        leading = [claim for each in self.families for claim in each.claims().values()]
        return [*leading, *(fact.claim for fact in self.facts)]


def families(found: Exposure) -> tuple[list[ProportionalParts], int]:
    """The parts that give each other away, and how often a ratio was too large to be read."""
    readable: list[ProportionalParts] = []
    unread = 0
    for each in kin(found):
        led: dict[int, dict[int, Fraction]] = {}
        for place, column in enumerate(each.columns):
            _join(led, each, place, column)
        readable += [ProportionalParts(ratios) for ratios in led.values() if len(ratios) > 1]
        unread += len(led) - 1
    return readable, unread


def _join(led: dict[int, dict[int, Fraction]], kin: Kin, place: int, column: int) -> None:
    """Put a member with the first leader to whom its ratio can be read, or make it one."""
    for leader, members in led.items():
        ratio = kin.ratio(place, leader)
        if ratio is not None:
            members[column] = ratio
            return
    led[place] = {column: Fraction(1)}


def claimed_insiders(
    case: Case, known: DeterminedByRank, parts: SecretParts, found: Exposure, most: int
) -> ClaimedInsiders:
    """What null vectors say that up to `most` people learn together."""
    related, unread = families(found) if most else ([], 0)
    facts: list[LearnedPart] = []
    notes: list[str] = []
    together = list(_together(case, known, parts, found))
    for size in range(1, most + 1):
        for indices in together:
            if size == 1 and not _several(parts, indices):
                continue  # nobody has two values that count here: families say it all
            learned, complete = _searched(known, parts, indices, size)
            facts += [fact for fact in learned if fact.shares]
            unread += sum(not fact.shares for fact in learned)
            if not complete:
                notes.append(_unsearched(size))
    return ClaimedInsiders(tuple(related), tuple(facts), tuple(dict.fromkeys(notes)), unread)


def _unsearched(size: int) -> str:
    if size == 1:
        return (
            "what somebody learns from several values of theirs together was not searched in full"
        )
    return f"what {size} insiders learn together was not searched in full"


def _together(
    case: Case, known: DeterminedByRank, parts: SecretParts, found: Exposure
) -> Iterator[list[int]]:
    """The undetermined parts that can have to do with each other."""
    free = np.flatnonzero(~found.determined).tolist()
    if not splits(case, known):
        yield free
        return
    kinds: dict[object, list[int]] = {}
    for index in free:
        if len(parts.listed[index].columns) == 1:  # a last value follows from the others here
            kinds.setdefault(parts.listed[index].unknown, []).append(index)
    yield from kinds.values()


def _several(parts: SecretParts, indices: Sequence[int]) -> int:
    """The most parts that one person has more than one of, or 0."""
    most = int(np.unique(parts.owner[list(indices)], return_counts=True)[1].max(initial=0))
    return most if most > 1 else 0


def _searched(
    known: DeterminedByRank, parts: SecretParts, indices: Sequence[int], size: int
) -> tuple[tuple[LearnedPart, ...], bool]:
    """What coalitions of one size learn of these parts, and whether all of it was searched."""
    count = vectors_for(size, max(1, _several(parts, indices)))
    if count > MOST_VECTORS or len(indices) > BUDGET:
        return (), False
    null = parts.points(more_null_vectors(known.collapsed.system, known.found, count))
    chosen = NullVectors(null.prime, null.rank, null.vectors[:, list(indices)])
    search = coalitions(chosen, parts.owner[list(indices)], size)
    facts = tuple(
        LearnedPart(
            frozenset(each.knows),
            indices[each.point],
            {indices[k]: share for k, share in (each.shares or {}).items()},
        )
        for each in search.found
    )
    return facts, not search.undecided


# What of it is proved -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InsiderFindings:
    """For each part who learns it, and how many claims could not be proved."""

    by_part: Mapping[int, tuple[LearnedPart, ...]]
    unproved: int
    shortened: bool


def proved_insiders(
    claimed: ClaimedInsiders, parts: SecretParts, proofs: Proofs
) -> InsiderFindings:
    """Keep what is proved, the smallest coalitions for each part."""
    found: dict[int, list[LearnedPart]] = {}
    unproved, shortened = claimed.unread, False
    for family in claimed.families:
        failed = {part for part, claim in family.claims().items() if not proofs.holds(claim)}
        unproved += len(failed)
        members = {part: ratio for part, ratio in family.ratios.items() if part not in failed}
        for part, facts in _mutual(members, parts).items():
            found.setdefault(part, []).extend(facts)
        shortened |= len(members) > LISTED + 1
    for fact in claimed.facts:
        if not proofs.holds(fact.claim):
            unproved += 1
        elif not any(other.knows <= fact.knows for other in found.get(fact.part, ())):
            found.setdefault(fact.part, []).append(fact)
    return InsiderFindings(
        {part: tuple(facts) for part, facts in found.items()}, unproved, shortened
    )


def _mutual(members: Mapping[int, Fraction], parts: SecretParts) -> dict[int, list[LearnedPart]]:
    """Each member of a family learned by each other one, up to a number."""
    first = list(members)[: LISTED + 1]
    found: dict[int, list[LearnedPart]] = {}
    for part in members:
        owner = parts.listed[part].owner
        others = [each for each in first if each != part and parts.listed[each].owner != owner]
        found[part] = [
            LearnedPart(frozenset({parts.listed[o].owner}), part, {o: members[part] / members[o]})
            for o in others[:LISTED]
        ]
    return found


def unions(facts: Sequence[LearnedPart], most: int) -> list[frozenset[int]]:
    """The coalitions that learn something, and those that put together what they learn."""
    found = dict.fromkeys(fact.knows for fact in facts)
    for size in range(2, most + 1):
        for some in combinations(list(found)[:LISTED], size):
            together = frozenset().union(*some)
            if len(together) <= most:
                found.setdefault(together)
    return sorted(found, key=lambda each: (len(each), sorted(each)))


# Learned ----------------------------------------------------------------------------------------


Secret = tuple[int, str]
"""The position of a record, and a private column."""


@dataclass(frozen=True, eq=False)
class Learners:
    """The secrets that insiders may learn, and what everybody knows of them."""

    case: Case
    parts: SecretParts
    determined: NDArray[np.bool_]
    left: Bounds

    def listed(
        self, learning: InsiderFindings, most: int, shown: Sequence[Exposed]
    ) -> tuple[tuple[InsiderExposed, ...], bool]:
        """Everybody whose value follows for insiders, and whether some of those were left out."""
        seen = {(each.record, each.column) for each in shown}
        found: list[InsiderExposed] = []
        cut = False
        for (record, name), facts in sorted(self._by_secret(learning).items()):
            if (self.case.equations.people.record(record), name) not in seen:
                entries = list(self._entries((record, name), facts, most))
                cut |= len(entries) > LISTED
                found += entries[:LISTED]
        return tuple(found), cut

    def _by_secret(self, learning: InsiderFindings) -> dict[Secret, list[LearnedPart]]:
        about: dict[Secret, list[LearnedPart]] = {}
        for index, facts in learning.by_part.items():
            part = self.parts.listed[index]
            if not all(self.case.settled(column) for column in part.columns):
                about.setdefault((part.record, part.unknown.column), []).extend(facts)
        return about

    def _entries(
        self, secret: Secret, facts: Sequence[LearnedPart], most: int
    ) -> Iterator[InsiderExposed]:
        """The smallest coalitions that learn the value."""
        done: list[frozenset[int]] = []
        for knows in unions(facts, most):
            used = [fact for fact in facts if fact.knows <= knows]
            smaller = any(each <= knows for each in done)
            if not smaller and self._follows(secret, {fact.part for fact in used}):
                done.append(knows)
                yield self._entry(secret, used)

    def _entry(self, secret: Secret, used: Sequence[LearnedPart]) -> InsiderExposed:
        people = self.case.equations.people
        rows = {self.parts.listed[part].record for fact in used for part in fact.shares}
        names = tuple(people.record(row) for row in sorted(rows))
        return InsiderExposed(people.record(secret[0]), secret[1], names)

    def _follows(self, secret: Secret, learned: set[int]) -> bool:
        """Whether a value follows from the parts learned, and those that everybody knows."""
        own = [(index, self.parts.listed[index].unknown) for index in self._own[secret]]
        value = self._true(secret[1])[self.case.equations.people.record(secret[0])]
        if own[0][1].category is None:  # 0 may also stand for a missing number
            column = self.parts.listed[own[0][0]].columns[0]
            return bool(value) or not self.case.may_be_missing(column)
        known = [
            unknown.of(value) for index, unknown in own if index in learned or self._public(index)
        ]
        return 1 in known or len(known) >= len(self.case.declared(secret[1])) - 1

    @cached_property
    def _own(self) -> dict[Secret, list[int]]:
        """The parts of each secret."""
        own: dict[Secret, list[int]] = {}
        for index, part in enumerate(self.parts.listed):
            own.setdefault((part.record, part.unknown.column), []).append(index)
        return own

    def _public(self, index: int) -> bool:
        """Whether a part is known to everybody."""
        low, high = self.left.low, self.left.high
        columns = self.parts.listed[index].columns
        fixed = all(low[column] is not None and low[column] == high[column] for column in columns)
        return fixed or bool(self.determined[index])

    def _true(self, name: str) -> dict[Scalar, Scalar]:
        """What the table says of a category: it decides how much a part gives away."""
        if name not in self._read:
            self._read[name] = column_values(name, self.case.source)
        return self._read[name]

    @cached_property
    def _read(self) -> dict[str, dict[Scalar, Scalar]]:
        return {}


# Together ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Together:
    """Totals, who learns what from whom, and sentences about what was not searched."""

    groups: tuple[Group, ...] = ()
    insiders: tuple[InsiderExposed, ...] = ()
    notes: tuple[str, ...] = ()


def together(
    case: Case,
    known: DeterminedByRank,
    left: Bounds,
    shown: Sequence[Exposed],
    *,
    group_size: int,
    insiders: int,
) -> Together:
    """Look for groups of up to so many people, and for so many insiders."""
    small = parts(case, known, max(group_size, insiders + 1))
    if not small.listed:
        return Together()
    found = small.exposure(known.found)
    groups = claimed_groups(small, found, group_size)
    inside = claimed_insiders(case, known, small, found, insiders)
    proved = proofs(case, known, small, [*groups.claims(), *inside.claims()])
    learning = proved_insiders(inside, small, proved)
    learners = Learners(case, small, found.determined, left)
    listed, cut = learners.listed(learning, insiders, shown)
    return Together(
        proved_groups(case, small, groups, proved, shown),
        listed,
        (*groups.notes, *inside.notes, *_more_notes(learning, cut)),
    )


def _more_notes(learning: InsiderFindings, cut: bool) -> Iterator[str]:
    if learning.unproved:
        yield (
            f"values that insiders may learn and that are left out, because the multiples that "
            f"would prove them have too many digits: {learning.unproved}"
        )
    if cut or learning.shortened:
        yield f"of the insiders who learn one value at most {LISTED} are listed"
