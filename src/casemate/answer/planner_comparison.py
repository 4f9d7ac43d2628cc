"""`Comparison`: every way to spend a policy's budget on some questions, by predicted error.

Guarantee  A function of the policy, the public transcript and the questions: the source is never
           opened, so two tables with equal policy and transcript have equal plans.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from casemate.answer.identity import ledger_of
from casemate.answer.plan import Means
from casemate.answer.planner import best, chosen, compared, ranked
from casemate.answer.planner_forecasts import Baseline, Forecast, Setting, forecast_of, plain
from casemate.answer.planner_policy import budget_of, policy_of, with_types
from casemate.answer.planner_questions import Log, read_questions
from casemate.answer.planner_workload import USUAL_NUMBER, Workload, usual_questions
from casemate.answer.relation import Relation
from casemate.doors.entry import Kind, Total
from casemate.doors.transcript import Transcript, open_transcript
from casemate.errors import Misconfigured
from casemate.query.log import Queries
from casemate.query.sql import DIALECT
from casemate.table.schema import Budget, Policy, Protects, Role
from casemate.table.universe import Universe


@dataclass(frozen=True)
class History:
    """What a transcript says of a dataset before the plan."""

    people: int | None = None  # the noised number of them
    questions: int = 0  # asked of the gate
    surprises: int = 0


NOTHING = History()


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every strategy for the questions of a log, or for the usual ones where there is no log."""

    policy: Policy
    universe: Universe
    setting: Setting
    log: Log | None
    work: Workload
    people: float | None = None  # how many are assumed
    history: History = NOTHING
    notes: tuple[str, ...] = ()  # on the policy

    @property
    def assumed(self) -> bool:
        """Whether nothing is known of the questions."""
        return self.log is None

    @property
    def free(self) -> frozenset[int]:
        """The attributes of which everything is exact and free."""
        return frozenset(_public(self.universe, budget_of(self.policy)))

    @classmethod
    def of(
        cls,
        where: str | Path | Policy,
        queries: Queries | None = None,
        *,
        people: int | None = None,
        expected: int | None = None,
        dialect: str = DIALECT,
    ) -> "Comparison":
        """Compare for a policy and a log; the transcript beside the policy's ledger is read."""
        policy, notes = with_types(policy_of(where))
        universe = Universe.of(policy)
        log = None
        if queries is not None:
            log = read_questions(queries, policy, universe, dialect)
        history = history_of(policy, budget_of(policy))
        return cls.made(policy, log, people=people, expected=expected, history=history, notes=notes)

    @classmethod
    def made(
        cls,
        policy: Policy,
        log: Log | None = None,
        *,
        people: int | None = None,
        expected: int | None = None,
        history: History = NOTHING,
        notes: tuple[str, ...] = (),
    ) -> "Comparison":
        """Compare for questions on the grid; nothing is read."""
        universe, budget = _universe(policy), budget_of(policy)
        means = Means.of(budget, Relation.of(policy, budget))
        setting = Setting(means, universe.shape, policy.answering, history.questions)
        number = policy.answering.questions if expected is None else expected
        work = _workload(universe, log, _public(universe, budget), number)
        assumed = people if people is not None else history.people
        known = None if assumed is None or assumed <= 0 else float(assumed)
        return cls(policy, universe, setting, log, work, known, history, notes)

    @cached_property
    def forecasts(self) -> tuple[Forecast, ...]:
        """One for each strategy."""
        return compared(self.setting, self.work, self.people)

    @cached_property
    def recommended(self) -> Forecast:
        """The one with the least predicted error among those that leave nothing unchecked."""
        return best(self.forecasts, self.work, self.people)

    @cached_property
    def present(self) -> Forecast:
        """What the policy leads to as it is."""
        plan = chosen(self.setting.means, self.setting.shape, self.setting.answering)
        return forecast_of(plan, self.setting, self.work)

    @cached_property
    def baseline(self) -> Baseline:
        """Plain noise on every answer, as exactly accounted as is known."""
        return plain(self.setting, self.work, budget_of(self.policy))

    @property
    def saving(self) -> tuple[float, float]:
        """By which part the mean and the largest error are smaller than the baseline's."""
        ours, theirs = self.recommended, self.baseline
        return 1 - ours.mean / theirs.mean, 1 - ours.largest / theirs.largest

    def by_question(self) -> Iterator[tuple[Forecast, float]]:
        """For each question, in order, the strategy with the least error for it, and that error."""
        checked = [each for each in self.forecasts if each.checked and each.typical is not None]
        unsaid = [ranked(each, self.work, self.people) - each.mean for each in checked]
        for place in range(len(self.work.questions)):
            errors = [
                float(each.typical[place]) + more  # type: ignore[index]  # None was left out
                for each, more in zip(checked, unsaid, strict=True)
            ]
            first = errors.index(min(errors))
            yield checked[first], errors[first] - unsaid[first]


def history_of(policy: Policy, budget: Budget) -> History:
    """What left so far; no ledger is made where there is none."""
    where = ledger_of(policy, budget)
    if isinstance(where, Path) and not where.exists():
        return NOTHING
    with open_transcript(where) as transcript:
        return told_by(transcript, policy.version)


def told_by(transcript: Transcript, version: str) -> History:
    """What a transcript says of one version of the data."""
    newest = transcript.newest()
    totals = [entry.content for entry in transcript.of_kinds((Kind.TOTAL,))]
    numbers = [each.value for each in totals if isinstance(each, Total) and each.data == version]
    return History(
        numbers[-1] if numbers else None,
        0 if newest is None else newest.questions,
        len(transcript.of_kinds((Kind.HARD,))),
    )


def _universe(policy: Policy) -> Universe:
    universe = Universe.of(policy)
    if not universe.attributes:
        raise Misconfigured(
            "no column can be asked about; declare `type` and `values`, or `type`, `min` and "
            "`max`, for the columns that questions may use"
        )
    return universe


def _public(universe: Universe, budget: Budget) -> set[int]:
    """The attributes of which everything is exact and free."""
    if budget.protects is not Protects.PRIVATE_COLUMNS:
        return set()
    return {i for i, each in enumerate(universe.attributes) if each.role is Role.PUBLIC}


def _workload(
    universe: Universe, log: Log | None, public: set[int], expected: int | None
) -> Workload:
    if log is None:
        return usual_questions(universe.shape, expected or USUAL_NUMBER)
    paid = [each.asked for each in log.questions if not set(each.asked.scope) <= public]
    if not paid:
        raise Misconfigured(_nothing_to_plan(log))
    return Workload(tuple(paid), max(len(paid), expected or 0))


def _nothing_to_plan(log: Log) -> str:
    if log.questions:
        return "every question is about public columns alone, which is exact and free: no plan"
    first = log.refused[0]
    return f"no question of the log can be planned; line {first.line}: {first.reason}"
