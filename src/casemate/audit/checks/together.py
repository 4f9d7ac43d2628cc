"""What a few records give away together: totals of small groups, and values that insiders learn.

Both are claimed from null vectors and proved in integers; `together` runs the searches for both.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.audit.checks.insiders import (
    MAX_INSIDERS_LISTED,
    Learners,
    family_claims,
    learned_facts,
    proved_insiders,
)
from casemate.audit.checks.rank import DeterminedByRank
from casemate.audit.checks.secret_parts import (
    ProvedCombinations,
    SecretPart,
    SecretParts,
    Weights,
    parts,
    proofs,
)
from casemate.audit.region.bounds import Bounds
from casemate.audit.region.coalition import (
    kin,
)
from casemate.audit.region.groups import totals
from casemate.audit.result import Exposed, Group, InsiderExposed
from casemate.exact import (
    Determined,
    NullVectors,
)
from casemate.published import true_values
from casemate.query.language import Scalar
from casemate.query.records import Category, Unknown

# Groups whose total follows, though no value of theirs does -------------------------------------
# Records that no equation tells apart enter a total together or not at all; they are one here.
# Pairs of those are searched in full, more of them within a budget.


Members = tuple[int, ...]
"""The parts of a group."""


def claimed_groups(
    parts: SecretParts, found: Determined, max_people: int
) -> tuple[list[Members], list[str]]:
    """Groups of up to `most` people whose total null vectors say is determined, and remarks."""
    groups: list[Members] = []
    notes: list[str] = []
    kinds: dict[Unknown, list[int]] = {}
    for index in np.flatnonzero(~found.determined).tolist():
        kinds.setdefault(parts.listed[index].unknown, []).append(index)
    for unknown, indices in kinds.items():
        atoms = list(_atoms(parts, indices))
        weights = [len({parts.listed[k].owner for k in atom}) for atom in atoms]
        fitting = [
            atom for atom, weight in zip(atoms, weights, strict=True) if weight <= max_people
        ]
        summed = _sum_atoms(found, fitting)
        alone = [atom for atom, zero in zip(fitting, summed.determined, strict=True) if zero]
        light = [weight for weight in weights if weight <= max_people]
        minimal, unsearched = totals(summed, max_people, light)
        groups += [*alone, *(sum((fitting[k] for k in each), ()) for each in minimal)]
        if unsearched:
            notes.append(_unsearched_note(unknown, unsearched[0]))
    return groups, list(dict.fromkeys(notes))


def _unsearched_note(unknown: Unknown, least: int) -> str:
    return (
        f"known totals of {unknown.column} over {least} or more records were not all searched: "
        f"only records that no published number tells apart, and pairs of such"
    )


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


def _sum_atoms(found: Determined, atoms: Sequence[Members]) -> Determined:
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
    return Determined(found.rank, determined, tuple(null), found.block)


# What is shown of them ------------------------------------------------------------------------


def proved_groups(
    case: Case,
    parts: SecretParts,
    groups: Sequence[Members],
    proofs: ProvedCombinations,
    exposed: Sequence[Exposed],
) -> tuple[Group, ...]:
    """The groups whose totals are proved, without the records whose own values are known."""
    values = {(each.record, each.column): each.value for each in exposed if not each.total}
    found: dict[tuple[Members, Unknown], Group] = {}
    for members in groups:
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
        group = _group(case, secret, total)
        if group is not None:
            place = tuple(part.record for part in secret)
            found.setdefault((place, listed[0].unknown), group)
    return tuple(found[key] for key in sorted(found, key=lambda key: (key[0], str(key[1]))))


def _group(case: Case, secret: Sequence[SecretPart], total: Fraction | None) -> Group | None:
    """What is shown of several records; not of one, nor of all rows of one person."""
    people, owners = case.equations.people, {part.owner for part in secret}
    if len({part.record for part in secret}) < 2:
        return None
    unknown = secret[0].unknown
    every_row = len(owners) == 1 and len(secret) == int(people.sizes[secret[0].owner])
    if every_row and unknown.column not in people.constant:
        return None  # that total is exposed as such
    value = unknown.category.value if isinstance(unknown.category, Category) else None
    names = tuple(case.name(part.columns[0]) for part in secret)
    return Group(names, unknown.column, total, value)


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
    if all(case.is_known_beforehand(column) for column in part.columns):
        box = {column: case.box.low[column] or Fraction(0) for column in part.columns}
        return _amount(part, box)
    key = case.name(part.columns[0]), part.unknown.column
    if key not in values:
        return None
    value, category = values[key], part.unknown.category
    if isinstance(category, Category):
        return Fraction(value == category.value)
    return value if isinstance(value, Fraction) else None


# Groups and insiders ----------------------------------------------------------------------------


def together(
    case: Case,
    by_rank: DeterminedByRank,
    ranges: Bounds,
    exposed: Sequence[Exposed],
    *,
    group_size: int,
    insiders: int,
) -> tuple[tuple[Group, ...], tuple[InsiderExposed, ...], list[str]]:
    """Look for groups of up to so many people, and for so many insiders.

    Totals, who learns what from whom, and sentences about what was not searched.
    """
    small = parts(case, by_rank, max(group_size, insiders + 1))
    if not small.listed:
        return (), (), []
    found = small.determination(by_rank.found)
    groups, notes = claimed_groups(small, found, group_size)
    families, unread = kin(found) if insiders else ([], 0)
    facts, insider_notes = learned_facts(case, by_rank, small, found, insiders)
    claims: list[Weights] = [dict.fromkeys(group, 1) for group in groups]
    claims += [claim for family in families for claim in family_claims(family).values()]
    proved = proofs(case, by_rank, small, [*claims, *(fact.claim for fact in facts if fact.shares)])
    learned, unproved, shortened = proved_insiders(families, facts, small, proved)
    learners = Learners(case, small, found.determined, ranges)
    listed, cut = learners.list_exposed(learned, insiders, exposed)
    notes += insider_notes
    if unread + unproved:
        notes.append(
            f"values that insiders may learn and that are left out, because the multiples that "
            f"would prove them have too many digits: {unread + unproved}"
        )
    if cut or shortened:
        notes.append(
            f"of the insiders who learn one value at most {MAX_INSIDERS_LISTED} are listed"
        )
    return proved_groups(case, small, groups, proved, exposed), listed, notes
