"""Small groups of records whose total follows, though no value of theirs does.

Records that no equation tells apart enter a total together or not at all; they are one here. Pairs
of those are searched in full, more of them within a budget.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.audit.checks.claims import Proofs, SecretPart, SecretParts, Weights
from casemate.audit.region.groups import totals
from casemate.audit.result import Exposed, Group
from casemate.exact import Exposure, NullVectors
from casemate.published import true_values
from casemate.query.language import Scalar
from casemate.query.records import Category, Unknown

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
