"""Why nobody can be called safe although no value was found: what the equations do not say.

Missing  A private value may be missing although the policy says that none is. Such a record was
         audited as if it had a value that adds nothing; whoever knows that it has none knows more
         of the others.
Digits   A sum that weighs one number far more than another tells both by its digits, if they are
         whole or have few digits after the point, and so does a chain of such sums. Whole numbers
         within bounds are searched for; others are not.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.audit.result import Audited, Verdict
from casemate.published.equations import Equations
from casemate.query.engine import tables
from casemate.query.linear import Unknown
from casemate.query.render import PROTECTED, quote
from casemate.table.schema import ColumnType, Policy
from casemate.table.source import Source

LARGEST_RATIO = 10**6
"""Of the largest to the smallest coefficient of a number in one equation, or in several at once."""

NOTICED_RATIO = 1000
"""Smaller ratios, such as those of the weights of a survey, are not counted together."""


def with_reservations(
    audited: Audited, policy: Policy, source: Source, system: Equations | None = None
) -> Audited:
    """The result, which is incomplete instead of safe where there are any."""
    notes = [*_missing(policy, source), *([] if system is None else _digits(system, policy))]
    if not notes:
        return audited
    safe = audited.verdict is Verdict.NONE_EXPOSED
    return replace(
        audited,
        verdict=Verdict.INCOMPLETE if safe else audited.verdict,
        assumptions=(*audited.assumptions, *notes),
    )


def _missing(policy: Policy, source: Source) -> list[str]:
    columns = [column.name for column in policy.private() if not column.nullable]
    if not columns:
        return []
    counts = ", ".join(
        f"count(*) - count({quote(PROTECTED)}.{quote(name)}) AS m{place}"
        for place, name in enumerate(columns)
    )
    frame = source.read(f"SELECT {counts} FROM {tables(source, ())}")
    return [
        f"{name} is missing in some records, and the policy does not say `nullable`: they were "
        f"audited as if everybody had a value; declare it, or leave those records out"
        for place, name in enumerate(columns)
        if frame[f"m{place}"].values[0]
    ]


def _digits(system: Equations, policy: Policy) -> list[str]:
    """The statements that weigh numbers so differently that digits could tell them apart."""
    queries = sorted({system.places[row].query for row in _unequal(system, policy)})
    if not queries:
        return []
    named = ", ".join(map(str, queries))
    return [
        f"query {named}: some records weigh so much more than others (by {LARGEST_RATIO:,} and "
        f"more, alone or together) that digits could give values away, which was not looked into"
    ]


def _unequal(found: Equations, policy: Policy) -> Iterator[int]:
    system, together = found.system, Fraction(1)
    kinds = [each.category is None and _is_open(each, policy) for each in found.unknowns]
    open_ = np.array(kinds, np.bool_)[found.unknown][system.column]
    if not open_.any():
        return
    rows, starts = np.unique(system.row, return_index=True)  # entries are in the order of rows
    sizes = np.abs(system.value)
    largest = np.maximum.reduceat(np.where(open_, sizes, 0), starts).tolist()
    smallest = np.minimum.reduceat(sizes, starts).tolist()
    for row, most, least in zip(rows.tolist(), largest, smallest, strict=True):
        ratio = Fraction(int(most), int(least))
        if ratio > NOTICED_RATIO and ratio * together > LARGEST_RATIO:
            yield row
        elif ratio > NOTICED_RATIO:
            together *= ratio


def _is_open(unknown: Unknown, policy: Policy) -> bool:
    """Whether no search for whole numbers decides about a number."""
    column = policy.column(unknown.column)
    if column is None or column.type is not ColumnType.INTEGER:
        return True
    return column.low is None or column.high is None
