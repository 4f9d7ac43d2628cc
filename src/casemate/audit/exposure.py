"""The audit: whose values the published numbers determine, by which of them, and how far.

Source     Source document 002, "Which records are exposed?" and what it says about constraints.
Guarantee  Every exposed value that is proved by rank has a certificate checked in integers; every
           interval is proved in exact arithmetic. Presence in the table is not protected by an
           audit: it concerns the private columns, and takes the public ones as known.
Departure  The document compares floating-point ranks, column by column; here the rank is decided
           modulo random secret primes, for all columns at once, and types and bounds enter too.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from casemate.audit.equations import Equations, equations
from casemate.audit.knowledge import Knowledge, box_of, record_name, record_of, region_of
from casemate.audit.order import OrderAudit
from casemate.audit.publication import Publication, publication
from casemate.audit.result import (
    Audited,
    Certificate,
    Exposed,
    Group,
    Interval,
    Proof,
    Term,
    Verdict,
)
from casemate.audit.truth import true_values
from casemate.query.expression import Scalar
from casemate.query.linear import Unknown, possible_values
from casemate.query.log import Logged, Unread, read_log
from casemate.query.sql import DIALECT
from casemate.solve.bounds import Bounds, bounds
from casemate.solve.bounds import Proof as RangeProof
from casemate.solve.box import Bound, Box
from casemate.solve.certificate import Certificate as Combination
from casemate.solve.certificate import certify, tipped_by
from casemate.solve.collapse import Collapsed, collapse
from casemate.solve.exposure import exposure
from casemate.solve.joint_proof import prove
from casemate.solve.system import System
from casemate.table.schema import Policy
from casemate.table.source import Source
from casemate.table.table import Table

Queries = str | Path | Iterable[str | Logged | Unread]
LARGEST_GROUP = 5
PROTECTION = Fraction(1, 10)


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
        table: Table,
        *,
        knowledge: Knowledge | None = None,
        protect: Fraction = PROTECTION,
        group_size: int = LARGEST_GROUP,
        dialect: str = DIALECT,
    ) -> Audited:
        """Audit the queries (a log file, or their texts) against the table."""
        start = time.process_time()
        found = publication(_log(queries, dialect), table.policy, dialect)
        system = equations(found.columns, table.policy, table.source)
        case = _Case(system, table.policy, knowledge or Knowledge(), found, table.source)
        return case.audited(protect, group_size, start)


def _log(queries: Queries, dialect: str) -> list[Logged | Unread]:
    if isinstance(queries, str | Path):
        return read_log(Path(queries), dialect)
    listed = enumerate(queries, start=1)
    return [Logged(each, i) if isinstance(each, str) else each for i, each in listed]


@dataclass(frozen=True, eq=False)
class _Case:
    """One audit while it is being decided."""

    equations: Equations
    policy: Policy
    knowledge: Knowledge
    publication: Publication
    source: Source

    def audited(self, protect: Fraction, group_size: int, start: float) -> Audited:
        """Decide by rank, then by bounds, and put both together."""
        known = self._by_rank(group_size)
        box = box_of(self.equations, self.policy, self.knowledge)
        ranges = self._ranges(box)
        exposed = self._exposed(known, ranges, box)
        exposed, undecided = self._with_order(exposed)
        intervals = self._intervals(box, ranges)
        unchecked = sorted({self._name(c) for c in ranges.unchecked}, key=str)
        return Audited(
            self._verdict(exposed, [*unchecked, *undecided]),
            len(self.equations.records),
            self.publication.queries,
            self.equations.system.rows,
            known.rank,
            not ranges.contradiction if self.publication.told else None,
            exposed,
            tuple(each for each in intervals if self._is_tight(each, protect)),
            known.groups,
            undecided,
            tuple(unchecked),
            self.publication.refused,
            intervals,
            self._assumptions(),
            time.process_time() - start,
        )

    def _ranges(self, box: Box) -> Bounds:
        """What is left of every range; without any bound to start from, nothing is to be had."""
        if any(end is not None for end in (*box.low, *box.high)):
            return bounds(region_of(self.equations, box))
        nothing = (None,) * len(box)
        proof: RangeProof = "propagation"
        return Bounds(nothing, nothing, (proof,) * len(box))

    # By the equations alone -----------------------------------------------------------------

    def _by_rank(self, group_size: int) -> "_Determined":
        """What the exact equations determine: single columns, and the totals of small groups."""
        kept = exact_rows(self.equations)
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
        return _Determined(
            found.rank,
            {
                members[g][0]: self.equations.places[kept.rows[row]].query
                for g, row in tipping.items()
            },
            {members[g][0]: combinations[g] for g in alone if g in combinations},
            tuple(
                self._group(members[group], combination)
                for group, combination in combinations.items()
                if len(members[group]) > 1
            ),
        )

    def _group(self, columns: list[int], combination: Combination) -> Group:
        names = tuple(self._name(column) for column in columns)
        total = combination.value(self.equations.low)
        return Group(names, self._secret(columns[0]), total)

    # Put together ----------------------------------------------------------------------------

    def _exposed(self, known: "_Determined", ranges: Bounds, box: Box) -> tuple[Exposed, ...]:
        """Everybody whose value is determined, and was not known before."""
        values = {column: ranges.low[column] for column in ranges.fixed}
        values |= self._solved(known)
        values = {c: value for c, value in values.items() if not _settled(box, c)}
        found = []
        for (_, name), columns in self._by_record(values).items():
            value, shown_by = self._value(name, columns, values)
            if shown_by is not None:
                found.append(self._exposure(shown_by, value, known))
        return tuple(found)

    def _solved(self, known: "_Determined") -> dict[int, Bound]:
        """The values that follow by rank: from their certificates, or as the table has them."""
        values: dict[int, Bound] = {
            c: combination.value(self.equations.low) for c, combination in known.singles.items()
        }
        rest = [column for column in known.by if column not in values]
        if rest and not self.publication.told:
            values |= true_values(self.equations, rest, self.source)
        return values | dict.fromkeys((c for c in rest if c not in values), None)

    def _with_order(
        self, exposed: tuple[Exposed, ...]
    ) -> tuple[tuple[Exposed, ...], tuple[Scalar, ...]]:
        """Whom extremes and medians expose besides, and about whom nothing could be decided."""
        if not self.publication.ordered:
            return exposed, ()
        found = OrderAudit(
            self.publication.ordered, self.equations, self.policy, self.knowledge, self.source
        ).run()
        seen = {(each.record, each.column) for each in exposed}
        names = [record_of(self.equations.records, i) for i in range(len(self.equations.records))]
        more = tuple(
            Exposed(names[place], part.column, value, None, None, Proof(proof))
            for part in found
            for place, (value, proof) in part.exposed.items()
            if (names[place], part.column) not in seen
        )
        undecided = sorted({names[place] for part in found for place in part.undecided}, key=str)
        return (*exposed, *more), tuple(undecided)

    def _by_record(self, columns: Iterable[int]) -> dict[tuple[int, str], list[int]]:
        grouped: dict[tuple[int, str], list[int]] = defaultdict(list)
        for column in sorted(columns):
            grouped[int(self.equations.record[column]), self._secret(column)].append(column)
        return dict(sorted(grouped.items()))

    def _value(
        self, name: str, columns: Sequence[int], values: dict[int, Bound]
    ) -> tuple[Scalar | Fraction, int | None]:
        """The value that the known columns of a record come to, and the column that shows it."""
        if self._is_number(columns[0]):
            return values[columns[0]], columns[0]
        for column in columns:
            category = self._unknown(column).category
            if values[column] == 1 and category is not None:
                return category.value, column
        declared = self._declared(name)
        if len(columns) == len(declared) - 1:  # none of the others: it is the last
            return declared[-1], columns[-1]
        return None, None

    def _declared(self, name: str) -> tuple[Scalar, ...]:
        column = self.policy.column(name)
        return () if column is None else possible_values(column) or ()

    def _exposure(self, column: int, value: Scalar | Fraction, known: "_Determined") -> Exposed:
        record, name = self._name(column), self._secret(column)
        if column not in known.by:
            return Exposed(record, name, value, None, None, Proof.BOUNDS)
        certificate = None
        if column in known.singles:
            combination = known.singles[column]
            terms = tuple(
                Term(self.equations.places[row], int(weight * self.equations.factor[row]))
                for row, weight in sorted(combination.coefficients.items())
            )
            certificate = Certificate(terms, combination.divisor)
        return Exposed(record, name, value, certificate, known.by[column], Proof.RANK)

    def _intervals(self, box: Box, ranges: Bounds) -> tuple[Interval, ...]:
        return tuple(
            Interval(
                self._name(column),
                self._secret(column),
                ranges.low[column],
                ranges.high[column],
                box.low[column],
                box.high[column],
            )
            for column in range(self.equations.system.columns)
            if self._is_number(column)
            and (ranges.low[column] is not None or ranges.high[column] is not None)
        )

    def _is_tight(self, interval: Interval, protect: Fraction) -> bool:
        """Whether every possible value is within the share `protect` of the largest of them."""
        if interval.low is None or interval.high is None:
            return False
        widest = max(abs(interval.low), abs(interval.high))
        return interval.low != interval.high and interval.high - interval.low <= protect * widest

    def _verdict(self, exposed: Sequence[Exposed], unchecked: Sequence[Scalar]) -> Verdict:
        if exposed:
            return Verdict.EXPOSED
        incomplete = unchecked or self.publication.refused
        return Verdict.INCOMPLETE if incomplete else Verdict.NONE_EXPOSED

    def _assumptions(self) -> tuple[str, ...]:
        unbounded = [
            column.name
            for column in self.policy.private()
            if column.values is None and (column.low is None or column.high is None)
        ]
        if not unbounded or self.knowledge.low is not None or self.knowledge.high is not None:
            return ()
        return tuple(
            f"{name} has no declared bounds, so any number was taken to be possible"
            for name in unbounded
        )

    def _name(self, column: int) -> Scalar:
        return record_name(self.equations, column)

    def _secret(self, column: int) -> str:
        return self._unknown(column).column

    def _is_number(self, column: int) -> bool:
        return self._unknown(column).category is None

    def _unknown(self, column: int) -> Unknown:
        return self.equations.unknowns[int(self.equations.unknown[column])]


@dataclass(frozen=True, eq=False)
class _Determined:
    """What follows by rank: the statement that tipped each column, and how each is put together.

    A column in `by` that is not in `singles` is proved together with the others: its own
    combination has too many digits for anybody to read.
    """

    rank: int
    by: dict[int, int]
    singles: dict[int, Combination]
    groups: tuple[Group, ...]


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The equations whose right sides are exact, and their numbers among all."""

    system: System
    rows: tuple[int, ...]


def exact_rows(found: Equations) -> ExactRows:
    """Leave out rounded numbers: they are ranges, and only bounds can use them."""
    kept = [i for i in range(found.system.rows) if found.low[i] == found.high[i]]
    place = np.full(found.system.rows, -1, np.int64)
    place[kept] = np.arange(len(kept))
    inside = place[found.system.row] >= 0
    system = System(
        len(kept),
        found.system.columns,
        place[found.system.row[inside]],
        found.system.column[inside],
        found.system.value[inside],
        tuple(found.low[i] for i in kept),
    )
    return ExactRows(system, tuple(kept))


def _settled(box: Box, column: int) -> bool:
    """Whether a value was known before anything was published."""
    return box.low[column] is not None and box.low[column] == box.high[column]


def _members(collapsed: Collapsed, groups: Sequence[int]) -> dict[int, list[int]]:
    wanted = set(groups)
    members: dict[int, list[int]] = {group: [] for group in groups}
    for column, group in enumerate(collapsed.group.tolist()):
        if group in wanted:
            members[group].append(column)
    return members


def _in_terms_of(rows: Sequence[int], combination: Combination) -> Combination:
    """The same combination, in the numbers of all equations."""
    named = {rows[row]: weight for row, weight in combination.coefficients.items()}
    return replace(combination, coefficients=named)
