"""Huang, Yi and Zhang's tracker: right on average, and what an adversary makes of it."""

from fractions import Fraction

import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from track.oblivious.runs import RUNS, attacked, wrong_at_the_end

from casemate.track.instruction import Sample
from casemate.track.protocols.oblivious.huang_yi_zhang import (
    LastCounts,
    chance_of_error,
    huang_yi_zhang,
    simulate_huang_yi_zhang,
)
from casemate.track.setting import Setting

Law = list[tuple[Fraction, int]]


def law_of_the_last_report(items: int, p: Fraction) -> Law:
    """The probability of each last reported count of a site; 0 where it never reported."""
    never = [((1 - p) ** items, 0)]
    return never + [(p * (1 - p) ** (items - last), last) for last in range(1, items + 1)]


def moments(law: Law, items: int, correction: Fraction) -> tuple[Fraction, Fraction]:
    """Mean and mean square of the error of a site whose last count is corrected by so much."""
    errors = [(chance, last + correction - items if last else -items) for chance, last in law]
    return sum(c * e for c, e in errors), sum(c * e * e for c, e in errors)  # type: ignore[return-value]  # sums of Fractions


chances = st.fractions(Fraction(1, 20), Fraction(1), max_denominator=20)


@given(st.integers(0, 40), chances)
def test_the_estimate_of_a_site_is_unbiased_and_its_variance_at_most_one_over_p_squared(
    items: int, p: Fraction
) -> None:
    mean, square = moments(law_of_the_last_report(items, p), items, 1 / p - 1)
    assert mean == 0
    assert square <= 1 / p**2


@given(st.integers(1, 40), chances)
def test_without_the_correction_it_would_be_biased(items: int, p: Fraction) -> None:
    law = law_of_the_last_report(items, p)
    assert moments(law, items, Fraction(0))[0] < 0 or p == 1
    assert moments(law, items, 1 / p)[0] > 0


def last_counts(p: float, items: int, seed: int) -> list[int]:
    """What sites reported last, as the engine's estimate takes it."""
    rng, found = default_rng(seed), []
    for _ in range(20_000):
        scheme, at, reports = LastCounts(), 0, 0
        scheme.begin(Sample(p))
        while (at := at + int(rng.geometric(p))) <= items:
            scheme.hear(0, 0, reports := reports + 1, at)
        found.append(round(scheme.gained() - 1 / p + 1) if reports else 0)
    return found


def test_the_engine_takes_the_last_report_of_a_site(seed: int) -> None:
    assert_follows(last_counts(0.2, 12, seed), lambda last: _cdf(last, 12, 0.2))


def test_the_law_can_be_told_from_a_neighbour(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_follows(last_counts(0.2, 12, seed), lambda last: _cdf(last, 12, 0.23))


def _cdf(last: int, items: int, p: float) -> float:
    return 0.0 if last < 0 else float((1 - p) ** (items - last))


def test_a_count_between_two_reports_changes_nothing() -> None:
    scheme = LastCounts()
    scheme.begin(Sample(0.25))
    scheme.hear(3, 10, 0, 12)
    assert scheme.gained() == 0.0
    scheme.hear(3, 10, 1, 15)
    assert scheme.gained() == 5 - 1 + 4
    scheme.hear(3, 10, 1, 18)
    assert scheme.gained() == 5 - 1 + 4


def test_at_one_time_it_is_wrong_at_most_as_often_as_chebyshev_says(seed: int) -> None:
    assert chance_of_error(3.0) == 1 / 9
    assert_rate_at_most(wrong_at_the_end(huang_yi_zhang, 3.0, seed), RUNS, chance_of_error(3.0))


def test_that_bound_says_something(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong_at_the_end(huang_yi_zhang, 0.5, seed), RUNS, chance_of_error(3.0))


@pytest.mark.parametrize(
    ("sites", "alpha", "items", "least"),
    [(256, 0.02, 400_000, 3.2), (1024, 0.01, 800_000, 7.0), (4096, 0.01, 1_600_000, 13.0)],
)
def test_stop_on_change_drives_every_run_far_past_alpha(
    sites: int, alpha: float, items: int, least: float, seed: int
) -> None:
    setting = Setting(sites, alpha, items=items)
    errors = attacked(simulate_huang_yi_zhang, setting, "stop-on-change", seed)
    assert min(errors) > least
    assert max(errors) < sites**0.5 / 4  # 1/p - 1 too many at each site
