"""Audits across releases: who is exposed by several versions of one table together.

The same statement before and after somebody joins gives them away. So the versions are stacked into
one table, every statement is about the rows of its own version, and the audit is that of one table.

Guarantee  The worst case for the people: whoever is in two versions with the same value is taken to
           be known to have kept it, so that it is one unknown. A value that changed is two, and
           that it changed is not used.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from casemate.audit.decide_exposure import Audit, Tell
from casemate.audit.findings import AuditOptions
from casemate.audit.result import AcrossReleases, Audited, Exposed, MissingValue, Release
from casemate.audit.time_limit import Clock, SearchLimit, Stop
from casemate.published import Knowledge, People, check_constant
from casemate.query.parse import DIALECT, Logged, Queries, Unread, VersionView, read_queries
from casemate.query.records import all_records
from casemate.table import Stack, Table, opened_table, stack_tables
from casemate.table.sources import redact_source

Published = tuple[Table | str | Path, Queries]
"""A version of the table, and the queries that were published about it."""


def audit_releases(
    queries: Queries,
    table: Table | str | Path,
    against: Sequence[Published],
    *,
    knowledge: Knowledge | None = None,
    private: str | Sequence[str] = (),
    options: AuditOptions | None = None,
    dialect: str = DIALECT,
    stop: Stop | None = None,
    progress: Tell | None = None,
) -> Audited:
    """Audit the queries together with those that were published about older versions of the table.

    The statements of older releases are numbered on after those of `queries`. People are found
    again by the policies' `person`, or by their `key`. The other arguments are those of `Audit.of`.
    """
    published = [(table, queries), *against]
    with ExitStack() as opened:
        tables = [
            opened.enter_context(opened_table(each, () if isinstance(each, Table) else private))
            for each, _ in published
        ]
        names = _tell_apart([_table_names(each) for each, _ in published])
        for each in tables:
            _check_rows(each)
        stack = stack_tables(tables, names)
        opened.callback(stack.table.close)
        logs = _logs([log for _, log in published], names, stack, dialect)

        def audit(log: Sequence[Logged | Unread], wanted: AuditOptions) -> Audited:
            return Audit.of(
                log,
                stack.table,
                knowledge=knowledge,
                options=wanted,
                dialect=dialect,
                stop=stop,
                progress=progress,
            )

        wanted = options or AuditOptions()
        clock = Clock(SearchLimit(wanted.seconds))
        found = audit([entry for _, log in logs for entry in log], wanted)
        brief = replace(wanted, group_size=1, insiders=0, certificates=0)
        brief = replace(brief, approximate=False, witness=False)
        alone: list[Audited] = []
        found_any = bool(found.exposed or found.missing)
        for _, log in logs if found_any and not found.interrupted else ():
            alone.append(audit(log, replace(brief, seconds=clock.left.seconds)))
        interrupted = found.interrupted or any(each.interrupted for each in alone)
        found = replace(found, interrupted=interrupted)
        return _with_releases(found, alone, stack, names, logs)


def _check_rows(table: Table) -> None:
    """Refuse a version in which a column that is called constant differs within a person."""
    people = People.of(all_records(table.source), table.policy, table.source)
    columns = [column.name for column in table.policy.private()]
    check_constant(columns, people, table.policy, table.source)


# What releases are called -----------------------------------------------------------------------


def _table_names(table: Table | str | Path) -> tuple[str, str]:
    """A short name of a table, and one that says more."""
    if isinstance(table, Table):
        where = str(table.policy.path or redact_source(table.policy.source))
    else:
        where = redact_source(str(table))
    return (where if "://" in where else Path(where).name), where


def _log_names(queries: Queries, table: str) -> tuple[str, str]:
    """The same of a log: its file, or the table that it is about."""
    name = Path(queries).name if isinstance(queries, str | Path) else table
    return name, table


def _tell_apart(candidates: Sequence[tuple[str, ...]]) -> list[str]:
    """Names by which all can be told apart, the shortest that do."""
    for names in zip(*candidates, strict=True):
        if len(set(names)) == len(names):
            return list(names)
    return [f"release {number}" for number in range(1, len(candidates) + 1)]


Log = tuple[VersionView, list[Logged | Unread]]


def _logs(
    queries: Sequence[Queries], names: Sequence[str], stack: Stack, dialect: str
) -> list[Log]:
    """The statements of each release, each with the version that it is about."""
    called = _tell_apart([_log_names(*each) for each in zip(queries, names, strict=True)])
    logs: list[Log] = []
    before = 0
    for log, name, version in zip(queries, called, stack.versions, strict=True):
        view = VersionView(version, name if version.place else "", before)
        logs.append((view, [replace(each, view=view) for each in read_queries(log, dialect)]))
        before += len(logs[-1][1])
    return logs


# What was found ---------------------------------------------------------------------------------


def _with_releases(
    found: Audited,
    alone: Sequence[Audited],
    stack: Stack,
    names: Sequence[str],
    logs: Sequence[Log],
) -> Audited:
    """The result, with what no release says alone, and how records are called in each of them."""
    people = found.people
    version = np.array([stack.version[str(record)] for record in people.records], np.int64)
    open_ = {record for audited in alone for record in (*audited.undecided, *audited.unchecked)}
    if found.interrupted:
        open_.update(each.record for each in found.exposed)
        open_.update(each.record for each in found.missing)
    order = {record: number for number, record in enumerate(stack.called)}
    exposed = sorted(
        _beside(found.exposed, [each.exposed for each in alone], open_),
        key=lambda each: order[str(each.record)],
    )
    missing = list(_beside(found.missing, [each.missing for each in alone], open_))
    releases = tuple(
        Release(
            name,
            view.log,
            tuple(map(view.number, range(view.before + 1, view.before + len(log) + 1))),
            int((version == place).sum()),
            *_movements(place, version, people),
        )
        for place, (name, (view, log)) in enumerate(zip(names, logs, strict=True))
    )
    changed = sum(each.changed or 0 for each in releases)
    kept = (
        f"whoever is in several releases with the same value is taken to be known to have kept it, "
        f"which is the worst case; values that changed, and count as separate: {changed:,}"
    )
    return replace(
        found,
        exposed=tuple(exposed),
        missing=tuple(missing),
        people=replace(people, called=[stack.called[str(each)] for each in people.records]),
        assumptions=(*found.assumptions, kept),
        releases=releases,
        across=AcrossReleases(**Counter(_standings((*exposed, *missing), version, people))),
    )


Found = TypeVar("Found", Exposed, MissingValue)


def _beside(
    together: Sequence[Found], alone: Sequence[Sequence[Found]], open_: Collection[object]
) -> Iterator[Found]:
    """What follows from all releases, each with whether it follows from none of them alone.

    Of records that are `open_` in one of them that was not decided, so nothing is claimed.
    """
    seen = {(each.record, each.column) for found in alone for each in found}
    for each in together:
        across = each.record not in open_ and (each.record, each.column) not in seen
        yield replace(each, across=across)


def _movements(place: int, version: NDArray[np.int64], people: People) -> Iterator[int]:
    """How many joined since an older version, how many left, and how many values changed."""
    if not place:
        return
    own, newest = (np.unique(people.first[version == each]) for each in (place, 0))
    yield len(np.setdiff1d(newest, own))
    yield len(np.setdiff1d(own, newest))
    stayed = (version == place) & np.isin(people.first, newest)
    yield sum(
        len(np.unique(people.first[stayed & ~np.isin(owners, owners[version == 0])]))
        for owners in people.shared.values()
    )


def _standings(
    exposed: Sequence[Exposed | MissingValue], version: NDArray[np.int64], people: People
) -> Iterator[str]:
    """Of everybody whom no release exposes alone, whether they joined, left or stayed."""
    places = (people.place(each.record) for each in exposed if each.across)
    for first in {int(people.first[place]) for place in places if place is not None}:
        versions = set(version[people.rows(first)].tolist())
        yield "left" if 0 not in versions else "joined" if versions == {0} else "stayed"
