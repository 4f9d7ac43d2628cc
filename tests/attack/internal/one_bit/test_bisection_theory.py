"""What the lemmas of OnlineBisection say, printed and sharp, against slower computations."""

import math
from itertools import product

import numpy as np
import pytest
from attack.bisection_streams import stream_setting
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from casemate.attack.one_bit.bisection import (
    PRINTED,
    TIGHT,
    UNREACHABLE_COUNT,
    BisectionConstants,
    HalfEvidence,
    first_side,
    gaps,
)
from casemate.attack.one_bit.laws import Exponential, Gaussian, MixtureLaw, Shifted, Uniform
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import printed_angle
from casemate.papers import (
    delay_bound,
    error_bound,
    extent,
    extent_printed,
    loss_bound,
    wrong_side,
    wrong_side_printed,
)

chances = st.floats(0.01, 0.49)
sizes = st.integers(1, 5)


# Lemma 4.1 ----------------------------------------------------------------------------------------


def exact_wrong_side(observations: int, least: float, difference: float) -> float:
    """The larger of the two tails of Lemma 4.1, from the binomial law itself."""
    cut = observations * (least + difference / 2)
    return float(
        max(
            binom.sf(math.ceil(cut) - 1, observations, least),
            binom.cdf(math.ceil(cut) - 1, observations, least + difference),
        )
    )


@pytest.mark.theorem("000: Lemma 4.1")
@given(st.integers(1, 4_000), chances, chances)
def test_a_count_is_rarely_on_the_wrong_side_of_the_middle(
    observations: int, least: float, difference: float
) -> None:
    exact = exact_wrong_side(observations, least, difference)
    assert exact <= wrong_side(observations, difference) * (1 + 1e-9)
    assert wrong_side(observations, difference) <= wrong_side_printed(observations, difference)


def test_an_exponent_larger_than_hoeffdings_would_be_noticed() -> None:
    """Near one half the binomial tail is as Hoeffding says: twice the exponent is too much."""
    assert exact_wrong_side(4_000, 0.475, 0.05) > math.exp(-4_000 * 0.05**2)


def test_six_does_what_thirty_was_for() -> None:
    """Both constants are for a chance of T^-3 in their own inequality."""
    horizon, evidence = 10**5, HalfEvidence(0.4, 0.2)
    for bound, constants in ((wrong_side_printed, PRINTED), (wrong_side, TIGHT)):
        needed = evidence.critical_count(constants, horizon)
        assert bound(needed, 0.2) == pytest.approx(horizon**-3, rel=0.05)


# Lemma 4.3 ----------------------------------------------------------------------------------------


def unit(rng: np.random.Generator, angle: float, directions: int) -> Floats:
    """A vector of length 1 at exactly this angle from the first axis."""
    across = rng.normal(size=directions - 1)
    return np.concatenate([[math.cos(angle)], math.sin(angle) * across / np.linalg.norm(across)])


def solved_extent(z: Floats, share: float) -> float:
    """The extent along the first axis of what lies below a share of the unit cube, by simplex."""
    least, most = np.minimum(z, 0).sum(), np.maximum(z, 0).sum()
    cut = least + share * (most - least)
    ends = [
        np.asarray(linprog(sign * np.eye(len(z))[0], z[None], [cut], bounds=(0, 1)).x)[0]
        for sign in (-1.0, 1.0)
    ]
    return float(ends[0] - ends[1])


@pytest.mark.theorem("000: Lemma 4.3")
@pytest.mark.parametrize("case", range(12))
def test_a_cut_leaves_no_more_of_a_cube_than_the_lemma_says(case: int, seed: int) -> None:
    rng = np.random.default_rng([seed, case])
    directions, angle, share = 2 + case % 4, rng.uniform(0.001, 0.3), rng.uniform(0.1, 0.9)
    found = solved_extent(unit(rng, angle, directions), share)
    assert found <= extent(share, angle, directions) + 1e-9
    assert extent(share, angle, directions) <= extent_printed(share, angle, directions)
    upper = solved_extent(-unit(rng, angle, directions), 1 - share)
    assert upper <= extent(1 - share, angle, directions) + 1e-9


@pytest.mark.parametrize("directions", [2, 3, 5])
def test_the_sharp_form_of_the_lemma_is_attained(directions: int) -> None:
    """By a vector that leans to all other axes alike; the printed slack is 8 times too large."""
    angle, share = printed_angle(directions), 0.5
    leaning = np.full(directions, math.sin(angle) / math.sqrt(directions - 1))
    leaning[0] = math.cos(angle)
    assert solved_extent(leaning, share) == pytest.approx(extent(share, angle, directions))
    slack = extent(share, angle, directions) - share
    assert extent_printed(share, angle, directions) - share > 8 * slack


def test_the_unit_vector_of_the_lemma_divides_by_the_length_and_not_by_its_root() -> None:
    side = 4.0
    along = np.array([side, 0.0])
    assert np.linalg.norm(along / side) == 1
    assert np.linalg.norm(along / math.sqrt(side)) == 2


# Gaps and evidence --------------------------------------------------------------------------------


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=3), st.floats(0.001, 0.7))
def test_no_query_within_the_angle_is_nearer_to_its_threshold_than_the_gap(
    sides: list[float], angle: float
) -> None:
    """The worst corner of the outer quarter, against the worst direction across."""
    widths, constants = np.array(sides), BisectionConstants(exact_gap=True, angle=angle)
    found = gaps(widths, constants)
    for i, side in enumerate(sides):
        others = np.delete(widths, i)
        across = others / (np.linalg.norm(others) or 1.0)
        corners = product(*((-other / 2, other / 2) for other in others))
        worst = min(
            math.cos(angle) * side / 4 + math.sin(angle) * float(across @ np.array(corner))
            for corner in corners
        )
        assert worst == pytest.approx(found[i], abs=1e-9)


@given(sizes)
def test_the_exact_gap_is_nearly_twice_the_printed_one(directions: int) -> None:
    sides = np.full(directions, 3.0)
    assert gaps(sides, PRINTED) == pytest.approx(3 / 8)
    assert np.all(gaps(sides, TIGHT) >= 0.233 * 3)
    assert np.all(gaps(sides, TIGHT) <= 0.25 * 3)


def test_the_gap_shrinks_with_the_shortest_query() -> None:
    sides = np.full(2, 3.0)
    assert gaps(sides, BisectionConstants(shortest=0.25)) == pytest.approx(gaps(sides, PRINTED) / 4)


def test_an_eighth_is_not_used_where_it_is_not_true() -> None:
    """At a wide angle, and beside a side that is much longer, the true gap is smaller."""
    assert gaps(np.full(2, 1.0), BisectionConstants(angle=0.5))[0] < 0
    assert gaps(np.array([1.0, 30.0]), PRINTED)[0] < 0


@given(st.floats(0.01, 3))
def test_evidence_is_the_chance_of_noise_within_the_gap(gap: float) -> None:
    law = Gaussian(1.0)
    evidence = HalfEvidence.of(law, gap)
    assert evidence.least == pytest.approx(1 - float(law.cdf(gap)))
    assert evidence.difference == pytest.approx(float(law.cdf(gap) - law.cdf(-gap)))
    assert evidence.middle == pytest.approx(0.5)


def test_skewed_noise_moves_the_middle_and_nothing_else_is_needed_of_it() -> None:
    evidence = HalfEvidence.of(Exponential(1.0), 0.5)
    assert evidence.middle != pytest.approx(0.5, abs=0.01)
    assert evidence.least < evidence.middle < evidence.least + evidence.difference


def test_noise_without_density_near_its_median_never_gives_evidence() -> None:
    humps = MixtureLaw((Shifted(Uniform(0.1), -1.0), Shifted(Uniform(0.1), 1.0)), (0.5, 0.5))
    assert HalfEvidence.of(humps, 0.5).critical_count(PRINTED, 100) == UNREACHABLE_COUNT
    assert HalfEvidence.of(Gaussian(1.0), -0.1).critical_count(PRINTED, 100) == UNREACHABLE_COUNT


@pytest.mark.parametrize(("dimension", "u"), [(16, 1.0), (64, 1.0), (256, 0.1)])
def test_the_first_shrink_needs_480_u_squared_d_log_t_queries_near_each_direction(
    dimension: int, u: float
) -> None:
    law, horizon = Uniform(dimension * u), 10**6
    gap = float(gaps(np.full(2, first_side(dimension)), PRINTED)[0])
    needed = HalfEvidence.of(law, gap).critical_count(PRINTED, horizon)
    assert needed == math.ceil(480 * u**2 * dimension * math.log(horizon) - 1e-6)


@pytest.mark.parametrize(("dimension", "directions", "u"), [(2, 1, 1.0), (4, 2, 0.5), (64, 4, 1.0)])
@pytest.mark.parametrize("horizon", [10**6, 10**8, 10**10])
def test_the_stopping_side_takes_thousands_of_u_squared_d_squared_over_log_t_of_the_stream(
    dimension: int, directions: int, u: float, horizon: int
) -> None:
    """So it is reached only if log T is above that number, over the share of a direction."""
    settings = (dimension, directions, horizon)
    setting = stream_setting(settings, Uniform(dimension * u), 1 / directions)
    total = sum(needed for _, needed, _ in setting.phases) / horizon
    unit = (u * dimension) ** 2 * directions / math.log(horizon)
    assert 2400 * unit < total < 4400 * unit
    assert total / setting.share > 1  # out of reach, here and at any length anybody can wait for


def test_the_stopping_side_is_in_reach_of_little_noise_in_two_dimensions() -> None:
    setting = stream_setting((2, 1, 10**5), Uniform(0.02), 1.0)
    assert sum(needed for _, needed, _ in setting.phases) < 10**5


# Lemma 4.2 and Theorem 2.1 ------------------------------------------------------------------------


def learning(dimension: int, share: float = 1.0, directions: int = 1) -> float:
    """The first term of Lemma 4.2, when the stopping side is reached long before the end."""
    setting = stream_setting((dimension, directions, 10**18), Uniform(dimension * 1e-5), share)
    worst = math.sqrt(dimension * directions) / 2
    return sum(2 * needed / share * worst * side for side, needed, _ in setting.phases)


@pytest.mark.theorem("000: Lemma 4.2")
def test_the_cumulative_error_grows_as_d_to_five_halves_and_one_over_the_share() -> None:
    """From 81 to 256 dimensions the first side grows by (4/3)^2, so that the phases line up.

    The printed bound has D^(7/2), because 1 / phi^2 carries 1 / L^2, which its proof drops.
    """
    power = math.log(learning(256) / learning(81)) / math.log(256 / 81)
    assert power == pytest.approx(2.5, abs=0.02)
    assert learning(81, share=0.1) == pytest.approx(10 * learning(81))


@pytest.mark.theorem("000: Theorem 2.1")
@pytest.mark.parametrize("constants", [PRINTED, TIGHT])
def test_the_bound_falls_like_the_root_of_log_t_over_t(constants: BisectionConstants) -> None:
    horizons = [10**k for k in range(8, 17, 2)]
    bounds = [
        error_bound(stream_setting((16, 2, horizon), Uniform(1.6), 0.5, constants))
        for horizon in horizons
    ]
    rates = [b * math.sqrt(t / math.log(t)) for b, t in zip(bounds, horizons, strict=True)]
    assert max(rates) <= 1.35 * min(rates)  # phases come in steps of 4/3


def test_the_chance_of_failure_counts_every_direction() -> None:
    """The printed bound forgets the union over the d directions."""
    one, eight, printed = (
        loss_bound(stream_setting((64, d, 10**5), Uniform(6.4), 1.0, constants))
        for d, constants in ((1, TIGHT), (8, TIGHT), (8, PRINTED))
    )
    assert eight == pytest.approx(8 * one, rel=0.3, abs=0)  # a few more phases fit when d is small
    assert one <= 40 * (10**5) ** -3
    assert printed < 1e-60  # thirty is far more than it needs


def test_phases_are_rarely_late() -> None:
    """Twice as many queries as are needed on average bring too few with a chance of exp(-N/4)."""
    setting = stream_setting((16, 2, 10**5), Uniform(1.6), 0.1)
    exact = 2 * sum(
        float(binom.cdf(needed - 1, math.ceil(2 * needed / 0.1), 0.1))
        for _, needed, _ in setting.phases
    )
    assert exact <= delay_bound(setting) < 1e-9


# Theorem 6.1 --------------------------------------------------------------------------------------


def test_a_symmetric_mean_is_above_a_positive_number_at_most_half_the_time() -> None:
    """So the proof of Theorem 6.1, which asks for a chance of 1 - o(1), needs absolute values."""
    for draws in (10, 100, 1_000):
        above = 1 / (math.sqrt(draws) * math.log(draws))
        heads = math.floor((above * draws + draws) / 2)  # a sum of signs is 2 heads - draws
        assert binom.sf(heads, draws, 0.5) <= 0.5
        assert 2 * binom.sf(heads, draws, 0.5) > 0.6


def test_uniform_noise_is_beaten_faster_than_one_over_the_root_of_t(seed: int) -> None:
    """Theorem 6.1 is a worst case over laws: the middle of the range errs like 1 / T here."""
    rng = np.random.default_rng(seed)
    errors = [
        np.mean([abs(draw.max() + draw.min()) / 2 for draw in rng.uniform(-1, 1, (200, draws))])
        for draws in (100, 10_000)
    ]
    assert errors[0] / errors[1] > 50  # one over the root would give 10
