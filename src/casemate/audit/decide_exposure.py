"""Decide who is exposed: an audit is a list of checks, each of which adds to the findings.

`Audit` reads a log against a table, `CHECKS` is the list, `run_checks` runs it over one case, and
`result_of` is what is reported. The rank comes first and proves most; who is not exposed by it is
left open until every search that could expose them has ended.

Source     Source document 002, "Which records are exposed?" and what it says about constraints.
Guarantee  Every exposed value that is proved by rank has a certificate checked in integers; every
           interval is proved in exact arithmetic. Presence in the table is not protected by an
           audit: it concerns the private columns, and takes the public ones as known.
Departure  The document compares floating-point ranks, column by column; here the rank is decided
           modulo random secret primes, for all columns at once, and types and bounds enter too.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import cast

from casemate.audit.case import Case, name_of, private_names
from casemate.audit.checks.approximate import INSIDER_SEARCH_SECONDS, approximate_disclosure
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
from casemate.audit.checks.ranges import (
    WholeNumbers,
    intervals,
    prior_ranges,
    ranges,
    tight,
    whole_numbers,
)
from casemate.audit.checks.rank import (
    SHORT_CERTIFICATE_SECONDS,
    determine_by_rank,
    with_short_certificates,
)
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
from casemate.audit.checks.within_extremes import within_extremes
from casemate.audit.classes.decide import KnownChanges
from casemate.audit.classes.facts import is_hidden
from casemate.audit.describe import with_descriptions
from casemate.audit.findings import AuditOptions, Findings
from casemate.audit.interrupts import CheckGuard
from casemate.audit.result import (
    Audited,
    Verdict,
)
from casemate.audit.second_tables import Possible, SecondTables, second_tables
from casemate.audit.time_limit import Clock, SearchLimit, Stop
from casemate.published import (
    Knowledge,
    LogEvidence,
    Premises,
    column_values,
    evidence_of,
    is_large,
    true_bounds,
    true_values_known,
    verified_equations,
    with_implied_sums,
    with_missingness,
)
from casemate.query.language import NUMBERS, Scalar
from casemate.query.parse import DIALECT, Logged, Queries, Unread, read_queries
from casemate.query.records import Cut
from casemate.table import ColumnType, Table, opened_table


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
        stop: Stop | None = None,
        progress: "Tell | None" = None,
    ) -> Audited:
        """Audit the queries (a log file, or their texts) against a table, or where one is.

        `private` names the columns to protect where the table comes without a policy. With a
        `stop`, Ctrl-C or `stop.now()` end the audit with what is proved so far, and the result is
        `interrupted`; without one, Ctrl-C raises KeyboardInterrupt. `progress` is called before
        each check with where the audit stands.
        """
        with opened_table(table, private) as opened:
            about, wanted = knowledge or Knowledge(), options or AuditOptions()
            return audit_opened(
                queries, opened, about, wanted, dialect, stop=stop, progress=progress
            )


def audit_opened(
    queries: Queries,
    table: Table,
    knowledge: Knowledge,
    options: AuditOptions,
    dialect: str,
    *,
    stop: Stop | None = None,
    progress: "Tell | None" = None,
    known: KnownChanges | None = None,
    checks: "Sequence[Check]" = (),
) -> Audited:
    """Audit the queries against an open table, by all checks if not by some.

    `known` are changes of the table that other logs left possible: those that this one does too
    show who is free, and what is found is added.
    """
    start, source = time.process_time(), table.source
    log = read_queries(queries, dialect)
    read, held = true_evidence(log, table, knowledge, options, dialect)
    found, policy, about = read.publication, read.policy, held.knowledge
    if not options.witness and is_large(found, policy, source):
        from casemate.audit.large import audit_large  # loads what is compiled

        large = audit_large(found, policy, source, about, start=start)
        if large is not None:
            reserved = with_reservations(large, table.policy, source, said=held.contradicted)
            return with_descriptions(reserved, log, found, policy, source)
    found = with_implied_sums(found, source)
    system, found = verified_equations(found, policy, source)
    case = Case(system, policy, about, found, source, assumed=read.assumed)
    findings = run_checks(case, options, stop, progress, checks=checks, known=known)
    audited = result_of(findings, start)
    reserved = with_reservations(audited, table.policy, source, system, held.contradicted)
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


# What is looked for ------------------------------------------------------------------------------


EXTREMES = "values that follow from extremes and gaps"
TOTALS_UNDECIDED = "neither a proof nor a second table was found for what their rows add up to"
NO_WHOLE_NUMBERS = "no whole numbers within the bounds give all published numbers"
WHOLE_NUMBERS_UNDECIDED = (
    "their whole numbers share equations with numbers that have no bounds, are not whole, or are "
    "too large for a search"
)


def true_together(found: Findings) -> None:
    """The answers that can all be true; the others are left out."""
    case = with_whole_rows(found.case)
    found.case, known, found.consistent = without_contradictions(case, found.clock)
    found.ranges = prior_ranges(found.case) if known is None else known
    found.ranges_known = known is not None


def values_by_rank(found: Findings) -> None:
    """The values that the equations determine."""
    found.by_rank = determine_by_rank(found.case)
    found.whole_numbers = WholeNumbers(found.ranges)


def values_within_bounds(found: Findings) -> None:
    """The values that bounds leave no choice of, and what is left of the others."""
    if not found.ranges_known:
        found.ranges = ranges(found.case, found.clock.seconds_left)
        found.whole_numbers, found.ranges_known = WholeNumbers(found.ranges), True
    found.leave_open("unchecked", found.unchecked, why_unchecked(found.case, found.ranges))


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
    found.ordered = values_by_order_and_absence(found.case, found.by_rank, found.clock, found.known)
    found.case = without_false_extremes(found.case, found.ordered)


def exposed_people(found: Findings) -> None:
    """Whose values, and whose totals, follow in any of these ways."""
    single_values = assemble_exposed(found.case, found.by_rank, found.ranges, found.ordered)
    by_sums = (*single_values, *found.totals)
    found.exposed, undecided = with_order(found.case, by_sums, found.ordered)
    found.exposed, found.missing = apart_from_missing(
        found.case, found.exposed, found.ordered, found.clock
    )
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


def whole_certificates(found: Findings) -> None:
    """Certificates of values that several numbers together say."""
    found.exposed = with_short_certificates(found.case, found.by_rank, found.exposed, 0)


def short_certificates(found: Findings) -> None:
    """Certificates that a reader can follow, for the first who are exposed."""
    first, seconds = found.options.certificates, found.clock.seconds_left
    seconds = min(SHORT_CERTIFICATE_SECONDS, seconds)
    found.exposed = with_short_certificates(
        found.case, found.by_rank, found.exposed, first, seconds
    )


def not_looked_at(found: Findings) -> None:
    """Whom a search could expose that was not finished: everybody of whom something is open."""
    searches = [check.what for check in CHECKS if check.stage is Stage.SEARCH]
    cut = [what for what in searches if what in found.cut]
    if not cut:
        return
    records = set(_not_exposed(found))
    found.undecided |= records
    why = found.cut[cut[0]].removesuffix(" first")
    found.why_open.setdefault(
        ("undecided", f"{why} before {_listed(cut)} were looked for"), set()
    ).update(records)


def _not_exposed(found: Findings) -> Iterator[Scalar]:
    """Every record with a secret that something was published about and that is not known."""
    case, people = found.case, found.case.equations.people
    known = {(each.record, each.column) for each in found.exposed}
    known |= {(each.record, each.column) for each in found.missing}
    asked = {
        (int(case.equations.record[column]), case.secret(column))
        for column in range(case.equations.system.columns)
        if not case.is_known_beforehand(column)
    }
    for name in {name_of(column) for column in case.publication.ordered}:
        values, hidden = column_values(name, case.source), is_hidden(case, name)
        places = range(len(people.records))
        # of whoever is publicly without a value nothing is left to decide
        asked |= {(p, name) for p in places if hidden or values[people.record(p)] is not None}
    for place in {p for p, name in asked if (people.record(p), name) not in known}:
        yield people.record(place)
        yield people.record(int(people.first[place]))


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def second_tables_for_the_rest(found: Findings) -> None:
    """Second tables, if they are asked for."""
    logs = {each.column: each.log for each in found.ordered}
    tied = {each.column: each.tied for each in found.ordered}
    found.witness = second_tables(
        Possible(found.case, logs, tied),
        found.exposed,
        found.ordered,
        found.whole_numbers.changes,
        protect=found.options.protect,
        clock=found.clock,
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
    people = found.case.equations.people
    by_sums = intervals(found.case, found.ranges) if found.ranges_known else ()
    found.bounds = within_extremes(by_sums, found.ordered, found.exposed, people)
    found.tight = tight(found.case, found.bounds, found.options.protect)


def nearly_known_to_insiders(found: Findings) -> None:
    """What insiders nearly know, where that is asked for."""
    already_exposed = {(each.record, each.column) for each in found.exposed}
    already_exposed |= {(each.record, each.column) for each in found.insider_exposed}
    already_tight = {(each.record, each.column) for each in found.tight}
    learned = approximate_disclosure(
        found.case,
        found.ranges,
        already_exposed,
        already_tight,
        protect=found.options.protect,
        seconds=min(INSIDER_SEARCH_SECONDS, found.clock.seconds_left),
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
            f"published sums and averages that the p-percent and dominance rules do not apply to, "
            f"because negative values are among them: {negative}"
        )


def known_but_for_rounding(found: Findings) -> None:
    """Whose values would follow if rounded numbers were exact."""
    found.exposed_if_exact = exposed_if_exact(found.case, found.exposed)


def remarks(found: Findings) -> None:
    """What was assumed, and which statements a reader should look at again."""
    case = found.case
    ordered = None if EXTREMES in found.cut else found.ordered
    before, after = (*_assumptions(case), *case.assumed), about_nobody(case, ordered)
    more = {check.what for check in CHECKS if check.stage is Stage.MORE}
    cut = [f"not looked for: {_listed(own)}; {why}" for why, own in found.cut_by_reason(more)]
    found.notes = [*before, *found.notes, *after, *as_if_labelled(case.publication), *cut]


# The checks, in the order they run --------------------------------------------------------------


class Stage(Enum):
    """What an audit that ends early says without a check.

    Before the `GROUND` nothing can be said at all. That nobody else is exposed rests on every
    `SEARCH`. What is `MORE` is left out, and said to be. A check that `CONCLUDES` is quick, and
    always runs, over whatever the others found.
    """

    GROUND = auto()
    SEARCH = auto()
    MORE = auto()
    CONCLUDES = auto()


def _always(_found: Findings) -> bool:
    return True


@dataclass(frozen=True)
class Check:
    """Reads what the checks before it found, and adds its own finding: `what` it looks for."""

    run: Callable[[Findings], None]
    stage: Stage
    what: str
    wanted: Callable[[Findings], bool] = _always


def _is_ordered(found: Findings) -> bool:
    kinds = (each.category for each in found.case.equations.unknowns)
    return bool(found.case.publication.ordered) or any(isinstance(each, Cut) for each in kinds)


CHECKS: tuple[Check, ...] = (
    Check(true_together, Stage.GROUND, "answers that contradict each other"),
    Check(values_by_rank, Stage.GROUND, "values that follow by rank"),
    Check(values_within_bounds, Stage.SEARCH, "values that follow within bounds"),
    Check(values_of_whole_numbers, Stage.SEARCH, "values that follow among whole numbers"),
    Check(
        totals_of_people,
        Stage.SEARCH,
        "totals of people with several rows",
        lambda found: not found.case.equations.people.alone,
    ),
    Check(values_by_order, Stage.SEARCH, EXTREMES, _is_ordered),
    Check(exposed_people, Stage.CONCLUDES, "who is exposed"),
    Check(values_read_outright, Stage.CONCLUDES, "values that are shown as they are"),
    Check(whole_certificates, Stage.CONCLUDES, "certificates"),
    Check(not_looked_at, Stage.CONCLUDES, "who is left open"),
    Check(short_certificates, Stage.MORE, "short certificates"),
    Check(
        second_tables_for_the_rest,
        Stage.MORE,
        "second tables",
        lambda found: found.options.witness,
    ),
    Check(undecided_whole_numbers, Stage.CONCLUDES, "whole numbers that are left open"),
    Check(groups_and_insiders, Stage.MORE, "groups and insiders"),
    Check(remaining_ranges, Stage.CONCLUDES, "what is left of every range"),
    Check(
        nearly_known_to_insiders,
        Stage.MORE,
        "what insiders nearly know",
        lambda found: found.options.approximate,
    ),
    Check(cells_by_themselves, Stage.MORE, "sensitive cells"),
    Check(known_but_for_rounding, Stage.MORE, "values that would follow if nothing was rounded"),
    Check(remarks, Stage.CONCLUDES, "remarks"),
)


EXPOSURE = CHECKS[: [each.run for each in CHECKS].index(groups_and_insiders)]
"""The checks for exposed values, and for those that were not decided about."""

SEARCH_SHARE, LAST_SEARCH_SHARE = 0.5, 0.9
"""Of the time that is left, what a search may take before others, and the last one of them."""


@dataclass(frozen=True)
class AuditProgress:
    """Where an audit stands: what it looks for now, and of how many records all is not known.

    `exposed` are the values that are proved so far; both are None before the rank is known.
    """

    what: str
    exposed: int | None
    left: int | None
    clock: Clock


Tell = Callable[[AuditProgress], None]


def run_checks(
    case: Case,
    options: AuditOptions,
    stop: Stop | None = None,
    progress: Tell | None = None,
    *,
    checks: Sequence[Check] = (),
    known: KnownChanges | None = None,
) -> Findings:
    """Run the checks, all if not some, in order, over one set of findings.

    With a `stop`, an interrupt ends the check that runs, and those that conclude have their turn.
    """
    whole = Clock(SearchLimit(seconds=options.seconds, stop=stop or Stop()))
    found, listed = Findings(case, options, whole, known), tuple(checks) or CHECKS
    grounds = [check for check in listed if check.stage is Stage.GROUND]
    for check in grounds:
        _tell(check, found, whole, progress)
        check.run(found)
    with nullcontext() if stop is None else CheckGuard(stop) as guard:
        for place, check in enumerate(listed[len(grounds) :], start=len(grounds) + 1):
            if check.wanted(found):
                _tell(check, found, whole, progress)
                found.clock = _share(check, listed[place:], found, whole)
                _run_or_cut(check, found, guard)
    found.clock = whole
    return found


def _share(check: Check, later: Sequence[Check], found: Findings, whole: Clock) -> Clock:
    """What a check may take of the time that is left."""
    if check.stage is not Stage.SEARCH:
        return whole
    waiting = any(each.stage is Stage.SEARCH and each.wanted(found) for each in later)
    share = SEARCH_SHARE if waiting or found.options.witness else LAST_SEARCH_SHARE
    return whole.within(whole.seconds_left * share)


def _run_or_cut(check: Check, found: Findings, guard: CheckGuard | None) -> None:
    """Run a check, and note it if it was ended before its time, or has none."""
    if check.stage is Stage.CONCLUDES:
        check.run(found)
    elif found.interrupted or (check.stage is Stage.MORE and found.clock.over):
        found.cut[check.what] = found.why_over
    elif guard is None:
        check.run(found)
    elif not guard.ran(partial(check.run, found), found.clock):
        found.cut[check.what] = found.why_over
    found.late |= check.stage is Stage.SEARCH and found.clock.over


def _tell(check: Check, found: Findings, whole: Clock, progress: Tell | None) -> None:
    if progress is None:
        return
    exposed = left = None
    if hasattr(found, "by_rank"):
        known = found.exposed or assemble_exposed(found.case, found.by_rank, found.ranges)
        records = len(found.case.equations.records)
        exposed = len(known)
        concluded = check.stage is Stage.MORE
        left = len(found.undecided) if concluded else records - len({e.record for e in known})
    progress(AuditProgress(check.what, exposed, left, whole))


def result_of(found: Findings, start: float) -> Audited:
    """What was found, as it is reported."""
    case = found.case
    undecided = tuple(sorted(found.undecided, key=str))
    searches = {check.what for check in CHECKS if check.stage is Stage.SEARCH}
    doubts = (
        *found.unchecked,
        *undecided,
        *case.publication.refused,
        *(searches & found.cut.keys()),
    )
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
        interrupted=found.interrupted,
        undeclared=_undeclared(case),
    )


def _undeclared(case: Case) -> tuple[str, ...]:
    """Whether bounds, and whether being whole, could still be said of some private number."""
    known = case.knowledge
    numbers = [
        column
        for column in case.policy.private()
        if column.type in NUMBERS and column.values is None
    ]
    low = known.low is not None or all(column.low is not None for column in numbers)
    high = known.high is not None or all(column.high is not None for column in numbers)
    whole = known.integer or all(column.type is ColumnType.INTEGER for column in numbers)
    said = {"bounds": low and high, "integer": whole}
    return tuple(name for name, declared in said.items() if not declared)


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
