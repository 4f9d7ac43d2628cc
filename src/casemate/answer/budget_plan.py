"""The public plan of a dataset's budget: what is measured first, the gate, and its surprises.

Source     Source document 003, OnlineIC, with part of the budget spent on tables before the first
           question, which source document 003 does not do.
Guarantee  A pure function of the policy: whoever has the policy knows the plan. All of it together
           costs at most the budget: every scale is rounded up, and costs are those of the scales.
Split      `start` of the budget for the number of people and the first tables; of the rest one half
           for opening runs of the gate and one half for measuring what they find.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from casemate.answer.schedule import GateSchedule
from casemate.doors import dataset_of
from casemate.errors import Misconfigured
from casemate.grid import Relation, Scope
from casemate.privacy import Currency, price, rho_of
from casemate.privacy.noise import ROOT_BITS, GaussianLaw, LaplaceLaw, Law
from casemate.table import Answering, Budget, Policy, Protects, Role, Strategy, Universe

MAX_START_CELLS = 10**5
"""All first tables together have no more cells; else they are of fewer attributes."""

DEFAULT_START_ORDER = 2
"""The first tables are those of two attributes: they say most for what they cost."""

COUNT_SHARE_OF_START = Fraction(1, 8)
"""Of the start, what the number of people gets where nothing else is measured first."""

TOTAL_WEIGHT = Fraction(1, 2)
"""What the number of people costs beside tables, of the price of one: they tell it as well."""

SUMS_SHARE = Fraction(1, 5)
"""Of what the first tables leave, for tables of sums where columns are numbers."""

PAID_EACH = (Strategy.GAUSSIAN, Strategy.LAPLACE)
"""The strategies under which every answer is paid for."""


@dataclass(frozen=True)
class Means:
    """A budget in its currency, under a relation: it buys noise."""

    amount: Fraction
    currency: Currency
    relation: Relation

    @classmethod
    def of(cls, budget: Budget, relation: Relation) -> "Means":
        """The whole budget of a policy."""
        if budget.delta:
            return cls(rho_of(budget.epsilon, budget.delta), Currency.RHO, relation)
        return cls(budget.epsilon, Currency.EPSILON, relation)

    def part(self, share: Fraction) -> "Means":
        """A share of it."""
        return Means(self.amount * share, self.currency, self.relation)

    def table_law(self, tables: int = 1) -> Law:
        """The noise with which so many tables of counts cost all of this together."""
        if self.currency is Currency.RHO:
            return GaussianLaw.within(self.amount / tables, self.relation.squared_of_table)
        return LaplaceLaw.within(self.amount / tables, self.relation.of_table)

    def gate(self, runs: int) -> GateSchedule:
        """A gate all of whose runs together cost this."""
        if self.currency is Currency.RHO:
            return GateSchedule.within(self.amount, runs)
        return GateSchedule.of(self.amount / runs, runs)


@dataclass(frozen=True)
class BudgetPlan:
    """What is measured when, and with which noise."""

    strategy: Strategy
    currency: Currency
    relation: Relation
    start: tuple[Scope, ...] = ()  # tables measured before the first question
    start_law: Law | None = None  # of each of them
    total_law: Law | None = None  # None where the number of people is public
    sums: tuple[Fraction, ...] = ()  # what each table of sums costs that is measured with them
    gate: GateSchedule | None = None
    surprise_law: Law | None = None  # of the table measured when the gate fires
    answer: Fraction | None = None  # what each answer may cost, where each is paid for

    def price_of(self, law: Law | None) -> Fraction:
        """What one use of a law costs, in the plan's currency."""
        amount = Fraction(0) if law is None else price(law.cost, self.currency)
        if amount is None:
            raise ValueError("this noise has no price in this currency")
        return amount

    def epsilon_of(self, amount: Fraction) -> Fraction:
        """The most pure epsilon that this amount of the plan's currency pays for."""
        if self.currency is Currency.EPSILON:
            return amount
        root = math.isqrt(math.floor(2 * amount * 4**ROOT_BITS))
        return Fraction(root, 2**ROOT_BITS)

    @property
    def start_price(self) -> Fraction:
        """What everything before the first question costs."""
        tables = len(self.start) * self.price_of(self.start_law) + self.price_of(self.total_law)
        return tables + sum(self.sums)

    @property
    def run_price(self) -> Fraction:
        """What opening a run of the gate costs."""
        if self.gate is None:
            return Fraction(0)
        return price(self.gate.calibration.cost, self.currency) or Fraction(0)


def first_tables(shape: tuple[int, ...], order: int, most: int = MAX_START_CELLS) -> list[Scope]:
    """All tables of so many attributes, or of fewer where those would have too many cells."""
    cells = cells_by_order(shape)
    for size in range(min(order, len(shape)), 0, -1):
        if cells[size] <= most:
            return list(combinations(range(len(shape)), size))
    return []


def cells_by_order(shape: tuple[int, ...]) -> list[int]:
    """How many cells all tables of 0, 1, 2, ... attributes have together, none of them listed.

    >>> cells_by_order((2, 3, 5))
    [1, 10, 31, 30]
    """
    found = [1]
    for size in shape:
        wider = [0, *(each * size for each in found)]
        found = [a + b for a, b in zip([*found, 0], wider, strict=True)]
    return found


def plan_of(
    means: Means,
    shape: tuple[int, ...],
    answering: Answering,
    order: int = DEFAULT_START_ORDER,
    sums: Sequence[int] = (),
) -> BudgetPlan:
    """The plan that a policy's budget and its settings lead to.

    `sums` has the cells of each table of sums. Of more cells each has fewer people, over whom its
    noise is divided: a table costs what its cells are of all, so the squared noise of all means
    together is least.
    """
    strategy = Strategy.WARM if answering.strategy is Strategy.AUTO else answering.strategy
    plan = BudgetPlan(strategy, means.currency, means.relation)
    if strategy in PAID_EACH:
        return replace(plan, answer=means.amount / (answering.questions or 1))
    scopes = [] if strategy is Strategy.COLD else first_tables(shape, order)
    if strategy is Strategy.HISTOGRAM:
        scopes = [tuple(range(len(shape)))]
    tables = len(scopes) + (not means.relation.counted)
    share = Fraction(1)
    if strategy in (Strategy.WARM, Strategy.COLD):
        share = answering.start if scopes else answering.start * COUNT_SHARE_OF_START * tables
        added = (1 - share) * SUMS_SHARE if sums and scopes else Fraction(0)
        if added and means.currency is Currency.RHO:
            prices = [means.amount * added * Fraction(each, sum(sums)) for each in sums]
            plan = replace(plan, sums=tuple(prices))
        half = means.part((1 - share - sum(plan.sums) / means.amount) / 2)
        gate, surprise = half.gate(answering.surprises), half.table_law(answering.surprises)
        plan = replace(plan, gate=gate, surprise_law=surprise)
    counted = means.relation.counted
    total = (TOTAL_WEIGHT if scopes else Fraction(1)) * (not counted)
    one = means.part(share / (len(scopes) + total)) if tables else means
    return replace(
        plan,
        start=tuple(scopes),
        start_law=one.table_law() if scopes else None,
        total_law=None if counted else one.part(total).table_law(),
    )


# What a policy must have ------------------------------------------------------------------------


def required_budget(policy: Policy) -> Budget:
    """The budget of a policy that has one."""
    if policy.budget is None:
        raise Misconfigured(
            f"{dataset_of(policy)} has no budget, so nothing can be answered privately; write a "
            f"policy with a [budget] section (casemate policy init drafts one)"
        )
    return policy.budget


def required_universe(policy: Policy) -> Universe:
    """The grid of a policy that has one."""
    universe = Universe.of(policy)
    if not universe.attributes:
        raise Misconfigured(
            f"no column of {dataset_of(policy)} can be asked about; declare `type` and `values`, "
            f"or `type`, `min` and `max`, for the columns that questions may use"
        )
    return universe


def public_attributes(universe: Universe, budget: Budget) -> Scope:
    """The attributes of which everything is public, and so exact and free."""
    if budget.protects is not Protects.PRIVATE_COLUMNS:
        return ()
    return tuple(i for i, each in enumerate(universe.attributes) if each.role is Role.PUBLIC)
