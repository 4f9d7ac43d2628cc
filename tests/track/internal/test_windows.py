"""Deterministic trackers: windows of the source and centred ones, against anybody."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.instruction import ONE, Every, Growth
from casemate.track.protocols.windows import (
    Windows,
    centred_rule,
    fixed,
    paper_rule,
    weight_of_top,
)
from casemate.track.protocols.windows import centred as centred_windows
from casemate.track.simulate.runs import PlainRun

alphas = st.floats(0.001, 0.9) | st.sampled_from([0.5, 0.25, 0.125, 0.01, 0.05])
streams = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=60)


def largest_error(engine: Windows, alpha: float, stream: list[tuple[int, int]]) -> float:
    """Over all times, as a multiple of alpha; items come one by one in runs at one site."""
    run, items, worst = PlainRun(4, engine, draw=lambda: 0.5), 0, 0.0
    for site, many in stream:
        for _ in range(many):
            run.add(site)
            items += 1
            worst = max(worst, abs(run.output - items) / (alpha * items))
    return worst


@given(alphas, streams)
def test_centred_windows_are_never_off_by_more_than_alpha(
    alpha: float, stream: list[tuple[int, int]]
) -> None:
    assert largest_error(centred_windows(4, alpha), alpha, stream) <= 1.0


@pytest.mark.theorem("001: Section 1.1 (deterministic tracking)")
@given(alphas, streams)
def test_the_windows_of_the_source_are_never_off_by_more_than_alpha(
    alpha: float, stream: list[tuple[int, int]]
) -> None:
    engine = Windows(4, paper_rule(alpha))
    assert largest_error(engine, alpha, stream) <= 1.0


@given(streams)
def test_reporting_everything_is_exact(stream: list[tuple[int, int]]) -> None:
    assert largest_error(Windows(4, Every()), 0.5, stream) == 0.0


@given(alphas, streams)
def test_the_truth_is_between_the_published_ends(
    alpha: float, stream: list[tuple[int, int]]
) -> None:
    engine = centred_windows(4, alpha)
    run, items = PlainRun(4, engine, draw=lambda: 0.5), 0
    for site, many in stream:
        for _ in range(many):
            run.add(site)
            items += 1
            assert engine.estimate().lo <= items <= engine.estimate().hi


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
    assert 1 <= Fraction(alpha) * ONE - fixed(alpha) < 2
    assert fixed(1e-12) == 0


def test_a_round_begins_windows_at_the_exact_counts() -> None:
    engine = centred_windows(2, 0.1)
    engine.begin([1000, 0])
    assert (engine.estimate().lo, engine.estimate().hi) == (1000, centred_rule(0.1).top(1000))
