"""Numbers that everybody knows to be missing: what their rows add to a number is public.

Such a row is in no sum, and in no comparison; a CASE may pass a missing number by, and counts it.
So an aggregate is read as if it were secret who has a value, and then that is put in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query import Aggregate
from casemate.query.language import ColumnRef, Expression, Scalar, substitute
from casemate.query.records import Cut, Lineage, Unknown, lineage, linear_form
from casemate.table import Missing
from casemate.table.sources import Source

Absent = Mapping[str, frozenset[Scalar]]
"""For private numbers the records that publicly have none."""


def lineage_with_absence(
    aggregates: Sequence[Aggregate], source: Source, absent: Absent
) -> Lineage:
    """The coefficients of every record's unknowns, where these records are known to have none."""
    if not absent:
        return lineage(aggregates, source)
    found = lineage([_read_as_secret(each, absent) for each in aggregates], source)
    there = {
        name: np.array([record not in without for record in found.records.tolist()], np.bool_)
        for name, without in absent.items()
    }
    unknown, kept = found.unknown.copy(), np.ones(len(found.unknown), np.bool_)
    for which, each in enumerate(found.unknowns):
        if each.column in there:
            here = found.unknown == which
            kept &= ~here | there[each.column][found.record]
            if each == Unknown(each.column, Cut(None)):
                unknown[here] = -1  # whoever has a value surely has one
    return _part(replace(found, unknown=unknown), kept)


def _read_as_secret(aggregate: Aggregate, absent: Absent) -> Aggregate:
    """The aggregate of numbers that may be missing, where that is linear too."""

    def nullable(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.private and node.column.name in absent:
            return replace(node, column=replace(node.column, missing=Missing.SECRET))
        return None

    argument = aggregate.argument
    other = replace(
        aggregate,
        argument=None if argument is None else substitute(argument, nullable),
        predicate=substitute(aggregate.predicate, nullable),
        keys=tuple(substitute(key, nullable) for key in aggregate.keys),
    )
    return aggregate if linear_form(other) is None else other


def _part(found: Lineage, kept: NDArray[np.bool_]) -> Lineage:
    """Some entries of a lineage, and the unknowns that they are about."""
    unknown = found.unknown[kept]
    used, place = np.unique(unknown[unknown >= 0], return_inverse=True)
    unknown[unknown >= 0] = place
    entries: dict[str, Any] = {
        name: getattr(found, name)[kept] for name in ("cell", "record", "coefficient", "rows")
    }
    unknowns = tuple(found.unknowns[which] for which in used.tolist())
    return replace(found, unknown=unknown, unknowns=unknowns, **entries)
