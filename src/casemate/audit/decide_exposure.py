"""Decide who is exposed: an audit is a list of checks, each of which adds to the findings.

`Audit` reads a log against a table, `CHECKS` is the list, `run_checks` runs it over one case, and
`result_of` is what is reported.

Source     Source document 002, "Which records are exposed?" and what it says about constraints.
Guarantee  Every exposed value that is proved by rank has a certificate checked in integers; every
           interval is proved in exact arithmetic. Presence in the table is not protected by an
           audit: it concerns the private columns, and takes the public ones as known.
Departure  The document compares floating-point ranks, column by column; here the rank is decided
           modulo random secret primes, for all columns at once, and types and bounds enter too.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from casemate.audit.case import Case, private_names
from casemate.audit.checks.approximate import approximate_disclosure
from casemate.audit.checks.assemble_exposed import (
    apart_from_missing,
    assemble_exposed,
    with_order,
)
from casemate.audit.checks.contradiction import (
    why_unchecked,
    without_contradictions,
    without_false_extremes,
)
from casemate.audit.checks.order import values_by_order_and_absence
from casemate.audit.checks.ranges import intervals, tight, whole_numbers
from casemate.audit.checks.rank import determine_by_rank, with_short_certificates
from casemate.audit.checks.read_outright import read_outright
from casemate.audit.checks.reservations import (
    about_nobody,
    as_if_labelled,
    exposed_if_exact,
    with_reservations,
)
from casemate.audit.checks.sensitive_cells import sensitive_cells
from casemate.audit.checks.together import together
from casemate.audit.checks.totals import exposed_totals, with_whole_rows
from casemate.audit.describe import with_descriptions
from casemate.audit.findings import AuditOptions, Findings
from casemate.audit.result import (
    Audited,
    Verdict,
)
from casemate.audit.second_tables import Possible, SecondTables, second_tables
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.published import (
    Knowledge,
    LogEvidence,
    Premises,
    evidence_of,
    is_large,
    true_bounds,
    true_values_known,
    verified_equations,
    with_implied_sums,
    with_missingness,
)
from casemate.query.parse import DIALECT, Logged, Queries, Unread, read_queries
from casemate.table import Table, opened_table


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
            log = read_queries(queries, dialect)
            read, held = true_evidence(log, opened, knowledge or Knowledge(), wanted, dialect)
            found, policy, about = read.publication, read.policy, held.knowledge
            if not wanted.witness and is_large(found, policy, source):
                from casemate.audit.large import audit_large  # loads what is compiled

                large = audit_large(found, policy, source, about, start=start)
                if large is not None:
                    said = held.contradicted
                    reserved = with_reservations(large, opened.policy, source, said=said)
                    return with_descriptions(reserved, log, found, policy, source)
            found = with_implied_sums(found, source)
            system, found = verified_equations(found, policy, source)
            case = Case(system, policy, about, found, source, assumed=read.assumed)
            audited = result_of(run_checks(case, wanted), start)
            said = held.contradicted
            reserved = with_reservations(audited, opened.policy, source, system, said)
            return with_descriptions(reserved, log, found, policy, source)


def true_evidence(
    log: Sequence[Logged | Unread],
    table: Table,
    knowledge: Knowledge,
    options: AuditOptions,
    dialect: str,
) -> tuple[LogEvidence, Premises]:
    """What the log says, and what of the premises it is read from is true of the table."""
    source, rounding = table.source, options.rounding
    declared, missingness = with_missingness(table.policy, source)
    held = true_bounds(declared, knowledge, source)
    read = evidence_of(log, held.policy, held.knowledge, source, dialect, rounding=rounding)
    shown = (*read.publication.columns, *read.publication.ordered)
    used = {name for column in shown for name in private_names(column)}
    about = (sentence for name, sentence in missingness.items() if name in used)
    read = replace(read, assumed=(*about, *read.assumed))
    return read, true_values_known(held, read.publication, source)


def witnesses(
    queries: Queries,
    table: Table | str | Path,
    *,
    knowledge: Knowledge | None = None,
    private: str | Sequence[str] = (),
    options: AuditOptions | None = None,
    dialect: str = DIALECT,
) -> SecondTables:
    """Second tables for everybody whom the queries do not expose.

    >>> found = witnesses(['SELECT SUM("Blood sugar") FROM t'], "hospital")
    >>> len(found.tables), found.covered, found.uncovered, found.check()
    (1, 6, (), True)
    """
    wanted = replace(options or AuditOptions(), witness=True)
    found = Audit.of(
        queries, table, knowledge=knowledge, private=private, options=wanted, dialect=dialect
    )
    return cast("SecondTables", found.witness)  # it was asked for


# The checks, in the order they run --------------------------------------------------------------


TOTALS_UNDECIDED = "neither a proof nor a second table was found for what their rows add up to"
NO_WHOLE_NUMBERS = "no whole numbers within the bounds give all published numbers"
WHOLE_NUMBERS_UNDECIDED = (
    "their whole numbers share equations with numbers that have no bounds, are not whole, or are "
    "too large for a search"
)

Check = Callable[[Findings], None]
"""Reads what the checks before it found, and adds its own finding."""


def true_together(found: Findings) -> None:
    """The answers that can all be true, and the ranges they leave; the others are left out."""
    case = with_whole_rows(found.case)
    found.case, found.ranges, found.consistent = without_contradictions(case, found.clock)
    found.leave_open("unchecked", found.unchecked, why_unchecked(found.case, found.ranges))


def values_by_rank(found: Findings) -> None:
    """The values that the equations determine."""
    found.by_rank = determine_by_rank(found.case)


def values_of_whole_numbers(found: Findings) -> None:
    """The values that only their being whole determines."""
    decided = whole_numbers(found.case, found.ranges, found.by_rank.tipped_by, found.clock)
    found.whole_numbers, found.ranges = decided, decided.ranges
    found.consistent = found.consistent and not decided.impossible


def totals_of_people(found: Findings) -> None:
    """What all rows of a person come to, where not every row by itself follows."""
    found.totals, undecided = exposed_totals(
        found.case, found.by_rank, found.whole_numbers, found.clock
    )
    found.undecided.update(undecided)
    found.leave_open("undecided", undecided, TOTALS_UNDECIDED)


def values_by_order(found: Findings) -> None:
    """The values that extremes, medians and comparisons determine, and who has none."""
    found.ordered = values_by_order_and_absence(found.case, found.by_rank, found.clock)
    found.case = without_false_extremes(found.case, found.ordered)


def exposed_people(found: Findings) -> None:
    """Whose values, and whose totals, follow in any of these ways."""
    single_values = assemble_exposed(found.case, found.by_rank, found.ranges, found.ordered)
    by_sums = (*single_values, *found.totals)
    found.exposed, undecided = with_order(found.case, by_sums, found.ordered)
    found.exposed, found.missing = apart_from_missing(found.case, found.exposed, found.ordered)
    found.undecided.update(undecided)
    for part in found.ordered:
        places = {place for place, _ in part.undecided}
        records = set(map(found.case.equations.people.record, places)) & set(undecided)
        found.leave_open("undecided", records, part.reason)


def values_read_outright(found: Findings) -> None:
    """The values that rows of the log show as they are."""
    case, people = found.case, found.case.equations.people
    read = read_outright(case.publication, case.policy, case.knowledge, people, case.source)
    found.exposed = read.beside(found.exposed)
    found.missing = read.beside_missing(found.missing)
    published = replace(case.publication, refused=read.refused)
    found.case = replace(case, publication=published)


def short_certificates(found: Findings) -> None:
    """Certificates that a reader can follow, for the first who are exposed."""
    first = found.options.certificates
    found.exposed = with_short_certificates(found.case, found.by_rank, found.exposed, first)


def second_tables_for_the_rest(found: Findings) -> None:
    """Second tables, if they are asked for; the limit holds for them once more."""
    if not found.options.witness:
        return
    logs = {each.column: each.log for each in found.ordered}
    tied = {each.column: each.tied for each in found.ordered}
    found.witness = second_tables(
        Possible(found.case, logs, tied),
        found.exposed,
        found.ordered,
        found.whole_numbers.changes,
        protect=found.options.protect,
        clock=Clock(SearchLimit(seconds=found.options.seconds)),
    )


def undecided_whole_numbers(found: Findings) -> None:
    """Whose whole numbers may be exposed: nothing shows another value within the limit."""
    decided_by_order = {column for each in found.ordered for column in each.covered}
    undecided = found.whole_numbers.undecided - decided_by_order
    shown = set() if found.witness is None else found.witness.shown
    records = {found.case.name(column) for column in undecided} - shown
    found.undecided |= records
    reason = NO_WHOLE_NUMBERS if found.whole_numbers.impossible else WHOLE_NUMBERS_UNDECIDED
    found.leave_open("undecided", records, reason)


def groups_and_insiders(found: Findings) -> None:
    """Small groups whose total follows, and values that follow for a few who know their own."""
    found.groups, found.insider_exposed, notes = together(
        found.case,
        found.by_rank,
        found.ranges,
        found.exposed,
        group_size=found.options.group_size,
        insiders=found.options.insiders,
    )
    found.notes += notes


def remaining_ranges(found: Findings) -> None:
    """What is left of every number, and of which numbers hardly anything is."""
    found.bounds = intervals(found.case, found.ranges)
    found.tight = tight(found.case, found.bounds, found.options.protect)


def nearly_known_to_insiders(found: Findings) -> None:
    """What insiders nearly know, where that is asked for."""
    if not found.options.approximate:
        return
    already_exposed = {(each.record, each.column) for each in found.exposed}
    already_exposed |= {(each.record, each.column) for each in found.insider_exposed}
    already_tight = {(each.record, each.column) for each in found.tight}
    learned = approximate_disclosure(
        found.case, found.ranges, already_exposed, already_tight, protect=found.options.protect
    )
    found.approximate, found.notes = learned.found, [*found.notes, *learned.notes]
    found.insider_exposed += learned.exposed


def cells_by_themselves(found: Findings) -> None:
    """Published sums that a rule for single cells calls sensitive."""
    protect, dominance = found.options.protect, found.options.dominance
    cells, negative = sensitive_cells(found.case, protect, dominance)
    read_out = {each.query for each in found.case.publication.read_out}
    found.sensitive_cells = tuple(each for each in cells if each.query not in read_out)
    if negative:
        found.notes.append(
            f"published sums and averages that were not judged by themselves, because somebody in "
            f"them adds less than nothing: {negative}"
        )


def known_but_for_rounding(found: Findings) -> None:
    """Whose values would follow if rounded numbers were exact."""
    found.exposed_if_exact = exposed_if_exact(found.case, found.exposed)


def remarks(found: Findings) -> None:
    """What was assumed, and which statements a reader should look at again."""
    case = found.case
    before, after = (*_assumptions(case), *case.assumed), about_nobody(case, found.ordered)
    found.notes = [*before, *found.notes, *after, *as_if_labelled(case.publication)]


CHECKS: tuple[Check, ...] = (
    true_together,
    values_by_rank,
    values_of_whole_numbers,
    totals_of_people,
    values_by_order,
    exposed_people,
    values_read_outright,
    short_certificates,
    second_tables_for_the_rest,
    undecided_whole_numbers,
    groups_and_insiders,
    remaining_ranges,
    nearly_known_to_insiders,
    cells_by_themselves,
    known_but_for_rounding,
    remarks,
)


def run_checks(case: Case, options: AuditOptions, checks: Sequence[Check] = CHECKS) -> Findings:
    """Run the checks, in order, over one set of findings."""
    found = Findings(case, options, Clock(SearchLimit(seconds=options.seconds)))
    for check in checks:
        check(found)
    return found


def result_of(found: Findings, start: float) -> Audited:
    """What was found, as it is reported."""
    case = found.case
    undecided = tuple(sorted(found.undecided, key=str))
    doubts = (*found.unchecked, *undecided, *case.publication.refused)
    return Audited(
        verdict=Verdict.of((*found.exposed, *found.missing), doubts),
        records=len(case.equations.records),
        queries=case.publication.queries,
        equations=case.equations.system.rows,
        rank=found.by_rank.found.rank,
        consistent=found.consistent,
        exposed=found.exposed,
        tight=found.tight,
        groups=found.groups,
        missing=found.missing,
        undecided=undecided,
        unchecked=found.unchecked,
        reasons=found.reasons,
        refused=case.publication.refused,
        bounds=found.bounds,
        assumptions=tuple(found.notes),
        seconds=time.process_time() - start,
        people=case.equations.people,
        statements=case.publication.statements,
        insider_exposed=found.insider_exposed,
        approximate=found.approximate,
        sensitive_cells=found.sensitive_cells,
        exposed_if_exact=found.exposed_if_exact,
        witness=found.witness,
    )


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
