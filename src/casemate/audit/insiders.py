"""Insiders: whose values follow for somebody who knows everything private about a few records.

Guarantee  What a single person learns from values one by one is decided for everybody, by the
           exact numbers alone; every claim is proved in integers. What follows only from several
           values together, and larger coalitions, are searched within a budget, and what was not
           is said. Bounds and types are left to `approximate`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from casemate.audit.case import Case
from casemate.audit.claims import Proofs, Weights, whole
from casemate.audit.determined import Determined
from casemate.audit.parts import Parts, splits
from casemate.solve.coalition import BUDGET, coalitions, vectors_for
from casemate.solve.exposure import Exposure, more_null_vectors
from casemate.solve.kinship import Kin, kin
from casemate.solve.null_space import NullVectors

LISTED = 20
"""At most so many insiders are listed for one value."""

MOST_VECTORS = 32


@dataclass(frozen=True)
class Fact:
    """People who learn a part from parts of theirs."""

    knows: frozenset[int]
    part: int
    shares: Mapping[int, Fraction] = field(hash=False, compare=False)

    @property
    def claim(self) -> Weights:
        """What has to be proved."""
        return whole(self.shares, self.part)


@dataclass(frozen=True)
class Family:
    """Parts in proportion to each other; the first has the ratio 1."""

    ratios: Mapping[int, Fraction]

    def claims(self) -> dict[int, Weights]:
        """What has to be proved of each member but the first."""
        first, *others = self.ratios
        return {part: whole({first: self.ratios[part]}, part) for part in others}


@dataclass(frozen=True, eq=False)
class ClaimedInsiders:
    """Families of parts of which each gives away the others, and what else is learned."""

    families: tuple[Family, ...]
    facts: tuple[Fact, ...]
    notes: tuple[str, ...]
    unread: int

    def claims(self) -> list[Weights]:
        """What has to be proved: each member of a family in terms of its first, and the facts."""
        leading = [claim for each in self.families for claim in each.claims().values()]
        return [*leading, *(fact.claim for fact in self.facts)]


def families(found: Exposure) -> tuple[list[Family], int]:
    """The parts that give each other away, and how often a ratio was too large to be read."""
    readable: list[Family] = []
    unread = 0
    for each in kin(found):
        led: dict[int, dict[int, Fraction]] = {}
        for place, column in enumerate(each.columns):
            _join(led, each, place, column)
        readable += [Family(ratios) for ratios in led.values() if len(ratios) > 1]
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
    case: Case, known: Determined, parts: Parts, found: Exposure, most: int
) -> ClaimedInsiders:
    """What null vectors say that up to `most` people learn together."""
    related, unread = families(found) if most else ([], 0)
    facts: list[Fact] = []
    notes: list[str] = []
    together = list(_together(case, known, parts, found))
    for size in range(1, most + 1):
        for indices in together:
            if size == 1 and not _several(parts, indices):
                continue  # nobody has two values that count here: families say it all
            search = _searched(known, parts, indices, size)
            facts += [fact for fact in search.facts if fact.shares]
            unread += sum(not fact.shares for fact in search.facts)
            if not search.complete:
                notes.append(_unsearched(size))
    return ClaimedInsiders(tuple(related), tuple(facts), tuple(dict.fromkeys(notes)), unread)


def _unsearched(size: int) -> str:
    if size == 1:
        return (
            "what somebody learns from several values of theirs together was not searched in full"
        )
    return f"what {size} insiders learn together was not searched in full"


def _together(case: Case, known: Determined, parts: Parts, found: Exposure) -> Iterator[list[int]]:
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


def _several(parts: Parts, indices: Sequence[int]) -> int:
    """The most parts that one person has more than one of, or 0."""
    most = int(np.unique(parts.owner[list(indices)], return_counts=True)[1].max(initial=0))
    return most if most > 1 else 0


@dataclass(frozen=True)
class _Searched:
    facts: tuple[Fact, ...]
    complete: bool


def _searched(known: Determined, parts: Parts, indices: Sequence[int], size: int) -> _Searched:
    """What coalitions of one size learn of these parts."""
    count = vectors_for(size, max(1, _several(parts, indices)))
    if count > MOST_VECTORS or len(indices) > BUDGET:
        return _Searched((), False)
    null = parts.points(more_null_vectors(known.collapsed.system, known.found, count))
    chosen = NullVectors(null.prime, null.rank, null.vectors[:, list(indices)])
    search = coalitions(chosen, parts.owner[list(indices)], size)
    facts = tuple(
        Fact(
            frozenset(each.knows),
            indices[each.point],
            {indices[k]: share for k, share in (each.shares or {}).items()},
        )
        for each in search.found
    )
    return _Searched(facts, not search.undecided)


# What of it is proved -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learning:
    """For each part who learns it, and how many claims could not be proved."""

    by_part: Mapping[int, tuple[Fact, ...]]
    unproved: int
    shortened: bool


def proved_insiders(claimed: ClaimedInsiders, parts: Parts, proofs: Proofs) -> Learning:
    """Keep what is proved, the smallest coalitions for each part."""
    found: dict[int, list[Fact]] = {}
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
    return Learning({part: tuple(facts) for part, facts in found.items()}, unproved, shortened)


def _mutual(members: Mapping[int, Fraction], parts: Parts) -> dict[int, list[Fact]]:
    """Each member of a family learned by each other one, up to a number."""
    first = list(members)[: LISTED + 1]
    found: dict[int, list[Fact]] = {}
    for part in members:
        owner = parts.listed[part].owner
        others = [each for each in first if each != part and parts.listed[each].owner != owner]
        found[part] = [
            Fact(frozenset({parts.listed[o].owner}), part, {o: members[part] / members[o]})
            for o in others[:LISTED]
        ]
    return found


def unions(facts: Sequence[Fact], most: int) -> list[frozenset[int]]:
    """The coalitions that learn something, and those that put together what they learn."""
    found = dict.fromkeys(fact.knows for fact in facts)
    for size in range(2, most + 1):
        for some in combinations(list(found)[:LISTED], size):
            together = frozenset().union(*some)
            if len(together) <= most:
                found.setdefault(together)
    return sorted(found, key=lambda each: (len(each), sorted(each)))
