"""Why nobody can be called safe although no value was found, and remarks on single statements.

`with_reservations` is about what the equations do not say; the rest is what a reader should look at
again, and values that would follow if rounded numbers were exact.

Missing  A private value may be missing although nobody said so. Whether that is secret was then
         taken one way, and the other way somebody else may be exposed.
Digits   A sum that weighs one number far more than another tells both by its digits, if they are
         whole or have few digits after the point, and so does a chain of such sums. Whole numbers
         within bounds are searched for; others are not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case, name_of
from casemate.audit.checks.rank import determine_by_rank, in_numbers
from casemate.audit.classes.facts import is_hidden
from casemate.audit.order.audit import Ordered
from casemate.audit.result import Audited, Exposed, ExposedIfExact, Verdict
from casemate.exact import Certificate
from casemate.published import Equations, Publication, missing_counts, with_sides
from casemate.query.records import Unknown
from casemate.table import ColumnType, Missing, Policy
from casemate.table.sources import Source

LARGEST_RATIO = 10**6
"""Of the largest to the smallest coefficient of a number in one equation, or in several at once."""

NOTICED_RATIO = 1000
"""Smaller ratios, such as those of the weights of a survey, are not counted together."""


def with_reservations(
    audited: Audited,
    policy: Policy,
    source: Source,
    system: Equations | None = None,
    said: Sequence[str] = (),
) -> Audited:
    """The result, which is incomplete instead of safe where there are any; `said` are some more."""
    notes = [*said, *_missing(policy, source), *([] if system is None else _digits(system, policy))]
    if not notes:
        return audited
    safe = audited.verdict is Verdict.NONE_EXPOSED
    return replace(
        audited,
        verdict=Verdict.INCOMPLETE if safe else audited.verdict,
        assumptions=(*audited.assumptions, *notes),
    )


def _missing(policy: Policy, source: Source) -> list[str]:
    undeclared = [column for column in policy.private() if column.missing is Missing.NONE]
    taken = "secret who has no value" if policy.path is None else "known to everybody who has none"
    return [
        f"{name} is missing in some records, and nothing was said of that: it was taken to be "
        f'{taken}; declare `missing = "secret"` or `missing = "public"`, or say --missing'
        for name in missing_counts(undeclared, source)
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
    system, combined_ratio = found.system, Fraction(1)
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
        if ratio > NOTICED_RATIO and ratio * combined_ratio > LARGEST_RATIO:
            yield row
        elif ratio > NOTICED_RATIO:
            combined_ratio *= ratio


def _is_open(unknown: Unknown, policy: Policy) -> bool:
    """Whether no search for whole numbers decides about a number."""
    column = policy.column(unknown.column)
    if column is None or column.type is not ColumnType.INTEGER:
        return True
    return column.low is None or column.high is None


# Rows of a GROUP BY whose keys are not shown ----------------------------------------------------
# They are audited as if they were, which is the worst case: what such a statement shows is a
# function of its rows with their keys. So whoever is not exposed by labelled rows is not exposed by
# these; whoever is may be one whom an outsider cannot point to.


def as_if_labelled(publication: Publication) -> tuple[str, ...]:
    """A sentence for each statement that shows rows without all of their keys."""
    return tuple(
        f"query {query} shows rows without all of their keys; it was audited as if they were "
        f"labelled, which is the worst case"
        for query in publication.unlabelled
    )


# Statements that are about nobody: more often than not a mistake in their conditions ------------


def about_nobody(case: Case, ordered: Sequence[Ordered] | None) -> tuple[str, ...]:
    """A sentence for each statement in which no record counts.

    `ordered` is None where nobody came to look at extremes and medians. Of numbers that may be
    missing in secret some are not read: then nothing is said of those statements.
    """
    system, places = case.equations.system, case.equations.places
    counted = {places[row].query for row in np.unique(system.row).tolist()}
    counted.update(query for each in ordered or () for query in each.queries)
    seen = {each.column for each in ordered or () if each.queries}
    looked_at = (
        column
        for column in (case.publication.ordered if ordered is not None else ())
        if name_of(column) in seen or not is_hidden(case, name_of(column))
    )
    read = {column.query for column in (*case.publication.columns, *looked_at)}
    left_out = {each.query for each in case.publication.refused}
    return tuple(
        f"query {query} is about nobody: no record counts in it; check its conditions"
        for query in sorted(read - counted - left_out)
    )


# Values that would follow if rounded numbers were exact -----------------------------------------
# Rounding hides a value only as far as it blurs it: a combination of published numbers that would
# give a value exactly gives it to within half a unit of each number, times what that is multiplied
# by. Whoever is pinned down all the same, by bounds or by being whole, is plainly exposed.


def exposed_if_exact(case: Case, exposed: Iterable[Exposed]) -> tuple[ExposedIfExact, ...]:
    """Whose numbers follow once rounded numbers are taken as exact, and not otherwise."""
    equations = case.equations
    ends = list(zip(equations.low, equations.high, strict=True))
    half = [Fraction(0) if high is None else (high - low) / 2 for low, high in ends]
    if not any(half):
        return ()
    middle = tuple(low + each for low, each in zip(equations.low, half, strict=True))
    high = tuple(None if high is None else m for m, (_, high) in zip(middle, ends, strict=True))
    exact = replace(case, equations=with_sides(equations, middle, high, equations.open_ends))
    already_exposed = {(each.record, each.column) for each in exposed}
    return tuple(
        each
        for each in _values_if_exact(exact, half)
        if (each.record, each.column) not in already_exposed
    )


def _values_if_exact(exact: Case, half: list[Fraction]) -> Iterator[ExposedIfExact]:
    by_rank = determine_by_rank(exact)
    for column, by in sorted(by_rank.tipped_by.items()):
        if not exact.is_number(column) or exact.is_known_beforehand(column):
            continue
        single = by_rank.singles.get(column)
        yield ExposedIfExact(
            exact.name(column),
            exact.person(column),
            exact.secret(column),
            None if single is None else single.value(exact.equations.low),
            None if single is None else _margin(single, half),
            None if single is None else in_numbers(exact, single),
            by,
        )


def _margin(combination: Certificate, half: list[Fraction]) -> Fraction:
    """How far the value may be off: half a unit of each number, times its multiple."""
    weights = combination.coefficients.items()
    off = sum((abs(weight) * half[row] for row, weight in weights), Fraction(0))
    return off / abs(combination.divisor)
