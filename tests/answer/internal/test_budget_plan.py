"""The plan of a budget: a function of the policy, that never costs more than there is."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from answer.small_dataset import means
from hypothesis import given
from hypothesis import strategies as st

from casemate.answer.budget_plan import BudgetPlan, Means, first_tables, plan_of
from casemate.grid import Relation
from casemate.privacy import Currency
from casemate.privacy.noise import GaussianLaw, LaplaceLaw
from casemate.table import Answering, Budget, Strategy

ADULT = (10, 16, 7, 6, 5, 2, 8, 2)
LEARNING = [Strategy.WARM, Strategy.COLD, Strategy.TABLES, Strategy.HISTOGRAM]


def all_of_it(plan: BudgetPlan) -> Fraction:
    """What a plan costs when everything in it is used."""
    runs = 0 if plan.gate is None else plan.gate.runs
    return plan.start_price + runs * (plan.run_price + plan.price_of(plan.surprise_law))


@given(
    st.sampled_from(LEARNING),
    st.fractions(Fraction(1, 100), 10, max_denominator=100),
    st.booleans(),
    st.sampled_from([Relation(), Relation(rows=3), Relation(True, 1, True), Relation(True, 2)]),
    st.integers(1, 60),
)
def test_a_plan_never_costs_more_than_its_budget(
    strategy: Strategy, epsilon: Fraction, pure: bool, relation: Relation, surprises: int
) -> None:
    delta = Fraction(0) if pure else Fraction(1, 10**6)
    amount = Means.of(Budget(epsilon, delta), relation)
    plan = plan_of(amount, (4, 3, 2), Answering(strategy, surprises=surprises))
    assert all_of_it(plan) <= amount.amount
    assert all_of_it(plan) >= amount.amount * Fraction(2, 3)  # rounding up costs little


def test_the_usual_plan_spends_half_on_tables_and_halves_the_rest() -> None:
    plan = plan_of(means(), ADULT, Answering())
    assert plan.strategy is Strategy.WARM and len(plan.start) == 28
    whole = means().amount
    assert plan.gate is not None and plan.gate.runs == 8
    assert float(plan.start_price / whole) == pytest.approx(1 / 2, rel=1e-3)
    assert float(8 * plan.run_price / whole) == pytest.approx(1 / 4, rel=1e-3)
    assert float(8 * plan.price_of(plan.surprise_law) / whole) == pytest.approx(1 / 4, rel=1e-3)


def test_the_number_of_people_costs_half_of_a_table_beside_tables() -> None:
    plan = plan_of(means(), ADULT, Answering())
    total, table = plan.price_of(plan.total_law), plan.price_of(plan.start_law)
    assert float(total / table) == pytest.approx(1 / 2, rel=1e-3)


def test_noise_follows_from_the_budget_and_the_relation() -> None:
    pure = Means.of(Budget(Fraction(1)), Relation())
    assert pure.currency is Currency.EPSILON
    assert isinstance(plan_of(pure, ADULT, Answering()).start_law, LaplaceLaw)
    usual = plan_of(means(), ADULT, Answering())
    assert isinstance(usual.start_law, GaussianLaw) and usual.total_law is not None
    counted = means(relation=Relation(True, 1, counted=True))
    assert plan_of(counted, ADULT, Answering()).total_law is None, "the number of rows is public"
    exchanged = means(relation=Relation(True)).table_law()
    assert float(exchanged.scale / means().table_law().scale) == pytest.approx(2**0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("order", "most", "expected"),
    [(2, 10**5, 3), (3, 10**5, 1), (2, 25, 3), (1, 8, 0), (9, 10**5, 1)],
)
def test_first_tables_are_of_fewer_attributes_where_those_would_be_too_large(
    order: int, most: int, expected: int
) -> None:
    assert len(first_tables((4, 3, 2), order, most)) == expected


def test_paid_answers_share_the_budget() -> None:
    plan = plan_of(means(), ADULT, Answering(Strategy.GAUSSIAN, questions=100))
    assert plan.answer == means().amount / 100 and plan.gate is None and not plan.start


@given(st.fractions(Fraction(1, 10**6), 5, max_denominator=10**6))
def test_the_epsilon_that_an_amount_pays_for_costs_no_more(amount: Fraction) -> None:
    settings: Any = {"relation": Relation()}
    plan = BudgetPlan(Strategy.LAPLACE, Currency.RHO, **settings)
    epsilon = plan.epsilon_of(amount)
    assert epsilon**2 / 2 <= amount
    assert float(epsilon**2 / 2) == pytest.approx(float(amount), rel=1e-5)


def test_tables_of_sums_cost_what_their_cells_are_of_all() -> None:
    cells = [3, 6, 17, 17, 3]
    plan = plan_of(means(), ADULT, Answering(), sums=cells)
    assert all_of_it(plan) <= means().amount
    assert float(sum(plan.sums) / means().amount) == pytest.approx(1 / 10)
    even = sum(plan.sums, start=Fraction(0)) / len(cells)

    def squares(prices: Sequence[Fraction]) -> Fraction:
        """Of all means: noise of 1/price over people of whom each cell has 1/cells."""
        return sum(
            (Fraction(each) ** 2 / price for each, price in zip(cells, prices, strict=True)),
            start=Fraction(0),
        )

    assert squares(plan.sums) < squares([even] * len(cells))
    assert all(
        each / size == plan.sums[0] / cells[0] for each, size in zip(plan.sums, cells, strict=True)
    )
