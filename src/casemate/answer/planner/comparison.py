"""Every way to spend a policy's budget on some questions, by predicted error, and which is best.

Guarantee  A function of the policy, the public transcript and the questions: the source is never
           opened, so two tables with equal policy and transcript have equal plans.
Ranking    By mean error. To what tables of few attributes leave unsaid, which nobody knows before
           asking, the ranking alone gives a size: `UNSAID_SHARES` of the people, about what it was
           on the tables that were tried, and with a gate no more than a cold start leaves. Only
           strategies that leave nothing unchecked are recommended.
Split      A warm start with a share s of the budget errs by about a/sqrt(s) at most, and its gate
           proves b/sqrt(1 - s). The sum of both is least where s : 1 - s = a^(2/3) : b^(2/3); the
           policy's own share is never lowered, because errors are felt and bounds rarely are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from casemate.answer.budget_plan import (
    BudgetPlan,
    Means,
    first_tables,
    plan_of,
    public_attributes,
    required_budget,
    required_universe,
)
from casemate.answer.planner.forecasts import (
    COLD_MEAN,
    TABLE_ORDERS,
    Baseline,
    PlannerSetting,
    StrategyForecast,
    cold,
    forecast_of,
    gaussian,
    histogram,
    laplace,
    plain,
    tables,
    warm,
)
from casemate.answer.planner.predicted import NoisyTables, fitted_answers
from casemate.answer.planner.workload import (
    USUAL_NUMBER,
    LoggedQuestion,
    QuestionLog,
    Workload,
    policy_of,
    read_questions,
    usual_questions,
    with_types,
)
from casemate.answer.schedule import GateSchedule
from casemate.doors import EntryKind, PeopleTotal, Transcript, ledger_of, open_transcript
from casemate.errors import Misconfigured
from casemate.grid import GridQuestion, Relation, Scope
from casemate.query.parse import DIALECT, Queries
from casemate.table import Answering, Budget, Policy, Strategy, Universe

# Which strategy, and which split ----------------------------------------------------------------


UNSAID_SHARES = {1: 0.01, 2: 0.0005}
"""By the attributes of the tables, the mean share of the people that wider questions were off for
want of wider tables: .013 and .0002 on the Adult table, .0015 and .001 on one of pure parities."""

USUAL_PEOPLE = 50_000
"""So many people are assumed for the ranking where nobody says how many there are."""

SPLIT_STEPS = 20
"""A split is a multiple of one over this."""


def choose_plan(
    means: Means, shape: tuple[int, ...], answering: Answering, sums: Sequence[int] = ()
) -> BudgetPlan:
    """The plan of a policy; `auto` takes the start that is best for the usual questions.

    The split stays as the policy has it.
    """
    if answering.strategy is not Strategy.AUTO or not shape:
        return plan_of(means, shape, answering, sums=sums)
    auto = replace(answering, strategy=Strategy.WARM)
    plans = [plan_of(means, shape, auto, order, sums) for order in start_orders(shape)]
    if len(plans) < 2:
        return plans[0] if plans else plan_of(means, shape, auto)
    work = usual_questions(shape)
    return min(plans, key=lambda plan: _start_error(plan, shape, work))


def start_orders(shape: tuple[int, ...]) -> list[int]:
    """How many attributes the tables of a start may have: few, or all of them."""
    tables = (first_tables(shape, order) for order in (*TABLE_ORDERS, len(shape)))
    return list(dict.fromkeys(len(scopes[0]) for scopes in tables if scopes))


def _start_error(plan: BudgetPlan, shape: tuple[int, ...], work: Workload) -> float:
    """The `ranking_error` of a warm start, without what else a forecast says of it."""
    noisy = NoisyTables.of(plan, shape)
    wider = sum(not noisy.holds(asked.scope) for asked in work.questions) / len(work.questions)
    errors = fitted_answers(work.questions, plan.relation, noisy)
    return errors.mean + wider * unsaid_error(noisy.widest, plan.gate, work, None)


def compare_strategies(
    setting: PlannerSetting, work: Workload, people: float | None
) -> tuple[StrategyForecast, ...]:
    """Every strategy, the warm start from its best tables and at its best split."""
    return (
        gaussian(setting, work),
        laplace(setting, work),
        histogram(setting, work),
        *(tables(setting, work, order) for order in TABLE_ORDERS),
        cold(setting, work),
        warm_at_best(setting, work, people),
    )


def warm_at_best(setting: PlannerSetting, work: Workload, people: float | None) -> StrategyForecast:
    """The warm start from the best tables, its budget split where the sum of errors is least."""
    starts = [warm(setting, work, order) for order in start_orders(setting.shape)]
    if not starts:
        said = "the tables of single attributes have too many cells for a start"
        return StrategyForecast(Strategy.WARM, reason=said)
    found = best(starts, work, people)
    assert found.order is not None, "a start of tables has an order"
    share = best_split(found, setting.answering.start)
    at_best = replace(setting, answering=replace(setting.answering, start=share))
    return warm(at_best, work, found.order)


def best_split(forecast: StrategyForecast, start: Fraction) -> Fraction:
    """The share of the start, no less than the policy's, at which both errors are least."""
    noise = forecast.largest * float(start) ** 0.5
    gate = (forecast.proven or 0.0) * float(1 - start) ** 0.5
    share = noise ** (2 / 3) / (noise ** (2 / 3) + gate ** (2 / 3))
    return max(start, Fraction(min(round(share * SPLIT_STEPS), SPLIT_STEPS - 1), SPLIT_STEPS))


def best(
    forecasts: Sequence[StrategyForecast], work: Workload, people: float | None
) -> StrategyForecast:
    """The first of those with the least error that leave nothing unchecked."""
    checked = [each for each in forecasts if each.checked]
    return min(checked, key=lambda each: ranking_error(each, work, people))


def ranking_error(forecast: StrategyForecast, work: Workload, people: float | None) -> float:
    """The mean error, with a size given to what its tables leave unsaid."""
    if not forecast.order:
        return forecast.mean
    wider = forecast.wider / len(work.questions)
    return forecast.mean + wider * unsaid_error(forecast.order, forecast.gate, work, people)


def unsaid_error(
    order: int, gate: GateSchedule | None, work: Workload, people: float | None
) -> float:
    """The size of what tables of so many attributes leave unsaid of a wider question."""
    share = UNSAID_SHARES[min(order, max(UNSAID_SHARES))]
    unsaid = share * (USUAL_PEOPLE if people is None else people)
    return unsaid if gate is None else min(unsaid, COLD_MEAN * gate.threshold(work.number))


# The comparison ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """What a transcript says of a dataset before the plan."""

    people: int | None = None  # the noised number of them
    questions: int = 0  # asked of the gate
    surprises: int = 0


NO_HISTORY = History()


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every strategy for the questions of a log, or for the usual ones where there is no log."""

    policy: Policy
    universe: Universe
    setting: PlannerSetting
    log: QuestionLog | None
    work: Workload
    people: float | None = None  # how many are assumed
    history: History = NO_HISTORY
    notes: tuple[str, ...] = ()  # on the policy

    @property
    def assumed(self) -> bool:
        """Whether nothing is known of the questions."""
        return self.log is None

    @property
    def free(self) -> frozenset[int]:
        """The attributes of which everything is exact and free."""
        return frozenset(public_attributes(self.universe, required_budget(self.policy)))

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
        history = history_of(policy, required_budget(policy))
        return cls.for_questions(
            policy, log, people=people, expected=expected, history=history, notes=notes
        )

    @classmethod
    def for_questions(
        cls,
        policy: Policy,
        log: QuestionLog | None = None,
        *,
        people: int | None = None,
        expected: int | None = None,
        history: History = NO_HISTORY,
        notes: tuple[str, ...] = (),
    ) -> "Comparison":
        """Compare for questions on the grid; nothing is read."""
        universe, budget = required_universe(policy), required_budget(policy)
        means = Means.of(budget, Relation.of(policy, budget))
        setting = PlannerSetting(means, universe.shape, policy.answering, history.questions)
        number = policy.answering.questions if expected is None else expected
        work = _workload(universe, log, public_attributes(universe, budget), number)
        assumed = people if people is not None else history.people
        known = None if assumed is None or assumed <= 0 else float(assumed)
        return cls(policy, universe, setting, log, work, known, history, notes)

    @cached_property
    def forecasts(self) -> tuple[StrategyForecast, ...]:
        """One for each strategy."""
        return compare_strategies(self.setting, self.work, self.people)

    @cached_property
    def recommended(self) -> StrategyForecast:
        """The one with the least predicted error among those that leave nothing unchecked."""
        return best(self.forecasts, self.work, self.people)

    @cached_property
    def present(self) -> StrategyForecast:
        """What the policy leads to as it is."""
        plan = choose_plan(self.setting.means, self.setting.shape, self.setting.answering)
        return forecast_of(plan, self.setting, self.work)

    @cached_property
    def baseline(self) -> Baseline:
        """Plain noise on every answer, as exactly accounted as is known."""
        return plain(self.setting, self.work, required_budget(self.policy))

    @property
    def saving(self) -> tuple[float, float]:
        """By which part the mean and the largest error are smaller than the baseline's."""
        ours, theirs = self.recommended, self.baseline
        return 1 - ours.mean / theirs.mean, 1 - ours.largest / theirs.largest

    def by_question(self) -> Iterator[tuple[StrategyForecast, float]]:
        """For each question, in order, the strategy with the least error for it, and that error."""
        checked = [each for each in self.forecasts if each.checked and each.typical is not None]
        unsaid = [ranking_error(each, self.work, self.people) - each.mean for each in checked]
        for place in range(len(self.work.questions)):
            errors = [
                float(each.typical[place]) + more  # type: ignore[index]  # None was left out
                for each, more in zip(checked, unsaid, strict=True)
            ]
            first = errors.index(min(errors))
            yield checked[first], errors[first] - unsaid[first]


MUCH_BETTER = 0.8
"""Another strategy is named where its error is no more than this part of the present one's."""

USUAL_REPEATS = 100
"""So many questions like those at hand are expected where the policy does not say."""


def better_strategy(policy: Policy, asked: Sequence[GridQuestion]) -> str | None:
    """A sentence on the strategy that suits questions like these much better, if there is one."""
    log = QuestionLog(tuple(LoggedQuestion(1, "", each) for each in asked))
    number = policy.answering.questions or max(USUAL_REPEATS, len(asked))
    try:
        found = Comparison.for_questions(policy, log, expected=number)
    except Misconfigured:  # all of it is public
        return None
    there, here = (
        ranking_error(each, found.work, found.people) for each in (found.recommended, found.present)
    )
    other, present = found.recommended.strategy, found.present.strategy
    if other is present or not there <= MUCH_BETTER * here:
        return None
    return (
        f'for {number:,} questions like this `strategy = "{other}"` is predicted to be off by '
        f"{there:.3g} where `{present}` is by {here:.3g}; nothing is spent yet, so the policy can "
        f"still be changed: casemate plan compares all of them"
    )


def history_of(policy: Policy, budget: Budget) -> History:
    """What left so far; no ledger is made where there is none."""
    where = ledger_of(policy, budget)
    if isinstance(where, Path) and not where.exists():
        return NO_HISTORY
    with open_transcript(where) as transcript:
        return history_from(transcript, policy.version)


def history_from(transcript: Transcript, version: str) -> History:
    """What a transcript says of one version of the data."""
    newest = transcript.newest()
    totals = [entry.content for entry in transcript.of_kinds((EntryKind.TOTAL,))]
    numbers = [
        each.value for each in totals if isinstance(each, PeopleTotal) and each.data == version
    ]
    return History(
        numbers[-1] if numbers else None,
        0 if newest is None else newest.questions,
        len(transcript.of_kinds((EntryKind.HARD,))),
    )


def _workload(
    universe: Universe, log: QuestionLog | None, public: Scope, expected: int | None
) -> Workload:
    if log is None:
        return usual_questions(universe.shape, expected or USUAL_NUMBER)
    paid = [each.asked for each in log.questions if not set(each.asked.scope) <= set(public)]
    if not paid:
        raise Misconfigured(_nothing_to_plan(log))
    return Workload(tuple(paid), max(len(paid), expected or 0))


def _nothing_to_plan(log: QuestionLog) -> str:
    if log.questions:
        return "every question is about public columns alone, which is exact and free: no plan"
    first = log.refused[0]
    return f"no question of the log can be planned; line {first.line}: {first.reason}"
