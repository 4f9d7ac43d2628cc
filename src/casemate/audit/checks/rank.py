"""What the exact equations determine by rank alone, one value at a time.

Certificates for a reader: short ones for the first who are exposed, whole ones for the rest.

Guarantee  Every certificate is checked in integers, and irreducible: its equations are independent,
           so no term can be left out and no other combination of them does the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

import numpy as np

from casemate.audit.case import Case
from casemate.audit.region.collapse import CollapsedSystem, collapse
from casemate.audit.result import CertificateTerm, Exposed, Proof, PublishedCertificate
from casemate.exact import (
    Certificate,
    Exposure,
    Target,
    certify,
    certify_targets,
    exposure,
    prove,
    short,
    tipped_by,
)
from casemate.query.language import Scalar
from casemate.query.records import Category


@dataclass(frozen=True, eq=False)
class DeterminedByRank:
    """What follows by rank: the statement that tipped each column, and how each is put together.

    A column in `by` that is not in `singles` is proved together with the others: its own
    combination has too many digits for anybody to read. `collapsed` and `found` are what it was
    decided on: columns that no equation tells apart, and their elimination.
    """

    by: dict[int, int]
    singles: dict[int, Certificate]
    collapsed: CollapsedSystem
    found: Exposure
    jointly: bool = False

    def proved_jointly(self) -> bool:
        """Whether one proof holds for everything that is determined, readable or not."""
        return self.jointly or _proved(self.collapsed, self.found)


def determined(case: Case) -> DeterminedByRank:
    """Decide by rank, for all columns at once."""
    kept = case.exact
    collapsed = collapse(kept.system)
    found = exposure(collapsed.system)
    alone = np.flatnonzero(found.determined & (collapsed.sizes == 1)).tolist()
    combinations = {
        c.column: in_terms_of(kept.rows, c) for c in certify(collapsed.system, found.block, alone)
    }
    jointly = len(combinations) < len(alone) and _proved(collapsed, found)
    if not jointly:
        alone = [group for group in alone if group in combinations]
    column = {group: members[0] for group, members in _members(collapsed, alone).items()}
    tipping = tipped_by(found.block, alone)
    places = case.equations.places
    return DeterminedByRank(
        {column[group]: places[kept.rows[row]].query for group, row in tipping.items()},
        {column[group]: combinations[group] for group in alone if group in combinations},
        collapsed,
        found,
        jointly,
    )


def _proved(collapsed: CollapsedSystem, found: Exposure) -> bool:
    return prove(collapsed.system, found.block.rows, found.determined) is not None


def _members(collapsed: CollapsedSystem, groups: Sequence[int]) -> dict[int, list[int]]:
    wanted = set(groups)
    members: dict[int, list[int]] = {group: [] for group in groups}
    for column, group in enumerate(collapsed.group.tolist()):
        if group in wanted:
            members[group].append(column)
    return members


def certificates_of(
    case: Case, known: DeterminedByRank, targets: Sequence[Target]
) -> dict[int, Certificate]:
    """Readable certificates for combinations of groups, by the place of each among the targets."""
    place = {id(target): which for which, target in enumerate(targets)}
    found = certify_targets(known.collapsed.system, known.found.block, targets)
    return {place[id(each.target)]: in_terms_of(case.exact.rows, each) for each in found}


def in_terms_of(rows: Sequence[int], combination: Certificate) -> Certificate:
    """The same combination, in the numbers of all equations."""
    named = {rows[row]: weight for row, weight in combination.coefficients.items()}
    return replace(combination, coefficients=named)


def in_numbers(case: Case, combination: Certificate) -> PublishedCertificate:
    """A combination of equations as one of the numbers that were published, in lowest terms."""
    factor = case.equations.factor
    terms = sorted(combination.coefficients.items())
    weights = {row: w * factor[row].numerator // factor[row].denominator for row, w in terms}
    common = gcd(combination.divisor, *weights.values())
    places = case.equations.places
    lowest = tuple(
        CertificateTerm(places[row], weight // common) for row, weight in weights.items()
    )
    return PublishedCertificate(lowest, combination.divisor // common)


# Certificates -----------------------------------------------------------------------------------


SECONDS = 10.0
"""How long short certificates may take."""

BRIEF = 2
"""A certificate of so many terms is short already."""

Columns = tuple[int, ...]


def certified(
    case: Case,
    known: DeterminedByRank,
    shown: Sequence[Exposed],
    first: int,
    seconds: float = SECONDS,
) -> tuple[Exposed, ...]:
    """The same values, the first of them with certificates as short as the time allows."""
    columns = _columns_behind(case, known, shown)
    better = {place: _sum_of(known, own) for place, own in columns.items() if len(own) > 1}
    before = {place: _sum_of(known, own) for place, own in columns.items() if place < first}
    wanted = [place for place in sorted(before) if not _is_brief(before[place])]
    group = known.collapsed.group
    targets = [{int(group[column]): 1 for column in columns[place]} for place in wanted]
    found = short(known.collapsed.system, targets, seconds)
    for place, other in zip(wanted, found, strict=True):
        old = before[place]
        if other is not None and (old is None or _size(other) < _size(old)):
            better[place] = in_terms_of(case.exact.rows, other)
    return tuple(
        each if (best := better.get(place)) is None else _with(case, each, best)
        for place, each in enumerate(shown)
    )


def _with(case: Case, exposed: Exposed, certificate: Certificate) -> Exposed:
    return replace(exposed, certificate=in_numbers(case, certificate))


def _columns_behind(
    case: Case, known: DeterminedByRank, shown: Sequence[Exposed]
) -> dict[int, Columns]:
    """For each value that follows by rank the columns that say so: 0 each, for a last value."""
    by_secret: dict[tuple[Scalar, str], dict[object, int]] = {}
    for column in sorted(known.by):
        own = by_secret.setdefault((case.name(column), case.secret(column)), {})
        own[case.unknown(column).category] = column
    behind = {
        place: _own(case, each, by_secret.get((each.record, each.column), {}))
        for place, each in enumerate(shown)
        if each.proof is Proof.RANK and not each.total
    }
    return {place: columns for place, columns in behind.items() if columns}


def _own(case: Case, exposed: Exposed, columns: Mapping[object, int]) -> Columns:
    """The column of a number, or of a category's value; all others for the last value."""
    *others, last = case.declared(exposed.column) or (None,)
    if not others:
        number = columns.get(None)
        return () if number is None or exposed.value is None else (number,)
    if exposed.value != last:
        column = columns.get(Category(exposed.value))  # type: ignore[arg-type]  # a category's
        return () if column is None else (column,)
    found = tuple(columns[Category(v)] for v in others if Category(v) in columns)
    return found if len(found) == len(others) else ()


def _sum_of(known: DeterminedByRank, columns: Columns) -> Certificate | None:
    """The certificates of some columns added up: over independent equations, it is the only one."""
    own = [known.singles[column] for column in columns if column in known.singles]
    if len(own) < len(columns) or not own:
        return None
    divisor = lcm(*(each.divisor for each in own))
    total: dict[int, int] = {}
    for each in own:
        for row, weight in each.coefficients.items():
            total[row] = total.get(row, 0) + weight * (divisor // each.divisor)
    kept = {row: weight for row, weight in sorted(total.items()) if weight}
    return Certificate(dict.fromkeys(columns, 1), kept, divisor)


def _is_brief(certificate: Certificate | None) -> bool:
    return certificate is not None and len(certificate.coefficients) <= BRIEF


def _size(certificate: Certificate) -> tuple[int, int]:
    return len(certificate.coefficients), sum(map(abs, certificate.coefficients.values()))
