"""What the exact equations determine by rank alone, one value at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from casemate.audit.case import Case
from casemate.audit.region.collapse import CollapsedSystem, collapse
from casemate.audit.result import CertificateTerm, PublishedCertificate
from casemate.exact import Certificate, Exposure, certify, exposure, prove, tipped_by


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
