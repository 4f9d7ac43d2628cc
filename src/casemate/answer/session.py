"""`Session`: SQL in, private answers out, one dataset at a time.

Guarantee  Everything that leaves is charged to the dataset's ledger first; its total, over all
           sessions and principals, stays within the policy's budget. A session keeps nothing that
           is not in the ledger, the transcript and the secrets beside them.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Self

from casemate.answer.answer import Answer, Forecast, Spending, Standing
from casemate.answer.construction import Progress
from casemate.answer.dataset import Dataset, open_durable, open_for_looking, open_simulated
from casemate.answer.direct_measurement import DirectMeasurement
from casemate.grid import Compiled, Outcome, ShownTable, compile_statement
from casemate.query.parse import DIALECT, dialect_of, eliminate_joins, parse_statement, public_rows
from casemate.table import Policy, Table

EXACT_NOTE = (
    "exact and free: it reads public columns alone, and this policy protects the private ones only"
)


class Session:
    """Private answers about one protected table, charged to its ledger.

    `principal` is who asks: surprises are counted, and rationed, for each. `progress` is told how
    many of how many tables have been measured before the first answer.
    """

    def __init__(
        self,
        policy: str | Path | Policy,
        *,
        principal: str = "",
        dialect: str = DIALECT,
        progress: Progress | None = None,
    ) -> None:
        dialect_of(dialect)  # an unknown one is refused before there is a ledger
        self._begin(_open_dataset(policy, open_durable), principal, dialect, progress)

    @classmethod
    def simulated(cls, policy: str | Path | Policy, seed: int, *, principal: str = "") -> Self:
        """A session with noise from a seed and a ledger in memory: it protects nobody."""
        session = cls.__new__(cls)
        dataset = _open_dataset(policy, lambda table: open_simulated(table, seed))
        session._begin(dataset, principal, DIALECT, None)
        return session

    @classmethod
    def looking(cls, policy: str | Path | Policy, *, dialect: str = DIALECT) -> Self:
        """A session for forecasts and the standing only: it makes no ledger where there is none."""
        session = cls.__new__(cls)
        session._begin(_open_dataset(policy, open_for_looking), "", dialect, None)
        return session

    def _begin(
        self, dataset: Dataset, principal: str, dialect: str, progress: Progress | None
    ) -> None:
        self._dataset, self._principal, self._dialect = dataset, principal, dialect
        self._progress = progress

    # Asking -----------------------------------------------------------------------------------

    def query(self, sql: str, *, measure: bool = False) -> Answer:
        """Answer one statement; `measure` pays for a fresh measurement of it."""
        question, dataset = self._compile(sql), self._dataset
        before = dataset.doors.ledger.charged
        direct = self._direct(question, measure)
        if direct is not None:
            outcome = direct.answer(self._principal, self._progress)
            shown, notes = direct.direct.rows(outcome), direct.direct.notes
        else:
            construction = dataset.construction
            outcome = construction.ask(question.asked, self._principal, self._progress)
            shown, notes = question.rows(outcome), question.notes
        answer = self._answer(sql, shown, outcome, dataset.doors.ledger.charged - before, notes)
        if direct is None or not direct.is_public:
            return answer
        return replace(answer, exact=True, notes=(*answer.notes, EXACT_NOTE))

    def _direct(self, question: Compiled, measure: bool) -> DirectMeasurement | None:
        """The statement as it is asked of the table itself: for a price, or as all know it."""
        plan = self._dataset.construction.plan
        paid = measure or plan.answer is not None
        if not paid and not plan.relation.counted:  # the usual case: nothing is public
            return None
        found = DirectMeasurement(question.direct(plan.relation), self._dataset)
        return found if paid or found.is_public else None

    def _compile(self, sql: str) -> Compiled:
        """The question of a statement: from its text, the policy and public tables alone."""
        dataset = self._dataset
        statement = parse_statement(sql, dataset.table.policy, self._dialect)
        rows = public_rows(dataset.table.source, dataset.table.policy, statement)
        return compile_statement(
            eliminate_joins(statement, rows, dataset.universe), dataset.universe
        )

    def _answer(
        self, sql: str, shown: ShownTable, outcome: Outcome, cost: Fraction, notes: tuple[str, ...]
    ) -> Answer:
        terms = self._dataset.doors.ledger.terms
        return Answer(
            sql,
            shown.columns,
            shown.rows,
            outcome.origin,
            outcome.confidence or self._dataset.construction.options.confidence,
            Spending.of(cost, terms),
            Spending.of(self._dataset.doors.ledger.remaining(), terms),
            (*self._dataset.notes, *notes, *shown.notes),
        )

    # Looking ----------------------------------------------------------------------------------

    def forecast(self, sql: str, *, measure: bool = False) -> Forecast:
        """What a statement would cost at most; nothing of the protected table is read."""
        question, dataset = self._compile(sql), self._dataset
        construction, terms = dataset.construction, dataset.doors.ledger.terms
        name, notes, free = question.asked.text, question.notes, False
        direct = self._direct(question, measure)
        if direct is not None:
            name, notes, free = direct.key, direct.direct.notes, direct.is_public
        known = construction.stored_outcome(name) is not None
        most = Fraction(0) if known or free else construction.at_most(measure)
        return Forecast(
            sql,
            Spending.of(most, terms),
            Spending.of(dataset.doors.ledger.remaining(), terms),
            known,
            (*dataset.notes, *notes),
        )

    def standing(self, *, tighter: bool = False) -> Standing:
        """Where the budget stands; `tighter` adds what an accountant makes of it afterwards."""
        standing = self._dataset.standing()
        return self._dataset.with_tighter_epsilon(standing) if tighter else standing

    def close(self) -> None:
        """Let go of the table, the ledger and the transcript."""
        self._dataset.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Which table it is about; nothing of what is in it."""
        return f"<Session of {self._dataset.doors.ledger.terms.dataset}>"


def _open_dataset(policy: str | Path | Policy, dataset: Callable[[Table], Dataset]) -> Dataset:
    """The dataset of a policy; its table does not stay open if there is none."""
    table = Table.open(policy, by_policy=True)
    try:
        return dataset(table)
    except BaseException:
        table.close()
        raise
