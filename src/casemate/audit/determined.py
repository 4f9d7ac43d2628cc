"""What the exact equations determine by rank alone: single values, and totals of small groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from casemate.audit.case import Case
from casemate.audit.result import Group
from casemate.solve.certificate import Certificate, certify, tipped_by
from casemate.solve.collapse import Collapsed, collapse
from casemate.solve.exposure import Exposure, exposure
from casemate.solve.joint_proof import prove


@dataclass(frozen=True, eq=False)
class Determined:
    """What follows by rank: the statement that tipped each column, and how each is put together.

    A column in `by` that is not in `singles` is proved together with the others: its own
    combination has too many digits for anybody to read. `collapsed` and `found` are what it was
    decided on: columns that no equation tells apart, and their elimination.
    """

    by: dict[int, int]
    singles: dict[int, Certificate]
    groups: tuple[Group, ...]
    collapsed: Collapsed
    found: Exposure


def determined(case: Case, group_size: int) -> Determined:
    """Decide by rank, for all columns at once."""
    kept = case.exact
    collapsed = collapse(kept.system)
    found = exposure(collapsed.system)
    wanted = np.flatnonzero(found.determined & (collapsed.sizes <= group_size)).tolist()
    members = _members(collapsed, wanted)
    combinations = {
        group: _in_terms_of(kept.rows, c)
        for c in certify(collapsed.system, found.block, wanted)
        for group in c.target
    }
    alone = [group for group in wanted if len(members[group]) == 1]
    open_ = [group for group in alone if group not in combinations]
    if open_ and prove(collapsed.system, found.block.rows, found.determined) is None:
        alone = [group for group in alone if group in combinations]
    tipping = tipped_by(found.block, alone)
    places = case.equations.places
    return Determined(
        {members[g][0]: places[kept.rows[row]].query for g, row in tipping.items()},
        {members[g][0]: combinations[g] for g in alone if g in combinations},
        tuple(
            _group(case, members[group], combination)
            for group, combination in combinations.items()
            if len(members[group]) > 1
        ),
        collapsed,
        found,
    )


def _group(case: Case, columns: list[int], combination: Certificate) -> Group:
    names = tuple(case.name(column) for column in columns)
    return Group(names, case.secret(columns[0]), combination.value(case.equations.low))


def _members(collapsed: Collapsed, groups: Sequence[int]) -> dict[int, list[int]]:
    wanted = set(groups)
    members: dict[int, list[int]] = {group: [] for group in groups}
    for column, group in enumerate(collapsed.group.tolist()):
        if group in wanted:
            members[group].append(column)
    return members


def _in_terms_of(rows: Sequence[int], combination: Certificate) -> Certificate:
    """The same combination, in the numbers of all equations."""
    named = {rows[row]: weight for row, weight in combination.coefficients.items()}
    return replace(combination, coefficients=named)
