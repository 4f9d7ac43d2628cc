"""Who is exposed after each statement of a log that grows: what `Audit.of` says of every prefix.

Where nothing but sums and averages was published, and nothing is known of the numbers beforehand
(or the table is so large that an audit decides by rank alone), a statement is one scan and one step
of the algebra (`rank`). From the first statement that tells anything else on (an extreme, a
comparison, a rounded number, an answer of the log's own), everything so far is audited again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.audit.decide_exposure import Audit
from casemate.audit.findings import AuditOptions
from casemate.audit.large import not_looked_for
from casemate.audit.result import Audited, Exposed, MissingValue, Proof, Verdict
from casemate.audit.watch.rank import DeterminedPlace, FollowedSums, is_plain
from casemate.published import (
    MAX_STORED_ENTRIES,
    Knowledge,
    People,
    evidence_of,
    missing_counts,
    prior_of,
    true_bounds,
    true_values_known,
    with_missingness,
)
from casemate.query.language import Scalar
from casemate.query.parse import Logged, Unread
from casemate.table import Policy, Table


@dataclass(frozen=True)
class Finding:
    """A value that everybody can compute: places of the record and of the person's first one.

    The record is None where all rows of the person together are meant.
    """

    record: int | None
    person: int
    column: str
    proof: str


@dataclass(frozen=True)
class Step:
    """What is known after a statement: findings, whom it leaves undecided, and what was refused.

    By rank, only findings that are new are listed, and the verdict is about those. `doubts` say
    what else was not decided.
    """

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    undecided: tuple[int, ...] = ()
    refused: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class IncrementalAudit:
    """Audits of a log, statement by statement."""

    def __init__(
        self, table: Table, knowledge: Knowledge, options: AuditOptions, dialect: str
    ) -> None:
        self._table, self._knowledge, self._dialect = table, knowledge, dialect
        # Groups, insiders and certificates are not part of what a watch says.
        self._options = replace(options, group_size=1, insiders=0, certificates=0)
        declared, _ = with_missingness(table.policy, table.source)
        self._held = true_bounds(declared, knowledge, table.source)
        self._log: list[Logged | Unread] = []
        before = self._audit()
        self.people: People = before.people
        self._unsure = before.verdict is not Verdict.NONE_EXPOSED  # values are missing
        incomplete = missing_counts(table.policy.private(), table.source)
        self._sums: FollowedSums | None = FollowedSums(table.source, incomplete=incomplete)
        self._columns = 0

    def add(self, entry: Logged | Unread, *, known: bool = False) -> Step:
        """Take one more statement; with `known` its own audit is not needed any more."""
        self._log.append(entry)
        step = None if self._sums is None else self._by_rank(self._sums, entry)
        if step is None:
            step = Step(Verdict.INCOMPLETE) if known else self._step(self._audit())
        return step

    # By rank --------------------------------------------------------------------------------------

    def _by_rank(self, sums: FollowedSums, entry: Logged | Unread) -> Step | None:
        """What one statement adds; None where ranks do not decide that."""
        source, policy, about = self._table.source, self._held.policy, self._held.knowledge
        read = evidence_of(
            [entry], policy, about, source, self._dialect, rounding=self._options.rounding
        )
        found = read.publication
        about = true_values_known(self._held, found, source).knowledge
        if read.assumed or not is_plain(found, read.policy):
            self._sums = None
            return None
        determined = sums.add(found, read.policy)
        self._columns += len(found.columns)
        refused = tuple(each.reason for each in found.refused)
        self._unsure |= bool(refused)
        doubts: tuple[str, ...] = ()
        records = len(self.people.records)
        if not self._is_free(sums, read.policy):
            if records * self._columns <= MAX_STORED_ENTRIES:
                return None
            doubts = tuple(not_looked_for(found, read.policy, about, records))
            self._unsure |= bool(doubts)
        findings = tuple(
            Finding(each.place, int(self.people.first[each.place]), each.column, Proof.RANK)
            for each in determined
            if not self._was_known(each, read.policy, about)
        )
        safe = Verdict.INCOMPLETE if self._unsure else Verdict.NONE_EXPOSED
        return Step(Verdict.EXPOSED if findings else safe, findings, (), refused, doubts)

    def _was_known(self, found: DeterminedPlace, policy: Policy, about: Knowledge) -> bool:
        """Whether a value was known before anything was published."""
        record = self.people.record(found.place)
        low, high, _ = prior_of(found.column, record, policy, about)
        return low is not None and low == high

    def _is_free(self, sums: FollowedSums, policy: Policy) -> bool:
        """Whether nothing is known of what was added up beforehand, and nobody has two rows."""
        if self._knowledge.known or not self.people.alone:
            return False
        return all(
            column.values is None and column.low is None and column.high is None
            for column in policy.private()
            if column.name in sums.columns
        )

    # From the beginning ---------------------------------------------------------------------------

    def _audit(self) -> Audited:
        return Audit.of(
            self._log,
            self._table,
            knowledge=self._knowledge,
            options=self._options,
            dialect=self._dialect,
        )

    def _step(self, found: Audited) -> Step:
        known: tuple[Exposed | MissingValue, ...] = (*found.exposed, *found.missing)
        findings = [self._finding(each) for each in known]
        undecided = self._places((*found.undecided, *found.unchecked))
        refused = tuple(each.reason for each in found.refused if each.query == len(self._log))
        unsure = found.verdict is Verdict.INCOMPLETE and not undecided and not found.refused
        doubts = found.assumptions if unsure else ()
        return Step(found.verdict, tuple(findings), undecided, refused, doubts)

    def _finding(self, found: Exposed | MissingValue) -> Finding:
        proof = found.proof if isinstance(found, Exposed) else Proof.MISSING
        place = self.people.place(found.record) if found.record is not None else None
        first = self.people.first_of(found.person) if place is None else self.people.first[place]
        return Finding(place, int(first or 0), found.column, proof)

    def _places(self, records: Sequence[Scalar]) -> tuple[int, ...]:
        found = (self.people.place(each) for each in records)
        return tuple(sorted({place for place in found if place is not None}))
