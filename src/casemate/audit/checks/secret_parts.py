"""Secrets that a few records may share among them, as parts; proofs of combinations of these.

A part is one column of the equations or the last value of a category, which is 1 less its columns.
Only columns that no more records share than matter here become parts: of a group of columns that
no equation tells apart, nobody learns anything without all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.rank import DeterminedByRank, certificates_of
from casemate.audit.region.collapse import CollapsedSystem
from casemate.audit.region.groups import Combinations
from casemate.exact import (
    Certificate,
    Determined,
    NullVectors,
    RandomBytes,
    random_below,
)
from casemate.query.records import Category, Cut, Unknown


@dataclass(frozen=True)
class SecretPart:
    """One secret of a record, the columns it is made of, and the person's first row."""

    unknown: Unknown
    columns: tuple[int, ...]
    record: int
    owner: int


@dataclass(frozen=True, eq=False)
class SecretParts:
    """The parts of a case, those of one column first, and the groups that their columns fall into.

    `columns` has all columns of those groups.
    """

    listed: tuple[SecretPart, ...]
    columns: NDArray[np.int64]
    collapsed: CollapsedSystem

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The person of each part, by the position of the first row."""
        return np.array([part.owner for part in self.listed], np.int64)

    def points(self, null: NullVectors, random: RandomBytes | None = None) -> NullVectors:
        """Null vectors of the groups as null vectors of the parts.

        The members of a group may have any values that add up to the group's.
        """
        prime, group = null.prime, self.collapsed.group
        vectors = np.zeros((len(null.vectors), len(group)), np.int64)
        vectors[:, self.columns] = null.vectors[:, group[self.columns]]
        for members in self._shared:
            for vector in vectors:
                drawn = [random_below(prime, random) for _ in members[1:]]
                vector[members[1:]] = drawn
                vector[members[0]] = (int(vector[members[0]]) - sum(drawn)) % prime
        single = [part.columns[0] for part in self.listed if len(part.columns) == 1]
        found = [vectors[:, single]]
        for part in self.listed[len(single) :]:
            total = vectors[:, list(part.columns)].sum(axis=1, dtype=object)
            found.append((-total % prime).astype(np.int64)[:, None])
        return NullVectors(prime, null.rank, np.concatenate(found, axis=1))

    @cached_property
    def _shared(self) -> list[list[int]]:
        """The columns of each group that has several."""
        members: dict[int, list[int]] = {}
        several = self.columns[self.collapsed.sizes[self.collapsed.group[self.columns]] > 1]
        for column in several.tolist():
            members.setdefault(int(self.collapsed.group[column]), []).append(column)
        return list(members.values())

    def determination(self, found: Determined, random: RandomBytes | None = None) -> Determined:
        """What is determined of the parts, given what is of the groups."""
        null = [self.points(each, random) for each in found.null if each.rank == found.rank]
        determined = np.logical_or.reduce([each.zero() for each in null])
        return Determined(found.rank, determined, tuple(null), found.block)

    def targets(self, weights: Sequence[Mapping[int, int]]) -> list[dict[int, int] | None]:
        """Combinations of parts as combinations of groups; None if members are told apart."""
        columns = []
        for each in weights:
            total: dict[int, int] = {}
            for place, weight in each.items():
                own = self.listed[place].columns  # several are those of which a last value is left
                for column in own:
                    total[column] = total.get(column, 0) + (weight if len(own) == 1 else -weight)
            columns.append(total)
        inside, alike = Combinations.of(columns).in_groups(
            self.collapsed.group, self.collapsed.sizes
        )
        return [inside.target(i) if fine else None for i, fine in enumerate(alike.tolist())]


def parts(case: Case, by_rank: DeterminedByRank, max_people: int) -> SecretParts:
    """The parts that the records of up to so many people may share."""
    equations, collapsed = case.equations, by_rank.collapsed
    group = collapsed.group
    owner = equations.people.first[equations.record]
    wide = int(owner.max(initial=0)) + 1
    people = np.bincount(np.unique(group * wide + owner) // wide)  # of each group
    columns = np.flatnonzero((people <= max_people)[group])
    cut = np.array([isinstance(each.category, Cut) for each in equations.unknowns], np.bool_)
    ordinary = columns[~cut[equations.unknown[columns]]] if len(columns) else columns
    single = [_part(case, (column,)) for column in ordinary.tolist()]
    return SecretParts((*single, *_last_values(case, ordinary)), columns, collapsed)


def _part(case: Case, columns: tuple[int, ...], unknown: Unknown | None = None) -> SecretPart:
    record = int(case.equations.record[columns[0]])
    owner = int(case.equations.people.first[record])
    return SecretPart(unknown or case.unknown(columns[0]), columns, record, owner)


def _last_values(case: Case, columns: NDArray[np.int64]) -> Iterable[SecretPart]:
    """The last value of each category of three or more whose other values are all asked about."""
    several: dict[tuple[int, str], list[int]] = {}
    for column in columns.tolist():
        if not case.is_number(column):
            key = int(case.equations.record[column]), case.secret(column)
            several.setdefault(key, []).append(column)
    for (_, name), own in several.items():
        declared = case.declared_values(name)
        if len(own) == len(declared) - 1 > 1:
            yield _part(case, tuple(own), Unknown(name, Category(declared[-1])))


def splits(case: Case, by_rank: DeterminedByRank) -> bool:
    """Whether what is known of each kind of secret follows from what is said of it alone.

    Then whoever knows several secrets of one record learns no more than from each by itself. It
    holds iff a random null vector stays one when all kinds but one are set to zero.
    """
    kinds, system = case.equations.unknown, by_rank.collapsed.system
    if len(np.unique(kinds)) < 2:
        return True
    kind = np.zeros(system.columns, np.int64)
    kind[by_rank.collapsed.group] = kinds
    if (kind[by_rank.collapsed.group] != kinds).any():
        return False
    null = next(each for each in by_rank.found.null if each.rank == by_rank.found.rank)
    terms = system.value.astype(object) * null.vectors[0][system.column]
    totals = np.zeros((system.rows, int(kinds.max()) + 1), object)
    np.add.at(totals, (system.row, kind[system.column]), terms)
    return not np.mod(totals, null.prime).any()


# Combinations of parts, proved in integers ------------------------------------------------------


Weights = Mapping[int, int]
"""Coefficients of parts: a combination that is claimed to be determined."""


@dataclass(frozen=True, eq=False)
class ProvedCombinations:
    """The combinations of parts that are determined, with certificates where they are readable."""

    case: Case
    combinations: Mapping[frozenset[tuple[int, int]], Certificate | None]

    def holds(self, weights: Weights) -> bool:
        """Whether a combination is proved to be determined."""
        return _key(weights) in self.combinations

    def value(self, weights: Weights) -> Fraction | None:
        """What it adds up to, but for constants; None if that cannot be read off."""
        found = self.combinations.get(_key(weights))
        return None if found is None else found.value(self.case.equations.low)


def proofs(
    case: Case, by_rank: DeterminedByRank, parts: SecretParts, claims: Sequence[Weights]
) -> ProvedCombinations:
    """Prove as many of the claims as possible, all at once."""
    wanted = list({_key(each): each for each in claims}.values())
    targets = parts.targets(wanted)
    sound = [(k, each) for k, each in enumerate(targets) if each]
    certificates = certificates_of(case, by_rank, [each for _, each in sound])
    found: dict[int, Certificate | None] = {sound[i][0]: c for i, c in certificates.items()}
    single = by_rank.found.determined  # of a combination whose groups are all, each by itself
    unread = [k for k, each in sound if k not in found and all(single[group] for group in each)]
    if unread and by_rank.proved_jointly():
        found |= dict.fromkeys(unread)
    return ProvedCombinations(case, {_key(wanted[k]): each for k, each in found.items()})


def _key(weights: Weights) -> frozenset[tuple[int, int]]:
    return frozenset(weights.items())
