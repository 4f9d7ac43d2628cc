"""What each strategy would make of a budget: its plan, its predicted errors, what it proves.

Guarantee  Functions of a policy's budget, the grid and the questions: no table is opened. What a
           strategy proves is proven; errors are predictions from its noise.
Unknown    Tables of few attributes say nothing about what only more attributes together show. How
           much that is, nobody knows before asking: it is in no prediction. With a gate it is at
           most what the gate proves; without one there is no bound, and `wider` counts the
           questions concerned.
Cold       A stand-in that starts from nothing is as wrong as the gate lets it be. On the tables
           that were tried its mean error was about an eighth of the threshold, and its largest
           about the threshold (`COLD_MEAN`; benchmarks/planner.py measures it again).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from casemate.answer.budget_plan import MAX_START_CELLS, BudgetPlan, Means, plan_of
from casemate.answer.planner.predicted import (
    NoisyTables,
    PredictedErrors,
    exact_gaussian,
    fitted_answers,
    gaussian_answers,
    laplace_answers,
    read_answers,
)
from casemate.answer.planner.workload import Workload
from casemate.answer.schedule import GateSchedule, easy_interval
from casemate.grid import Floats
from casemate.privacy import Currency
from casemate.privacy.noise import GaussianLaw
from casemate.surrogate import MAX_DENSE_CELLS
from casemate.table import Answering, Budget, Strategy

COLD_MEAN = 1 / 8
"""The mean error of a cold start, over the threshold of its gate."""

EXACT_GAUSSIAN = "Gaussian noise on every answer, with exact accounting"
PURE_LAPLACE = "Laplace noise on every answer"

TABLE_ORDERS = (1, 2, 3)
"""The tables without a gate that are compared: of so many attributes."""


@dataclass(frozen=True)
class PlannerSetting:
    """A budget, the grid, how the policy wants to answer, and how many questions there were."""

    means: Means
    shape: tuple[int, ...]
    answering: Answering
    asked: int = 0

    @property
    def confidence(self) -> float:
        """Of what is proven."""
        return float(self.answering.confidence)

    def plan_for(self, strategy: Strategy, questions: int, order: int = 2) -> BudgetPlan:
        """The plan of a strategy for so many questions."""
        answering = replace(self.answering, strategy=strategy, questions=questions)
        return plan_of(self.means, self.shape, answering, order)


@dataclass(frozen=True, eq=False)
class StrategyForecast:
    """One strategy: errors in people, or the reason why it cannot be had."""

    strategy: Strategy
    order: int | None = None  # attributes of its tables
    plan: BudgetPlan | None = None
    typical: Floats | None = None  # the mean error of each question
    mean: float = math.inf
    largest: float = math.inf
    proven: float | None = None  # half of the widest interval; None where nothing is proven
    wider: int = 0  # questions of which a part is in none of its tables
    reason: str | None = None

    @property
    def available(self) -> bool:
        """Whether it can be had."""
        return self.plan is not None

    @property
    def checked(self) -> bool:
        """Whether nothing of any answer is left without a bound or a noise that is known."""
        return self.available and (not self.wider or self.gate is not None)

    @property
    def gate(self) -> GateSchedule | None:
        """Its gate."""
        return None if self.plan is None else self.plan.gate


# Noise on every answer ------------------------------------------------------------------------


def gaussian(setting: PlannerSetting, work: Workload) -> StrategyForecast:
    """Gaussian noise on every answer, as the ledger counts it."""
    if setting.means.currency is not Currency.RHO:
        return StrategyForecast(Strategy.GAUSSIAN, reason="Gaussian noise needs a delta above 0")
    plan = setting.plan_for(Strategy.GAUSSIAN, work.number)
    assert plan.answer is not None, "a plan that pays for each answer says how much"
    law = GaussianLaw.within(plan.answer)
    errors = gaussian_answers(work.questions, setting.means.relation, float(law.scale))
    proven = errors.proven(setting.confidence, work.questions)
    return _forecast(plan, errors, work, proven=proven)


def laplace(setting: PlannerSetting, work: Workload) -> StrategyForecast:
    """Laplace noise on every answer."""
    plan = setting.plan_for(Strategy.LAPLACE, work.number)
    pure = setting.means.currency is Currency.EPSILON
    amount = float(plan.answer or 0)
    scale = 1 / amount if pure else 1 / math.sqrt(2 * amount)
    errors = laplace_answers(work.questions, setting.means.relation, scale, pure=pure)
    proven = errors.proven(setting.confidence, work.questions)
    return _forecast(plan, errors, work, proven=proven)


def _forecast(
    plan: BudgetPlan,
    errors: PredictedErrors,
    work: Workload,
    *,
    proven: float | None,
    order: int | None = None,
    wider: int = 0,
) -> StrategyForecast:
    typical, mean, largest = errors.typical, errors.mean, errors.largest(work.times)
    return StrategyForecast(plan.strategy, order, plan, typical, mean, largest, proven, wider)


# Tables without a gate ------------------------------------------------------------------------


def histogram(setting: PlannerSetting, work: Workload) -> StrategyForecast:
    """Every cell once."""
    cells = math.prod(setting.shape)
    if cells > MAX_DENSE_CELLS:
        said = f"the grid has {cells:,} cells, too many to measure each"
        return StrategyForecast(Strategy.HISTOGRAM, reason=said)
    plan = setting.plan_for(Strategy.HISTOGRAM, work.number)
    return _from_tables(plan, setting, work, len(setting.shape))


def tables(setting: PlannerSetting, work: Workload, order: int) -> StrategyForecast:
    """All tables of so many attributes."""
    if order > len(setting.shape):
        said = f"the grid has no {order} attributes"
        return StrategyForecast(Strategy.TABLES, order, reason=said)
    plan = setting.plan_for(Strategy.TABLES, work.number, order)
    if {len(scope) for scope in plan.start} != {order}:
        said = f"the tables have more than {MAX_START_CELLS:,} cells in all"
        return StrategyForecast(Strategy.TABLES, order, reason=said)
    return _from_tables(plan, setting, work, order)


def _from_tables(
    plan: BudgetPlan, setting: PlannerSetting, work: Workload, order: int
) -> StrategyForecast:
    """A stand-in fitted to the first tables; without a gate, only they prove anything."""
    noisy, relation = NoisyTables.of(plan, setting.shape), setting.means.relation
    wider = sum(not noisy.holds(asked.scope) for asked in work.questions)
    errors = fitted_answers(work.questions, relation, noisy)
    if plan.gate is not None:
        proven: float | None = proven_by_gate(plan.gate, setting, work)
    else:
        read = read_answers(work.questions, relation, noisy)
        proven = None if read is None else read.proven(setting.confidence, work.questions)
    return _forecast(plan, errors, work, proven=proven, order=order, wider=wider)


# With a gate ----------------------------------------------------------------------------------


def cold(setting: PlannerSetting, work: Workload) -> StrategyForecast:
    """Only surprises, from nothing."""
    plan = setting.plan_for(Strategy.COLD, work.number)
    assert plan.gate is not None, "a cold start has a gate"
    threshold = plan.gate.threshold(setting.asked + work.number)
    mean = COLD_MEAN * threshold
    return StrategyForecast(
        Strategy.COLD,
        plan=plan,
        typical=np.full(len(work.questions), mean),
        mean=mean,
        largest=float(threshold),
        proven=proven_by_gate(plan.gate, setting, work),
        wider=len(work.questions),
    )


def warm(setting: PlannerSetting, work: Workload, order: int) -> StrategyForecast:
    """Tables of so many attributes first, then only surprises."""
    plan = setting.plan_for(Strategy.WARM, work.number, order)
    return _from_tables(plan, setting, work, max(map(len, plan.start), default=0))


def proven_by_gate(gate: GateSchedule, setting: PlannerSetting, work: Workload) -> float:
    """How far off an answer that passes can be, at the last of the questions."""
    last = setting.asked + work.number
    return float(easy_interval(gate, last, setting.confidence) + 1)


# Plans and the baseline -----------------------------------------------------------------------


def forecast_of(plan: BudgetPlan, setting: PlannerSetting, work: Workload) -> StrategyForecast:
    """The forecast of the strategy that a plan has."""
    order = max((len(scope) for scope in plan.start), default=1)
    by_strategy: dict[Strategy, Callable[[], StrategyForecast]] = {
        Strategy.GAUSSIAN: lambda: gaussian(setting, work),
        Strategy.LAPLACE: lambda: laplace(setting, work),
        Strategy.HISTOGRAM: lambda: histogram(setting, work),
        Strategy.TABLES: lambda: tables(setting, work, order),
        Strategy.COLD: lambda: cold(setting, work),
        Strategy.WARM: lambda: warm(setting, work, order),
    }
    return by_strategy[plan.strategy]()


@dataclass(frozen=True)
class Baseline:
    """Plain noise on every answer, all questions being fixed in advance."""

    name: str
    mean: float
    largest: float


def plain(setting: PlannerSetting, work: Workload, budget: Budget) -> Baseline:
    """Gaussian noise with exact accounting; Laplace noise where delta is 0."""
    relation = setting.means.relation
    if budget.delta:
        one = exact_gaussian(float(budget.epsilon), float(budget.delta))
        errors = gaussian_answers(work.questions, relation, one * math.sqrt(work.number))
        return Baseline(EXACT_GAUSSIAN, errors.mean, errors.largest(work.times))
    scale = work.number / float(budget.epsilon)
    errors = laplace_answers(work.questions, relation, scale, pure=True)
    return Baseline(PURE_LAPLACE, errors.mean, errors.largest(work.times))
