"""Claim: the planner's predictions, made without the data, are near what the data then show.

The encoded Adult table (adult_encoded.csv.gz in the folder that CASEMATE_DATA names) as a grid of
1,075,200 cells, epsilon 1, delta 1e-6, add-remove, random ranges over three attributes. Noise is
NumPy's and seeded: this measures predictions and protects nobody. Errors are mean / largest, as
shares of the people.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.random import Generator, Philox

from benchmarks.claims import Claim, real_table, show
from benchmarks.survey import FILE, adult, parity
from casemate.answer.budget_plan import BudgetPlan, Means
from casemate.answer.planner.forecasts import (
    PlannerSetting,
    StrategyForecast,
    cold,
    gaussian,
    laplace,
    tables,
    warm,
)
from casemate.answer.planner.workload import Workload
from casemate.grid import (
    Floats,
    GridQuestion,
    LinearCells,
    Marginal,
    MeasuredMarginal,
    Product,
    Relation,
)
from casemate.privacy import Currency
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.histogram import marginals
from casemate.table import Answering, Budget

QUESTIONS = 3_000
BUDGET = Budget(Fraction(1), Fraction(1, 10**6))


def ranges(shape: tuple[int, ...], random: Generator) -> list[Product]:
    made = []
    for _ in range(QUESTIONS):
        masks = {}
        for attribute in random.choice(len(shape), 3, replace=False):
            first, end = sorted(random.choice(shape[attribute] + 1, 2, replace=False))
            codes = np.arange(shape[attribute])
            masks[int(attribute)] = (codes >= first) & (codes < end)
        made.append(Product(shape, masks))
    return made


def exact(grid: Floats, questions: list[Product]) -> Floats:
    found = marginals(grid, {each.scope for each in questions})
    return np.array([(found[q.scope].ravel() * q.over(q.scope)).sum() for q in questions])


class Simulation:
    """One table, its questions, and what each strategy makes of them."""

    def __init__(self, grid: Floats, random: Generator) -> None:
        self.grid, self.random = grid, random
        self.questions = ranges(grid.shape, random)
        self.truth, self.people = exact(grid, self.questions), float(grid.sum())
        asked = tuple(GridQuestion((LinearCells(((each,),)),)) for each in self.questions)
        self.work = Workload(asked, len(asked))
        means = Means.of(BUDGET, Relation())
        self.setting = PlannerSetting(means, grid.shape, Answering())

    def table(self, scope: tuple[int, ...], deviation: float) -> MeasuredMarginal:
        values = marginals(self.grid, [scope])[scope]
        noised = values + self.random.normal(0, deviation, values.shape)
        return MeasuredMarginal(Marginal(scope), noised, deviation**2)

    def started(self, plan: BudgetPlan) -> DenseSurrogate:
        assert plan.total_law is not None
        deviation = float(plan.total_law.scale)
        total = self.people + self.random.normal(0, deviation)
        stand_in = DenseSurrogate(self.grid.shape, total, deviation**2)
        if plan.start_law is not None:
            known = float(plan.start_law.scale)
            stand_in.learn([self.table(scope, known) for scope in plan.start])
        return stand_in

    def fitted(self, forecast: StrategyForecast) -> tuple[Floats, int]:
        """Errors of a plan of tables; with a gate, surprises are measured and learnt."""
        plan = forecast.plan
        assert plan is not None
        stand_in = self.started(plan)
        answers = stand_in.answers(self.questions)
        if plan.gate is None:
            return np.abs(answers - self.truth), 0
        assert plan.surprise_law is not None
        noise, known = plan.gate.calibration, float(plan.surprise_law.scale)
        used, threshold, errors = 0, self.random.laplace(scale=float(noise.threshold)), []
        for place, question in enumerate(self.questions):
            off = abs(answers[place] - self.truth[place])
            compared = off + self.random.laplace(scale=float(noise.query))
            if used < plan.gate.runs and compared >= plan.gate.threshold(place + 1) + threshold:
                used, threshold = used + 1, self.random.laplace(scale=float(noise.threshold))
                stand_in.update(self.table(question.scope, known))
                answers = stand_in.answers(self.questions)
                off = abs(answers[place] - self.truth[place])
            errors.append(off)
        return np.array(errors), used

    def noised(self, forecast: StrategyForecast) -> Floats:
        """Errors of noise on every answer."""
        plan = forecast.plan
        assert plan is not None and plan.answer is not None
        amount, size = float(plan.answer), len(self.questions)
        if forecast.strategy == "gaussian":
            return np.abs(self.random.normal(0, (2 * amount) ** -0.5, size))
        pure = plan.currency is Currency.EPSILON
        return np.abs(self.random.laplace(0, 1 / amount if pure else (2 * amount) ** -0.5, size))

    def claim(self, name: str, forecast: StrategyForecast, errors: Floats, more: str = "") -> Claim:
        shares = [each / self.people for each in (forecast.mean, forecast.largest)]
        found = [float(each) / self.people for each in (errors.mean(), errors.max())]
        text = " / ".join(f"{each:.4f}" for each in shares)
        return Claim(name, f"predicted {text}", " / ".join(f"{each:.4f}" for each in found) + more)

    def claims(self, name: str) -> list[Claim]:
        setting, work = self.setting, self.work
        pure = replace(setting, means=Means.of(Budget(Fraction(1)), Relation()))
        paid = {
            "gaussian": gaussian(setting, work),
            "laplace": laplace(setting, work),
            "laplace, delta 0": laplace(pure, work),
        }
        shown = [self.claim(f"{name}: {k}", f, self.noised(f)) for k, f in paid.items()]
        others = {f"{k}-way tables": tables(setting, work, k) for k in (1, 2, 3)}
        gated = {"cold": cold(setting, work), "warm, 2-way": warm(setting, work, 2)}
        for label, forecast in itertools.chain(others.items(), gated.items()):
            errors, used = self.fitted(forecast)
            more = f", {used} surprises" if forecast.gate else ""
            more += ", unchecked part not predicted" if not forecast.checked else ""
            shown.append(self.claim(f"{name}: {label}", forecast, errors, more))
        return shown


def main() -> None:
    path = real_table(FILE)
    if path is None:
        return
    random = Generator(Philox(0))
    grid = adult(path).table
    found = Simulation(grid, random).claims("Adult")
    show(found + Simulation(parity().table, random).claims("parities"))


if __name__ == "__main__":
    main()
