"""The online auditor: it decides question by question what may be answered exactly.

Source     Source document 002, "Which records are exposed?" and "Beyond linear queries";
           simulatable auditing after Kenthapadi, Mishra and Nissim (2005).
Guarantee  Whether a question is refused follows from the questions, the public columns and the
           answers that were given: the asker could work it out alone, so refusals give nothing
           away. What is answered determines nobody's value. Sums and averages are decided by rank,
           which no answer changes; a minimum or maximum is refused when any possible answer would
           determine somebody. One family for each component of linked records: SUM{1,2} = 14 and
           MAX{1,2} = 7 are harmless alone and together say that both are 7.
Weights    Whole numbers could be read off the digits of a sum that weighs one record far more than
           another, or off a chain of such sums; how far weights go, over all sums together, is
           limited.
Assumes    Any number is possible as a value, and nothing else is known. With bounds or finitely
           many values the same decisions would give values away, so such a column is refused.
           The table is one snapshot, and all askers together are one.
Cost       Below `SCAN_MIN_RECORDS` the records behind each question are read and kept. From there
           on a plain sum or average is decided by what one scan adds up beside its answer
           (`scan`), under the assumption stated at `FingerprintedTable` in `sums`.
Departure  Which records such a sum links is not known then, so all records are linked by it: about
           a column that was added up, minima and maxima are refused.
           `test_a_sum_by_scans_links_all_records` shows it.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

from casemate.audit.online.questions import (
    ExtremeQuestion,
    Family,
    Snapshot,
    StatementQuestions,
    weighing,
)
from casemate.audit.online.scan import Scan, Scanned, answer_statement, ridden_columns
from casemate.audit.online.sums import (
    MAX_COLUMNS,
    Components,
    FingerprintedTable,
    OnlineSums,
    would_expose,
)
from casemate.audit.order.online import OnlineExtremes
from casemate.errors import Misconfigured, Refused, Unsupported
from casemate.exact import RandomBytes
from casemate.published import People, check_constant, exact
from casemate.query import Statement
from casemate.query.engines import PROTECTED, StatementAnswer, answers, tables, values
from casemate.query.language import LARGEST_DOUBLE, NUMBERS
from casemate.query.parse import DIALECT, parse_statement
from casemate.query.records import all_records
from casemate.table import NO_PRIVATE, Column, Policy, Table
from casemate.table.sources import Source, quote_name

SCAN_MIN_RECORDS = 100_000
"""From so many records on, sums are decided by scans."""

MAX_WEIGHT_RATIO = 1_000
"""How many times more one record may be weighed than another, over all sums that are answered."""

PUBLIC = "it asks about public columns only"
HARMLESS = "with everything that was answered it determines nobody's value"
BY_SUM = "with the sums that were answered it would determine a value, whatever its answer is"
BY_EXTREME = "with what was answered, some possible answer to it would determine a value"
WEIGHED = (
    f"with what was answered it weighs some records more than {MAX_WEIGHT_RATIO:,} times as much "
    f"as others, which could give a value away by its digits; ask for plain sums"
)
MIXED = (
    "sums and extremes about linked records can give values away together; ask about them by one "
    "of the two"
)
NOT_FITTING = (
    "the answer contradicts an earlier one, so the table has changed; an audit is about one "
    "snapshot, start a new one"
)


@dataclass(frozen=True)
class Decision:
    """Whether a question may be answered, and why; nothing in it depends on a private value."""

    allowed: bool
    reason: str
    family: Family | None = None


@dataclass(frozen=True)
class Recorded:
    """A statement that was answered, with the minima and maxima that it showed, in order."""

    sql: str
    answers: tuple[Fraction, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class _Considered:
    """A statement, what it asks (written out, or as a scan found it), and the decision."""

    sql: str
    decision: Decision
    statement: Statement | None = None
    questions: StatementQuestions = field(default_factory=StatementQuestions)
    scanned: Scanned | None = None


class OnlineAuditor:
    """Decides, question by question, what of a table may be answered exactly.

    A column with bounds, such as the hospital's blood sugar, is not taken:

    >>> OnlineAuditor("hospital")
    Traceback (most recent call last):
        ...
    casemate.errors.Misconfigured: Blood sugar has declared bounds or values, which would let \
answers and refusals give values away; exact answers under audit need a column without any
    """

    def __init__(
        self,
        table: Table | str | Path,
        *,
        private: str | Sequence[str] = (),
        history: Iterable[Recorded] = (),
        random: RandomBytes | None = None,
        dialect: str = DIALECT,
        scans_from: int = SCAN_MIN_RECORDS,
    ) -> None:
        """Begin with a table, or where one is, and the statements that were answered already.

        `private` names the private columns that questions may be about: by default all of an
        open table, and it is needed for a file that comes without a policy. A table of at least
        `scans_from` records is audited by scans, unless people have several rows in it.
        """
        names = (private,) if isinstance(private, str) else tuple(private)
        self._dialect = dialect
        self._open = ExitStack()
        with ExitStack() as opening:
            if not isinstance(table, Table):
                table = opening.enter_context(Table.open(table, private=names, decimals=True))
            self._policy = table.policy
            self._snapshot = _snapshot(table, _audited_columns(names, table.policy))
            self._parts: Components[Family] = Components(self._snapshot.size)
            self._sums = _sums(self._snapshot, scans_from, random)
            self._with_extremes: set[int] = set()  # columns
            self._weighed = Fraction(1)
            self._linked: set[int] = set()  # columns all of whose records a sum has linked
            self._extremes = OnlineExtremes(self._snapshot.size)
            self._history: list[Recorded] = []
            self._last: _Considered | None = None
            for each in history:
                self.record(each.sql, each.answers)
            self._open = opening.pop_all()

    @property
    def assumption(self) -> str:
        """What the decisions take for granted."""
        return (
            f"any number is possible as a value of {' and '.join(self._snapshot.names)}, nothing "
            f"else is known about it, and the table stays as it is"
        )

    @property
    def history(self) -> tuple[Recorded, ...]:
        """The statements that were answered, from which another auditor can go on."""
        return tuple(self._history)

    def would_expose(self, query: str) -> Decision:
        """Decide whether a statement may be answered, without looking at anything private."""
        return self._consider_once(query).decision

    def record(self, query: str, extremes: Sequence[Fraction] | None = None) -> None:
        """Take note that a statement was answered; raises Refused if it must not be.

        `given` are the minima and maxima that were shown; by default those of the table.
        """
        self._take(self._consider_once(query), extremes)

    def ask(self, query: str) -> StatementAnswer:
        """Answer a statement and take note of it; raises Refused if it must not be answered.

        Rows come in no particular order, and LIMIT is read as if absent.
        """
        considered = self._consider(query, answered=True)
        self._take(considered)
        if considered.scanned is not None and considered.scanned.answer is not None:
            return considered.scanned.answer
        if considered.statement is None:
            raise ValueError("a statement that could not be read was allowed")
        return answer_statement(
            considered.statement, considered.questions.cells, self._snapshot.source
        )

    def close(self) -> None:
        """Let go of the table if this auditor opened it."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Deciding -----------------------------------------------------------------------------------

    def _consider_once(self, query: str) -> _Considered:
        """A statement asked about and then recorded is read and decided once."""
        if self._last is None or self._last.sql != query:
            self._last = self._consider(query)
        return self._last

    def _consider(self, query: str, answered: bool = False) -> _Considered:
        try:
            statement = parse_statement(query, self._policy, self._dialect)
            scanned = self._scan(statement, answered)
            if scanned is not None:
                return _Considered(query, self._decide_by_scan(scanned), statement, scanned=scanned)
            questions = self._snapshot.questions(statement)
            return _Considered(query, self._decide(questions), statement, questions)
        except Unsupported as error:
            return _Considered(query, Decision(False, error.reason))
        except Refused as error:
            return _Considered(query, Decision(False, str(error)))

    def _scan(self, statement: Statement, answered: bool) -> Scanned | None:
        """What one scan says of a statement, unless the records behind it must be known."""
        if self._sums.table is None:
            return None
        columns = ridden_columns(statement, self._snapshot.names)
        if columns is None or self._with_extremes & {each.column for each in columns}:
            return None
        scan = Scan(statement, columns, self._sums.table, self._sums.outside)
        return scan.answer() if answered else scan.read_sums()

    def _decide_by_scan(self, scanned: Scanned) -> Decision:
        if not scanned.sums:
            return Decision(True, PUBLIC)
        exposing = self._sums.would_expose(scanned.sums)
        return Decision(not exposing, BY_SUM if exposing else HARMLESS, Family.SUMS)

    def _decide(self, questions: StatementQuestions) -> Decision:
        if not questions.families:
            return Decision(True, PUBLIC)
        if len(questions.families) > 1:
            return Decision(False, MIXED)
        (family,) = questions.families
        if self._would_mix(questions, family):
            return Decision(False, MIXED, family)
        if family is Family.SUMS and self._weighing(questions) > MAX_WEIGHT_RATIO:
            return Decision(False, WEIGHED, family)
        if family is Family.SUMS:
            exposing, reason = self._sums.would_expose(questions.sums), BY_SUM
        else:
            exposing = would_expose(questions.extremes, self._extremes, self._parts)
            reason = BY_EXTREME
        return Decision(not exposing, reason if exposing else HARMLESS, family)

    def _weighing(self, questions: StatementQuestions) -> Fraction:
        """How far weights could carry from one record to another, over all sums answered."""
        return math.prod(map(weighing, questions.sums), start=self._weighed)

    def _would_mix(self, questions: StatementQuestions, family: Family) -> bool:
        """Whether a question is about records that the other family has linked."""
        asked = {self._column(each) for each in questions.extremes}
        if asked & self._linked:
            return True
        return any(self._parts.marks(members) - {family} for _, members in questions.members)

    def _column(self, question: ExtremeQuestion) -> int:
        return int(question.members[0]) // self._snapshot.records

    # Recording ----------------------------------------------------------------------------------

    def _take(self, considered: _Considered, extremes: Sequence[Fraction] | None = None) -> None:
        if not considered.decision.allowed:
            raise Refused(f"this must not be answered: {considered.decision.reason}")
        questions = considered.questions
        shown = self._true_extremes(questions.extremes) if extremes is None else tuple(extremes)
        if len(shown) != len(questions.extremes):
            raise ValueError(
                f"need the {len(questions.extremes)} minima and maxima that the statement shows, "
                f"got {len(shown)}"
            )
        self._take_extremes(questions.extremes, shown)
        if considered.scanned is not None:
            self._take_scanned(considered.scanned)
        if questions.sums:
            self._sums.record(questions.sums)
            self._weighed = self._weighing(questions)
        for family, members in questions.members:
            self._parts.join(members, family)
        self._with_extremes |= {self._column(each) for each in questions.extremes}
        self._history.append(Recorded(considered.sql, shown))
        self._last = None

    def _take_scanned(self, scanned: Scanned) -> None:
        """Sums of which only totals are known link every record of their column."""
        if scanned.sums:
            self._sums.record(scanned.sums)
        self._linked |= {each.column for each in scanned.sums}

    # Answers ------------------------------------------------------------------------------------

    def _true_extremes(self, asked: Sequence[ExtremeQuestion]) -> tuple[Fraction, ...]:
        """The table's own answers."""
        needed = list(dict.fromkeys(each.aggregate for each in asked))
        found = dict(zip(needed, answers(needed, self._snapshot.source), strict=True))
        return tuple(exact(found[each.aggregate][each.key]) for each in asked)

    def _take_extremes(self, asked: Sequence[ExtremeQuestion], shown: Sequence[Fraction]) -> None:
        """Record answers that fit the past; one that does not would make every later one fit."""
        later = self._extremes.copy() if asked else self._extremes
        for question, answer in zip(asked, shown, strict=True):
            members = question.members.tolist()
            if not later.is_possible(question.kind, members, answer):
                raise Refused(NOT_FITTING)
            later.record(question.kind, members, answer)
        self._extremes = later


# The columns --------------------------------------------------------------------------------------


def _snapshot(table: Table, names: tuple[str, ...]) -> Snapshot:
    people = People.of(all_records(table.source), table.policy, table.source)
    check_constant(names, people, table.policy, table.source)
    _check_values(names, table.policy, table.source)
    return Snapshot(table.source, table.policy, people, names)


def _check_values(names: Sequence[str], policy: Policy, source: Source) -> None:
    """Refuse a table some of whose values no sum could be answered about: later is too late.

    A failure while a question is answered would say something about the values in it.
    """
    columns = [column for column in policy.columns if column.name in names]
    written = [f"{quote_name(PROTECTED)}.{quote_name(column.name)}" for column in columns]
    asked = ", ".join(
        f"sum({name}) FILTER (WHERE {name} > 0) AS p{i}, "
        f"sum({name}) FILTER (WHERE {name} < 0) AS q{i}, count(*) - count({name}) AS m{i}"
        for i, name in enumerate(written)
    )
    frame = source.read(f"SELECT {asked} FROM {tables(source, ())}")
    for i, column in enumerate(columns):
        if int(frame[f"m{i}"].values[0]) and not column.nullable:
            raise Misconfigured(
                f"{column.name} has missing values, and the policy does not say so; declare it "
                f"`nullable`, or fill them in"
            )
        totals = [values(frame[f"{side}{i}"])[0] for side in "pq"]
        if any(isinstance(each, float) and not abs(each) <= LARGEST_DOUBLE for each in totals):
            raise Misconfigured(f"{column.name} adds up to more than a double can hold; rescale it")


def _sums(snapshot: Snapshot, scans_from: int, random: RandomBytes | None) -> OnlineSums:
    """The form in which sums are followed; scans need one row for each person."""
    large = snapshot.records >= scans_from and snapshot.people.alone
    if not large or len(snapshot.names) > MAX_COLUMNS:
        return OnlineSums.by_records(snapshot.persons, random)
    table = FingerprintedTable(snapshot.source, snapshot.people.records, random)
    return OnlineSums.by_scans(table, len(snapshot.names), random)


def _audited_columns(names: Sequence[str], policy: Policy) -> tuple[str, ...]:
    """The private columns that questions may be about, each fit to be asked about."""
    if not policy.private():
        raise Misconfigured(NO_PRIVATE)
    columns = [column for column in policy.private() if not names or column.name in names]
    missing = set(names) - {column.name for column in columns}
    if missing:
        raise Misconfigured(
            f"{min(missing)} is not private; name the columns to protect with `private`"
        )
    for column in columns:
        _check(column)
    return tuple(column.name for column in columns)


def _check(column: Column) -> None:
    if column.type not in NUMBERS:
        raise Misconfigured(
            f"{column.name} is of type {column.type}, and only numbers without bounds can be "
            f"answered exactly under audit"
        )
    if column.values is not None or column.low is not None or column.high is not None:
        raise Misconfigured(
            f"{column.name} has declared bounds or values, which would let answers and refusals "
            f"give values away; exact answers under audit need a column without any"
        )
