"""`Session`: SQL in, private answers out, one dataset at a time.

Guarantee  Everything that leaves is charged to the dataset's ledger first; its total, over all
           sessions and principals, stays within the policy's budget. A session keeps nothing that
           is not in the ledger, the transcript and the secrets beside them.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self

from casemate.answer.answer import (
    Answer,
    BudgetStanding,
    Forecast,
    Spending,
    Spent,
    stored_outcome,
)
from casemate.answer.budget_plan import PAID_EACH
from casemate.answer.construction import Progress
from casemate.answer.dataset import Dataset, open_durable, open_for_looking, open_simulated
from casemate.answer.declaration import compile_question
from casemate.errors import Misconfigured
from casemate.grid import Compiled, Outcome, ShownTable
from casemate.query.parse import DIALECT, dialect_of
from casemate.table import Policy, Table

if TYPE_CHECKING:
    from casemate.answer.direct_measurement import DirectMeasurement
    from casemate.answer.within import ExactAnswer, Wanted, Within

BOTH = "--within chooses what is measured, and so does --measure; give one of them"
EXACT_NOTE = (
    "exact and free: it reads public columns alone, and this policy protects the private ones only"
)

DECLARED_NOTE = "declared before anything was measured: each number by itself"


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
        self._asked: dict[str, Compiled] = {}  # what forecasts were wanted of, each once

    # Asking -----------------------------------------------------------------------------------

    def query(
        self,
        sql: str,
        *,
        measure: bool = False,
        within: "Wanted | Within | None" = None,
        all_groups: bool = False,
    ) -> Answer:
        """Answer one statement; `measure` pays for a fresh measurement of it.

        `within` pays what it takes, if anything, for every number to be proven so far either way: a
        number in its own unit, or a Fraction as a share of the value. `all_groups` shows those
        groups too that by the policy's own word nobody is in.
        """
        question, dataset = self._compile(sql), self._dataset
        before = dataset.doors.ledger.charged
        exact = self._exactly(question, measure, within)
        if exact is not None:
            found = exact.answer(self._principal)
            shown = found.reader.rows(found.outcome, all_groups=all_groups)
            notes = (*found.reader.notes, *exact.notes(found))
            cost = dataset.doors.ledger.charged - before
            return self._answer(sql, shown, found.outcome, cost, notes)
        direct = self._direct(question, measure)
        if direct is not None:
            outcome = direct.answer(self._principal, self._progress)
            shown, notes = direct.direct.rows(outcome, all_groups=all_groups), direct.direct.notes
        else:
            known = stored_outcome(dataset.doors, question.asked.text)
            outcome = known or dataset.construction.ask(
                question.asked, self._principal, self._progress
            )
            shown, notes = question.rows(outcome, all_groups=all_groups), question.notes
        answer = self._answer(sql, shown, outcome, dataset.doors.ledger.charged - before, notes)
        if direct is None or not direct.is_public:
            return answer
        return replace(answer, exact=True, notes=(*answer.notes, EXACT_NOTE))

    def _direct(self, question: Compiled, measure: bool) -> "DirectMeasurement | None":
        """The statement as it is asked of the table itself: for a price, or as all know it."""
        relation, answering = self._dataset.relation, self._dataset.table.policy.answering
        paid = measure or answering.strategy in PAID_EACH
        if not paid and not relation.counted:  # the usual case: nothing is public
            return None
        from casemate.answer.direct_measurement import DirectMeasurement

        found = DirectMeasurement(question.direct(relation), self._dataset)
        return found if paid or found.is_public else None

    def _exactly(
        self, question: Compiled, measure: bool, wanted: "Wanted | Within | None"
    ) -> "ExactAnswer | None":
        """The statement as exact as it is wanted; None where nobody says so or all know it."""
        if wanted is None:
            return None
        from casemate.answer.direct_measurement import DirectMeasurement
        from casemate.answer.within import ExactAnswer, Within

        within = wanted if isinstance(wanted, Within) else Within.of(wanted)
        if measure:
            raise Misconfigured(BOTH)
        base = DirectMeasurement(question.direct(self._dataset.relation), self._dataset)
        return None if base.is_public else ExactAnswer(question, base, within)

    def _compile(self, sql: str) -> Compiled:
        """The question of a statement: from its text, the policy and public tables alone."""
        return compile_question(sql, self._dataset.table, self._dataset.universe, self._dialect)

    def _answer(
        self, sql: str, shown: ShownTable, outcome: Outcome, cost: Fraction, notes: tuple[str, ...]
    ) -> Answer:
        confidence = outcome.confidence or self._dataset.options.confidence
        alone = f"{DECLARED_NOTE} at {100 * confidence:g} %"
        terms, spent = self._dataset.doors.ledger.terms, self._dataset.doors.ledger.spent().amount
        return Answer(
            sql,
            shown.columns,
            shown.rows,
            outcome.origin,
            confidence,
            Spending.of(cost, terms),
            Spending.of(self._dataset.doors.ledger.remaining(), terms),
            Spent.of(spent - cost, spent, terms),
            (*self._dataset.notes, *((alone,) if outcome.declared else ()), *notes, *shown.notes),
        )

    # Looking ----------------------------------------------------------------------------------

    def forecast(
        self, sql: str, *, measure: bool = False, within: "Wanted | Within | None" = None
    ) -> Forecast:
        """What a statement would cost at most; nothing of the protected table is read."""
        question, dataset = self._compile(sql), self._dataset
        construction, terms = dataset.construction, dataset.doors.ledger.terms
        name, notes, free = question.asked.text, question.notes, False
        direct = self._direct(question, measure)
        if direct is not None:
            name, notes, free = direct.key, direct.direct.notes, direct.is_public
        exact = self._exactly(question, measure, within)
        if exact is not None:
            found = exact.known()
            known = found is not None and found.key is None
            most = exact.price if found is None else Fraction(0)
            left = dataset.doors.ledger.remaining() - most
            notes = (*(found or exact).reader.notes, *exact.start_note(left))
        else:
            known = construction.stored_outcome(name) is not None
            most = Fraction(0) if known or free else construction.at_most(measure, question.asked)
        self._asked.setdefault(question.asked.text, question)
        spent = dataset.doors.ledger.spent().amount
        return Forecast(
            sql,
            Spending.of(most, terms),
            Spending.of(dataset.doors.ledger.remaining(), terms),
            Spent.of(spent, spent + most, terms),
            known,
            (*dataset.notes, *notes, *(() if spent else self._better_strategy())),
        )

    def _better_strategy(self) -> tuple[str, ...]:
        """What would serve the questions so far better, while nothing is bound to a strategy."""
        from casemate.answer.planner.comparison import better_strategy

        found = better_strategy(
            self._dataset.table.policy, [each.snapped for each in self._asked.values()]
        )
        return () if found is None else (found,)

    def standing(self, *, tighter: bool = False) -> BudgetStanding:
        """Where the budget stands; `tighter` adds what an accountant makes of it afterwards."""
        standing = self._dataset.standing()
        return self._dataset.with_tighter_epsilon(standing) if tighter else standing

    def describe(self) -> str:
        """What may be asked about, as lines of text; nothing of the protected table is read."""
        from casemate.answer.description import describe

        return describe(self._dataset)

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
    table = Table.open(policy, by_policy=True, later=True)
    try:
        return dataset(table)
    except BaseException:
        table.close()
        raise
