"""Which strategy, and which split of the budget, is predicted to be best.

Ranking    By mean error. To what tables of few attributes leave unsaid, which nobody knows before
           asking, the ranking alone gives a size: `UNSAID` of the people, about what it was on the
           tables that were tried, and with a gate no more than a cold start leaves. Only
           strategies that leave nothing unchecked are recommended.
Split      A warm start with a share s of the budget errs by about a/sqrt(s) at most, and its gate
           proves b/sqrt(1 - s). The sum of both is least where s : 1 - s = a^(2/3) : b^(2/3); the
           policy's own share is never lowered, because errors are felt and bounds rarely are.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from casemate.answer.plan import Means, Plan, plan_of
from casemate.answer.planner_forecasts import (
    COLD_MEAN,
    WIDTHS,
    Forecast,
    Setting,
    cold,
    gaussian,
    histogram,
    laplace,
    tables,
    warm,
    warm_starts,
)
from casemate.answer.planner_workload import Workload, usual_questions
from casemate.table.schema import Answering, Strategy

UNSAID = {1: 0.01, 2: 0.0005}
"""By the attributes of the tables, the mean share of the people that wider questions were off for
want of wider tables: .013 and .0002 on the Adult table, .0015 and .001 on one of pure parities."""

USUAL_PEOPLE = 50_000
"""So many people are assumed for the ranking where nobody says how many there are."""

STEPS = 20
"""A split is a multiple of one over this."""


def chosen(means: Means, shape: tuple[int, ...], answering: Answering) -> Plan:
    """The plan of a policy; `auto` takes the start that is best for the usual questions.

    The split stays as the policy has it.
    """
    if answering.strategy is not Strategy.AUTO or not shape:
        return plan_of(means, shape, answering)
    work = usual_questions(shape)
    setting = Setting(means, shape, answering)
    starts = list(warm_starts(setting, work))
    order = best(starts, work, None).order if starts else None
    auto = replace(answering, strategy=Strategy.WARM)
    return plan_of(means, shape, auto, *(() if order is None else (order,)))


def compared(setting: Setting, work: Workload, people: float | None) -> tuple[Forecast, ...]:
    """Every strategy, the warm start from its best tables and at its best split."""
    return (
        gaussian(setting, work),
        laplace(setting, work),
        histogram(setting, work),
        *(tables(setting, work, order) for order in WIDTHS),
        cold(setting, work),
        warm_at_best(setting, work, people),
    )


def warm_at_best(setting: Setting, work: Workload, people: float | None) -> Forecast:
    """The warm start from the best tables, its budget split where the sum of errors is least."""
    starts = list(warm_starts(setting, work))
    if not starts:
        said = "the tables of single attributes have too many cells for a start"
        return Forecast(Strategy.WARM, reason=said)
    found = best(starts, work, people)
    assert found.order is not None, "a start of tables has an order"
    share = best_split(found, setting.answering.start)
    at_best = replace(setting, answering=replace(setting.answering, start=share))
    return warm(at_best, work, found.order)


def best_split(forecast: Forecast, start: Fraction) -> Fraction:
    """The share of the start, no less than the policy's, at which both errors are least."""
    noise = forecast.largest * float(start) ** 0.5
    gate = (forecast.proven or 0.0) * float(1 - start) ** 0.5
    share = noise ** (2 / 3) / (noise ** (2 / 3) + gate ** (2 / 3))
    return max(start, Fraction(min(round(share * STEPS), STEPS - 1), STEPS))


def best(forecasts: Sequence[Forecast], work: Workload, people: float | None) -> Forecast:
    """The first of those with the least error that leave nothing unchecked."""
    checked = [each for each in forecasts if each.checked]
    return min(checked, key=lambda each: ranked(each, work, people))


def ranked(forecast: Forecast, work: Workload, people: float | None) -> float:
    """The mean error, with a size given to what its tables leave unsaid."""
    if not forecast.order:
        return forecast.mean
    wider = forecast.wider / len(work.questions)
    share = UNSAID[min(forecast.order, max(UNSAID))]
    unsaid = share * (USUAL_PEOPLE if people is None else people)
    if forecast.gate is not None:
        unsaid = min(unsaid, COLD_MEAN * forecast.gate.threshold(work.number))
    return forecast.mean + wider * unsaid
