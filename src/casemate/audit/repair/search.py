"""The repair: a small set of rows to withhold so that nobody is exposed, written as SQL.

`Trials` audits what is left and takes rows out, `without_proofs` takes out the fewest rows that
meet every proof it finds, `choose_rows` is a choice of rows that can be published together where
there are no proofs, and `repair` writes the statements that are left and audits them as they stand.

Source     Source document 002, "Which records are exposed?": what is not published cannot be
           combined. The document audits; withholding what would expose somebody is our addition.
Guarantee  The text was written to a file, read back and audited as it stands, with the knowledge
           and the limits that it was made for; the verdict of that audit comes with it.
Choice     Rows are withheld, never rounded: a rounded sum still bounds everybody in it, and a
           value that is known to within the step of a rounding is as good as known.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from casemate.audit.case import Case
from casemate.audit.classes.decide import KnownChanges
from casemate.audit.decide_exposure import CHECKS, EXPOSURE, Check, audit_opened, true_evidence
from casemate.audit.findings import AuditOptions
from casemate.audit.repair.proofs import Attainers, Proofs, RankProofs, RowProof
from casemate.audit.repair.stakes import Stakes, columns_asked, swappable
from casemate.audit.repair.statements import (
    AuditedStatements,
    LoggedStatement,
    RowEvidence,
    rows_shown,
)
from casemate.audit.repair.twins import Twins
from casemate.audit.result import (
    Audited,
    Exposed,
    MissingValue,
    Repaired,
    Verdict,
    Withheld,
)
from casemate.errors import Misconfigured
from casemate.exact import WIDE_PRIME_BITS, Equation, RowSpace, random_prime
from casemate.published import (
    Knowledge,
    People,
    evidence_of,
    is_large,
    verified_equations,
)
from casemate.query.language import Scalar
from casemate.query.parse import DIALECT, Logged, Queries, Unread, read_queries
from casemate.table import Table, opened_table

MAX_AUDITS_GIVING_BACK = 100
"""Audits that giving back may cost."""

MAX_OPEN_AUDITS = 2
"""Audits that may leave somebody undecided before rows are looked for that are easy to decide."""

MAX_AUDITS_FOR_PROOFS = 60
"""Audits that proofs may be looked for in."""

MAX_MADE_ALIKE = 50
"""People up to whom each is made like somebody else."""

SHARE_FOR_PROOFS = 2 / 3
"""The share of the limit that proofs may be looked for in; giving back has the rest."""

SHARE_OF_LATE_AUDITS = 0.1
"""The share of the limit that an audit has in any case."""

MAX_ROUNDS_OF_RANK = 500
"""Times that proofs by rank alone may be looked for."""

Cell = tuple[int, tuple[tuple[str, Scalar], ...] | None, str | None]
Auditing = Callable[[Sequence[Logged]], Audited]


class Trials:
    """Audits of the statements without some of their numbers, and whom each of them blames."""

    def __init__(
        self,
        statements: AuditedStatements,
        rows: Mapping[Withheld, RowEvidence],
        people: People,
        audit: Auditing,
    ) -> None:
        self.statements, self._rows, self._people, self._audit = statements, rows, people, audit
        self._touching: dict[int, list[Withheld]] = {}
        self._shown: dict[Cell, list[Withheld]] = {}
        for row, shown in rows.items():
            for record in shown.records.tolist():
                self._touching.setdefault(record, []).append(row)
            for key, column in shown.cells:
                self._shown.setdefault((row.query, key, column), []).append(row)
                self._shown.setdefault((row.query, key, None), []).append(row)

    def of(self, kept: Iterable[Withheld]) -> Audited:
        """Audit what is published if these rows are, and no others."""
        texts = self._texts(set(kept)).values()
        return self._audit([Logged(text, 1) for each in texts for text in each])

    def _texts(self, kept: set[Withheld]) -> dict[int, list[str]]:
        withheld = [row for row in self._rows if row not in kept]
        return self.statements.texts(self.statements.joined(withheld, self._rows))

    def _queries(self, kept: set[Withheld]) -> list[int]:
        """The statement that each text of what is published is a part of."""
        return [query for query, texts in self._texts(kept).items() for _ in texts]

    def safe(
        self, kept: Sequence[Withheld], easy: Callable[[], Sequence[Withheld]]
    ) -> list[Withheld]:
        """Take rows out until nobody is exposed and nobody is left undecided.

        While an audit exposes somebody, or does not decide about somebody, rows about these people
        go: those of a certificate where there is one, and otherwise those of which most of the
        people are exposed, the smallest first; each time twice as many for each person. Where
        audits cannot decide, they go on with rows that are easy to decide about.
        """
        remaining, rows_per_person, open_audits = list(kept), 1, 0
        while remaining:
            found = self.of(remaining)
            if found.verdict is Verdict.NONE_EXPOSED:
                break
            open_audits += bool(found.undecided or found.unchecked)
            if open_audits == MAX_OPEN_AUDITS:
                remaining, rows_per_person, open_audits = list(easy()), 1, MAX_OPEN_AUDITS + 1
            else:
                remaining, rows_per_person = (
                    self.without_blamed(found, remaining, rows_per_person),
                    2 * rows_per_person,
                )
        return remaining

    def without_blamed(
        self, found: Audited, kept: Sequence[Withheld], rows_per_person: int = 1
    ) -> list[Withheld]:
        """These rows without some that are to blame for what was found, so many for each person."""
        blamed = self._rows_to_blame(found, set(kept), rows_per_person)
        return self._in_order(set(kept) - blamed) if blamed else []

    def give_back(
        self, kept: Sequence[Withheld], others: Sequence[Withheld], seconds: float = float("inf")
    ) -> list[Withheld]:
        """Add as many of the other rows as can be had in so many seconds, in batches.

        A batch that does no harm is followed by one twice as large, any other by a quarter of it.
        """
        published, pending, size = set(kept), list(others), len(others)
        deadline = time.monotonic() + seconds
        for _ in range(MAX_AUDITS_GIVING_BACK):
            if not pending or time.monotonic() >= deadline:
                break
            batch = pending[:size]
            if self.of(published.union(batch)).verdict is Verdict.NONE_EXPOSED:
                published |= set(batch)
                pending, size = pending[size:], 2 * size
            elif size == 1:
                pending = pending[1:]
            else:
                size = max(1, min(size, len(pending)) // 4)
        return self._in_order(published)

    def _in_order(self, kept: set[Withheld]) -> list[Withheld]:
        return [row for row in self._rows if row in kept]

    # Who is to blame ------------------------------------------------------------------------------

    def _rows_to_blame(
        self, found: Audited, kept: set[Withheld], rows_per_person: int
    ) -> set[Withheld]:
        """Up to so many rows for each person about whom something follows, or may follow."""
        queries = self._queries(kept)
        bad = np.zeros(len(self._people.records), np.bool_)
        suspects: list[tuple[set[Withheld], list[int]]] = []
        suspects += [
            (self._proving(each, queries, kept), self._places(each)) for each in _findings(found)
        ]
        suspects += [
            (set(), self._positions_named(name)) for name in (*found.undecided, *found.unchecked)
        ]
        for _, places in suspects:
            bad[places] = True
        about = {row: self._rows[row].records for row in kept}
        guilt = {
            row: (-bad[some].sum() / max(1, len(some)), len(some)) for row, some in about.items()
        }
        blamed: set[Withheld] = set()
        for proving, places in suspects:
            rows = proving or self._about(places, kept)
            if not blamed.intersection(rows) or rows_per_person > 1:
                blamed.update(sorted(rows, key=guilt.__getitem__)[:rows_per_person])
        return blamed

    def _places(self, finding: Exposed | MissingValue) -> list[int]:
        """The positions of the records that a finding is about."""
        if finding.record is not None:
            return self._positions_named(finding.record)
        first = self._people.first_of(finding.person)
        return [] if first is None else self._people.rows(first).tolist()

    def _positions_named(self, record: Scalar) -> list[int]:
        place = self._people.place(record)
        return [] if place is None else [place]

    def _about(self, places: Iterable[int], kept: set[Withheld]) -> list[Withheld]:
        found = (row for place in places for row in self._touching.get(place, ()))
        return [row for row in dict.fromkeys(found) if row in kept]

    def proofs(self, found: Audited, kept: set[Withheld], seen: Collection[int]) -> list[RowProof]:
        """What was found about each person, as the rows that it follows from."""
        queries = self._queries(kept)
        return [self._proof(each, queries, kept, seen) for each in _findings(found)]

    def places(self, found: Audited) -> tuple[list[int], list[int]]:
        """The positions of those found, and of those not decided about."""
        places = {place for each in _findings(found) for place in self._places(each)}
        names = (*found.undecided, *found.unchecked)
        return sorted(places), sorted(set().union(*map(self._positions_named, names)) - places)

    def _proof(
        self,
        finding: Exposed | MissingValue,
        queries: Sequence[int],
        kept: set[Withheld],
        seen: Collection[int],
    ) -> RowProof:
        """The rows that something follows from; of who was seen before the last step had best go.

        Without its other rows the same follows in next to the same way, again and again.
        """
        rows = frozenset(self._proving(finding, queries, kept))
        last = self._named(_cells(finding)[-1:], queries, kept)
        is_new = not any(place in seen for place in self._places(finding))
        return RowProof(rows, rows if is_new else frozenset(last) or rows)

    def _proving(
        self, finding: Exposed | MissingValue, queries: Sequence[int], kept: set[Withheld]
    ) -> set[Withheld]:
        """The rows that a certificate or a derivation names; none without either."""
        certificate = finding.certificate if isinstance(finding, Exposed) else None
        terms = () if certificate is None else certificate.terms
        named = {(term.place.query, term.place.key, term.place.column) for term in terms}
        return self._named(named.union(_cells(finding)), queries, kept)

    def _named(
        self, named: Iterable[Cell], queries: Sequence[int], kept: set[Withheld]
    ) -> set[Withheld]:
        """The rows in which cells of what was audited are shown."""
        rows: set[Withheld] = set()
        for number, key, column in named:
            query = queries[number - 1]
            shown = self._shown.get((query, key, column)) or [r for r in kept if r.query == query]
            rows.update(kept.intersection(shown))
        return rows


def _findings(found: Audited) -> list[Exposed | MissingValue]:
    return [*found.exposed, *found.missing]


def _cells(finding: Exposed | MissingValue) -> list[Cell]:
    """The cells that a derivation uses, in its order."""
    steps = finding.derivation
    return [(step.query, step.cell, step.column) for step in steps if step.query is not None]


# The fewest rows that meet every proof ----------------------------------------------------------


def without_proofs(
    trials: Trials,
    case: Case,
    rows: Mapping[Withheld, RowEvidence],
    stakes: Stakes,
    deadline: float,
) -> tuple[list[Withheld], bool]:
    """The rows without the fewest that meet every proof found, and whether an audit clears them.

    Whoever is found once more, or not decided about, loses an extreme or a median that is theirs,
    and is made like somebody else where none is left. It ends early where that cannot be, or would
    be for too many, and at the limit.
    """
    proofs, by_rank = Proofs(rows), RankProofs(stakes, rows)
    twins, attainers = Twins(case, rows), Attainers(case, trials.statements)
    proofs.add_ways(attainers.empty)
    kept, seen, names = _without(rows, proofs.hitting_set()), set[int](), columns_asked(case)
    is_first = attainers.is_needed  # whoever is free where all is published stays so
    for _ in range(MAX_AUDITS_FOR_PROOFS):
        for _ in range(MAX_ROUNDS_OF_RANK):
            if is_first or time.monotonic() >= deadline or not proofs.add(by_rank.of(kept)):
                break
            kept = _without(rows, proofs.hitting_set())
        if time.monotonic() >= deadline:
            break
        found, is_first = trials.of(kept), False
        if found.verdict is Verdict.NONE_EXPOSED:
            return _with_doubtful(trials, proofs, rows, kept, deadline), True
        published = set(kept)
        proofs.add(trials.proofs(found, published, seen))
        places, open_ = trials.places(found)
        proofs.add_ways(ways for place in (*places, *open_) for ways in attainers.ways(place))
        medians = {p: published.intersection(attainers.medians.get(p, ())) for p in open_}
        again = [p for p in open_ if not medians[p] and p in seen][:MAX_MADE_ALIKE]
        apart = {row for place in again for row in twins.rows_between(place, names, kept)}
        guesses = [*filter(None, medians.values()), *({row} for row in apart)]
        proofs.guess(frozenset(frozenset({row}) for row in each) for each in guesses)
        seen.update(places, open_)
        before, kept = kept, _without(rows, proofs.hitting_set())
        if kept == before and not again:
            break
    return kept, False


def _with_doubtful(
    trials: Trials,
    proofs: Proofs,
    rows: Mapping[Withheld, RowEvidence],
    kept: Sequence[Withheld],
    deadline: float,
) -> list[Withheld]:
    """These rows, and each that no proof keeps out if an audit clears it, while there is time."""
    withheld, tried = set(rows) - set(kept), set[Withheld]()
    while time.monotonic() < deadline:
        doubtful = [row for row in proofs.doubtful(withheld) if row not in tried]
        if not doubtful:
            break
        tried.add(doubtful[0])
        larger = set(_without(rows, withheld - {doubtful[0]}))
        found = trials.of(larger)
        if found.verdict is Verdict.NONE_EXPOSED:
            withheld.remove(doubtful[0])
        else:
            proofs.add(trials.proofs(found, larger, ()))
    return _without(rows, withheld)


def _without(rows: Iterable[Withheld], withheld: set[Withheld]) -> list[Withheld]:
    return [row for row in rows if row not in withheld]


# Rows that can be published together ------------------------------------------------------------
# One after the other, by rank, and by room to move. A row is admitted if, with those before it, its
# numbers determine nobody and leave everybody whose value is at an end of its range room to move
# away from it. For numbers that need not be whole that is all there is to it, so a row that is
# turned away once can never come back while the others stay: one pass gives a choice to which no
# row can be added, and the order of the pass decides how many it has. Large rows first loses least.
# What only whole numbers or extremes give away is not seen here, and the room to move is computed
# in doubles: the audit of what is chosen decides.


MAX_ROWS_FOR_SEVERAL_ORDERS = 3_000
"""Rows up to which more than one order is tried, where nobody needs room to move."""

MAX_ROWS_FOR_SEVERAL_PROGRAMS = 300
"""The same where somebody does: each row is then a linear program."""


def choose_rows(stakes: Stakes, rows: Mapping[Withheld, RowEvidence]) -> list[Withheld]:
    """As many rows as one of several orders lets be published together, in their own order."""
    size = {row: len(shown.records) for row, shown in rows.items()}
    orders = [  # large rows first, by classes of size or by size itself, and as they come
        sorted(rows, key=lambda row: -size[row].bit_length()),
        sorted(rows, key=lambda row: -size[row]),
        list(rows),
    ]
    best: list[Withheld] = []
    most = (
        MAX_ROWS_FOR_SEVERAL_ORDERS if stakes.freedom() is None else MAX_ROWS_FOR_SEVERAL_PROGRAMS
    )
    for order in orders[: 1 if len(rows) > most else None]:
        admission = Admission(stakes)
        kept = [row for row in order if admission.admit(rows[row].equations)]
        best = max(best, kept, key=lambda some: (len(some), sum(size[row] for row in some)))
        if len(best) == len(rows):
            break
    chosen = set(best)
    return [row for row in rows if row in chosen]


class Admission:
    """The rows published so far, and whether one more may be."""

    def __init__(self, stakes: Stakes) -> None:
        self._stakes, self._freedom = stakes, stakes.freedom()
        self._space = RowSpace(stakes.columns, primes=(random_prime(WIDE_PRIME_BITS),))

    def admit(self, equations: Sequence[int]) -> bool:
        """Publish the equations of a row, unless that would expose somebody."""
        exact = [self._stakes.lines[i] for i in equations if self._stakes.is_exact(i)]
        lines = [line for line in exact if len(line.columns)]
        if self._expose(lines):
            return False
        held_sums = (
            [self._stakes.held_sum(i) for i in equations] if self._freedom is not None else []
        )
        if self._freedom is not None and not self._freedom.admit(held_sums):
            return False
        for line in lines:
            self._space.add(line)
        return True

    def _expose(self, lines: Sequence[Equation]) -> bool:
        """Whether some more equations say somebody's value, one by one or together."""
        if any(self._exposes(self._space, line) for line in lines):
            return True
        space = self._space.copy() if len(lines) > 1 else self._space
        for line, following in pairwise(lines):
            space.add(line)
            if self._exposes(space, following):
                return True
        return False

    def _exposes(self, space: RowSpace, line: Equation) -> bool:
        return self._stakes.exposes(space.would_determine(line), space.determined)


# The repair of a log ----------------------------------------------------------------------------


FILE = "repaired.sql"


def repair(
    queries: Queries,
    table: Table | str | Path,
    *,
    knowledge: Knowledge | None = None,
    private: str | Sequence[str] = (),
    options: AuditOptions | None = None,
    dialect: str = DIALECT,
) -> Repaired:
    """Withhold rows of the queries until nobody is exposed, and audit what is left.

    The arguments are those of `Audit.of`. Answers that a log gives are not used: what is left
    would be published anew, from the table.

    >>> queries = [
    ...     'SELECT SUM("Blood sugar") FROM t',
    ...     'SELECT Gender, SUM("Blood sugar") FROM t WHERE ZIP <> 43813 GROUP BY Gender',
    ... ]
    >>> found = repair(queries, "hospital")
    >>> [(each.query, each.cell) for each in found.withheld], found.audited.verdict.value
    ([(2, (('Gender', 'Male'),))], 'none-exposed')
    """
    with opened_table(table, private) as opened:
        log = [
            entry if isinstance(entry, Unread) else replace(entry, answer=None)
            for entry in read_queries(queries, dialect)
        ]
        wanted = replace(options or AuditOptions(), witness=False, approximate=False)
        return _Repair(log, opened, knowledge or Knowledge(), wanted, dialect).run()


class _Repair:
    """One log to be repaired, over an open table."""

    def __init__(
        self,
        log: Sequence[Logged | Unread],
        table: Table,
        knowledge: Knowledge,
        options: AuditOptions,
        dialect: str,
    ) -> None:
        self._table, self._dialect = table, dialect
        self._knowledge, self._options = knowledge, options
        self._known: KnownChanges = {}  # who is free stays free where less is published
        source = table.source
        read, held = true_evidence(log, table, knowledge, options, dialect)
        refused = {each.query: each.reason for each in read.publication.refused}
        sound = [_left_out(n, entry, refused) for n, entry in enumerate(log, start=1)]
        read = evidence_of(sound, read.policy, held.knowledge, source, dialect)
        found, policy = read.publication, read.policy
        if is_large(found, policy, source):
            raise Misconfigured("this log is too large to be repaired; repair a part of it")
        system, found = verified_equations(found, policy, source)
        self._case = Case(system, policy, held.knowledge, found, source)
        listed = {
            n: LoggedStatement(n, entry.sql, policy, source, dialect)
            for n, entry in enumerate(sound, start=1)
            if isinstance(entry, Logged)
        }
        titles = {n: e.title for n, e in enumerate(log, 1) if isinstance(e, Logged) and e.title}
        self._statements = AuditedStatements(listed, refused, titles)

    def run(self) -> Repaired:
        """Choose rows, audit them, give back what was taken in vain, and audit the file."""
        shown = rows_shown(self._case, self._statements)
        stakes, people = Stakes(self._case), self._case.equations.people
        start, seconds = time.monotonic(), self._options.seconds
        deadline = start + seconds
        trials = Trials(self._statements, shown, people, partial(self._try, deadline))
        kept, is_safe = without_proofs(
            trials, self._case, shown, stakes, start + seconds * SHARE_FOR_PROOFS
        )
        if not is_safe:
            first = choose_rows(stakes, {row: shown[row] for row in kept})
            kept = trials.safe(first, lambda: swappable(self._case, shown))
            others = _admissible(stakes, shown, kept)
            kept = trials.give_back(kept, others, deadline - time.monotonic())
        while True:
            found = self._write(kept, tuple(shown))
            if found.audited.verdict is Verdict.NONE_EXPOSED or not kept:
                return found
            kept = trials.without_blamed(found.audited, kept)

    def _try(self, deadline: float, log: Sequence[Logged]) -> Audited:
        """Whether anybody is exposed, within what is left of the limit, or a share of it."""
        least = self._options.seconds * SHARE_OF_LATE_AUDITS
        left = max(least, deadline - time.monotonic())
        return self._audit(log, replace(self._options, certificates=0, seconds=left), EXPOSURE)

    def _audit(
        self,
        log: Sequence[Logged] | Path,
        options: AuditOptions | None = None,
        checks: Sequence[Check] = CHECKS,
    ) -> Audited:
        return audit_opened(
            log,
            self._table,
            self._knowledge,
            options or self._options,
            self._dialect,
            known=self._known,
            checks=checks,
        )

    def _write(self, kept: Sequence[Withheld], units: Sequence[Withheld]) -> Repaired:
        """The file that shows these numbers of all there are, and the audit of it."""
        published = set(kept)
        withheld = self._statements.joined([each for each in units if each not in published], units)
        texts = self._statements.texts(withheld)
        dropped = tuple(
            number
            for number in range(1, self._case.publication.queries + 1)
            if not texts.get(number)
        )
        rows = dict.fromkeys(replace(each, column=None) for each in units)
        gone = (each for each in rows if each.query in dropped)
        listed = [*(each for each in withheld if each.query not in dropped), *gone]
        sql = self._statements.script(withheld)
        return Repaired(
            tuple(sorted(listed, key=lambda each: each.rank)),
            dropped,
            sql,
            self._read_back(sql, any(texts.values())),
            len(rows),
        )

    def _read_back(self, sql: str, anything: bool) -> Audited:
        if not anything:
            return self._audit([])
        with TemporaryDirectory() as folder:
            path = Path(folder) / FILE
            path.write_text(sql, encoding="utf-8")
            return self._audit(path)


def _left_out(number: int, entry: Logged | Unread, refused: Mapping[int, str]) -> Logged | Unread:
    """The entry, unless some of it could not be read: then none of it is published."""
    if isinstance(entry, Unread) or number not in refused:
        return entry
    return Unread(entry.sql, entry.line, refused[number])


def _admissible(
    stakes: Stakes, rows: Mapping[Withheld, RowEvidence], kept: Sequence[Withheld]
) -> list[Withheld]:
    """The other rows that could be published beside these as far as rank and room go."""
    admission, published = Admission(stakes), set(kept)
    for row in kept:
        admission.admit(rows[row].equations)
    largest = sorted(rows, key=lambda row: -len(rows[row].records))
    return [r for r in largest if r not in published and admission.admit(rows[r].equations)]
