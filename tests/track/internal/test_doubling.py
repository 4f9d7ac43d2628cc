"""The oblivious trackers: unbiased for items that do not look, and exact between rounds."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from casemate.track.engine import RuleChange
from casemate.track.messages import Order, SiteReport
from casemate.track.protocols.doubling import Doubling, block, huang_yi_zhang
from casemate.track.reporting_rule import Blocks, Every, Sample
from casemate.track.simulate.runs import PlainRun
from casemate.track.site import Site

BOTH = pytest.mark.parametrize("make", [huang_yi_zhang, block])
Make = Callable[..., Doubling]
Law = list[tuple[Fraction, int]]
RUNS = 200


@BOTH
@given(st.integers(1, 30), st.floats(0.05, 0.9), st.data())
def test_the_count_is_exact_at_the_start_and_at_the_beginning_of_a_round(
    make: Make, sites: int, alpha: float, data: st.DataObject
) -> None:
    run = PlainRun(sites, make(sites, alpha), default_rng(data.draw(st.integers(0, 99))).random)
    rounds = 0
    for items in range(1, 200):
        run.add(data.draw(st.integers(0, sites - 1)) if items < 20 else items % sites)
        if items % 37 == 0:
            run.server.call_round()  # somebody polls
            assert run.server.read().value == items
        elif run.server.rounds > rounds or not run.server.words_by_kind["rule"]:
            assert run.output == items
        rounds = run.server.rounds


# The block scheme


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
def test_the_report_comes_at_a_uniform_point_of_its_block(seed: int) -> None:
    assert_follows(_points(10.0, seed), lambda point: min(1.0, max(0.0, point / 10)))
    with pytest.raises(AssertionError):
        assert_follows(_points(9.0, seed), lambda point: min(1.0, max(0.0, point / 10)))


def _points(size: float, seed: int) -> list[int]:
    """Where in their third block 8,000 sites report."""
    rng, found = default_rng(seed), []
    for _ in range(8_000):
        sent: list[SiteReport] = []
        site = Site("a", sent.append, draw=rng.random)
        site.obey(Order(1, Blocks(size), answer=False))
        site.add(2 * int(size))
        before = len(sent)
        while len(sent) == before:
            site.add()
        found.append(site.count - 2 * int(size))
    return found


def begun(make: Make, counts: list[int]) -> tuple[Doubling, float, Sample | Blocks]:
    """An engine whose sites report by chance, what a report stands for, and their rule."""
    engine = make(len(counts), 0.3)
    engine.begin(counts)
    wish = engine.hear(0, Every(), counts[0], 1, counts[0])
    assert isinstance(wish, RuleChange)
    rule = wish.wider[0]
    assert isinstance(rule, Sample | Blocks)
    return engine, engine.tally.step, rule


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
def test_the_server_shows_a_block_for_each_report() -> None:
    engine, step, rule = begun(block, [1000, 500])
    for site, since, reports in ((0, 1000, 1), (1, 500, 2), (0, 1000, 3), (0, 1000, 3)):
        engine.hear(site, rule, since, reports, since + 7)
    assert engine.estimate().value == pytest.approx(1500 + 5 * step)


def wrong_at_the_end(make: Make, constant: float, seed: int) -> int:
    """How many of the runs over items that do not look are off by more than alpha at the end."""
    alpha, items, wrong = 0.1, 400, 0
    for rng in default_rng(seed).spawn(RUNS):
        run = PlainRun(4, make(4, alpha, constant), rng.random)
        for i in range(items):
            run.add(i % 4)
        wrong += abs(run.output - items) > alpha * items
    return wrong


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
def test_at_one_time_it_is_wrong_at_most_as_often_as_hoeffding_says(seed: int) -> None:
    hoeffding = 2 * math.exp(-(3.0**2) / 2)
    assert_rate_at_most(wrong_at_the_end(block, 3.0, seed), RUNS, hoeffding)
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong_at_the_end(block, 0.5, seed), RUNS, hoeffding)


# Huang, Yi and Zhang


def test_at_one_time_it_is_wrong_at_most_as_often_as_chebyshev_says(seed: int) -> None:
    assert_rate_at_most(wrong_at_the_end(huang_yi_zhang, 3.0, seed), RUNS, 1 / 9)
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong_at_the_end(huang_yi_zhang, 0.5, seed), RUNS, 1 / 9)


def law_of_the_last_report(items: int, p: Fraction) -> Law:
    """The probability of each last reported count of a site; 0 where it never reported."""
    never = [((1 - p) ** items, 0)]
    return never + [(p * (1 - p) ** (items - last), last) for last in range(1, items + 1)]


def moments(law: Law, items: int, correction: Fraction) -> tuple[Fraction, Fraction]:
    """Mean and mean square of the error of a site whose last count is corrected by so much."""
    found = [(chance, last + correction - items if last else -items) for chance, last in law]
    return sum(c * e for c, e in found), sum(c * e * e for c, e in found)  # type: ignore[return-value]  # sums of Fractions


@given(st.integers(1, 40), st.fractions(Fraction(1, 20), Fraction(1), max_denominator=20))
def test_the_estimate_of_a_site_is_unbiased_and_its_variance_at_most_one_over_p_squared(
    items: int, p: Fraction
) -> None:
    law = law_of_the_last_report(items, p)
    mean, square = moments(law, items, 1 / p - 1)
    assert mean == 0
    assert square <= 1 / p**2
    assert moments(law, items, Fraction(0))[0] < 0 or p == 1  # without the correction
    assert moments(law, items, 1 / p)[0] > 0


def test_the_engine_takes_the_last_report_of_a_site_and_no_count_between_two() -> None:
    engine, step, rule = begun(huang_yi_zhang, [1000, 500])
    for reports, count, gained in ((0, 1012, 0.0), (1, 1015, 14 + step), (1, 1018, 14 + step)):
        engine.hear(0, rule, 1000, reports, count)
        assert engine.estimate().value == pytest.approx(1500 + gained)
    engine.hear(1, rule, 500, 2, 503)
    engine.hear(0, rule, 1000, 4, 1022)
    assert engine.estimate().value == pytest.approx(1500 + 21 + step + 2 + step)
