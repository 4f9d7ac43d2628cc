"""The tuned robust tracker: its coins, its phases, its designs and the search for them."""

import math
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.tuned_steps import improvements
from scipy.optimize import brentq
from scipy.special import ndtr
from track.robust.coins import Outcome, SmallTracker

from casemate.track.engine import EndRound, RuleChange
from casemate.track.protocols.phases import Lengths, crossing_probability
from casemate.track.protocols.tuned import (
    DesignGrids,
    TunedDesign,
    TunedRound,
    best_budget,
    block_size,
    cheapest_design,
    design,
    failure_share,
    first_round_count,
    predicted_words,
    rate,
)
from casemate.track.protocols.windows import centred_rule, even_load_words
from casemate.track.reporting_rule import Blocks
from casemate.track.setting import Setting

HALF = 1 / math.log(2)  # the noise scale whose ratio is one half


def plan(noise_scale: float, threshold: int = 2, sites: int = 2) -> TunedDesign:
    return TunedDesign(sites, 0.1, 50.0, threshold, 2, noise_scale, 0.0)


def worst_odds(outcomes: list[Outcome], size: int) -> float:
    """By how much a transcript can change the odds that an open block has reported.

    Reports of the sites before it are taken as known, as the proof does.
    """
    weights: dict[tuple[tuple[float, ...], int, int, tuple[bool, ...]], dict[bool, Fraction]] = {}
    offsets: dict[tuple[float, ...], tuple[int, ...]] = {}
    for o in outcomes:
        assert offsets.setdefault(o.transcript, o.offsets) == o.offsets
        for site, offset in enumerate(o.offsets):
            if offset:
                key = (o.transcript, site, offset, o.reported[:site])
                sums = weights.setdefault(key, {True: Fraction(0), False: Fraction(0)})
                sums[o.reported[site]] += o.weight
    worst = 1.0
    for (_, _, offset, _), sums in weights.items():
        if not sums[True] or not sums[False]:
            return math.inf
        prior = Fraction(offset, size - offset)
        ratio = float(sums[True] / sums[False] / prior)
        worst = max(worst, ratio, 1 / ratio)
    return worst


@pytest.mark.theorem("001: Lemma 5")
@pytest.mark.parametrize("adversary", range(4))
@pytest.mark.parametrize(("threshold", "size", "items"), [(1, 2, 5), (2, 3, 4)])
def test_the_odds_of_a_secret_report_stay_within_the_ratio(
    threshold: int, size: int, items: int, adversary: int
) -> None:
    tracker = SmallTracker(plan(HALF, threshold), size, items, adversary)
    outcomes = list(tracker.outcomes())
    assert sum(o.weight for o in outcomes) == 1
    assert len({o.transcript for o in outcomes}) > 2
    assert 1 < worst_odds(outcomes, size) <= 2


def test_without_noise_a_transcript_can_tell_whether_a_block_has_reported() -> None:
    trackers = [SmallTracker(plan(0.0), 3, 5, adversary) for adversary in range(4)]
    assert max(worst_odds(list(tracker.outcomes()), 3) for tracker in trackers) == math.inf


def make_round(threshold: int = 3, size: int = 10, phases: int = 4) -> TunedRound:
    silent = TunedDesign(2, 0.1, 50.0, threshold, phases, 0.0, 0.0)
    return TunedRound(silent, [100, 200], size, lambda: 0.5)


def test_a_phase_ends_at_its_length_and_its_last_site_begins_again() -> None:
    tracked = make_round()
    assert tracked.middle() == 300 + 10 * 1
    assert tracked.hear(0, 100, 1) is None
    assert tracked.hear(1, 200, 1) is None
    assert tracked.hear(1, 200, 2) == RuleChange(narrower={1: Blocks(10.0)})
    assert tracked.middle() == 300 + 10 * (3 + 1)
    assert tracked.hear(1, 213, 0) is None  # its 13 items take the place of two reports
    assert tracked.middle() == 300 + 10 * (3 + 1) - 7
    assert tracked.hear(0, 100, 2) is None  # the next phase is as long: three reports, not five
    assert tracked.hear(1, 213, 1) is None
    assert tracked.hear(0, 100, 3) == RuleChange(narrower={0: Blocks(10.0)})


def test_reports_past_the_end_of_a_phase_count_only_by_the_exact_count() -> None:
    tracked = make_round()
    assert isinstance(tracked.hear(0, 100, 5), RuleChange)
    tracked.hear(0, 151, 0)
    assert tracked.middle() == 300 + 51 + 10 * 1


def test_a_round_ends_with_its_last_phase() -> None:
    tracked = make_round(phases=1)
    tracked.hear(0, 100, 2)
    assert tracked.hear(0, 100, 3) == EndRound()


CENTRED = {1024: 416_800, 4096: 1_384_212, 16_384: 4_403_467}  # words at alpha = .01, 1e8 items


def test_all_rounds_together_spend_at_most_delta() -> None:
    spent = sum(failure_share(0.01, number) for number in range(100_000))
    assert 0.007 < spent <= 0.01


@settings(max_examples=8)
@given(st.integers(1, 1000), st.floats(0.002, 0.9), st.floats(1e-6, 0.5), st.floats(1, 4))
def test_a_design_fails_no_more_than_it_may(
    sites: int, alpha: float, failure: float, times: float
) -> None:
    plan = design(sites, alpha, failure, times * best_budget(sites, alpha, failure))
    assert plan.failure <= failure
    assert plan.failure == plan.proved_failure() or not plan.noise_scale
    assert plan.room >= 0


def test_the_budget_is_what_lag_tilt_spread_and_the_walk_need_together() -> None:
    plan = TunedDesign(
        sites=100, alpha=0.1, budget=60.0, threshold=20, phases=5, noise_scale=2.0, spread=4.0
    )
    mean = Lengths(20, math.exp(-0.5)).mean
    assert plan.epsilon == 0.5
    assert plan.slack == pytest.approx(100 * math.tanh(0.125) + 4)
    assert plan.room == pytest.approx(60 - plan.slack - 0.9 * (mean - 1) / 2)
    assert plan.slope == pytest.approx(0.1 * (mean - 1))


def test_a_design_whose_walk_has_no_room_is_not_called_right() -> None:
    plan = design(1024, 0.01, 1e-4, best_budget(1024, 0.01, 1e-4))
    wider = TunedDesign(
        plan.sites,
        plan.alpha,
        plan.budget,
        plan.threshold + 40,
        plan.phases,
        plan.noise_scale,
        plan.spread,
    )
    assert plan.proved_failure() <= 1e-4 < wider.proved_failure()


@pytest.mark.parametrize(("sites", "alpha"), [(5000, 1e-3), (100, 0.3)])
def test_a_tiny_delta_is_met_with_noise_and_not_with_a_window_for_every_coin(
    sites: int, alpha: float
) -> None:
    failure = failure_share(1e-12, 0)
    plan = design(sites, alpha, failure, best_budget(sites, alpha, failure))
    assert plan.noise_scale > 0 and 0 < plan.failure <= failure
    assert plan.budget < sites


def test_with_a_hopeless_budget_the_first_report_ends_the_round_and_nothing_is_promised() -> None:
    plan = design(1024, 0.01, 1e-4, 20.0)
    assert (plan.phases, plan.threshold, plan.failure) == (1, 1, 1.0)


def test_few_sites_need_no_noise_and_are_right_for_sure() -> None:
    plan = design(4, 0.05, 1e-4, best_budget(4, 0.05, 1e-4))
    assert plan.noise_scale == 0 and plan.failure == plan.proved_failure() == 0
    assert plan.slack == 4


def test_blocks_are_smaller_where_the_count_may_be() -> None:
    failure = failure_share(0.01, 3)
    budget = best_budget(1024, 0.05, failure)
    count = 5.5 * budget / 0.05
    assert block_size(1024, 0.05, failure, count, count) == 5
    assert block_size(1024, 0.05, failure, count, 0.5 * count) < 5


@settings(max_examples=15)
@given(st.integers(1, 2000), st.floats(0.005, 0.9))
def test_some_round_is_always_right_where_rounds_begin(sites: int, alpha: float) -> None:
    begin, failure = first_round_count(sites, alpha, 0.01), failure_share(0.01, 0)
    least = begin / (1 + alpha)
    size = block_size(sites, alpha, failure, begin, least)
    assert design(sites, alpha, failure, alpha * least / size).failure <= failure


@pytest.mark.parametrize(("sites", "ratio"), [(1024, 0.8), (4096, 0.5), (16_384, 0.33)])
def test_fewer_words_are_predicted_than_centred_windows_send(sites: int, ratio: float) -> None:
    assert predicted_words(Setting(sites, 0.01)) <= ratio * CENTRED[sites]
    assert even_load_words(centred_rule(0.01), sites, 10**8) == pytest.approx(
        CENTRED[sites], rel=1e-3
    )


@pytest.mark.parametrize(("sites", "alpha", "literal"), [(1024, 0.01, 6.98), (4096, 0.01, 4.10)])
def test_each_step_from_the_source_to_here_saves_words(
    sites: int, alpha: float, literal: float
) -> None:
    costs = list(improvements(sites, alpha, 0.01, 10**8).values())
    assert costs[0] == pytest.approx(literal, abs=0.01)
    assert costs == sorted(costs, reverse=True) and costs[-1] < 0.1 * costs[0]


SCALES = np.geomspace(0.15, 6.0, 9)
THRESHOLDS = np.unique(np.geomspace(1, 60, 14).round())
PHASES = np.unique(np.geomspace(1, 200, 15).round())


@cache
def decay_of(scale: float, slope: float) -> float:
    """Lundberg's exponent, by its definition."""
    ratio = math.exp(-1 / scale)

    def excess(t: float) -> float:
        spread = (1 - ratio * math.exp(t)) * (1 - ratio * math.exp(-t))
        return 2 * math.log1p(-ratio) - math.log(spread) - t * slope

    return float(brentq(excess, 1e-9, 1 / scale - 1e-12)) if slope > 0 else 0.0


def strays(scale: float, room: float, slope: float, phases: float) -> float:
    """About how likely the lengths of phases stray, as docs/derivations/robust_tuned.md has it."""
    ratio = math.exp(-1 / scale)
    deviation = math.sqrt(2 * ratio / (1 - ratio) ** 2 * phases)
    late = ndtr(-(room + slope * phases) / deviation)
    early = math.exp(-decay_of(scale, slope) * room) * ndtr((slope * phases - room) / deviation)
    return float(2 * (late + early))


def cheapest_of_all(
    sites: int, alpha: float, target: float, budget: float, grows: bool
) -> tuple[float, tuple[int, int, int]]:
    """Every combination of the grids, one after the other."""
    best, where = math.inf, (-1, -1, -1)
    for i, scale in enumerate(SCALES):
        slack = sites * math.tanh(0.25 / scale) + 0.3 * math.sqrt(sites)
        for j, threshold in enumerate(THRESHOLDS):
            room = budget - slack - (1 - alpha) * (threshold - 1) / 2
            slope = alpha * (threshold - 1) if grows else 0.0
            for m, phases in enumerate(PHASES):
                cost = float(rate(sites, alpha, budget, threshold, phases))
                right = room > slope and strays(scale, room - slope, slope, phases) <= target
                if right and cost < best:
                    best, where = cost, (i, j, m)
    return best, where


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize(
    ("sites", "alpha", "target", "budget"),
    [(64, 0.05, 1e-3, 40.0), (20, 0.2, 1e-2, 25.0), (100, 0.01, 1e-5, 90.0), (9, 0.1, 1e-4, 3.0)],
)
def test_the_cheapest_is_that_of_all(
    sites: int, alpha: float, target: float, budget: float, grows: bool
) -> None:
    spread = 0.3 * math.sqrt(sites)
    grids = DesignGrids(SCALES, THRESHOLDS, PHASES)
    found = cheapest_design(sites, alpha, target, budget, spread, grids, grows)
    assert found == cheapest_of_all(sites, alpha, target, budget, grows)


LAWS = [Lengths(1, 0.5), Lengths(2, 0.9), Lengths(7, 0.6), Lengths(100, 0.65), Lengths(30, 0.99)]


def exact_law(threshold: int, ratio: Fraction, longest: int) -> dict[int, Fraction]:
    """The law by its definition; lengths above `longest` are left out, not lumped."""
    total = sum((ratio ** (threshold - c) for c in range(1, threshold)), Fraction(0))
    total += 1 / (1 - ratio)
    return {c: ratio ** abs(c - threshold) / total for c in range(1, longest + 1)}


@pytest.mark.parametrize("law", LAWS)
def test_probabilities_and_the_mean_are_those_of_the_definition(law: Lengths) -> None:
    exact = exact_law(law.threshold, Fraction(law.ratio), law.threshold + 40)
    for length, probability in exact.items():
        assert law.probability(length) == pytest.approx(float(probability), rel=1e-9)
    lengths = range(1, law.threshold + 6000)
    assert sum(map(law.probability, lengths)) == pytest.approx(1, abs=1e-9)
    mean = sum(c * law.probability(c) for c in lengths)
    assert law.mean == pytest.approx(mean, rel=1e-9)


@given(st.integers(1, 12), st.fractions("1/20", "19/20", max_denominator=20))
def test_neighbouring_lengths_and_tails_are_within_the_ratio(
    threshold: int, ratio: Fraction
) -> None:
    law = exact_law(threshold, ratio, 40)
    tail = Fraction(1)
    for length in range(1, 40):
        assert ratio <= law[length + 1] / law[length] <= 1 / ratio
        assert ratio <= (tail - law[length]) / tail <= 1
        tail -= law[length]


def test_with_a_threshold_not_drawn_again_the_first_length_breaks_the_ratio() -> None:
    ratio, threshold = Fraction(9, 10), 3
    weights = {c: ratio ** abs(c - threshold) for c in range(-200, 200)}
    first = sum(weight for c, weight in weights.items() if c <= 1)
    assert first / weights[2] > 5 / ratio


@pytest.mark.parametrize("law", LAWS)
def test_drawn_lengths_follow_the_law(law: Lengths, seed: int) -> None:
    uniforms = np.random.default_rng(seed).random(40_000).tolist()
    sums = np.cumsum([law.probability(c) for c in range(law.threshold + 4000)])
    assert_follows([law.draw_length(u) for u in uniforms], lambda c: float(sums[c]))
    wrong = Lengths(law.threshold, law.ratio * 0.9)
    with pytest.raises(AssertionError):
        assert_follows(
            [wrong.draw_length(u) for u in uniforms], lambda c: float(sums[c]), alarm=1e-6
        )


def exact_straying(law: Lengths, phases: int, room: float, slope: float = 0.0) -> float:
    """In fractions: a length so long that it strays by itself is left out of the sums that stay."""
    one = exact_law(law.threshold, Fraction(law.ratio), 200)
    inside, strayed, mean = {0: Fraction(1)}, Fraction(0), law.mean
    for j in range(phases):
        allowed = room + slope * j
        before, after = sum(inside.values(), Fraction(0)), defaultdict[int, Fraction](Fraction)
        for total, probability in inside.items():
            for length, p in one.items():
                if total + length <= (j + 1) * mean + allowed:
                    after[total + length] += probability * p
        low = (j + 1) * mean - allowed - slope if j + 1 < phases else -math.inf
        inside = {total: p for total, p in after.items() if total >= low}
        strayed += before - sum(inside.values(), Fraction(0))
    return float(strayed)


@given(
    st.integers(1, 9),
    st.sampled_from([0.125, 0.5, 0.75]),
    st.integers(1, 3),
    st.floats(0, 8),
    st.floats(0, 1),
)
def test_the_probability_of_straying_is_that_of_going_through_all_sums(
    threshold: int, ratio: float, phases: int, room: float, slope: float
) -> None:
    law = Lengths(threshold, ratio)
    slow = exact_straying(law, phases, room, slope)
    assert crossing_probability(law, phases, room, slope) == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize(("phases", "room"), [(1, 100.0), (2, 60.0), (5, 25.0)])
def test_a_very_small_probability_of_straying_is_as_exact(phases: int, room: float) -> None:
    law = Lengths(6, 0.5)
    exact = exact_straying(law, phases, room)
    assert crossing_probability(law, phases, room, 0.0) == pytest.approx(exact, rel=1e-6, abs=1e-16)
    assert crossing_probability(law, phases, room, 0.0) >= exact


def strayed(law: Lengths, allowed: NDArray[Any], runs: int, seed: int) -> int:
    """How many of so many walks stray further than is allowed."""
    phases = len(allowed)
    lengths = np.vectorize(law.draw_length)(np.random.default_rng(seed).random((runs, phases)))
    walk = np.cumsum(lengths, axis=1) - law.mean * np.arange(1, phases + 1)
    above = (walk > allowed).any(axis=1)
    below = (walk[:, :-1] < -allowed[1:]).any(axis=1)
    return int((above | below).sum())


def test_walks_of_a_real_design_stray_as_often_as_calculated(seed: int) -> None:
    plan = design(1024, 0.01, 0.02, best_budget(1024, 0.01, failure_share(0.01, 0)))
    room, slope = plan.room / 2, plan.slope / 2
    chance = crossing_probability(plan.lengths, plan.phases, room, slope)
    assert 0.02 < chance < 0.5
    hits = strayed(plan.lengths, room + slope * np.arange(plan.phases), 4000, seed)
    assert_rate_at_most(hits, 4000, chance)
    assert_rate_at_most(4000 - hits, 4000, 1 - chance)
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, 4000, chance / 2)
