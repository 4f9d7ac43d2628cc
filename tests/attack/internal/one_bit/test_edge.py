"""Thresholds at the edges of the noise: where to ask, how a bit is read, and the guard.

How near the learners come to the limit, and what becomes of a wrong law, is in `test_learners`.
"""

from itertools import pairwise

import numpy as np
import pytest
from attack.one_bit_streams import CUT, skewed, two_humps, world
from chance import assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from casemate.attack.one_bit import (
    AutomaticKalman,
    EdgeKalman,
    effective_scale,
    generic,
    near_basis,
)
from casemate.attack.one_bit.edge import (
    LEAST_HIT_RATIO,
    MOST_HIT_RATIO,
    EdgeFilter,
    Guard,
    count_hit,
    odds,
)
from casemate.attack.one_bit.laws import Exponential, Gaussian, Law, Uniform
from casemate.attack.one_bit.thresholds import (
    NEARLY_BEST_GAIN,
    OFFSET_COLUMN,
    TABLE_WIDTHS,
    UPPER_CHANCE_COLUMN,
    EdgeRule,
    _row,
    bit_reading,
    edge_rule,
    law_moments,
    place_threshold,
    table_row,
    uniform_moments,
    uniform_reading,
    widths,
)

offsets = st.floats(-2.0, 2.0)
deviations = st.floats(0.01, 3.0)
chances = st.floats(1e-9, 0.5)


# How a bit is read --------------------------------------------------------------------------------


def slow_moments(law: Law, offset: float, deviation: float) -> list[float]:
    """Adaptive quadrature, told where the corners are."""
    corners = [(offset - edge) / deviation for edge in law.edges if np.isfinite(edge)]
    inside = sorted({-9.0, 9.0, *(corner for corner in corners if abs(corner) < 9)})

    def part(power: int, low: float, high: float) -> float:
        def height(v: float) -> float:
            above = 1 - float(law.cdf(offset - deviation * v))
            return float(v**power * stats.norm.pdf(v) * above)

        return float(integrate.quad(height, low, high, limit=200)[0])

    ends = list(pairwise(inside))
    return [sum(part(power, low, high) for low, high in ends) for power in range(3)]


@given(offsets, deviations)
def test_the_closed_form_is_the_integral(offset: float, deviation: float) -> None:
    found = uniform_moments(1.0, offset, deviation)
    assert found == pytest.approx(slow_moments(Uniform(1.0), offset, deviation), abs=1e-7)


@pytest.mark.parametrize("law", [Uniform(1.0), Exponential(1.0), Gaussian(1.0)])
@pytest.mark.parametrize("deviation", [0.01, 0.3, 2.0])
def test_the_quadrature_is_the_integral_up_to_its_corners(law: Law, deviation: float) -> None:
    for offset in (-0.6, 0.0, 0.95):
        found = law_moments(law, np.array([offset]), deviation)[0]
        assert found == pytest.approx(slow_moments(law, offset, deviation), abs=2e-3)


def test_without_noise_a_bit_is_a_cut() -> None:
    nearly, sharp = uniform_moments(1e-5, 0.3, 1.0), uniform_moments(1e-9, 0.3, 1.0)
    assert nearly == pytest.approx(sharp, abs=1e-6)
    assert sharp[0] == pytest.approx(stats.norm.sf(0.3), abs=1e-12)


@given(offsets, deviations)
def test_what_both_bits_leave_is_what_there_was(offset: float, deviation: float) -> None:
    """The mean stays in place on average, and the variance splits (the law of total variance)."""
    moments = uniform_moments(1.0, offset, deviation)
    above, step_above, lost_above, step_below, lost_below, _ = bit_reading(moments, 1.0, False)
    below = 1 - above
    if min(above, below) < 1e-6:
        return
    assert above * step_above + below * step_below == pytest.approx(0, abs=1e-9)
    left = above * (1 - lost_above) + below * (1 - lost_below)
    moved = above * step_above**2 + below * step_below**2
    assert left + moved == pytest.approx(1, abs=1e-6)


def test_a_bit_that_cannot_be_is_not_read() -> None:
    chance, *moves, _ = bit_reading(uniform_moments(1.0, 2.0, 0.01), 1.0, False)
    assert chance < 1e-9
    assert moves[:2] == [0.0, 0.0]
    assert moves[2:] == pytest.approx((0.0, 0.0), abs=1e-6)


# The table of a law -------------------------------------------------------------------------------


def rule(law: Law, *deviations: float) -> EdgeRule:
    """The rule of a law by its table, of which only the rows of these deviations are made."""
    rows = np.zeros((TABLE_WIDTHS, 2, 8))
    for row in {table_row(deviation / law.scale) for deviation in deviations}:
        rows[row] = _row(law, widths()[row] * law.scale)
    return 0.0, law.scale, effective_scale(law) ** 2, rows, False


def gain(law: Law, offset: float, deviation: float) -> float:
    chance, first, _ = law_moments(law, np.array([offset]), deviation)[0]
    return float(first**2 / (chance * (1 - chance)))


def test_every_row_is_found_by_its_own_width() -> None:
    assert [table_row(width) for width in widths()] == list(range(TABLE_WIDTHS))
    assert (table_row(0.0), table_row(1e9)) == (0, TABLE_WIDTHS - 1)


@pytest.mark.parametrize("law", [Uniform(2.0), Exponential(3.0), CUT, Gaussian(5.0)])
def test_no_offset_is_much_better_than_that_of_the_table(law: Law) -> None:
    low, high = (float(law.quantile(p)) for p in (0.001, 0.999))
    for width in (0.003, 0.1, 1.0):
        deviation = width * law.scale
        rows = rule(law, deviation)[3][table_row(width)]
        found = max(gain(law, float(row[OFFSET_COLUMN]), deviation) for row in rows)
        best = max(gain(law, offset, deviation) for offset in np.linspace(low, high, 400))
        assert found >= NEARLY_BEST_GAIN * 0.97 * best


def test_the_table_of_uniform_noise_is_its_closed_form() -> None:
    closed, deviations = edge_rule(Uniform(3.0)), (1e-5, 1e-3, 0.1, 0.5)
    table = rule(Uniform(3.0), *deviations)
    for deviation in deviations:
        for draw in (0.1, 0.9):
            offset, found = place_threshold(table, deviation, draw)
            assert offset == pytest.approx(
                place_threshold(closed, deviation, draw)[0], abs=0.15 * deviation
            )
            exact = uniform_reading(closed, offset, deviation, draw)
            assert found == pytest.approx(exact, rel=0.1, abs=1e-6)


def test_smooth_noise_is_asked_at_its_median() -> None:
    rows = rule(Gaussian(1.0), *np.geomspace(1e-6, 20, 40).tolist())[3]
    offsets, fair = np.abs(rows[:, :, OFFSET_COLUMN]), rows[:, 0, 0] == 0.5
    assert offsets.max() < 0.5
    assert offsets[fair].max() == pytest.approx(0, abs=1e-9)


def test_noise_with_one_edge_is_asked_there() -> None:
    law = Exponential(1.0)
    table = rule(law, 1e-3)
    assert table[3][table_row(1e-3), 0, UPPER_CHANCE_COLUMN] == 0.0
    assert place_threshold(table, 1e-3, 0.9)[0] == pytest.approx(law.edges[0], abs=3e-3)


def test_noise_with_two_humps_is_asked_on_a_hump() -> None:
    law = two_humps(Gaussian(0.4), 1.0)
    offset, _ = place_threshold(rule(law, 0.01), 0.01, 0.1)
    assert 0.5 < offset < 1.5
    assert gain(law, offset, 0.01) > 100 * gain(law, 0.0, 0.01)


# The filter ---------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.floats(-5, 5), st.booleans(), st.sampled_from([Uniform(1.0), CUT, Exponential(1.0)]))
def test_any_threshold_can_be_learned_from(threshold: float, above: bool, law: Law) -> None:
    edge = EdgeKalman(2, law, random=np.random.default_rng(0))
    q = np.array([1.0, 0.5])
    before = edge.answer(q)
    for _ in range(20):
        edge.learn(q, threshold, above)
    assert all(np.isfinite(part).all() for part in edge.belief)
    assert edge.alarmed or (edge.answer(q) >= before if above else edge.answer(q) <= before)


def test_a_query_of_nothing_teaches_nothing() -> None:
    edge = EdgeKalman(2, Uniform(1.0), random=np.random.default_rng(0))
    nothing, before = np.zeros(2), edge.belief[0].copy()
    assert (edge.answer(nothing), edge.threshold(nothing)) == (0.0, 0.0)
    edge.learn(nothing, 0.0, above=True)
    assert edge.belief[0].tolist() == before.tolist()


def test_thresholds_stand_at_both_edges_once_the_belief_is_narrow() -> None:
    edge = EdgeKalman(1, Uniform(1.0), random=np.random.default_rng(0))
    edge.belief[1][:] *= 0.01
    offsets = {round(edge.threshold(np.ones(1)) - edge.answer(np.ones(1)), 1) for _ in range(50)}
    assert offsets == {-1.0, 1.0}


def test_after_the_alarm_thresholds_stand_at_the_median() -> None:
    edge, q = EdgeKalman(1, Uniform(0.5), random=np.random.default_rng(0)), np.ones(1)
    for place in range(300):
        edge.learn(q, edge.threshold(q), above=place % 2 == 0)
    assert edge.alarmed
    assert edge.threshold(q) == pytest.approx(edge.answer(q), abs=0.05)


def test_a_right_law_raises_no_alarm(seed: int) -> None:
    """At a stated rate of 0.001 over the whole stream; the twin is a bound 3 % too small."""

    def alarms(wrong: float) -> int:
        found = 0
        for run in range(50):
            random = np.random.default_rng([seed, run])
            at = world(near_basis(random, 16, 2, 5_000), Uniform(16.0), random)
            edge = EdgeKalman(16, Uniform(16.0 * wrong), at.stream.basis, random=random)
            edge.follow(at.stream.coordinates, at.noisy)
            found += edge.alarmed
        return found

    assert_rate_at_most(alarms(1.0), 50, rate=1e-3)
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(alarms(0.97), 50, rate=1e-3)


# The guard ----------------------------------------------------------------------------------------

BELIEF = np.zeros(1), np.zeros((1, 1))


def count(guard: Guard, chance: float, hit: bool) -> bool:
    return bool(count_hit(BELIEF, guard.state, chance, hit))


@given(chances, st.floats(0, MOST_HIT_RATIO), st.floats(LEAST_HIT_RATIO, 1.5))
def test_no_bet_gains_while_hits_come_as_often_as_is_said(
    chance: float, at_most: float, at_least: float
) -> None:
    hit, miss = np.array(odds(chance, True)), np.array(odds(chance, False))
    for true, bets in (
        (min(at_most * chance, 0.5 + 0.5 * chance), slice(2)),  # on too many
        (at_least * chance, slice(2, 4)),  # on too few
    ):
        assert ((true * hit + (1 - true) * miss)[bets] <= 1 + 1e-12).all()


def test_all_bets_together_start_with_one_purse() -> None:
    guard = Guard(0.5, *BELIEF)
    for _ in range(2**12):
        count(guard, 1e-12, hit=False)  # the bets stay what they were
    assert guard.counts[0] == 13
    assert guard.wealth.sum() == pytest.approx(1 - 1 / 14)


def test_the_best_bet_says_from_where_on_the_chances_were_wrong() -> None:
    """The belief to go back to is that at the opening before; here it is the number of bits."""
    guard = Guard(1e-6, *BELIEF)

    def hit_or_miss(hit: bool) -> bool:
        belief = guard.counts[1:].astype(float), np.zeros((1, 1))
        return bool(count_hit(belief, guard.state, 0.1, hit))

    assert not any(hit_or_miss(place % 10 == 0) for place in range(600))
    while not hit_or_miss(False):
        pass
    assert int(np.argmax(guard.wealth.max(axis=1))) == 9  # opened at the 512th
    assert guard.belief_before()[0].tolist() == [255]
    assert guard.counts[1] < 1_100


@pytest.mark.parametrize("part", [LEAST_HIT_RATIO, 1.0, MOST_HIT_RATIO, 0.0, 6.0])
def test_false_alarms_are_no_more_frequent_than_stated_and_a_wrong_law_is_found(
    part: float, seed: int
) -> None:
    """Hits come at this part of their falling chances."""
    random, falling, alarms = np.random.default_rng(seed), 3 / np.arange(12, 600), 0
    for hits in random.random((200, len(falling))) < part * falling:
        guard = Guard(0.05, *BELIEF)
        bits = zip(falling.tolist(), hits.tolist(), strict=True)
        alarms += any(count(guard, *bit) for bit in bits)
    if LEAST_HIT_RATIO <= part <= MOST_HIT_RATIO:
        assert_rate_at_most(alarms, 200, rate=0.05)
    else:
        with pytest.raises(AssertionError, match="has probability"):
            assert_rate_at_most(alarms, 200, rate=0.05)


# A learner that is told nothing -------------------------------------------------------------------


def test_the_ends_of_the_noise_are_found() -> None:
    random = np.random.default_rng(4)
    at = world(generic(random, 6, 2, 40_000), skewed(-1.6, 2.4), random)
    found = AutomaticKalman(6, at.stream.basis, random=np.random.default_rng(6))
    found.follow(at.stream.coordinates, at.noisy)
    assert isinstance(found.stage, EdgeFilter)
    assert found.stage.edges == pytest.approx((-1.6, 2.4), rel=0.01)


def test_ends_that_move_raise_the_alarm_and_it_goes_back_to_the_median() -> None:
    random = np.random.default_rng(3)
    stream, w = generic(random, 6, 2, 30_000), random.random(6)
    found = AutomaticKalman(6, stream.basis, random=np.random.default_rng(5))
    truth = stream.queries @ w
    found.follow(stream.coordinates[:6_000], truth[:6_000] + random.uniform(-2, 2, 6_000))
    reached = found.at_edge
    said = found.follow(stream.coordinates[6_000:], truth[6_000:] + random.uniform(-4, 4, 24_000))
    assert (reached, found.at_edge) == (True, False)
    assert np.abs(said.answers - truth[6_000:])[-5_000:].mean() < 0.2
