"""What the exact equations determine by rank alone, one value at a time, with certificates.

Certificates are for a reader: short ones for the first who are exposed, whole ones for the rest.

Guarantee  Every certificate is checked in integers, and irreducible: its equations are independent,
           so no term can be left out and no other combination of them does the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from casemate.audit.case import Case
from casemate.audit.region.collapse import CollapsedSystem, collapse
from casemate.audit.result import CertificateTerm, Exposed, Proof, PublishedCertificate
from casemate.exact import (
    Certificate,
    Determined,
    Target,
    certify,
    certify_targets,
    determine,
    prove,
    short_certificates,
    tipping_equations,
)
from casemate.published import Place
from casemate.query.language import Scalar
from casemate.query.records import Category


@dataclass(frozen=True, eq=False)
class DeterminedByRank:
    """What follows by rank: the statement that tipped each column, and how each is put together.

    A column in `tipped_by` that is not in `singles` is proved together with the others: its own
    combination has too many digits for anybody to read. `collapsed` and `found` are what it was
    decided on: columns that no equation tells apart, and their elimination.
    """

    tipped_by: dict[int, int]
    singles: dict[int, Certificate]
    collapsed: CollapsedSystem
    found: Determined
    jointly: bool = False

    def proved_jointly(self) -> bool:
        """Whether one proof holds for everything that is determined, readable or not."""
        return self.jointly or _is_proved_jointly(self.collapsed, self.found)


def determine_by_rank(case: Case) -> DeterminedByRank:
    """Decide by rank, for all columns at once."""
    exact = case.exact
    collapsed = collapse(exact.system)
    found = determine(collapsed.system)
    single_groups = np.flatnonzero(found.determined & (collapsed.sizes == 1)).tolist()
    combinations = {
        c.column: in_terms_of(exact.rows, c)
        for c in certify(collapsed.system, found.block, single_groups)
    }
    jointly = len(combinations) < len(single_groups) and _is_proved_jointly(collapsed, found)
    if not jointly:
        single_groups = [group for group in single_groups if group in combinations]
    column = np.empty(len(collapsed.sizes), np.int64)  # of each group, its last: or its only one
    column[collapsed.group] = np.arange(len(collapsed.group))
    tipping = tipping_equations(found.block, single_groups)
    places = case.equations.places
    return DeterminedByRank(
        {int(column[group]): places[exact.rows[row]].query for group, row in tipping.items()},
        {int(column[g]): combinations[g] for g in single_groups if g in combinations},
        collapsed,
        found,
        jointly,
    )


def _is_proved_jointly(collapsed: CollapsedSystem, found: Determined) -> bool:
    return prove(collapsed.system, found.block.rows, found.determined) is not None


def certificates_of(
    case: Case, by_rank: DeterminedByRank, targets: Sequence[Target]
) -> dict[int, Certificate]:
    """Readable certificates for combinations of groups, by the place of each among the targets."""
    place = {id(target): which for which, target in enumerate(targets)}
    found = certify_targets(by_rank.collapsed.system, by_rank.found.block, targets)
    return {place[id(each.target)]: in_terms_of(case.exact.rows, each) for each in found}


def in_terms_of(rows: Sequence[int], combination: Certificate) -> Certificate:
    """The same combination, in the numbers of all equations."""
    named = {rows[row]: weight for row, weight in combination.coefficients.items()}
    return replace(combination, coefficients=named)


def in_numbers(case: Case, combination: Certificate) -> PublishedCertificate:
    """A combination of equations as one of the numbers that were published, in lowest terms."""
    factor = case.equations.factor
    weights = {row: weight * factor[row] for row, weight in combination.coefficients.items()}
    return lowest_terms(weights, combination.divisor, case.equations.places)


def lowest_terms(
    weights: Mapping[int, Fraction], divisor: int, places: Sequence[Place]
) -> PublishedCertificate:
    """Multiples of published numbers that give so many times a value, as small whole numbers."""
    scale = lcm(*(weight.denominator for weight in weights.values()))
    multiples = {number: int(weight * scale) for number, weight in sorted(weights.items())}
    common = gcd(divisor * scale, *multiples.values())
    terms = (CertificateTerm(places[number], each // common) for number, each in multiples.items())
    return PublishedCertificate(tuple(terms), divisor * scale // common)


# Short certificates for the first who are exposed -----------------------------------------------


SHORT_CERTIFICATE_SECONDS = 10.0
"""How long short certificates may take."""

BRIEF_CERTIFICATE_TERMS = 2
"""A certificate of so many terms is short already."""

Columns = tuple[int, ...]


def with_short_certificates(
    case: Case,
    by_rank: DeterminedByRank,
    exposed: Sequence[Exposed],
    first: int,
    seconds: float = SHORT_CERTIFICATE_SECONDS,
) -> tuple[Exposed, ...]:
    """The same values, the first of them with certificates as short as the time allows."""
    columns = _columns_behind(case, by_rank, exposed)
    better = {place: _sum_of(by_rank, own) for place, own in columns.items() if len(own) > 1}
    before = {place: _sum_of(by_rank, own) for place, own in columns.items() if place < first}
    wanted = [
        place
        for place, old in sorted(before.items())
        if old is None or len(old.coefficients) > BRIEF_CERTIFICATE_TERMS
    ]
    group = by_rank.collapsed.group
    targets = [{int(group[column]): 1 for column in columns[place]} for place in wanted]
    found = short_certificates(by_rank.collapsed.system, targets, seconds)
    for place, other in zip(wanted, found, strict=True):
        old = before[place]
        if other is not None and (old is None or _size(other) < _size(old)):
            better[place] = in_terms_of(case.exact.rows, other)
    return tuple(
        each if best is None else replace(each, certificate=in_numbers(case, best))
        for each, best in ((each, better.get(place)) for place, each in enumerate(exposed))
    )


def _columns_behind(
    case: Case, by_rank: DeterminedByRank, exposed: Sequence[Exposed]
) -> dict[int, Columns]:
    """For each value that follows by rank the columns that say so: 0 each, for a last value."""
    by_secret: dict[tuple[Scalar, str], dict[object, int]] = {}
    for column in sorted(by_rank.tipped_by):
        own = by_secret.setdefault((case.name(column), case.secret(column)), {})
        own[case.unknown(column).category] = column
    behind = {
        place: _own(case, each, by_secret.get((each.record, each.column), {}))
        for place, each in enumerate(exposed)
        if each.proof is Proof.RANK and not each.total
    }
    return {place: columns for place, columns in behind.items() if columns}


def _own(case: Case, exposed: Exposed, columns: Mapping[object, int]) -> Columns:
    """The column of a number, or of a category's value; all others for the last value."""
    *others, last = case.declared_values(exposed.column) or (None,)
    if not others:
        number = columns.get(None)
        return () if number is None or exposed.value is None else (number,)
    if exposed.value != last:
        column = columns.get(Category(exposed.value))  # type: ignore[arg-type]  # a category's
        return () if column is None else (column,)
    found = tuple(columns[Category(v)] for v in others if Category(v) in columns)
    return found if len(found) == len(others) else ()


def _sum_of(by_rank: DeterminedByRank, columns: Columns) -> Certificate | None:
    """The certificates of some columns added up: over independent equations, it is the only one."""
    certificates = [by_rank.singles[column] for column in columns if column in by_rank.singles]
    if len(certificates) < len(columns) or not certificates:
        return None
    divisor = lcm(*(each.divisor for each in certificates))
    total: dict[int, int] = {}
    for each in certificates:
        for row, weight in each.coefficients.items():
            total[row] = total.get(row, 0) + weight * (divisor // each.divisor)
    kept = {row: weight for row, weight in sorted(total.items()) if weight}
    return Certificate(dict.fromkeys(columns, 1), kept, divisor)


def _size(certificate: Certificate) -> tuple[int, int]:
    return len(certificate.coefficients), sum(map(abs, certificate.coefficients.values()))
