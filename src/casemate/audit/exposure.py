"""The audit: whose values the published numbers determine, by which of them, and how far.

Source     Source document 002, "Which records are exposed?" and what it says about constraints.
Guarantee  Every exposed value that is proved by rank has a certificate checked in integers; every
           interval is proved in exact arithmetic. Presence in the table is not protected by an
           audit: it concerns the private columns, and takes the public ones as known.
Departure  The document compares floating-point ranks, column by column; here the rank is decided
           modulo random secret primes, for all columns at once, and types and bounds enter too.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import cast

from casemate.audit.case import Case
from casemate.audit.checks.approximate import Approximated, approximated
from casemate.audit.checks.certificates import certified
from casemate.audit.checks.contradiction import agreed, without_false_extremes
from casemate.audit.checks.exposed import exposed, with_order
from casemate.audit.checks.insiders import together
from casemate.audit.checks.integers import whole_numbers
from casemate.audit.checks.ranges import intervals, tight
from casemate.audit.checks.rank import determined
from casemate.audit.checks.reservations import (
    about_nobody,
    as_if_labelled,
    exposed_if_exact,
    with_reservations,
)
from casemate.audit.checks.sensitive_cells import Dominance, sensitive_cells
from casemate.audit.checks.totals import exposed_totals, with_whole_rows
from casemate.audit.order.audit import Ordered, by_order
from casemate.audit.region.bounds import Bounds
from casemate.audit.region.second import Change
from casemate.audit.result import (
    Audited,
    Exposed,
    InsiderExposed,
    RemainingInterval,
    Verdict,
    Witnessed,
)
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.audit.witness.possible import Possible
from casemate.audit.witness.witness import SecondTables, second_tables
from casemate.published import (
    Knowledge,
    exact_ranges,
    is_large,
    publication,
    unique_columns,
    verified_equations,
)
from casemate.query.language import Scalar
from casemate.query.parse import DIALECT, Queries, read_queries
from casemate.table import Table, opened_table


@dataclass(frozen=True)
class AuditOptions:
    """What an audit looks for, and how long it may take.

    `protect` is how near is nearly known, `group_size` how large a group may be, `insiders` how
    many people may put together what they know, `certificates` for how many values a short
    certificate is looked for, `dominance` when a cell is sensitive, and `seconds` the limit for
    everything that is not decided by rank. With `approximate` it is found out what insiders nearly
    know, which takes long.
    With `rounding` the answers that a log gives count as rounded to the digits they are printed
    with; with `witness` second tables are looked for.
    """

    protect: Fraction = Fraction(1, 10)
    group_size: int = 5
    seconds: float = 300.0
    insiders: int = 1
    approximate: bool = False
    rounding: bool = False
    witness: bool = False
    certificates: int = 20
    dominance: Dominance = field(default_factory=Dominance)


class Audit:
    """Audits of published aggregates.

    >>> queries = [
    ...     'SELECT SUM("Blood sugar") FROM t',
    ...     'SELECT SUM("Blood sugar") FROM t WHERE ZIP <> 43813',
    ... ]
    >>> with Table.open("hospital") as table:
    ...     found = Audit.of(queries, table)
    >>> [(each.record, float(each.value)) for each in found.exposed]
    [(2, 5.2)]
    """

    @staticmethod
    def of(
        queries: Queries,
        table: Table | str | Path,
        *,
        knowledge: Knowledge | None = None,
        private: str | Sequence[str] = (),
        options: AuditOptions | None = None,
        dialect: str = DIALECT,
    ) -> Audited:
        """Audit the queries (a log file, or their texts) against a table, or where one is.

        `private` names the columns to protect where the table comes without a policy.
        """
        start = time.process_time()
        with opened_table(table, private) as opened:
            source, wanted = opened.source, options or AuditOptions()
            about, log = knowledge or Knowledge(), read_queries(queries, dialect)
            ranged = exact_ranges(log, opened.policy, about, source, dialect)
            policy = ranged.policy
            unique = unique_columns(log, policy, source)
            found = publication(log, policy, dialect, wanted.rounding, unique)
            if not wanted.witness and is_large(found, policy, source):
                from casemate.audit.large import audited  # loads what is compiled

                large = audited(found, policy, source, about, start=start)
                if large is not None:
                    return with_reservations(large, policy, source)
            system, found = verified_equations(found, policy, source)
            case = Case(system, policy, about, found, source, assumed=ranged.notes)
            return with_reservations(decided(case, wanted, start), policy, source, system)


def witnesses(
    queries: Queries,
    table: Table | str | Path,
    *,
    knowledge: Knowledge | None = None,
    private: str | Sequence[str] = (),
    options: AuditOptions | None = None,
    dialect: str = DIALECT,
) -> Witnessed:
    """Second tables for everybody whom the queries do not expose.

    >>> found = witnesses(['SELECT SUM("Blood sugar") FROM t'], "hospital")
    >>> len(found.tables), found.covered, found.uncovered, found.check()
    (1, 6, (), True)
    """
    wanted = replace(options or AuditOptions(), witness=True)
    found = Audit.of(
        queries, table, knowledge=knowledge, private=private, options=wanted, dialect=dialect
    )
    return cast("Witnessed", found.witness)  # it was asked for


def decided(case: Case, options: AuditOptions, start: float) -> Audited:
    """Decide by rank, by bounds and by order, and put what they find together."""
    clock = Clock(SearchLimit(seconds=options.seconds))
    given = agreed(with_whole_rows(case), clock)
    case = given.case
    known = determined(case)
    whole = whole_numbers(case, given.ranges, known.by, clock)
    left = whole.ranges
    people, unsure = exposed_totals(case, known, whole, clock)
    ordered = by_order(case, clock)
    case = without_false_extremes(case, ordered)
    found, undecided = with_order(case, (*exposed(case, known, left, ordered), *people), ordered)
    found = certified(case, known, found, options.certificates)
    covered = {column for each in ordered for column in each.covered}
    witness = _witness(case, options, found, ordered, whole.changes)
    open_ = {case.name(c) for c in whole.undecided if c not in covered}
    open_ -= set() if witness is None else witness.shown
    undecided = tuple(sorted({*unsure, *undecided, *open_}, key=str))
    few = together(
        case, known, left, found, group_size=options.group_size, insiders=options.insiders
    )
    numbers = intervals(case, left)
    close = tight(case, numbers, options.protect)
    near = _near(case, options, left, (*found, *few.insiders), close)
    cells = sensitive_cells(case, options.protect, options.dominance)
    unchecked = sorted({case.name(c) for c in left.unchecked}, key=str)
    return Audited(
        verdict=_verdict(case, found, [*unchecked, *undecided]),
        records=len(case.equations.records),
        queries=case.publication.queries,
        equations=case.equations.system.rows,
        rank=known.found.rank,
        consistent=given.consistent and not whole.impossible,
        exposed=found,
        tight=close,
        groups=few.groups,
        undecided=undecided,
        unchecked=tuple(unchecked),
        refused=case.publication.refused,
        bounds=numbers,
        assumptions=(
            *_assumptions(case),
            *case.assumed,
            *few.notes,
            *near.notes,
            *cells.notes,
            *about_nobody(case, ordered),
            *as_if_labelled(case.publication),
        ),
        seconds=time.process_time() - start,
        people=case.equations.people,
        statements=case.publication.statements,
        insider_exposed=(*few.insiders, *near.exposed),
        approximate=near.found,
        sensitive_cells=cells.cells,
        exposed_if_exact=exposed_if_exact(case, found),
        witness=witness,
    )


def _near(
    case: Case,
    options: AuditOptions,
    left: Bounds,
    known: Sequence[Exposed | InsiderExposed],
    close: Sequence[RemainingInterval],
) -> Approximated:
    """What insiders nearly know, where that is asked for."""
    if not options.approximate:
        return Approximated()
    seen = {(each.record, each.column) for each in known}
    also = {(each.record, each.column) for each in close}
    return approximated(case, left, seen, also, protect=options.protect)


def _witness(
    case: Case,
    options: AuditOptions,
    found: Sequence[Exposed],
    ordered: Sequence[Ordered],
    changes: Sequence[Change],
) -> SecondTables | None:
    """Second tables, if they are asked for; the limit holds for them once more."""
    if not options.witness:
        return None
    logs = {each.column: each.log for each in ordered}
    possible = Possible(case, logs, {each.column: each.tied for each in ordered})
    clock = Clock(SearchLimit(seconds=options.seconds))
    return second_tables(possible, found, ordered, changes, protect=options.protect, clock=clock)


def _verdict(case: Case, found: Sequence[Exposed], unchecked: Sequence[Scalar]) -> Verdict:
    if found:
        return Verdict.EXPOSED
    incomplete = unchecked or case.publication.refused
    return Verdict.INCOMPLETE if incomplete else Verdict.NONE_EXPOSED


def _assumptions(case: Case) -> tuple[str, ...]:
    unbounded = [
        column.name
        for column in case.policy.private()
        if column.values is None and (column.low is None or column.high is None)
    ]
    if not unbounded or case.knowledge.low is not None or case.knowledge.high is not None:
        return ()
    return tuple(
        f"{name} has no declared bounds, so any number was taken to be possible"
        for name in unbounded
    )
