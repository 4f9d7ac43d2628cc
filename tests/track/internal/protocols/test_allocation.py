"""The best division of width over sites, against a slow and independent search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, minimize

from casemate.track.protocols.windows import (
    FILL,
    LeastReports,
    best_widths,
    worthwhile_widths,
)
from casemate.track.tally import Floats

loads_of_sites = st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any)


def shares(weights: list[int]) -> np.ndarray:
    return np.array(weights) / sum(weights)


@given(loads_of_sites, st.floats(0.1, 1e6))
def test_widths_use_up_what_there_is(weights: list[int], total: float) -> None:
    widths = best_widths(shares(weights), total).widths
    assert widths.min() >= 0
    assert widths.sum() == pytest.approx(total)


@given(loads_of_sites, st.floats(0.1, 1000.0))
def test_no_small_shift_of_width_saves_reports(weights: list[int], total: float) -> None:
    """The conditions of optimality of a convex problem: a unit is worth the same wherever it is."""
    loads = shares(weights)
    best = best_widths(loads, total)
    worth = loads / (1 + best.widths) ** 2
    assert worth[best.widths > 1e-9] == pytest.approx(best.price)
    assert (worth[best.widths <= 1e-9] <= best.price * (1 + 1e-9)).all()


def test_widths_are_those_of_a_general_optimiser() -> None:
    loads, total = np.array([0.6, 0.2, 0.15, 0.04, 0.01]), 20.0

    def reports(widths: Floats) -> float:
        return float((loads / (1 + widths)).sum())

    fits = LinearConstraint(np.ones((1, 5)), total, total)
    found = minimize(
        reports, np.full(5, 4.0), bounds=Bounds(0, np.inf), constraints=fits, tol=1e-14
    )
    assert best_widths(loads, total).reports == pytest.approx(found.fun, rel=1e-6)


@given(loads_of_sites, st.lists(st.floats(0.0, 1e4), min_size=1), st.data())
def test_the_cost_alone_is_that_of_the_widths(
    weights: list[int], totals: list[float], data: st.DataObject
) -> None:
    loads = shares(weights)
    busiest = np.sort(loads)[::-1][: data.draw(st.integers(0, len(loads)))]
    slow = [best_widths(busiest, total).reports for total in totals]
    found = LeastReports(loads)
    assert found(len(busiest), np.array(totals)) == pytest.approx(slow, abs=1e-12)
    assert found.loads[len(busiest)] == pytest.approx(busiest.sum())


def test_with_much_width_the_cost_is_the_square_of_the_sum_of_roots() -> None:
    loads = 1 / np.arange(1, 1025)
    loads /= loads.sum()
    formula = np.sqrt(loads).sum() ** 2
    items = 10**9
    rate = items * best_widths(loads, 0.02 * items).reports
    assert rate == pytest.approx(formula / 0.02, rel=1e-3)
    assert 26_000 < rate < 26_200  # words for each factor e of the count; 51,200 when centred


def test_nothing_changes_where_nothing_is_saved() -> None:
    even, now = np.full(4, 0.25), np.array([10.0, 10.0, 10.0, 9.0])
    kept = worthwhile_widths(even, now, np.full(4, 2.0), limit=40.0, items=100.0)
    assert kept.tolist() == now.tolist()


def test_what_is_too_wide_is_narrowed_whatever_it_costs() -> None:
    even, now = np.full(4, 0.25), np.full(4, 10.0)
    found = worthwhile_widths(even, now, np.full(4, 2.0), limit=30.0, items=1e-6)
    assert found.sum() <= FILL * 30.0 + 1e-9


@given(loads_of_sites, st.floats(1.0, 1e4), st.floats(1.0, 1e6))
def test_changed_widths_stay_within_the_limit(
    weights: list[int], limit: float, items: float
) -> None:
    loads = shares(weights)
    now = np.full(len(loads), limit / len(loads))
    found = worthwhile_widths(loads, now, np.full(len(loads), 2.0), limit, items)
    assert found.min() >= 0
    assert found.sum() <= limit * (1 + 1e-9)
