"""Windows of the source, centred ones, and how wide each should be."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track import CountTracker
from casemate.track.engine import Marks, SiteTally
from casemate.track.messages import SiteReport
from casemate.track.modes import MODES, SURE
from casemate.track.protocols.windows import (
    CentredReports,
    LeastReports,
    alpha_fixed_point,
    best_widths,
    centred_rule,
    narrow_windows,
    paper_rule,
    weight_of_top,
    worthwhile_widths,
)
from casemate.track.reporting_rule import FIXED_POINT_ONE, Growth
from casemate.track.setting import MOST_ITEMS
from casemate.track.site import Site

SURE_MODES = [name for name, mode in MODES.items() if mode.promise is SURE]
alphas = st.floats(0.001, 0.9) | st.sampled_from([0.5, 0.25, 0.125, 0.01, 0.05])
runs_of_items = st.tuples(st.integers(0, 3), st.integers(1, 60), st.just(1))
batches = st.tuples(st.integers(0, 3), st.just(1), st.sampled_from([2, 7, 50, 10**3, 10**6]))


@pytest.mark.theorem("001: Section 1.1 (deterministic tracking)")
@pytest.mark.parametrize("mode", SURE_MODES)
@given(alphas, st.lists(runs_of_items | batches | st.none(), max_size=60))
def test_the_sure_modes_are_sure(
    mode: str, alpha: float, moves: list[tuple[int, int, int] | None]
) -> None:
    """One by one, in batches, in any order, and with a call from outside (None) at any time."""
    tracker, total = CountTracker(4, alpha, mode=mode), 0
    for move in moves:
        if move is None:
            assert tracker.poll().value == total
            continue
        site, times, n = move
        for _ in range(times):
            tracker.site(site).add(n)
            total, count = total + n, tracker.read()
            assert count.lo <= total <= count.hi and count.confidence == 1.0
            assert abs(count.value - total) <= alpha * total


def test_the_plain_middle_of_a_centred_window_is_off_by_more_than_alpha() -> None:
    """The pitfall: halfway up the window is too far from its lower end."""
    alpha, count = 0.05, 10**6
    top = centred_rule(alpha).top(count)
    assert ((count + top) / 2 - count) / count > 1.05 * alpha
    inside = count + (top - count) * weight_of_top(alpha)
    assert (inside - count) / count <= alpha
    assert (top - inside) / top <= alpha


def test_a_centred_window_cannot_be_wider() -> None:
    """One more unit of alpha, and no value is right for both of its ends."""
    rule = centred_rule(0.01)
    wider = Growth(rule.numerator + 3, rule.denominator - 3)
    top, exact = wider.top(10**12), Fraction(0.01)
    assert (1 - exact) * top > (1 + exact) * 10**12


@given(alphas)
def test_alpha_in_fixed_point_is_a_hair_below(alpha: float) -> None:
    assert 1 <= Fraction(alpha) * FIXED_POINT_ONE - alpha_fixed_point(alpha) < 2
    assert alpha_fixed_point(1e-12) == 0


@pytest.mark.parametrize("alpha", [1e-9, 0.01, 0.999999])
def test_no_window_of_the_most_items_at_one_site_overflows(alpha: float) -> None:
    for rule in (centred_rule(alpha), paper_rule(alpha)):
        assert MOST_ITEMS * rule.numerator < 1 << 63


def reports(alpha: float, first: int, last: int) -> int:
    """Of a site that takes the centred rule with one count and goes on to another."""
    sent: list[SiteReport] = []
    rule = centred_rule(alpha)
    site = Site("a", sent.append, rule)
    site.add(first)  # in one piece: at most one report, and the window begins there
    before = len(sent)
    for _ in range(last - first):
        site.add()
    return len(sent) - before


@given(st.floats(0.01, 0.9), st.integers(0, 300), st.integers(0, 300))
def test_a_window_that_begins_anywhere_costs_one_report_more_at_most(
    alpha: float, first: int, more: int
) -> None:
    centred = CentredReports(centred_rule(alpha))
    between = centred.words(np.array([first + more])) - centred.words(np.array([first]))
    assert reports(alpha, first, first + more) <= between + 1


@given(st.floats(1e-7, 0.9), st.integers(0, 10**4))
def test_reports_in_stretches_are_the_reports_one_by_one(alpha: float, count: int) -> None:
    rule, trigger, slow = centred_rule(alpha), 1, 0
    while trigger <= count:
        trigger, slow = rule.top(trigger) + 1, slow + 1
    assert CentredReports(rule).words(np.array([count])) == slow


loads_of_sites = st.lists(st.integers(0, 1000), min_size=1, max_size=12).filter(any)


def shares(weights: list[int]) -> np.ndarray:
    return np.array(weights) / sum(weights)


@given(loads_of_sites, st.floats(0.1, 1000.0))
def test_no_small_shift_of_width_saves_reports(weights: list[int], total: float) -> None:
    """The conditions of optimality of a convex problem: a unit is worth the same wherever it is."""
    loads = shares(weights)
    best = best_widths(loads, total)
    assert best.widths.sum() == pytest.approx(total)
    assert best.reports == pytest.approx((loads / (1 + best.widths)).sum())
    worth = loads / (1 + best.widths) ** 2
    assert worth[best.widths > 1e-9] == pytest.approx(best.price)
    assert (worth[best.widths <= 1e-9] <= best.price * (1 + 1e-9)).all()


def test_with_much_width_the_cost_is_the_square_of_the_sum_of_roots() -> None:
    loads = 1 / np.arange(1, 1025)
    loads /= loads.sum()
    formula = np.sqrt(loads).sum() ** 2
    items = 10**9
    rate = items * best_widths(loads, 0.02 * items).reports
    assert rate == pytest.approx(formula / 0.02, rel=1e-3)
    assert 26_000 < rate < 26_200  # words for each factor e of the count; 51,200 when centred


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


@given(loads_of_sites, st.floats(1.0, 1e4), st.floats(1.0, 1e6))
def test_changed_widths_stay_within_the_limit(
    weights: list[int], limit: float, items: float
) -> None:
    loads = shares(weights)
    now = np.full(len(loads), limit / len(loads))
    found = worthwhile_widths(loads, now, np.full(len(loads), 2.0), limit, items)
    assert found.min() >= 0
    assert found.sum() <= limit * (1 + 1e-9)


A = alpha_fixed_point(0.05)


def tally_of(windows: list[tuple[int, int]]) -> SiteTally:
    """Sites with these counts and rates, in thousandths."""
    tally = SiteTally(len(windows), FIXED_POINT_ONE + A, FIXED_POINT_ONE - A, weight_of_top(0.05))
    for site, (count, rate) in enumerate(windows):
        rule = Growth(FIXED_POINT_ONE + FIXED_POINT_ONE * rate // 1000, FIXED_POINT_ONE)
        tally.follow(site, rule)
        tally.hold(site, count, rule.top(count))
    tally.marks = Marks(room=0)
    return tally


def nothing_too_wide(tally: SiteTally, loads: np.ndarray, answers: st.DataObject) -> bool:
    """Narrow until it is right, whatever the sites answer within their windows."""
    for _ in range(60):
        if tally.excess() <= 0:
            return True
        orders = narrow_windows(tally, loads)
        assert orders, "it is too wide and nothing is narrowed"
        for site, rule in orders.items():
            assert isinstance(rule, Growth)
            count = answers.draw(st.integers(int(tally.reported[site]), int(tally.top[site])))
            tally.follow(site, rule)
            tally.hold(site, count, rule.top(count))
    return False


windows = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 900)), min_size=1, max_size=8
).filter(lambda sites: any(count for count, _ in sites))


@given(windows, st.data())
def test_narrowing_ends_what_is_too_wide(
    sites: list[tuple[int, int]], answers: st.DataObject
) -> None:
    loads = np.full(len(sites), 1 / len(sites))
    assert nothing_too_wide(tally_of(sites), loads, answers)
