"""The audit: whose values the published numbers determine, by which of them, and how far.

Source     Source document 002, "Which records are exposed?" and what it says about constraints.
Guarantee  Every exposed value that is proved by rank has a certificate checked in integers; every
           interval is proved in exact arithmetic. Presence in the table is not protected by an
           audit: it concerns the private columns, and takes the public ones as known.
Departure  The document compares floating-point ranks, column by column; here the rank is decided
           modulo random secret primes, for all columns at once, and types and bounds enter too.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from casemate.audit.case import Case
from casemate.audit.determined import determined
from casemate.audit.equations import equations
from casemate.audit.exposed import exposed, with_order
from casemate.audit.knowledge import Knowledge
from casemate.audit.publication import publication
from casemate.audit.ranges import intervals, is_tight, ranges
from casemate.audit.result import Audited, Exposed, Verdict
from casemate.errors import Misconfigured
from casemate.query.expression import Scalar
from casemate.query.log import Logged, Unread, read_log
from casemate.query.sql import DIALECT
from casemate.table.table import Table

Queries = str | Path | Iterable[str | Logged | Unread]


@dataclass(frozen=True)
class Options:
    """What an audit looks for: how near is nearly known, and how large a group may be."""

    protect: Fraction = Fraction(1, 10)
    group_size: int = 5


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
        options: Options | None = None,
        dialect: str = DIALECT,
    ) -> Audited:
        """Audit the queries (a log file, or their texts) against a table, or where one is.

        `private` names the columns to protect where the table comes without a policy.
        """
        start = time.process_time()
        with _opened(table, private) as opened:
            policy, source = opened.policy, opened.source
            found = publication(_log(queries, dialect), policy, dialect)
            system = equations(found.columns, policy, source)
            case = Case(system, policy, knowledge or Knowledge(), found, source)
            return decided(case, options or Options(), start)


def _opened(
    table: Table | str | Path, private: str | Sequence[str]
) -> AbstractContextManager[Table]:
    if not isinstance(table, Table):
        names = [private] if isinstance(private, str) else private
        return Table.open(table, private=names)
    if private:
        raise Misconfigured("`private` goes with a path; give it to Table.open with an open table")
    return nullcontext(table)


def _log(queries: Queries, dialect: str) -> list[Logged | Unread]:
    if isinstance(queries, str | Path):
        return read_log(Path(queries), dialect)
    listed = enumerate(queries, start=1)
    return [Logged(each, i) if isinstance(each, str) else each for i, each in listed]


def decided(case: Case, options: Options, start: float) -> Audited:
    """Decide by rank, by bounds and by order, and put what they find together."""
    known = determined(case, options.group_size)
    left = ranges(case)
    found, undecided = with_order(case, exposed(case, known, left))
    numbers = intervals(case, left)
    unchecked = sorted({case.name(c) for c in left.unchecked}, key=str)
    return Audited(
        verdict=_verdict(case, found, [*unchecked, *undecided]),
        records=len(case.equations.records),
        queries=case.publication.queries,
        equations=case.equations.system.rows,
        rank=known.found.rank,
        consistent=not left.contradiction if case.publication.told else None,
        exposed=found,
        tight=tuple(each for each in numbers if is_tight(each, options.protect)),
        groups=known.groups,
        undecided=undecided,
        unchecked=tuple(unchecked),
        refused=case.publication.refused,
        bounds=numbers,
        assumptions=_assumptions(case),
        seconds=time.process_time() - start,
    )


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
