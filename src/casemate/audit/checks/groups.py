"""What follows for a few records together: claimed from null vectors, proved in integers.

The secrets that a few records may share among them, as points.

A part is one column of the equations or the last value of a category, which is 1 less its columns.
Only columns that no more records share than matter here become parts: of a group of columns that
no equation tells apart, nobody learns anything without all of them.

Small groups of records whose total follows, though no value of theirs does.

Records that no equation tells apart enter a total together or not at all; they are one here. Pairs
of those are searched in full, more of them within a budget.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.rank import DeterminedByRank, certificates_of
from casemate.audit.region.collapse import CollapsedSystem
from casemate.audit.region.groups import Combinations, totals
from casemate.audit.result import Exposed, Group
from casemate.exact import (
    Certificate,
    Exposure,
    NullVectors,
    RandomBytes,
    random_below,
)
from casemate.published import true_values
from casemate.query.language import Scalar
from casemate.query.records import Category, Cut, Unknown


@dataclass(frozen=True)
class SecretPart:
    """One secret of a record, the columns it is made of, and the person's first row."""

    unknown: Unknown
    columns: tuple[int, ...]
    record: int
    owner: int

    def target(self, weight: int) -> dict[int, int]:
        """That many times the secret in terms of columns, but for a constant."""
        sign = -1 if len(self.columns) > 1 else 1
        return dict.fromkeys(self.columns, sign * weight)


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

    def exposure(self, found: Exposure, random: RandomBytes | None = None) -> Exposure:
        """What is determined of the parts, given what is of the groups."""
        null = [self.points(each, random) for each in found.null if each.rank == found.rank]
        determined = np.logical_or.reduce([each.zero() for each in null])
        return Exposure(found.rank, determined, tuple(null), found.block)

    def targets(self, weights: Sequence[Mapping[int, int]]) -> list[dict[int, int] | None]:
        """Combinations of parts as combinations of groups; None if members are told apart."""
        columns = [_added(self.listed, each) for each in weights]
        inside, alike = Combinations.of(columns).grouped(self.collapsed.group, self.collapsed.sizes)
        return [inside.target(i) if fine else None for i, fine in enumerate(alike.tolist())]


def _added(listed: Sequence[SecretPart], weights: Mapping[int, int]) -> dict[int, int]:
    total: dict[int, int] = {}
    for place, weight in weights.items():
        for column, coefficient in listed[place].target(weight).items():
            total[column] = total.get(column, 0) + coefficient
    return {column: weight for column, weight in total.items() if weight}


def parts(case: Case, known: DeterminedByRank, most: int) -> SecretParts:
    """The parts that the records of up to so many people may share."""
    equations, collapsed = case.equations, known.collapsed
    group = collapsed.group
    owner = equations.people.first[equations.record]
    columns = np.flatnonzero((_different(group, owner) <= most)[group])
    cut = np.array([isinstance(each.category, Cut) for each in equations.unknowns], np.bool_)
    ordinary = columns[~cut[equations.unknown[columns]]] if len(columns) else columns
    single = [_part(case, (column,)) for column in ordinary.tolist()]
    return SecretParts((*single, *_last_values(case, ordinary)), columns, collapsed)


def _different(group: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many different values the members of each group have."""
    order = np.lexsort((value, group))
    mine, its = group[order], value[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (mine[1:] != mine[:-1]) | (its[1:] != its[:-1])
    return np.bincount(mine[first])


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
        declared = case.declared(name)
        if len(own) == len(declared) - 1 > 1:
            yield _part(case, tuple(own), Unknown(name, Category(declared[-1])))


def splits(case: Case, known: DeterminedByRank) -> bool:
    """Whether what is known of each kind of secret follows from what is said of it alone.

    Then whoever knows several secrets of one record learns no more than from each by itself. It
    holds iff a random null vector stays one when all kinds but one are set to zero.
    """
    kinds, system = case.equations.unknown, known.collapsed.system
    if len(np.unique(kinds)) < 2:
        return True
    kind = np.zeros(system.columns, np.int64)
    kind[known.collapsed.group] = kinds
    if (kind[known.collapsed.group] != kinds).any():
        return False
    null = next(each for each in known.found.null if each.rank == known.found.rank)
    terms = system.value.astype(object) * null.vectors[0][system.column]
    totals = np.zeros((system.rows, int(kinds.max()) + 1), object)
    np.add.at(totals, (system.row, kind[system.column]), terms)
    return not np.mod(totals, null.prime).any()


# Claims -----------------------------------------------------------------------------------------


Weights = Mapping[int, int]
"""Coefficients of parts: a combination that is claimed to be determined."""


@dataclass(frozen=True, eq=False)
class Proofs:
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
    case: Case, known: DeterminedByRank, parts: SecretParts, claims: Sequence[Weights]
) -> Proofs:
    """Prove as many of the claims as possible, all at once."""
    wanted = list({_key(each): each for each in claims}.values())
    targets = parts.targets(wanted)
    sound = [(k, each) for k, each in enumerate(targets) if each]
    certificates = certificates_of(case, known, [each for _, each in sound])
    found: dict[int, Certificate | None] = {sound[i][0]: c for i, c in certificates.items()}
    unread = [k for k, each in sound if k not in found and _is_determined(known, each)]
    if unread and known.proved_jointly():
        found |= dict.fromkeys(unread)
    return Proofs(case, {_key(wanted[k]): each for k, each in found.items()})


def _is_determined(known: DeterminedByRank, target: Weights) -> bool:
    """Whether all groups of a target are determined, each by itself."""
    return all(known.found.determined[group] for group in target)


def whole(shares: Mapping[int, Fraction], part: int) -> Weights:
    """That a part is these shares of others, but for a constant, in whole numbers."""
    common = lcm(1, *(share.denominator for share in shares.values()))
    weights = {other: -int(share * common) for other, share in shares.items()}
    return {**weights, part: common}


def _key(weights: Weights) -> frozenset[tuple[int, int]]:
    return frozenset(weights.items())


# Groups -----------------------------------------------------------------------------------------


Members = tuple[int, ...]
"""The parts of a group."""


@dataclass(frozen=True)
class Claimed:
    """The groups that null vectors say have a determined total, and what was not searched."""

    groups: tuple[Members, ...]
    notes: tuple[str, ...]

    def claims(self) -> list[Weights]:
        """The totals to be proved."""
        return [dict.fromkeys(group, 1) for group in self.groups]


def claimed_groups(parts: SecretParts, found: Exposure, most: int) -> Claimed:
    """Groups of up to `most` people, of one kind of secret each."""
    groups: list[Members] = []
    notes: list[str] = []
    for unknown, indices in _kinds(parts, found).items():
        atoms = list(_atoms(parts, indices))
        weights = [len({parts.listed[k].owner for k in atom}) for atom in atoms]
        fitting = [atom for atom, weight in zip(atoms, weights, strict=True) if weight <= most]
        summed = _summed(found, fitting)
        alone = [atom for atom, zero in zip(fitting, summed.determined, strict=True) if zero]
        light = [weight for weight in weights if weight <= most]
        search = totals(summed, most, light)
        groups += [*alone, *(sum((fitting[k] for k in each), ()) for each in search.found)]
        if search.undecided:
            notes.append(_unsearched(unknown, search.undecided[0]))
    return Claimed(tuple(groups), tuple(dict.fromkeys(notes)))


def _unsearched(unknown: Unknown, least: int) -> str:
    return (
        f"known totals of {unknown.column} over {least} or more records were not all searched: "
        f"only records that no published number tells apart, and pairs of such"
    )


def _kinds(parts: SecretParts, found: Exposure) -> dict[Unknown, list[int]]:
    """The undetermined parts by what they say about a record."""
    kinds: dict[Unknown, list[int]] = {}
    for index in np.flatnonzero(~found.determined).tolist():
        kinds.setdefault(parts.listed[index].unknown, []).append(index)
    return kinds


def _atoms(parts: SecretParts, indices: Sequence[int]) -> Iterator[Members]:
    """Parts that no equation tells apart; without those that belong with another kind of secret."""
    group, sizes = parts.collapsed.group, parts.collapsed.sizes
    classes: dict[tuple[int, ...], list[int]] = {}
    for index in indices:
        signature = sorted(group[list(parts.listed[index].columns)].tolist())
        classes.setdefault(tuple(signature), []).append(index)
    for groups, members in classes.items():
        if len(groups) > 1 or len(members) == sizes[groups[0]]:
            yield tuple(members)


def _summed(found: Exposure, atoms: Sequence[Members]) -> Exposure:
    """The same null vectors, with the parts of each atom added up."""
    first = [atom[0] for atom in atoms]
    several = [place for place, atom in enumerate(atoms) if len(atom) > 1]
    null = []
    for each in found.null:
        vectors = each.vectors[:, first]
        for place in several:
            total = each.vectors[:, list(atoms[place])].sum(axis=1, dtype=object)
            vectors[:, place] = (total % each.prime).astype(np.int64)
        null.append(NullVectors(each.prime, each.rank, vectors))
    determined = np.logical_or.reduce([each.zero() for each in null])
    return Exposure(found.rank, determined, tuple(null), found.block)


# What is shown of them ------------------------------------------------------------------------


def proved_groups(
    case: Case, parts: SecretParts, claimed: Claimed, proofs: Proofs, shown: Sequence[Exposed]
) -> tuple[Group, ...]:
    """The groups whose totals are proved, without the records whose own values are known."""
    values = {(each.record, each.column): each.value for each in shown if not each.total}
    found: dict[tuple[Members, Unknown], Group] = {}
    for members in claimed.groups:
        if not proofs.holds(dict.fromkeys(members, 1)):
            continue
        listed = [parts.listed[index] for index in members]
        total = _total(case, listed, proofs.value(dict.fromkeys(members, 1)))
        secret = []
        for part in sorted(listed, key=lambda part: part.record):
            public = _public(case, part, values)
            if public is None:
                secret.append(part)
            elif total is not None:
                total -= public
        if len({part.record for part in secret}) > 1 and not _one_person(case, secret):
            place = tuple(part.record for part in secret)
            found.setdefault((place, listed[0].unknown), _group(case, secret, total))
    return tuple(found[key] for key in sorted(found, key=lambda key: (key[0], str(key[1]))))


def _total(case: Case, listed: Sequence[SecretPart], value: Fraction | None) -> Fraction | None:
    """How much the parts add up to: by their proof, or as the table has it."""
    if value is not None:
        return value + sum(len(part.columns) > 1 for part in listed)
    if case.publication.told:
        return None
    columns = [column for part in listed for column in part.columns]
    true = true_values(case.equations, columns, case.source)
    return sum((_amount(part, true) for part in listed), Fraction(0))


def _amount(part: SecretPart, true: dict[int, Fraction]) -> Fraction:
    total = sum((true[column] for column in part.columns), Fraction(0))
    return total if len(part.columns) == 1 else 1 - total


def _public(
    case: Case, part: SecretPart, values: Mapping[tuple[Scalar, str], object]
) -> Fraction | None:
    """What a part is, where everybody knows it anyway."""
    if all(case.settled(column) for column in part.columns):
        box = {column: case.box.low[column] or Fraction(0) for column in part.columns}
        return _amount(part, box)
    key = case.name(part.columns[0]), part.unknown.column
    if key not in values:
        return None
    value, category = values[key], part.unknown.category
    if isinstance(category, Category):
        return Fraction(value == category.value)
    return value if isinstance(value, Fraction) else None


def _one_person(case: Case, listed: Sequence[SecretPart]) -> bool:
    """Whether these are all rows of one person, whose total is exposed as such."""
    owners = {part.owner for part in listed}
    return len(owners) == 1 and len(listed) == int(case.equations.people.sizes[listed[0].owner])


def _group(case: Case, listed: Sequence[SecretPart], total: Fraction | None) -> Group:
    names = tuple(case.name(part.columns[0]) for part in listed)
    category = listed[0].unknown.category
    shown = category.value if isinstance(category, Category) else None
    return Group(names, listed[0].unknown.column, total, shown)
