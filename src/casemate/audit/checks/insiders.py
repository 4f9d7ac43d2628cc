"""Insiders: whose values follow for somebody who knows everything private about a few records.

Null vectors say what coalitions learn, certificates prove it, and `Learners` turns parts that are
learned into whole values: a number, or a category out of its 0/1 parts.

Guarantee  What a single person learns from values one by one is decided for everybody, by the
           exact numbers alone; every claim is proved in integers. What follows only from several
           values together, and larger coalitions, are searched within a budget, and what was not
           is said. Bounds and types are left to `approximate`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.rank import DeterminedByRank
from casemate.audit.checks.secret_parts import (
    ProvedCombinations,
    SecretParts,
    Weights,
    splits,
)
from casemate.audit.region.bounds import Bounds
from casemate.audit.region.coalition import (
    COALITION_BUDGET_POINTS,
    LearnedPart,
    Ratios,
    coalitions,
    vectors_for,
)
from casemate.audit.result import Exposed, InsiderExposed
from casemate.exact import (
    Determined,
    NullVectors,
    more_null_vectors,
)
from casemate.published import column_values
from casemate.query.language import Scalar

MAX_INSIDERS_LISTED = 20
"""At most so many insiders are listed for one value."""

MAX_NULL_VECTORS = 32


def family_claims(family: Ratios) -> dict[int, Weights]:
    """What has to be proved of each member of a family but the first."""
    first, *others = family
    knows = frozenset[int]()
    return {part: LearnedPart(knows, part, {first: family[part]}).claim for part in others}


def learned_facts(
    case: Case, by_rank: DeterminedByRank, parts: SecretParts, found: Determined, max_insiders: int
) -> tuple[list[LearnedPart], list[str]]:
    """What null vectors say that up to `most` people learn only together, and remarks."""
    facts: list[LearnedPart] = []
    notes: list[str] = []
    together = list(_together(case, by_rank, parts, found))
    for size in range(1, max_insiders + 1):
        for indices in together:
            if size == 1 and not _several(parts, indices):
                continue  # nobody has two values that count here: families say it all
            learned, complete = _search_coalitions(by_rank, parts, indices, size)
            facts += learned
            if not complete:
                notes.append(_insiders_unsearched(size))
    return facts, list(dict.fromkeys(notes))


def _insiders_unsearched(size: int) -> str:
    if size == 1:
        return (
            "what somebody learns from several values of theirs together was not searched in full"
        )
    return f"what {size} insiders learn together was not searched in full"


def _together(
    case: Case, by_rank: DeterminedByRank, parts: SecretParts, found: Determined
) -> Iterator[list[int]]:
    """The undetermined parts that can have to do with each other."""
    free = np.flatnonzero(~found.determined).tolist()
    if not splits(case, by_rank):
        yield free
        return
    kinds: dict[object, list[int]] = {}
    for index in free:
        if len(parts.listed[index].columns) == 1:  # a last value follows from the others here
            kinds.setdefault(parts.listed[index].unknown, []).append(index)
    yield from kinds.values()


def _several(parts: SecretParts, indices: Sequence[int]) -> int:
    """The most parts that one person has more than one of, or 0."""
    most_owned = int(np.unique(parts.owner[list(indices)], return_counts=True)[1].max(initial=0))
    return most_owned if most_owned > 1 else 0


def _search_coalitions(
    by_rank: DeterminedByRank, parts: SecretParts, indices: Sequence[int], size: int
) -> tuple[list[LearnedPart], bool]:
    """What coalitions of one size learn of these parts, and whether all of it was searched."""
    count = vectors_for(size, max(1, _several(parts, indices)))
    if count > MAX_NULL_VECTORS or len(indices) > COALITION_BUDGET_POINTS:
        return [], False
    null = parts.points(more_null_vectors(by_rank.collapsed.system, by_rank.found, count))
    chosen = NullVectors(null.prime, null.rank, null.vectors[:, list(indices)])
    learned, complete = coalitions(chosen, parts.owner[list(indices)], size)
    facts = [
        LearnedPart(each.knows, indices[each.part], {indices[k]: x for k, x in each.shares.items()})
        for each in learned
    ]
    return facts, complete


# What of it is proved ---------------------------------------------------------------------------


Learned = dict[int, list[LearnedPart]]
"""For each part who learns it."""


def proved_insiders(
    families: Sequence[Ratios],
    facts: Sequence[LearnedPart],
    parts: SecretParts,
    proofs: ProvedCombinations,
) -> tuple[Learned, int, bool]:
    """Keep what is proved, the smallest coalitions for each part; how many claims were not.

    And whether some family is too large for all of its members to be listed.
    """
    found: Learned = {}
    unproved, shortened = 0, False
    for family in families:
        failed = {part for part, claim in family_claims(family).items() if not proofs.holds(claim)}
        unproved += len(failed)
        members = {part: ratio for part, ratio in family.items() if part not in failed}
        for part, learned in _mutual(members, parts).items():
            found.setdefault(part, []).extend(learned)
        shortened |= len(members) > MAX_INSIDERS_LISTED + 1
    for fact in facts:
        if not fact.shares or not proofs.holds(fact.claim):
            unproved += 1
        elif not any(other.knows <= fact.knows for other in found.get(fact.part, ())):
            found.setdefault(fact.part, []).append(fact)
    return found, unproved, shortened


def _mutual(members: Ratios, parts: SecretParts) -> Learned:
    """Each member of a family learned by each other one, up to a number."""
    first = list(members)[: MAX_INSIDERS_LISTED + 1]
    found: Learned = {}
    for part in members:
        owner = parts.listed[part].owner
        others = [each for each in first if each != part and parts.listed[each].owner != owner]
        found[part] = [
            LearnedPart(frozenset({parts.listed[o].owner}), part, {o: members[part] / members[o]})
            for o in others[:MAX_INSIDERS_LISTED]
        ]
    return found


def unions(facts: Sequence[LearnedPart], max_insiders: int) -> list[frozenset[int]]:
    """The coalitions that learn something, and those that put together what they learn."""
    found = dict.fromkeys(fact.knows for fact in facts)
    for size in range(2, max_insiders + 1):
        for coalition in combinations(list(found)[:MAX_INSIDERS_LISTED], size):
            together = frozenset().union(*coalition)
            if len(together) <= max_insiders:
                found.setdefault(together)
    return sorted(found, key=lambda each: (len(each), sorted(each)))


# From parts to whole values ---------------------------------------------------------------------


Secret = tuple[int, str]
"""The position of a record, and a private column."""


@dataclass(frozen=True, eq=False)
class Learners:
    """The secrets that insiders may learn, and what everybody knows of them."""

    case: Case
    parts: SecretParts
    determined: NDArray[np.bool_]
    ranges: Bounds

    def list_exposed(
        self, learned: Learned, max_insiders: int, exposed: Sequence[Exposed]
    ) -> tuple[tuple[InsiderExposed, ...], bool]:
        """Everybody whose value follows for insiders, and whether some of those were left out."""
        people, already_exposed = (
            self.case.equations.people,
            {(each.record, each.column) for each in exposed},
        )
        about: dict[Secret, list[LearnedPart]] = {}
        for index, facts in learned.items():
            part = self.parts.listed[index]
            if not all(self.case.is_known_beforehand(column) for column in part.columns):
                about.setdefault((part.record, part.unknown.column), []).extend(facts)
        found: list[InsiderExposed] = []
        cut = False
        for record, name in sorted(about):
            if (people.record(record), name) not in already_exposed:
                entries = list(self._entries((record, name), about[record, name], max_insiders))
                cut |= len(entries) > MAX_INSIDERS_LISTED
                found += entries[:MAX_INSIDERS_LISTED]
        return tuple(found), cut

    def _entries(
        self, secret: Secret, facts: Sequence[LearnedPart], max_insiders: int
    ) -> Iterator[InsiderExposed]:
        """The smallest coalitions that learn the value."""
        record = self.case.equations.people.record
        done: list[frozenset[int]] = []
        for knows in unions(facts, max_insiders):
            used = [fact for fact in facts if fact.knows <= knows]
            smaller = any(each <= knows for each in done)
            if not smaller and self._follows(secret, {fact.part for fact in used}):
                done.append(knows)
                rows = {self.parts.listed[part].record for fact in used for part in fact.shares}
                names = tuple(record(row) for row in sorted(rows))
                yield InsiderExposed(record(secret[0]), secret[1], names, self._may_miss(secret))

    def _may_miss(self, secret: Secret) -> bool:
        """Whether everybody takes it to be possible that a number is missing."""
        columns = self.parts.listed[self._own[secret][0]].columns
        presence = self.case.presence(columns[0])
        return presence is not None and self.ranges.low[presence] != 1

    def _follows(self, secret: Secret, learned: set[int]) -> bool:
        """Whether a value follows from the parts learned, and those that everybody knows.

        Of a number that may be missing it is what it adds, and it is listed whatever that is, and
        said to be no more: else the list would tell who has none.
        """
        parts = [(index, self.parts.listed[index].unknown) for index in self._own[secret]]
        numbers = [index for index, unknown in parts if unknown.category is None]
        if numbers:
            return any(index in learned or self._public(index) for index in numbers)
        value = self._true[secret[1]][self.case.equations.people.record(secret[0])]
        indicators = [
            unknown.of(value) for index, unknown in parts if index in learned or self._public(index)
        ]
        return 1 in indicators or len(indicators) >= len(self.case.declared_values(secret[1])) - 1

    @cached_property
    def _own(self) -> dict[Secret, list[int]]:
        """The parts of each secret."""
        own: dict[Secret, list[int]] = {}
        for index, part in enumerate(self.parts.listed):
            own.setdefault((part.record, part.unknown.column), []).append(index)
        return own

    def _public(self, index: int) -> bool:
        """Whether a part is known to everybody."""
        low, high = self.ranges.low, self.ranges.high
        columns = self.parts.listed[index].columns
        fixed = all(low[column] is not None and low[column] == high[column] for column in columns)
        return fixed or bool(self.determined[index])

    @cached_property
    def _true(self) -> dict[str, dict[Scalar, Scalar]]:
        """What the table says of a category: it decides how much a part gives away."""
        names = {part.unknown.column for part in self.parts.listed}
        return {name: column_values(name, self.case.source) for name in names}
