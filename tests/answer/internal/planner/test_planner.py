"""Which strategy is predicted to be best: small and large grids, few and many questions."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.answer.budget_plan import Means, plan_of
from casemate.answer.planner.comparison import (
    best,
    best_split,
    choose_plan,
    compare_strategies,
    warm_at_best,
)
from casemate.answer.planner.forecasts import (
    PlannerSetting,
    StrategyForecast,
    cold,
    gaussian,
    histogram,
    laplace,
    plain,
    tables,
    warm,
)
from casemate.answer.planner.workload import SAMPLED_QUESTIONS, Workload, usual_questions
from casemate.answer.schedule import easy_interval
from casemate.grid import GridQuestion, LinearCells, Product, Relation
from casemate.privacy import Currency, rho_of
from casemate.table import Answering, Budget, Strategy

BUDGET = Budget(Fraction(1), Fraction(1, 10**6))
RHO = Means(rho_of(Fraction(1), Fraction(1, 10**6)), Currency.RHO, Relation())
PURE = Means(Fraction(1), Currency.EPSILON, Relation())
ADULT, PEOPLE = (10, 16, 7, 6, 5, 2, 8, 2), 48_842
SETTING = PlannerSetting(RHO, ADULT, Answering())


def counts(shape: tuple[int, ...], *masks: dict[int, list[int]]) -> Workload:
    made = [
        Product(shape, {a: np.isin(np.arange(shape[a]), codes) for a, codes in each.items()})
        for each in masks
    ]
    asked = tuple(GridQuestion((LinearCells(((product,),)),)) for product in made)
    return Workload(asked, len(asked))


def shares(forecast: StrategyForecast) -> tuple[float, float]:
    return forecast.mean / PEOPLE, forecast.largest / PEOPLE


# What is predicted, beside what was measured ------------------------------------------------------


def test_plain_gaussian_noise_is_predicted_as_it_was_measured() -> None:
    """A study of 1e5 questions with exact accounting measured .0218 and .125."""
    found = plain(SETTING, usual_questions(ADULT, 10**5), BUDGET)
    assert found.mean / PEOPLE == pytest.approx(0.0218, rel=0.01)
    assert found.largest / PEOPLE == pytest.approx(0.125, rel=0.02)


def test_laplace_noise_under_a_pure_budget_is_predicted_as_it_was_measured() -> None:
    """The study measured 2.0 and 24."""
    found = laplace(PlannerSetting(PURE, ADULT, Answering()), usual_questions(ADULT, 10**5))
    assert shares(found) == pytest.approx((2.05, 24.7), rel=0.01)


def test_tables_and_a_warm_start_are_predicted_near_what_was_measured() -> None:
    """Measured elsewhere: .0008 / .0068 from all two-way tables, .0009 / .006 warm."""
    work = usual_questions(ADULT, 10**5)
    assert 0.0004 <= shares(tables(SETTING, work, 2))[0] <= 0.0012
    assert 0.004 <= shares(tables(SETTING, work, 2))[1] <= 0.009
    assert 0.0006 <= shares(warm(SETTING, work, 2))[0] <= 0.0016
    assert 0.005 <= shares(warm(SETTING, work, 2))[1] <= 0.012


def test_a_cold_start_is_predicted_to_err_by_an_eighth_of_the_threshold() -> None:
    found = cold(SETTING, usual_questions(ADULT, 10**5))
    assert found.gate is not None
    assert (found.mean, found.largest) == (
        found.gate.threshold(10**5) / 8,
        found.gate.threshold(10**5),
    )
    assert 0.002 <= shares(found)[0] <= 0.01


def test_the_gate_proves_what_an_easy_answer_alone_proves_at_the_last_question() -> None:
    setting, work = replace(SETTING, asked=50), usual_questions(ADULT, 1000)
    found = warm(setting, work, 2)
    assert found.gate is not None
    assert found.proven == easy_interval(found.gate, 1050, 0.95) + 1


# Which is best ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10,), (10, 16), (32, 32), (3, 40)])
def test_on_one_or_two_attributes_the_histogram_is_best(shape: tuple[int, ...]) -> None:
    work = usual_questions(shape)
    found = compare_strategies(PlannerSetting(RHO, shape, Answering()), work, PEOPLE)
    assert best(found, work, PEOPLE).strategy is Strategy.HISTOGRAM


@pytest.mark.parametrize(
    ("number", "strategy"),
    [(1, Strategy.GAUSSIAN), (100, Strategy.GAUSSIAN), (10**4, "warm"), (10**6, "warm")],
)
def test_few_questions_are_paid_one_by_one_and_many_from_a_warm_start(
    number: int, strategy: Strategy
) -> None:
    work = usual_questions(ADULT, number)
    assert best(compare_strategies(SETTING, work, PEOPLE), work, PEOPLE).strategy == strategy


def test_tables_that_leave_something_unchecked_are_shown_and_never_recommended() -> None:
    work = usual_questions(ADULT)
    two_way = tables(SETTING, work, 2)
    assert two_way.wider > 0.5 * len(work.questions) and not two_way.checked
    assert two_way.mean < warm(SETTING, work, 2).mean
    assert two_way.proven is None
    assert best(compare_strategies(SETTING, work, PEOPLE), work, PEOPLE).checked


def test_tables_that_hold_every_question_are_proven_and_may_be_recommended() -> None:
    work = counts(ADULT, *({a: [0], b: [0, 1]} for a in range(4) for b in range(4, 8)))
    many = Workload(work.questions, 10**5)
    found = tables(SETTING, many, 2)
    assert found.wider == 0 and found.proven is not None and found.proven > found.mean
    assert best(compare_strategies(SETTING, many, PEOPLE), many, PEOPLE).strategy is Strategy.TABLES


def test_with_few_people_a_start_from_fewer_attributes_is_better() -> None:
    work = usual_questions(ADULT)
    assert warm_at_best(SETTING, work, 1000).order == 1
    assert warm_at_best(SETTING, work, PEOPLE).order == 2
    assert warm_at_best(SETTING, work, 10**6).order == 3


def test_what_cannot_be_had_says_why() -> None:
    work = usual_questions((300, 400))
    setting = PlannerSetting(RHO, (300, 400), Answering())
    assert tables(setting, work, 3).reason == "the grid has no 3 attributes"
    assert tables(setting, work, 2).reason == "the tables have more than 100,000 cells in all"
    assert gaussian(PlannerSetting(PURE, ADULT, Answering()), usual_questions(ADULT)).reason
    assert histogram(
        PlannerSetting(RHO, (1000,) * 4, Answering()), usual_questions((1000,) * 4)
    ).reason


# Auto ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10,), (10, 16), (32, 32)])
def test_auto_starts_from_the_whole_histogram_where_it_is_small(shape: tuple[int, ...]) -> None:
    found = choose_plan(RHO, shape, Answering())
    assert found.start == (tuple(range(len(shape))),)
    assert found.strategy is Strategy.WARM and found.gate is not None


def test_auto_starts_from_all_two_way_tables_elsewhere() -> None:
    assert choose_plan(RHO, ADULT, Answering()) == plan_of(RHO, ADULT, Answering(), 2)
    assert {len(scope) for scope in choose_plan(RHO, (4,) * 8, Answering()).start} == {2}


@given(st.sampled_from([each for each in Strategy if each is not Strategy.AUTO]))
def test_a_strategy_that_the_policy_names_is_taken(strategy: Strategy) -> None:
    answering = Answering(strategy=strategy, questions=10)
    assert choose_plan(RHO, (3, 4), answering) == plan_of(RHO, (3, 4), answering)


def test_the_split_is_where_the_largest_error_and_the_proof_are_least() -> None:
    start = Fraction(1, 20)
    for largest, proven in [(100.0, 20.0), (30.0, 30.0), (50.0, 10.0)]:
        found = best_split(StrategyForecast(Strategy.WARM, largest=largest, proven=proven), start)
        splits = [Fraction(i, 20) for i in range(1, 20)]
        noise, gate = largest * 0.05**0.5, proven * 0.95**0.5
        errors = {s: noise / float(s) ** 0.5 + gate / float(1 - s) ** 0.5 for s in splits}
        assert abs(found - min(errors, key=lambda s: errors[s])) <= Fraction(1, 20)


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (4, 4, 4), (10, 16, 7, 6, 5, 2, 8, 2)])
def test_the_usual_questions_are_ranges_over_up_to_three_attributes(shape: tuple[int, ...]) -> None:
    work = usual_questions(shape)
    assert len(work.questions) == SAMPLED_QUESTIONS
    for asked in work.questions:
        (product,) = asked.parts[0].products
        assert product.ranges is not None
        assert all(first < end for first, end in product.ranges)
        assert len(product.scope) <= min(3, len(shape))


def test_everybody_has_the_same_ones_and_they_differ_among_each_other() -> None:
    texts = [asked.text for asked in usual_questions((10, 16, 7, 6)).questions]
    assert texts == [asked.text for asked in usual_questions((10, 16, 7, 6)).questions]
    assert len(set(texts)) > SAMPLED_QUESTIONS * 0.9


def test_every_two_attributes_are_looked_at_together() -> None:
    scopes = [asked.scope for asked in usual_questions((9,) * 8).questions]
    pairs = {pair for scope in scopes for pair in combinations(scope, 2)}
    assert pairs == set(combinations(range(8), 2))
